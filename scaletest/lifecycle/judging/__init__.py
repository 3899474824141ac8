"""Judge lifecycles: durations between milestones, their spread, books and thresholds.

Nothing here reads or writes. A milestone that was not observed is missing and counted, never zero
and never guessed.
"""
