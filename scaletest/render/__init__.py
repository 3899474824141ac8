"""Numbers, text and charts as people read them: SVG, escaping, units. Shared by reports, web pages and the exporter.

Pure functions of values: no file, no socket, no clock, and no knowledge of runs. What is drawn is decided above.
"""
