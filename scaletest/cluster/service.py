"""A Service: its address, ready endpoints, HTTP API, Deployment, and the autoscalers of that."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec

from scaletest.cluster import connection
from scaletest.cluster.connection import (
    TIMEOUT_S,
    Busy,
    Cluster,
    Missing,
    Raw,
    credentials,
    service_path,
)
from scaletest.cluster.deployment import HELD, Autoscaler, Deployment, templates
from scaletest.cluster.objects import ENDPOINT_SLICES, HPAS, SERVICES
from scaletest.model import checks
from scaletest.model.errors import (
    InvalidValue,
    ScaletestError,
    Unreachable,
    WaitTimeout,
)

logger = logging.getLogger("scaletest.cluster")

# The proxy consumes the header Authorization, so the client's token has a header of its own.
TOKEN_HEADER = "Scaletest-Token"


class ServiceProxy:
    """A client behind the service proxy, which works outside the cluster's network too.

    Needs the right to get services/proxy.
    """

    def __init__(self, cluster: Cluster, service: str, port: str, token: str = "") -> None:
        self.name = f"svc/{service}:{port}"
        self._path = service_path(cluster.namespace, service, port)
        self._raw = Raw(cluster)
        self._headers = {TOKEN_HEADER: token} if token else {}

    def get(self, path: str, **query: str) -> tuple[int, bytes, Mapping[str, str]]:
        """Status, body, headers. Raises Unreachable when the API server does not answer."""
        return self._raw.fetch(self._path + path, f"reach {self.name}", self._headers, **query)


class Direct:
    """A client by its URL."""

    def __init__(self, url: str, token: str = "") -> None:
        import urllib3

        self.name = self._url = url.rstrip("/")
        self._headers = {TOKEN_HEADER: token} if token else {}
        self._pool = urllib3.PoolManager(retries=False, timeout=TIMEOUT_S)

    def get(self, path: str, **query: str) -> tuple[int, bytes, Mapping[str, str]]:
        """Status, body, headers. Raises Unreachable without an answer."""
        import urllib3.exceptions

        try:
            answer = self._pool.request(
                "GET", self._url + path, fields=query, headers=self._headers
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(
                f"client {self.name} does not answer: {checks.cut(str(error), 200)}",
                hint="is it running?",
            ) from error
        return answer.status, answer.data, answer.headers


# The limits of an HPA, by their names in its spec.
class ReplicaLimits(TypedDict):
    minReplicas: int | None
    maxReplicas: int


RELEASE_S, INTERVAL_S = 60.0, 0.5
_REFERENCE = re.compile(
    r"(?:svc|service|services)/([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)(?::([A-Za-z0-9-]{1,63}))?(/.*)?"
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference svc/NAME[:PORT][/PATH]. port: number or name, "" for the only port."""

    name: str
    port: str
    path: str


def reference(text: str) -> Reference:
    """Parse a reference; InvalidValue for anything else."""
    match = _REFERENCE.fullmatch(text)
    if not match:
        raise InvalidValue(
            f"--service is {text[:80]!r}", hint="give svc/NAME, svc/NAME:PORT or svc/NAME:PORT/PATH"
        )
    return Reference(match[1], match[3] or "", match[4] or "/")


