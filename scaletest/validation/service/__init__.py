"""Validations of services: the replicas are doubled, and loaded by us."""
