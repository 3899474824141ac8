"""Estimates, percentiles, comparison, thresholds, growth laws and the order of verdicts.

All of it is pure: no clock, no file, and no random numbers but those that the caller passes in.
"""