class Service:
    """One Service. Needs the rights to get services, list endpointslices, list deployments."""

    def __init__(self, cluster: Cluster, text: str) -> None:
        self.reference = reference(text)
        self._cluster, self._raw = cluster, Raw(cluster)
        self.namespace = cluster.namespace
        title = f"service {self.reference.name} in namespace {self.namespace}"
        path = SERVICES.path(self.namespace, self.reference.name)
        spec = self._raw.get(path, f"read {title}", "get services")["spec"]
        self.address = str(spec.get("clusterIP", ""))
        self._selector: dict[str, str] = spec.get("selector") or {}
        self.port = _port(spec.get("ports", []), self.reference)

    def endpoints(self) -> tuple[int, int]:
        """Number of ready addresses, and of all addresses."""
        slices = self._raw.objects(
            ENDPOINT_SLICES.path(self.namespace),
            ENDPOINT_SLICES.plural,
            labelSelector=f"kubernetes.io/service-name={self.reference.name}",
        )
        endpoints: list[dict[str, Any]] = []
        for endpoint_slice in slices:
            endpoints += endpoint_slice.get("endpoints") or ()
        # an endpoint without the condition counts as ready, as in Kubernetes
        ready = sum(
            (endpoint.get("conditions") or {}).get("ready") is not False for endpoint in endpoints
        )
        return ready, len(endpoints)

    def deployment(self) -> Deployment | None:
        """The Deployment whose pods the Service selects; None unless there is exactly one."""
        if not self._selector:
            return None
        names = [
            name
            for name, template in templates(self._cluster).items()
            if self._selector.items() <= (template["metadata"].get("labels") or {}).items()
        ]
        if len(names) != 1:
            return None
        # without KEDA its objects cannot be listed
        return Deployment(
            self._cluster, names[0], keda=connection.KEDA in connection.groups(self._cluster)
        )

    def url(self) -> str:
        """URL of the Service inside the cluster's network."""
        return f"http://{self.reference.name}.{self.namespace}.svc:{self.port}{self.reference.path}"

    def proxied(self) -> tuple[str, dict[str, str], str]:
        """URL through the API server, headers with our credentials, and the file of its CA.

        UsageError with client certificates, which the load does not support.
        """
        settings: Any = self._cluster.client.configuration
        headers = credentials(settings)
        checks.refuse(
            (
                settings.cert_file and not headers,
                "the kubeconfig has a client certificate, which a load test does not support",
                "use a kubeconfig with a token, run it in the cluster, or kubectl port-forward"
                " and --url",
            )
        )
        path = service_path(self.namespace, self.reference.name, self.port)
        return f"{settings.host}{path}{self.reference.path}", headers, settings.ssl_ca_cert or ""


def await_release(
    deployment: Deployment,
    scaled_object: str,
    clock: Callable[[], float],
    sleep: Callable[[float], object],
) -> None:
    """Wait until KEDA has deleted the HPA of a paused ScaledObject, which would continue to scale.
    WaitTimeout when it does not.
    """
    deadline = clock() + RELEASE_S
    while True:
        try:
            if deployment.released(scaled_object):
                return
        except Busy as error:
            logger.warning("%s; trying again", error)
        if clock() >= deadline:
            raise WaitTimeout(
                f"ScaledObject {scaled_object} was paused {RELEASE_S:.0f} s ago, and its HPA is"
                " still there",
                hint=(
                    "check that KEDA's operator runs: it removes the HPA while the ScaledObject is"
                    " paused"
                ),
            )
        sleep(INTERVAL_S)


