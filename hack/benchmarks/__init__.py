"""Speed, always as ratios of things that alternate in one run, with their spread.

Tests never time; this does.
"""
