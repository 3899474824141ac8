"""kopf: which objects there are, when to look at each, and what happens before one goes.

A look that fails is repeated by the next one; a timer on each object that has not ended looks every second.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, cast

import kopf
from prometheus_client import CollectorRegistry, Counter

from scaletest.benchmarks.kept import Reads
from scaletest.kinds.kind import Kind
from scaletest.kinds.registry import GROUP, KINDS, VERSION
from scaletest.model.errors import ScaletestError
from scaletest.operator import benchmark_reconciler, http_endpoints, set_reconciler, status
from scaletest.operator.benchmark_reconciler import Settings
from scaletest.operator.queueing import LOOK_S, Line, entry, idle

WORKERS = 16
Index = kopf.Index[Any, Any]
logger = logging.getLogger("scaletest.operator")


class Metrics:
    """What Prometheus may know."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._phases = Counter(
            "scaletest_operator_phases", "Phases that objects reached.", ["kind", "phase"], registry=self.registry
        )
        self._errors = Counter(
            "scaletest_operator_errors", "Looks that failed and are repeated.", ["kind"], registry=self.registry
        )

    def phase(self, kind: str, phase: str) -> None:
        """An object has reached a phase."""
        self._phases.labels(kind, phase).inc()

    def error(self, kind: str) -> None:
        """A look has failed."""
        self._errors.labels(kind).inc()


def run(
    objects: Reads, image: str, namespaces: Sequence[str], metrics_port: int, stop: threading.Event | None = None,
    *, accounts: Mapping[str, str] | None = None, health_port: int = 0,
) -> None:  # fmt: skip
    """Serve until SIGTERM. namespaces: none for all. accounts: see Settings. health_port: 0 for none."""
    metrics = Metrics()
    registry = handlers(objects, Settings(image, time.time, _tell, accounts or {}), metrics)
    _healthy(registry, health_port)
    with http_endpoints.metrics(metrics_port, metrics.registry):
        kopf.run(
            registry=registry, standalone=True, clusterwide=not namespaces, namespaces=list(namespaces),
            stop_flag=stop,
        )  # fmt: skip


def _healthy(registry: kopf.OperatorRegistry, port: int) -> None:
    serving = AsyncExitStack()

    @kopf.on.startup(registry=registry)
    async def serve(**_: Any) -> None:
        await serving.enter_async_context(http_endpoints.health(port))

    @kopf.on.cleanup(registry=registry)
    async def end(**_: Any) -> None:
        await serving.aclose()


def handlers(objects: Reads, settings: Settings, metrics: Metrics) -> kopf.OperatorRegistry:
    """Everything that kopf is to call."""
    registry = kopf.OperatorRegistry()

    @kopf.on.startup(registry=registry)
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        prefix = f"operator.{GROUP}"
        settings.persistence.finalizer = f"{prefix}/clean-up"
        settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=prefix)
        settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=prefix)
        settings.execution.max_workers = WORKERS
        settings.posting.level = logging.CRITICAL
        # our definitions were there at the start; seeing others come would need rights on all
        settings.scanning.disabled = True
        # an unanswered watch is asked anew, as nothing tells that its connection is dead
        settings.watching.server_timeout = 60
        settings.watching.client_timeout = 75

    @kopf.on.login(registry=registry)
    def login(**given: Any) -> Any:
        return kopf.login_with_service_account(**given) or kopf.login_with_kubeconfig(**given)

    waiting = Line(time.monotonic)
    for kind in KINDS.values():
        _known(registry, kind)
        _benchmark(registry, kind, objects, settings, metrics, waiting)

    @kopf.timer(GROUP, VERSION, "benchmarksets", interval=LOOK_S, registry=registry, when=_set_goes_on)
    def look_at_set(body: kopf.Body, namespace: str | None, name: str, **given: Any) -> None:
        if idle(body):
            return
        known = partial(_of, given["children"])
        phase = _tried(
            "BenchmarkSet", metrics, lambda: set_reconciler.look(objects, namespace or "", name, settings, known)
        )
        if phase:
            metrics.phase("BenchmarkSet", phase)

    return registry


def _known(registry: kopf.OperatorRegistry, kind: Kind) -> None:
    """Copies of what the watches bring, so that nothing needs to be listed; they are whole before the first look."""

    @kopf.index(GROUP, VERSION, kind.plural, id="children", registry=registry)
    def children(body: kopf.Body, **_: Any) -> Any:
        return set_reconciler.child(body)

    @kopf.index(GROUP, VERSION, kind.plural, id="line", registry=registry)
    def places(body: kopf.Body, namespace: str | None, **_: Any) -> Any:
        place = entry(body)
        return {namespace: place} if place else {}


def _of(index: Index, *key: str) -> list[Any]:
    """What an index has under a key, copied at once: the watches go on meanwhile."""
    found = index.get(key if len(key) > 1 else key[0])
    return list(found) if found is not None else []


def _benchmark(
    registry: kopf.OperatorRegistry, kind: Kind, objects: Reads, settings: Settings, metrics: Metrics, waiting: Line
) -> None:
    @kopf.timer(GROUP, VERSION, kind.plural, interval=LOOK_S, registry=registry, when=_goes_on)
    def look(body: kopf.Body, namespace: str | None, name: str, **given: Any) -> None:
        if idle(body) or waiting.rests(body) or waiting.waits(body, lambda: _of(given["line"], namespace or "")):
            return
        phase = _tried(
            kind.name, metrics, lambda: benchmark_reconciler.look(kind, objects, namespace or "", name, settings)
        )
        if phase:
            metrics.phase(kind.name, str(phase))

    @kopf.on.delete(GROUP, VERSION, kind.plural, registry=registry)
    def gone(body: kopf.Body, namespace: str | None, **_: Any) -> None:
        try:
            benchmark_reconciler.gone(kind, objects, namespace or "", dict(body))
        except ScaletestError as error:
            raise kopf.TemporaryError(error.message, delay=LOOK_S) from error


def _goes_on(body: kopf.Body, **_: Any) -> bool:
    return not benchmark_reconciler.ended(dict(body)) or status.changed(body)


def _set_goes_on(body: kopf.Body, **_: Any) -> bool:
    return not (body.get("status") or {}).get("finishedAt") or status.changed(body)


def _tried(kind: str, metrics: Metrics, look: Callable[[], Any]) -> Any:
    """What the look gave; None when it failed, which the next one mends."""
    try:
        return look()
    except ScaletestError as error:
        metrics.error(kind)
        logger.warning("%s; trying again", error)
        return None
    except Exception:
        # a mistake of ours; whoever looks at the metrics is to learn of it
        metrics.error(kind)
        raise


def _tell(document: dict[str, Any], kind: str, reason: str, message: str) -> None:
    kopf.event(cast(kopf.Body, document), type=kind, reason=reason, message=message)
