"""Documents of kube-perftest and of its successor.

Their kinds and fields are those of `scaletest.benchmarks.kinds`. Their API groups differ, and a set
appends the lists of its permutations to those of its template, where ours replaces them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

GROUPS = ("perftest.stackhpc.com", "perftest.nscale.com")
KINDS = ("IPerf", "MPIPingPong", "OpenFOAM", "RDMABandwidth", "RDMALatency", "Fio", "PyTorch")


def written_for(api_version: object) -> bool:
    """Whether a document with this apiVersion is one of theirs."""
    return str(api_version).partition("/")[0] in GROUPS


def converted(document: Mapping[str, Any], api_version: str) -> dict[str, Any]:
    """The document with our apiVersion; of a set also the template, and lists joined as there."""
    body, spec = {**document, "apiVersion": api_version}, document.get("spec")
    template = spec.get("template") if isinstance(spec, Mapping) else None
    if not isinstance(spec, Mapping) or not isinstance(template, Mapping):
        return body
    body["spec"] = {**spec, "template": {**template, "apiVersion": api_version}}
    permutations, base = spec.get("permutations"), template.get("spec") or {}
    if isinstance(permutations, Mapping):
        joined = {"product": _product, "explicit": _each}
        body["spec"]["permutations"] = {
            name: joined.get(name, _joined)(base, values) for name, values in permutations.items()
        }
    return body


def _product(base: Any, product: Any) -> Any:
    if not isinstance(base, Mapping) or not isinstance(product, Mapping):
        return product
    return {key: _each(base.get(key), values) for key, values in product.items()}


def _each(base: Any, values: Any) -> Any:
    """The values of a list, each joined with that of the template; anything else as it is."""
    if not isinstance(values, list):
        return values
    return [_joined(base, value) for value in values]


def _joined(base: Any, value: Any) -> Any:
    """A value with the lists of the template before its own; maps keep only their own keys."""
    if isinstance(base, list) and isinstance(value, list):
        return [*base, *value]
    if isinstance(base, Mapping) and isinstance(value, Mapping):
        return {key: _joined(base.get(key), inner) for key, inner in value.items()}
    return value
