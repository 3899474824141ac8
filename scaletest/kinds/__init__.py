"""Kinds: one or a few files a tool: what it is asked for, its arguments, and what its output says.

Pure, beside analysis: nothing here starts a program, reads a file or a clock.
"""
