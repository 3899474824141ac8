"""Validations as reports: `report` makes one of a run."""
