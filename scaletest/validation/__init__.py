"""Validations: how far throughput grows with the workers, and what stops it."""
