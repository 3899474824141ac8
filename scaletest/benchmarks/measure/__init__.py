"""Executors: benchmarks on this machine, on workers of a queue, and in a cluster."""
