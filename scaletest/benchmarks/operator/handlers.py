"""Register the handlers of kopf: what to watch, when to reconcile, what to do before a deletion.

A timer on each object that has not ended fires every second, so a failed pass is repeated by the
next one.
"""

import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, cast

import kopf
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, make_wsgi_app

from scaletest.benchmarks.documents import kube_perftest
from scaletest.benchmarks.kinds import GROUP, VERSION, Kind
from scaletest.benchmarks.kinds.registry import KINDS
from scaletest.benchmarks.measure.operator_executor import resource_of
from scaletest.benchmarks.operator import (
    benchmark_reconciler,
    perftest,
    queueing,
    reporting,
    set_reconciler,
)
from scaletest.cluster.objects import Document, ObjectClient
from scaletest.cluster.resources import Resource
from scaletest.model import errors
from scaletest.pages.server import Server

logger = logging.getLogger("scaletest.benchmarks.operator")


class Metrics:
    """Prometheus metrics of the operator."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.phases = Counter(
            "scaletest_operator_phases",
            "Phases that objects reached.",
            ["kind", "phase"],
            registry=self.registry,
        )
        self.errors = Counter(
            "scaletest_operator_errors",
            "Reconcile passes that failed and are repeated.",
            ["kind"],
            registry=self.registry,
        )


def run(
    objects: ObjectClient,
    image: str,
    namespaces: Sequence[str],
    metrics_port: int,
    *,
    pod_fields: Mapping[str, str | None] | None = None,
    perftest_group: str = "",
    health_port: int = 0,
) -> None:
    """Run until SIGTERM.

    namespaces: those to watch; none for all. pod_fields: see `ReconcileSettings`. perftest_group:
    kube-perftest's API group, to be served too. metrics_port, health_port: 0 for no endpoint.
    """

    def send_event(document: Document, event_type: str, reason: str, message: str) -> None:
        kopf.event(cast(kopf.Body, document), type=event_type, reason=reason, message=message)

    metrics = Metrics()
    settings = reporting.ReconcileSettings(image, time.time, send_event, pod_fields or {})
    registry = make_registry(objects, settings, metrics)
    if perftest_group:
        _serve_perftest(registry, perftest_group, objects, settings, metrics)
    serving = AsyncExitStack()

    @kopf.on.startup(registry=registry)
    async def serve(**_: Any) -> None:
        await serving.enter_async_context(serve_health(health_port))

    @kopf.on.cleanup(registry=registry)
    async def end(**_: Any) -> None:
        await serving.aclose()

    # standalone: one operator a namespace, without kopf's own peering between several
    with serve_metrics(metrics_port, metrics.registry):
        kopf.run(
            registry=registry,
            standalone=True,
            clusterwide=not namespaces,
            namespaces=list(namespaces),
        )


def make_registry(
    objects: ObjectClient, settings: reporting.ReconcileSettings, metrics: Metrics
) -> kopf.OperatorRegistry:
    """Return a registry with all functions that kopf is to call."""
    registry = kopf.OperatorRegistry()

    @kopf.on.startup(registry=registry)
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        # a name of our own: another operator may watch the same objects
        prefix = f"operator.{GROUP}"
        settings.persistence.finalizer = f"{prefix}/clean-up"
        settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=prefix)
        settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=prefix)
        settings.execution.max_workers = 16
        # our own events say what happened; kopf would post one for each line that it logs
        settings.posting.level = logging.CRITICAL
        # our definitions exist at the start; watching for others would need rights on all of them
        settings.scanning.disabled = True
        # a watch whose connection died is silent for ever, so each one is reopened after a while
        settings.watching.server_timeout = 60
        settings.watching.client_timeout = 75

    @kopf.on.login(registry=registry)
    def login(**arguments: Any) -> Any:
        return kopf.login_with_service_account(**arguments) or kopf.login_with_kubeconfig(
            **arguments
        )

    turns = queueing.Turns(time.monotonic)
    for kind in KINDS.values():
        _add_kind(registry, kind, objects, settings, metrics=metrics, turns=turns)

    @kopf.timer(
        GROUP,
        VERSION,
        "benchmarksets",
        interval=queueing.RECONCILE_EVERY_S,
        registry=registry,
        when=_must_reconcile,
    )
    def reconcile_set(body: kopf.Body, namespace: str | None, name: str, **indices: Any) -> None:
        if queueing.is_paused(body):
            return
        _count_pass(
            "BenchmarkSet",
            metrics,
            lambda: set_reconciler.reconcile(
                objects, namespace or "", name, settings, partial(_read_index, indices["children"])
            ),
        )

    return registry


def _serve_perftest(
    registry: kopf.OperatorRegistry,
    group: str,
    objects: ObjectClient,
    settings: reporting.ReconcileSettings,
    metrics: Metrics,
) -> None:
    """Let objects of kube-perftest's group be measured, as objects of ours that belong to them."""
    kinds = (resource_of(KINDS[name]) for name in kube_perftest.KINDS)
    for ours in (*kinds, set_reconciler.SETS):
        theirs = replace(ours, api=f"/apis/{group}/{VERSION}")

        # the defaults bind what the loop variables are now
        @kopf.timer(
            group,
            VERSION,
            ours.plural,
            interval=queueing.RECONCILE_EVERY_S,
            registry=registry,
            when=_must_reconcile,
        )
        def reconcile(
            namespace: str | None,
            name: str,
            ours: Resource = ours,
            theirs: Resource = theirs,
            **_: Any,
        ) -> None:
            _count_pass(
                ours.kind,
                metrics,
                lambda: perftest.reconcile(
                    theirs, ours, objects, namespace or "", name, settings=settings
                ),
            )


