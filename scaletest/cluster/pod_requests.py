"""Parse what pods request, and their limits."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

# The suffixes of Kubernetes' quantities; the first that fits counts, and longer ones come first.
SUFFIXES = {
    **{f"{prefix}i": Decimal(1024**power) for power, prefix in enumerate("KMGTPE", 1)},
    **{prefix: Decimal(1000**power) for power, prefix in enumerate("kMGTPE", 1)},
    "m": Decimal("1e-3"),
    "u": Decimal("1e-6"),
    "n": Decimal("1e-9"),
    "": Decimal(1),
}


def parse_quantity(text: str | int) -> Decimal:
    """Parse a Kubernetes quantity as a number: "250m" is 0.25, "1Gi" is 2**30; 0 for other text."""
    number = str(text)
    suffix = next(filter(number.endswith, SUFFIXES))
    try:
        return Decimal(number.removesuffix(suffix)) * SUFFIXES[suffix]
    except InvalidOperation:
        return Decimal(0)


def pod_requests(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return the requests of a pod by resource, and one of the resource "pods".

    Of each resource it is the sum of the containers, or the largest init container: these run one
    after the other before the containers start.
    """
    largest = sum_amounts(map(container_requests, spec.get("containers", [])))
    for container in spec.get("initContainers", []):
        for name, amount in container_requests(container).items():
            largest[name] = max(largest.get(name, Decimal(0)), amount)
    return {**largest, "pods": Decimal(1)}


def pod_limits(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return the limits of a pod: the sum of its containers."""
    resources = [container.get("resources") or {} for container in spec.get("containers", [])]
    return sum_amounts(parse_quantities(amounts.get("limits") or {}) for amounts in resources)


def sum_amounts(requests: Iterable[Mapping[str, Decimal]]) -> dict[str, Decimal]:
    """Return the sum of each resource."""
    total: dict[str, Decimal] = defaultdict(Decimal)
    for amounts in requests:
        for name, amount in amounts.items():
            total[name] += amount
    return total


def parse_quantities(texts: Mapping[str, str | int]) -> dict[str, Decimal]:
    """Parse the quantity of each resource."""
    return {name: parse_quantity(text) for name, text in texts.items()}


def container_requests(container: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return the requests of a container; as in Kubernetes, a limit is the request by default."""
    resources = container.get("resources") or {}
    return parse_quantities(
        {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    )
