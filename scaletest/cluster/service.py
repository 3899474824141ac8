"""A Service and what stands behind it: address, pods that are ready, the Deployment, and who scales that.

An HPA cannot be paused, but it can be held: with its fewest and its most replicas at the present number it changes
nothing. What it had is put back, and noted on it meanwhile, for whoever comes after a run that was killed. KEDA's own
HPA is held by its ScaledObject's pause mark.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from scaletest.cluster import discovery
from scaletest.cluster.connection import TIMEOUT_S, Cluster, Missing, explained
from scaletest.cluster.deployment import HELD, Autoscaler, Deployment
from scaletest.cluster.raw import Raw, service_path
from scaletest.model.errors import InvalidValue, ScaletestError, UsageError, WaitTimeout

RELEASE_S, LOOK_S = 60.0, 0.5
_REFERENCE = re.compile(
    r"(?:svc|service|services)/([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)(?::([A-Za-z0-9-]{1,63}))?(/.*)?"
)


@dataclass(frozen=True, slots=True)
class Reference:
    """svc/NAME[:PORT][/PATH]. port: number or name, "" for the only one."""

    name: str
    port: str
    path: str


def reference(text: str) -> Reference:
    """Read it; InvalidValue for anything else."""
    found = _REFERENCE.fullmatch(text)
    if not found:
        raise InvalidValue(f"--service is {text[:80]!r}", hint="give svc/NAME, svc/NAME:PORT or svc/NAME:PORT/PATH")
    return Reference(found[1], found[3] or "", found[4] or "/")


class Service:
    """One Service. Needs the rights to get services, list endpointslices, list deployments."""

    def __init__(self, cluster: Cluster, text: str) -> None:
        self.reference = reference(text)
        self._cluster, self._raw = cluster, Raw(cluster)
        self.namespace = cluster.namespace
        what = f"service {self.reference.name} in namespace {self.namespace}"
        path = f"/api/v1/namespaces/{quote(self.namespace)}/services/{quote(self.reference.name)}"
        spec = self._raw.get(path, f"read {what}", "get services")["spec"]
        self.address = str(spec.get("clusterIP", ""))
        self._selector: dict[str, str] = spec.get("selector") or {}
        self.port = _port(spec.get("ports", []), self.reference)

    def endpoints(self) -> tuple[int, int]:
        """How many addresses are ready, and how many there are."""
        path = f"/apis/discovery.k8s.io/v1/namespaces/{quote(self.namespace)}/endpointslices"
        label = f"kubernetes.io/service-name={self.reference.name}"
        rows = self._raw.get(path, "list endpointslices", "list endpointslices", labelSelector=label)["items"]
        found = [one for row in rows for one in row.get("endpoints") or ()]
        return sum((one.get("conditions") or {}).get("ready") is not False for one in found), len(found)

    def deployment(self) -> Deployment | None:
        """The Deployment whose pods the Service selects; None when there is none or more than one."""
        if not self._selector:
            return None
        path = f"/apis/apps/v1/namespaces/{quote(self.namespace)}/deployments"
        rows = self._raw.get(path, "list deployments", "list deployments")["items"]
        names = [
            row["metadata"]["name"]
            for row in rows
            if self._selector.items() <= (row["spec"]["template"]["metadata"].get("labels") or {}).items()
        ]
        if len(names) != 1:
            return None
        # where KEDA is not installed, there is nothing to list
        keda = discovery.KEDA in discovery.groups(self._cluster)
        return Deployment(self._cluster, names[0], keda=keda)

    def url(self) -> str:
        """Inside the cluster's network."""
        return f"http://{self.reference.name}.{self.namespace}.svc:{self.port}{self.reference.path}"

    def proxied(self) -> tuple[str, dict[str, str], str]:
        """URL through the API server, headers with our credentials, and its authority's file.

        UsageError with client certificates, which the load does not send.
        """
        settings: Any = self._cluster.client.configuration
        headers = {}
        for one in settings.auth_settings().values():
            if one.get("in") == "header" and one.get("value"):
                headers[one["key"]] = one["value"]
        if settings.cert_file and not headers:
            raise UsageError(
                "the API server is reached with a client certificate, which a load test does not send",
                hint="use a kubeconfig with a token, run it in the cluster, or kubectl port-forward and --url",
            )
        path = service_path(self.namespace, self.reference.name, self.port)
        return f"{settings.host}{path}{self.reference.path}", headers, settings.ssl_ca_cert or ""


