"""scaletest measures how far device workloads scale, and names what stops them.

The names of the Python API are loaded when they are used first: importing the package must stay
free of cost, and the command line loads none of them. `__init__.pyi` has their types.
"""

import importlib

__version__ = "0.1.0"

# The module of each public name, by name; docs/reference/python.md documents them in this order.
_MODULES = {
    "Client": "scaletest.api.client",
    "Reply": "scaletest.model.record",
    "Outcome": "scaletest.model.record",
    "Record": "scaletest.model.record",
    "Workload": "scaletest.model.workload",
    "Device": "scaletest.model.workload",
    "validate": "scaletest.api.validation",
    "Plan": "scaletest.api.validation",
    "Result": "scaletest.api.result",
    "Verdict": "scaletest.model.verdict",
    "load_run": "scaletest.api.result",
    "ScaletestError": "scaletest.model.errors",
    "UsageError": "scaletest.model.errors",
    "InvalidValue": "scaletest.model.errors",
    "UndeclaredQueue": "scaletest.model.errors",
    "NoDevice": "scaletest.model.errors",
    "RequestsFailed": "scaletest.model.errors",
    "QueueFull": "scaletest.model.errors",
    "WaitTimeout": "scaletest.model.errors",
    "AgentLost": "scaletest.model.errors",
    "Unreachable": "scaletest.model.errors",
    "NoServer": "scaletest.model.errors",
    "NotPassed": "scaletest.model.errors",
}

__all__ = [*_MODULES, "__version__"]


def __getattr__(name: str) -> object:
    """Load a public name."""
    if name not in _MODULES:
        raise AttributeError(f"module 'scaletest' has no attribute {name!r}")
    public = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = public
    return public


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
