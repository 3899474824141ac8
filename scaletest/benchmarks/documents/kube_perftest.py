"""Convert documents of kube-perftest and of its successor into ours.

Their kinds and fields are those of `scaletest.benchmarks.kinds`. Their API groups differ, and a set
appends the lists of its permutations to those of its template, where ours replaces them.
"""

from collections.abc import Mapping
from typing import Any

GROUPS = ("perftest.stackhpc.com", "perftest.nscale.com")
KINDS = ("IPerf", "MPIPingPong", "OpenFOAM", "RDMABandwidth", "RDMALatency", "Fio", "PyTorch")


def convert(document: Mapping[str, Any], api_version: str) -> dict[str, Any]:
    """Convert a document to our apiVersion; of a set also its template, with lists joined."""
    body, spec = {**document, "apiVersion": api_version}, document.get("spec")
    template = spec.get("template") if isinstance(spec, Mapping) else None
    if not isinstance(spec, Mapping) or not isinstance(template, Mapping):
        return body
    body["spec"] = {**spec, "template": {**template, "apiVersion": api_version}}
    permutations, base = spec.get("permutations"), template.get("spec") or {}
    if not isinstance(permutations, Mapping):
        return body
    # what is malformed stays as it is, so that the reader refuses it with its own words
    converted = dict(permutations)
    product = permutations.get("product")
    if isinstance(base, Mapping) and isinstance(product, Mapping):
        converted["product"] = {
            key: _join_each(base.get(key), values) for key, values in product.items()
        }
    if "explicit" in permutations:
        converted["explicit"] = _join_each(base, permutations["explicit"])
    body["spec"]["permutations"] = converted
    return body


def _join_each(base: Any, values: Any) -> Any:
    """Join each value of a list with that of the template; return anything else as it is."""
    return [_join(base, value) for value in values] if isinstance(values, list) else values


def _join(base: Any, value: Any) -> Any:
    """Put the lists of the template before those of a value; maps keep only their own keys."""
    if isinstance(base, list) and isinstance(value, list):
        return [*base, *value]
    if isinstance(base, Mapping) and isinstance(value, Mapping):
        return {key: _join(base.get(key), inner) for key, inner in value.items()}
    return value