class AutoscalerHold:
    """Holds the autoscalers of a Deployment during a run, so that they do not scale it.

    An HPA cannot be paused, but it can be held: while its minimum and maximum are the current
    number of replicas it changes nothing. The original limits are in an annotation meanwhile, so
    that a later run can restore them if this one is killed. KEDA's own HPA is held by the pause
    annotation of its ScaledObject.
    """

    def __init__(
        self,
        cluster: Cluster,
        deployment: Deployment,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._cluster, self._deployment = cluster, deployment
        self._clock, self._sleep = clock, sleep
        self._limits_before: dict[str, ReplicaLimits] = {}
        self._paused: list[str] = []

    def active(self) -> list[Autoscaler]:
        """Autoscalers that may change the number of pods now."""
        # the HPA of a ScaledObject is held by pausing that one
        return [
            scaler
            for scaler in self._deployment.scalers()
            if not scaler.paused and (scaler.kind == "ScaledObject" or not scaler.owner)
        ]

    def hold(self, replicas: int | None = None) -> None:
        """Hold the autoscalers at a number of replicas, else at the current one.

        Call it again before the run itself scales. WaitTimeout when KEDA does not delete
        the HPA of a paused ScaledObject, which would continue to scale.
        """
        now = max(1, self._deployment.replicas() if replicas is None else replicas)
        for scaler in self.active():
            if scaler.kind == "ScaledObject":
                self._pause(scaler.name)
                continue
            if scaler.name not in self._limits_before:
                # after a run that was killed, the annotation has the original limits
                self._limits_before[scaler.name] = limits_in_annotation(scaler) or self._limits(
                    scaler.name
                )
            self._write(
                scaler.name,
                {"minReplicas": now, "maxReplicas": now},
                json.dumps(self._limits_before[scaler.name]),
            )

    def _pause(self, scaled_object: str) -> None:
        if scaled_object in self._paused:
            return
        self._paused.append(scaled_object)
        self._deployment.pause(scaled_object, True)
        await_release(self._deployment, scaled_object, self._clock, self._sleep)

    def adopt(self) -> list[str]:
        """Take over autoscalers that a killed run holds, for `release`; their names."""
        held = [scaler for scaler in self._deployment.scalers() if scaler.held]
        for scaler in held:
            if scaler.kind == "ScaledObject":
                self._paused.append(scaler.name)
            elif limits := limits_in_annotation(scaler):
                self._limits_before[scaler.name] = limits
        return [f"{scaler.kind} {scaler.name}" for scaler in held]

    def release(self) -> list[str]:
        """Restore all autoscalers; for each one that failed, a text that says what to do."""
        failures = []
        for name, limits in list(self._limits_before.items()):
            try:
                with suppress(Missing):  # it was deleted, so there is nothing to restore
                    self._write(name, limits, None)
                del self._limits_before[name]
            except ScaletestError as error:
                replicas = "{minReplicas} to {maxReplicas} replicas".format_map(limits)
                failures.append(f"put HPA {name} back to {replicas} yourself: {error.message}")
        for name in list(self._paused):
            try:
                with suppress(Missing):
                    self._deployment.pause(name, False)
                self._paused.remove(name)
            except ScaletestError as error:
                failures.append(f"resume ScaledObject {name} yourself: {error.message}")
        return failures

    def _limits(self, name: str) -> ReplicaLimits:
        spec = Raw(self._cluster).get(
            HPAS.path(self._cluster.namespace, name), f"read HPA {name}", f"get {HPAS.plural}"
        )["spec"]
        return {"minReplicas": spec.get("minReplicas"), "maxReplicas": int(spec["maxReplicas"])}

    def _write(self, name: str, limits: ReplicaLimits, annotation: str | None) -> None:
        Raw(self._cluster).write(
            "PATCH",
            HPAS.path(self._cluster.namespace, name),
            {"metadata": {"annotations": {HELD: annotation}}, "spec": limits},
            f"change HPA {name}",
            f"patch {HPAS.plural}",
        )


def limits_in_annotation(scaler: Autoscaler) -> ReplicaLimits | None:
    """Original limits of an HPA that is held, else None.

    InvalidValue when the annotation is not ours.
    """
    if not scaler.held:
        return None
    try:
        return msgspec.json.decode(scaler.held, type=ReplicaLimits)
    except (msgspec.MsgspecError, ValueError) as error:
        raise InvalidValue(
            f"the annotation {HELD} of HPA {scaler.name} was not written by scaletest",
            hint="check the HPA, and remove the annotation",
        ) from error


def _port(ports: list[dict[str, Any]], wanted: Reference) -> str:
    known = [str(port["port"]) for port in ports]
    if not wanted.port:
        checks.refuse(
            (
                len(ports) != 1,
                f"service {wanted.name} has {len(ports)} ports",
                f"choose one: svc/{wanted.name}:{'|'.join(known)}",
            )
        )
        return known[0]
    matching = [port for port in ports if wanted.port in (str(port["port"]), port.get("name"))]
    checks.refuse(
        (
            not matching,
            f"service {wanted.name} has no port {wanted.port}",
            f"it has {', '.join(known) or 'none'}",
        )
    )
    return str(matching[0]["port"])
