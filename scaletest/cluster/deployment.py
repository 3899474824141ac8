"""One Deployment: its number of pods, its autoscalers, and why it is not ready.

Only the scale subresource is written, so nothing else of the Deployment can change; and the pause
annotation of KEDA.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from scaletest.cluster.connection import TIMEOUT_S, Cluster, explained
from scaletest.cluster.pod_state import PodState, first_failing, pod_state
from scaletest.cluster.raw import Raw

PAUSED = "autoscaling.keda.sh/paused"
# Annotation of an autoscaler that we hold. A run that is killed cannot restore it, so the next run
# must know. For an HPA it holds the original limits.
HELD = "scaletest/held"
LOG_LINES = 15
MOST_LOG_BYTES = 50_000_000


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """An autoscaler of the Deployment. owner: the ScaledObject that created an HPA.

    paused: by somebody else. held: our annotation, "" without it; it is set during a run, and
    after one that was killed.
    """

    kind: str
    name: str
    owner: str = ""
    paused: bool = False
    held: str = ""


def templates(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """The pod template of every Deployment in the namespace.

    Needs the right to list deployments.
    """
    path = f"/apis/apps/v1/namespaces/{quote(cluster.namespace)}/deployments"
    deployments = Raw(cluster).get(path, "list deployments", "list deployments")["items"]
    return {
        deployment["metadata"]["name"]: deployment["spec"]["template"] for deployment in deployments
    }


class Deployment:
    """A Deployment of workers. keda: whether KEDA is installed."""

    def __init__(self, cluster: Cluster, name: str, *, keda: bool = True) -> None:
        from kubernetes.client import AppsV1Api

        self.name, self.namespace = name, cluster.namespace
        self._keda = keda
        self._client = cluster.client
        self._api = AppsV1Api(cluster.client)
        self._raw = Raw(cluster)
        self._title = f"deployment {name} in namespace {cluster.namespace}"
        self._path = f"/apis/apps/v1/namespaces/{quote(self.namespace)}/deployments/{quote(name)}"
        deployment = self._raw.get(self._path, f"read {self._title}", "get deployments")
        self.template: dict[str, Any] = deployment["spec"]["template"]
        self.annotations: dict[str, str] = deployment["metadata"].get("annotations", {})
        labels = deployment["spec"]["selector"].get("matchLabels", {})
        self.selector = ",".join(f"{key}={label}" for key, label in labels.items())

    def replicas(self) -> int:
        """The desired number of pods."""
        scale = self._raw.get(
            f"{self._path}/scale", f"read the scale of {self._title}", "get deployments/scale"
        )
        return int(scale["spec"].get("replicas", 0))

    def scale(self, replicas: int) -> None:
        """Set the desired number of pods."""
        with explained(f"scale {self._title}", "patch deployments/scale"):
            self._api.patch_namespaced_deployment_scale(
                self.name,
                self.namespace,
                {"spec": {"replicas": replicas}},
                _request_timeout=TIMEOUT_S,
            )

    def pods(self) -> list[PodState]:
        """Its pods, terminating ones included, but not those of Jobs with the same labels."""
        path = f"/api/v1/namespaces/{quote(self.namespace)}/pods"
        pods = self._raw.get(
            path, f"list the pods of {self._title}", "list pods", labelSelector=self.selector
        )
        alive = [
            pod
            for pod in pods["items"]
            if pod["status"].get("phase") not in ("Succeeded", "Failed")
        ]
        return [pod_state(pod) for pod in alive]

    def scalers(self) -> list[Autoscaler]:
        """HPAs and ScaledObjects whose target is this Deployment."""
        scalers = self._hpas()
        if self._keda:
            path = f"/apis/keda.sh/v1alpha1/namespaces/{quote(self.namespace)}/scaledobjects"
            for scaled_object in self._targeting(path, "list ScaledObjects", "list scaledobjects"):
                annotations = scaled_object["metadata"].get("annotations", {})
                mark = annotations.get(HELD, "")
                paused = annotations.get(PAUSED, "false") == "true" and not mark
                name = scaled_object["metadata"]["name"]
                scalers.append(Autoscaler("ScaledObject", name, paused=paused, held=mark))
        return scalers

    def pause(self, scaled_object: str, paused: bool) -> None:
        """Set or remove KEDA's pause annotation, and ours with it."""
        from kubernetes.client import CustomObjectsApi

        mark = "true" if paused else None
        body = {"metadata": {"annotations": {PAUSED: mark, HELD: mark}}}
        with explained(
            f"{'pause' if paused else 'resume'} ScaledObject {scaled_object}", "patch scaledobjects"
        ):
            CustomObjectsApi(self._client).patch_namespaced_custom_object(
                "keda.sh",
                "v1alpha1",
                self.namespace,
                "scaledobjects",
                scaled_object,
                body,
                _request_timeout=TIMEOUT_S,
            )

    def released(self, scaled_object: str) -> bool:
        """Whether KEDA has deleted the HPA of this ScaledObject, as it does after a pause."""
        return all(hpa.owner != scaled_object for hpa in self._hpas())

    def logs(self, since_s: float) -> dict[str, list[str]]:
        """Log lines of the last seconds by pod; pods whose log cannot be read are left out."""
        lines = {}
        for pod in self.pods():
            path = f"/api/v1/namespaces/{quote(self.namespace)}/pods/{quote(pod.name)}/log"
            query = {"sinceSeconds": str(max(1, round(since_s))), "limitBytes": str(MOST_LOG_BYTES)}
            status, body, _ = self._raw.fetch(path, f"read the log of {pod.name}", {}, **query)
            if status == 200:
                lines[pod.name] = body.decode("utf-8", "replace").splitlines()
        return lines

    def trouble(self) -> str:
        """States of the pods; of the first failing one also events and the end of its log."""
        from scaletest.model.errors import ScaletestError

        pods = self.pods()
        lines = [str(pod) for pod in pods] or ["there is no pod"]
        failing = first_failing(pods)
        if failing:
            for read in (self._events, self._log):
                try:
                    lines += read(failing)
                except ScaletestError as error:
                    lines.append(f"({error.message})")
        return "\n  ".join(lines)

    def _hpas(self) -> list[Autoscaler]:
        hpas = []
        path = f"/apis/autoscaling/v2/namespaces/{quote(self.namespace)}/horizontalpodautoscalers"
        for hpa in self._targeting(path, "list autoscalers", "list horizontalpodautoscalers"):
            owners = hpa["metadata"].get("ownerReferences", [])
            owner = next(
                (reference["name"] for reference in owners if reference["kind"] == "ScaledObject"),
                "",
            )
            mark = hpa["metadata"].get("annotations", {}).get(HELD, "")
            hpas.append(
                Autoscaler("HorizontalPodAutoscaler", hpa["metadata"]["name"], owner, held=mark)
            )
        return hpas

    def _events(self, failing: PodState) -> list[str]:
        path = f"/api/v1/namespaces/{quote(self.namespace)}/events"
        events = self._raw.get(
            path,
            "list events",
            "list events",
            fieldSelector=f"involvedObject.name={failing.name}",
            limit="20",
        )
        return [
            f"event {event.get('reason')}: {event.get('message', '')}" for event in events["items"]
        ][-5:]

    def _log(self, failing: PodState) -> list[str]:
        path = f"/api/v1/namespaces/{quote(self.namespace)}/pods/{quote(failing.name)}/log"
        query = {"tailLines": str(LOG_LINES), "container": failing.container}
        if failing.restarts:
            query["previous"] = "true"
        status, body, _ = self._raw.fetch(path, f"read the log of {failing.name}", {}, **query)
        if status == 403:
            return ["(no log: we may not get pods/log)"]
        if status != 200:
            return [f"(no log: {status})"]
        return [f"log {line}" for line in body.decode("utf-8", "replace").splitlines()]

    def _targeting(self, path: str, action: str, right: str) -> Iterator[dict[str, Any]]:
        for scaler in self._raw.get(path, action, right)["items"]:
            target = scaler["spec"].get("scaleTargetRef", {})
            if target.get("kind", "Deployment") == "Deployment" and target.get("name") == self.name:
                yield scaler
