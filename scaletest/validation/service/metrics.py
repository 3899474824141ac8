"""What replicas tell of themselves at /metrics, under vLLM's names.

A thread reads them beside the load, so that no answer waits for it. Counters are compared at the
two looks next to the ends of the measured time, and gauges are averaged between.
"""

import logging
import statistics
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from http.client import HTTPException
from typing import NamedTuple

from scaletest.load.http_call import HttpCall, tls_context
from scaletest.processes.periodic import Periodic
from scaletest.validation.service.visit import ReplicaMetrics

logger = logging.getLogger("scaletest.validation")
LOOK_S = 1.0
# A replica has this long to answer, and may answer with so much.
ANSWER_LIMIT_S = 5.0
MOST_BYTES = 16 * 1024 * 1024
# vLLM's names of figures that only grow, and of those that rise and fall, with the fields of
# ReplicaMetrics that are their sums; tokens become those of a second.
COUNTERS = {
    "vllm:request_success_total": "requests",
    "vllm:generation_tokens_total": "tokens",
    "vllm:prefix_cache_queries_total": "cache_queries",
    "vllm:prefix_cache_hits_total": "cache_hits",
}
GAUGES = {
    "vllm:num_requests_running": "held",
    "vllm:num_requests_waiting": "held",
}
FIELDS = {**COUNTERS, **GAUGES}


class Look(NamedTuple):
    """What the replicas told at one time."""

    at_s: float  # of the monotonic clock
    replicas: Mapping[str, Mapping[str, float]]  # figures by replica, and by field


@contextmanager
def watch_metrics(addresses: Mapping[str, str], call: HttpCall) -> Iterator[Sequence[Look]]:
    """Read the replicas every second; give the looks so far, of which more come meanwhile.

    addresses: those of the replicas, by name. call: its headers and authority are used.
    """
    context = tls_context(call)
    looks: list[Look] = []

    def look() -> None:
        replicas = {}
        try:
            for name, address in addresses.items():
                asked = urllib.request.Request(f"{address}/metrics", headers=call.headers)
                with urllib.request.urlopen(
                    asked, timeout=ANSWER_LIMIT_S, context=context
                ) as answer:
                    text = answer.read(MOST_BYTES).decode("utf-8", "replace")
                replicas[name] = parse_metrics(text)
        except (OSError, ValueError, HTTPException) as error:
            logger.info("metrics of the replicas cannot be read: %s", error)
        else:
            looks.append(Look(time.monotonic(), replicas))

    with closing(Periodic("metrics", look, LOOK_S)) as thread:
        thread.start()
        yield looks


def parse_metrics(text: str) -> dict[str, float]:
    """Return figures by field, summed over labels; what is not known is left out."""
    figures: dict[str, float] = defaultdict(float)
    for line in text.splitlines():
        field = FIELDS.get(line.partition("{")[0].partition(" ")[0])
        if field is None:
            continue
        # the value stands behind the labels, if there are any, and before a time
        rest = line.rpartition("}")[2] if "}" in line else line.partition(" ")[2]
        with suppress(ValueError, IndexError):
            value = float(rest.split()[0])
            figures[field] += value
    return dict(figures)


def metrics_between(
    looks: Sequence[Look], begin_s: float, end_s: float
) -> dict[str, ReplicaMetrics]:
    """Return what each replica did between two times of the clock; {} where that is unknown."""
    inside = [look for look in looks if begin_s <= look.at_s <= end_s]
    if len(inside) < 2:
        return {}
    found = {}
    for name in sorted(inside[0].replicas):
        readings = [look.replicas[name] for look in inside]
        first, last = readings[0], readings[-1]
        figures = {}
        for field in COUNTERS.values():
            if field in first and field in last:
                figures[field] = max(0.0, last[field] - first[field])
        for field in set(GAUGES.values()):
            values = [reading[field] for reading in readings if field in reading]
            if values:
                figures[field] = statistics.fmean(values)
        if "tokens" in figures:
            figures["tokens_per_s"] = figures.pop("tokens") / (inside[-1].at_s - inside[0].at_s)
        found[name] = ReplicaMetrics(**figures)
    return found
