"""HTTP of the client's pages and of the exporter: a server that stands against slow peers, and its names."""
