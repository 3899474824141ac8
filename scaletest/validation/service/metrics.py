"""What replicas tell of themselves at /metrics, under vLLM's names.

A thread reads them beside the load, so that no answer waits for it. Counters are compared at the
two looks next to the ends of the measured time, and gauges are averaged between.
"""

import logging
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException
from urllib.error import HTTPError

from scaletest.load.http_call import HttpCall, tls_context
from scaletest.processes.periodic import Periodic
from scaletest.validation.service.visit import ReplicaMetrics

logger = logging.getLogger("scaletest.validation")
LOOK_S, PATIENCE_S = 1.0, 5.0
MOST_BYTES = 16 * 1024 * 1024
# A replica that answers with one of these serves no metrics, or not to us.
REFUSED = frozenset((401, 403, 404, 405))
NAMES = {
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:request_success_total": "requests",
    "vllm:generation_tokens_total": "tokens",
    "vllm:prefix_cache_queries_total": "queries",
    "vllm:prefix_cache_hits_total": "hits",
    "vllm:gpu_prefix_cache_queries_total": "queries",
    "vllm:gpu_prefix_cache_hits_total": "hits",
}
Figures = Mapping[str, float]


def parse_metrics(text: str) -> dict[str, float]:
    """Return figures by our names, summed over labels; what is not known is left out."""
    figures: dict[str, float] = {}
    for line in text.splitlines():
        name = NAMES.get(line.partition("{")[0].partition(" ")[0])
        if name is None:
            continue
        # the value stands behind the labels, if there are any, and before a time
        rest = line.rpartition("}")[2] if "}" in line else line.partition(" ")[2]
        with suppress(ValueError, IndexError):
            figures[name] = figures.get(name, 0.0) + float(rest.split()[0])
    return figures


class MetricsWatch:
    """Reads the replicas every second until it is closed."""

    def __init__(
        self,
        addresses: Mapping[str, str],
        call: HttpCall,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start reading.

        addresses: those of the replicas, by name. call: its headers and authority are used.
        """
        self._addresses, self._call, self._clock = addresses, call, clock
        self._context = tls_context(call)
        self._looks: list[tuple[float, dict[str, Figures]]] = []
        self.refusal = ""  # why nothing is read any longer
        self._thread = Periodic("metrics", self._look, LOOK_S)
        self._thread.start()

    def close(self) -> None:
        """End the reading."""
        self._thread.close()

    def between(self, begin: float, end: float) -> dict[str, ReplicaMetrics]:
        """Return what each replica did between two times of the clock; {} where that is unknown."""
        return metrics_between(self._looks, begin, end)

    def _look(self) -> None:
        looked: dict[str, Figures] = {}
        try:
            for name, address in self._addresses.items():
                asked = urllib.request.Request(f"{address}/metrics", headers=self._call.headers)
                with urllib.request.urlopen(
                    asked, timeout=PATIENCE_S, context=self._context
                ) as answer:
                    looked[name] = parse_metrics(answer.read(MOST_BYTES).decode("utf-8", "replace"))
        except (OSError, ValueError, HTTPException) as error:
            logger.info("metrics of the replicas cannot be read: %s", error)
            if isinstance(error, HTTPError) and error.code in REFUSED:
                self._addresses = {}
                self.refusal = f"HTTP {error.code} at {error.url}"
        else:
            self._looks.append((self._clock(), looked))


def metrics_between(
    looks: Sequence[tuple[float, Mapping[str, Figures]]], begin: float, end: float
) -> dict[str, ReplicaMetrics]:
    """Return what each replica did, from the looks within this time."""
    inside = [look for look in looks if begin <= look[0] <= end]
    if len(inside) < 2:
        return {}
    (first_at, first), (last_at, last) = inside[0], inside[-1]
    found = {}
    for name in sorted(first.keys() & last.keys()):

        def grown(figure: str, name: str = name) -> float | None:
            before, after = first[name].get(figure), last[name].get(figure)
            return None if before is None or after is None else max(0.0, after - before)

        def mean(figure: str, name: str = name) -> float | None:
            values = [look[name][figure] for _, look in inside if figure in look.get(name, {})]
            return sum(values) / len(values) if values else None

        queries, hits = grown("queries"), grown("hits")
        found[name] = ReplicaMetrics(
            seconds=last_at - first_at,
            requests=grown("requests"),
            tokens=grown("tokens"),
            running=mean("running"),
            waiting=mean("waiting"),
            cache_queries=queries,
            cache_hits=hits,
        )
    return found
