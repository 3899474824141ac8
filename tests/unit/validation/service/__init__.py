"""Tests of validations of services."""
