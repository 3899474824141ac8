"""Saturation runs as reports: `report` makes one of a run."""
