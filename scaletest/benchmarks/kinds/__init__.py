"""Benchmark kinds: spec, command line and output parser of each tool, in a file or a few.

Pure: nothing here starts a program, or reads a file or a clock.
"""
