"""Benchmarks as objects of a cluster: manifests, what one benchmark owns, and its pods' states."""
