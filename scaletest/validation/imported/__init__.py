"""Validations of services that a load tool measured: its result files are read and judged."""
