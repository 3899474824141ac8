"""scaletest: how far do device workloads scale, and what stops them?

The package root holds the version and nothing else; importing it must stay free of cost.
"""

__version__ = "0.1.0"
