"""Estimates, percentiles, comparison, thresholds, growth laws and the order of verdicts. Pure: no
clock, no file, no chance but the caller's.
"""
