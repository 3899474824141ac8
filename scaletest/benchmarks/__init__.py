"""Benchmarks: sets expanded, ordered and run by executors.

Knows the kinds and nothing of any tool; an executor is told a benchmark and gives back what came of it. Statistics over
repetitions are analysis; what is on disk is archive's.
"""
