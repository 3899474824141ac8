"""scaletest: how far do device workloads scale, and what stops them?

Public names are imported from their modules when they are asked for: importing the package must
stay free of cost.
"""

from importlib import import_module

__version__ = "0.1.0"

_PUBLIC = {
    "NotPassed": "scaletest.model.errors",
    "Plan": "scaletest.api.validation",
    "Result": "scaletest.api.result",
    "Verdict": "scaletest.model.verdict",
    "load_run": "scaletest.api.result",
    "validate": "scaletest.api.validation",
}
__all__ = list(_PUBLIC)


def __getattr__(name: str) -> object:
    """The public object of that name."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_PUBLIC]
