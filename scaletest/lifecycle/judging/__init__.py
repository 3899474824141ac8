"""Lifecycles of workloads: durations between milestones, their spread, books and thresholds.

Pure. A duration has both ends from one clock wherever one clock observed both. A milestone that was
not observed is missing and counted, never zero and never guessed.
"""
