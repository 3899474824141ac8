"""Validations: plan -> steps -> records -> verdict, independent of where workers and load run."""
