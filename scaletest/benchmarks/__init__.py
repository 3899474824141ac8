"""Benchmarks of network, storage and compute, by the tools that measure them.

Only the kinds know particular tools. An executor takes a benchmark and returns its result.
"""
