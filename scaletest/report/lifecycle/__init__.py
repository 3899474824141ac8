"""Reports of a lifecycle run: terminal, HTML, CSV, JSON, JUnit, PNG. `analysis.lifecycle` works out
what they say.
"""
