"""Benchmarks of network, storage and compute, by the tools that measure them.

All but the kinds knows no particular tool. An executor takes a benchmark and returns its result.
"""
