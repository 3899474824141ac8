"""Runs RQ's own tests with scaletest's worker for SimpleWorker and JSON for pickle."""
