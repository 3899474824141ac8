"""Submits workloads to a cluster and follows what becomes of them."""
