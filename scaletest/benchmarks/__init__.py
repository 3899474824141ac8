"""Benchmarks: expands and orders sets, and runs each benchmark by an executor.

This package knows benchmark kinds and no particular tool. An executor takes a benchmark and returns
its result. Statistics over repetitions belong to `analysis`, files of a run to `archive`.
"""
