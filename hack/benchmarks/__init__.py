"""The programs of hack/bench and hack/bars: speed, as ratios of things that alternate in one run.

Tests never time; these do.
"""
