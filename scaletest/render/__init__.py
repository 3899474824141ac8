"""Numbers, text and charts for people, in reports, web pages and on terminals.

Pure functions: no file, no socket, no clock, and no knowledge of runs. Callers decide what is
drawn.
"""
