"""Workloads that a worker can run, one per file; base.py has their interface."""