def _read_index(index: kopf.Index[Any, Any], *key: str) -> list[Any]:
    """Return all that an index has under a key; copied at once, since watches change it."""
    return list(index.get(key if len(key) > 1 else key[0]) or ())


def _add_kind(
    registry: kopf.OperatorRegistry,
    kind: Kind,
    objects: ObjectClient,
    settings: reporting.ReconcileSettings,
    *,
    metrics: Metrics,
    turns: queueing.Turns,
) -> None:
    """Let kopf reconcile the benchmarks of a kind.

    What it watches is in its indices, complete before the first timer, so nothing is listed.
    """

    @kopf.index(GROUP, VERSION, kind.plural, id="children", registry=registry)
    def children(body: kopf.Body, **_: Any) -> Any:
        return set_reconciler.child_by_owner(body)

    @kopf.index(GROUP, VERSION, kind.plural, id="line", registry=registry)
    def waiting_turns(body: kopf.Body, namespace: str | None, **_: Any) -> Any:
        turn = queueing.turn_of(body)
        return {namespace: turn} if turn else {}

    @kopf.timer(
        GROUP,
        VERSION,
        kind.plural,
        interval=queueing.RECONCILE_EVERY_S,
        registry=registry,
        when=_must_reconcile,
    )
    def reconcile(body: kopf.Body, namespace: str | None, name: str, **indices: Any) -> None:
        # most objects wait: these end here, without a request to the API server
        if queueing.is_paused(body):
            return
        if turns.must_wait(body, lambda: _read_index(indices["line"], namespace or "")):
            return
        _count_pass(
            kind.name,
            metrics,
            lambda: benchmark_reconciler.reconcile(kind, objects, namespace or "", name, settings),
        )

    @kopf.on.delete(GROUP, VERSION, kind.plural, registry=registry)
    def before_deletion(body: kopf.Body, namespace: str | None, **_: Any) -> None:
        try:
            benchmark_reconciler.clean_up(kind, objects, namespace or "", dict(body))
        except errors.ScaletestError as error:
            raise kopf.TemporaryError(error.message, delay=queueing.RECONCILE_EVERY_S) from error


def _must_reconcile(body: kopf.Body, **_: Any) -> bool:
    return not reporting.has_ended(dict(body))


def _count_pass(kind: str, metrics: Metrics, reconcile: Callable[[], str]) -> None:
    """Count the phase that a pass reaches, or its failure: the next pass repeats it."""
    try:
        if phase := reconcile():
            metrics.phases.labels(kind, phase).inc()
    except errors.ScaletestError as error:
        metrics.errors.labels(kind).inc()
        logger.warning("%s; trying again", error)
    except Exception:
        # a bug of ours, which the metrics must show too
        metrics.errors.labels(kind).inc()
        raise


# -- HTTP endpoints, for both address families: a cluster may have IPv6 only
# --------------------------------------------------------------------------------------------------


@contextmanager
def serve_metrics(port: int, registry: CollectorRegistry) -> Iterator[None]:
    """Serve metrics within the context; not at all when the port is 0."""
    if not port:
        yield
        return
    # an IPv6 socket accepts both families; a machine without IPv6 has only the other one
    host = "[::]" if socket.has_dualstack_ipv6() else "0.0.0.0"
    with closing(Server(make_wsgi_app(registry), f"{host}:{port}")):
        yield


@asynccontextmanager
async def serve_health(port: int) -> AsyncIterator[None]:
    """Answer /healthz while this event loop runs; not at all when the port is 0.

    kopf has such an endpoint, but it listens on a single address.
    """
    if not port:
        yield
        return

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({})

    app = web.Application()
    app.router.add_get("/healthz", answer)
    runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        # without a host aiohttp opens one socket for each address family
        await web.TCPSite(runner, None, port).start()
        yield
    finally:
        await runner.cleanup()
