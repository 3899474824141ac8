"""Statistics as pure functions of records. Standard library only; no clock, no file, no randomness
of its own.
"""
