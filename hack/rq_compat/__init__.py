"""Runs RQ's own tests with scaletest's worker in place of SimpleWorker and JSON in place of
pickle.
"""
