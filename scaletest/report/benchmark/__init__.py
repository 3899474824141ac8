"""Runs of benchmarks as reports: `report` makes one of a run."""
