"""HTTP server of the client's pages and of the exporter, robust against slow peers."""