class AutoscalerHold:
    """The autoscalers of a Deployment, held for as long as a test lasts."""

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
        self._before: dict[str, tuple[int | None, int]] = {}
        self._paused: list[str] = []

    def active(self) -> list[Autoscaler]:
        """Those that may change the number of pods now."""
        found = self._deployment.scalers()
        return [one for one in found if not one.paused and not (one.kind != "ScaledObject" and one.owner)]

    def hold(self, replicas: int | None = None) -> None:
        """Keep them from changing it. Again with another number, before the test itself changes it.

        WaitTimeout when KEDA leaves the HPA of a paused ScaledObject where it is, which would go on scaling.
        """
        now = max(1, self._deployment.replicas() if replicas is None else replicas)
        for one in self.active():
            if one.kind == "ScaledObject":
                if one.name in self._paused:
                    continue
                self._paused.append(one.name)
                self._deployment.pause(one.name, True)
                self._wait_released(one.name)
                continue
            if one.name not in self._before:
                # of one that was killed, what it found
                self._before[one.name] = noted(one) or self._limits(one.name)
            self._write(one.name, now, now, _note(*self._before[one.name]))

    def adopt(self) -> list[str]:
        """Take over what a run that was killed left held, to release it; their names."""
        found = [one for one in self._deployment.scalers() if one.held]
        for one in found:
            if one.kind == "ScaledObject":
                self._paused.append(one.name)
            elif limits := noted(one):
                self._before[one.name] = limits
        return [f"{one.kind} {one.name}" for one in found]

    def _wait_released(self, scaled_object: str) -> None:
        deadline = self._clock() + RELEASE_S
        while not self._deployment.released(scaled_object):
            if self._clock() > deadline:
                raise WaitTimeout(
                    f"ScaledObject {scaled_object} was paused {RELEASE_S:.0f} s ago, and its HPA is still there",
                    hint="is KEDA's operator running?",
                )
            self._sleep(LOOK_S)

    def release(self) -> list[str]:
        """Put back what they had; what could not be, in words."""
        left = []
        for name, (fewest, most) in list(self._before.items()):
            try:
                self._write(name, fewest, most, None)
                del self._before[name]
            except Missing:
                del self._before[name]  # somebody took it away: there is nothing to put back
            except ScaletestError as error:
                left.append(f"put HPA {name} back to {fewest} to {most} replicas yourself: {error.message}")
        for name in list(self._paused):
            try:
                self._deployment.pause(name, False)
                self._paused.remove(name)
            except Missing:
                self._paused.remove(name)
            except ScaletestError as error:
                left.append(f"resume ScaledObject {name} yourself: {error.message}")
        return left

    def _limits(self, name: str) -> tuple[int | None, int]:
        spec = self._read(name)["spec"]
        return spec.get("minReplicas"), int(spec["maxReplicas"])

    def _read(self, name: str) -> Any:
        path = (
            f"/apis/autoscaling/v2/namespaces/{quote(self._cluster.namespace)}/horizontalpodautoscalers/{quote(name)}"
        )
        return Raw(self._cluster).get(path, f"read HPA {name}", "get horizontalpodautoscalers")

    def _write(self, name: str, fewest: int | None, most: int, note: str | None) -> None:
        from kubernetes.client import AutoscalingV2Api

        api: Any = AutoscalingV2Api(self._cluster.client)
        body = {
            "metadata": {"annotations": {HELD: note}},
            "spec": {"minReplicas": fewest, "maxReplicas": most},
        }
        with explained(f"change HPA {name}", "patch horizontalpodautoscalers"):
            api.patch_namespaced_horizontal_pod_autoscaler(
                name, self._cluster.namespace, body, _request_timeout=TIMEOUT_S
            )


def _note(fewest: int | None, most: int) -> str:
    return json.dumps({"minReplicas": fewest, "maxReplicas": most})


def noted(scaler: Autoscaler) -> tuple[int | None, int] | None:
    """What an HPA that is held had; None of one that is not. InvalidValue when the note is not ours."""
    if not scaler.held:
        return None
    try:
        row = json.loads(scaler.held)
        fewest, most = row["minReplicas"], row["maxReplicas"]
        if not isinstance(most, int) or not isinstance(fewest, int | None):
            raise TypeError
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidValue(
            f"the annotation {HELD} of HPA {scaler.name} is not what scaletest writes",
            hint="look at the HPA, and remove it",
        ) from error
    return fewest, most


def _port(ports: list[dict[str, Any]], wanted: Reference) -> str:
    known = [str(one["port"]) for one in ports]
    if not wanted.port:
        if len(ports) != 1:
            raise UsageError(
                f"service {wanted.name} has {len(ports)} ports", hint=f"name one: svc/{wanted.name}:{'|'.join(known)}"
            )
        return known[0]
    found = [one for one in ports if wanted.port in (str(one["port"]), one.get("name"))]
    if not found:
        raise UsageError(
            f"service {wanted.name} has no port {wanted.port}", hint=f"it has {', '.join(known) or 'none'}"
        )
    return str(found[0]["port"])
