"""Numbers, text and charts for people: SVG, escaping, units, for reports, web pages and the
exporter.

Pure functions: no file, no socket, no clock, and no knowledge of runs. Callers decide what is
drawn.
"""
