"""One Deployment: its number of pods through the scale subresource, who else scales it, and why it is not ready.

Only the scale subresource is ever written, so that nothing else of the Deployment can change; and KEDA's pause mark.
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
# On an autoscaler that we hold: whoever is killed cannot put it back, and the next one must know. Of an HPA it says
# what it had.
HELD = "scaletest/held"
LOG_LINES = 15
MOST_LOG_BYTES = 50_000_000


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """An autoscaler of the Deployment. owner: the ScaledObject that made an HPA.

    paused: by somebody else. held: our mark, "" without one; it is on while a run lasts, and after one that was killed.
    """

    kind: str
    name: str
    owner: str = ""
    paused: bool = False
    held: str = ""


def templates(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """The pod template of every Deployment in the namespace. Needs the right to list deployments."""
    path = f"/apis/apps/v1/namespaces/{quote(cluster.namespace)}/deployments"
    rows = Raw(cluster).get(path, "list deployments", "list deployments")["items"]
    return {row["metadata"]["name"]: row["spec"]["template"] for row in rows}


class Deployment:
    """A Deployment of workers. keda: whether KEDA is installed."""

    def __init__(self, cluster: Cluster, name: str, *, keda: bool = True) -> None:
        from kubernetes.client import AppsV1Api

        self.name, self.namespace = name, cluster.namespace
        self._keda = keda
        self._client = cluster.client
        self._api = AppsV1Api(cluster.client)
        self._raw = Raw(cluster)
        self._what = f"deployment {name} in namespace {cluster.namespace}"
        self._at = f"/apis/apps/v1/namespaces/{quote(self.namespace)}/deployments/{quote(name)}"
        found = self._raw.get(self._at, f"read {self._what}", "get deployments")
        self.template: dict[str, Any] = found["spec"]["template"]
        self.annotations: dict[str, str] = found["metadata"].get("annotations", {})
        labels = found["spec"]["selector"].get("matchLabels", {})
        self.selector = ",".join(f"{key}={value}" for key, value in labels.items())

    def replicas(self) -> int:
        """The number that is asked for."""
        scale = self._raw.get(f"{self._at}/scale", f"read the scale of {self._what}", "get deployments/scale")
        return int(scale["spec"].get("replicas", 0))

    def scale(self, replicas: int) -> None:
        """Ask for this number."""
        with explained(f"scale {self._what}", "patch deployments/scale"):
            self._api.patch_namespaced_deployment_scale(
                self.name, self.namespace, {"spec": {"replicas": replicas}}, _request_timeout=TIMEOUT_S
            )

    def pods(self) -> list[PodState]:
        """Its pods, those that go included. Pods of Jobs with the same labels are none of them."""
        path = f"/api/v1/namespaces/{quote(self.namespace)}/pods"
        rows = self._raw.get(path, f"list the pods of {self._what}", "list pods", labelSelector=self.selector)
        return [pod_state(row) for row in rows["items"] if row["status"].get("phase") not in ("Succeeded", "Failed")]

    def scalers(self) -> list[Autoscaler]:
        """HPAs and ScaledObjects that aim at it."""
        found = self._hpas()
        if self._keda:
            path = f"/apis/keda.sh/v1alpha1/namespaces/{quote(self.namespace)}/scaledobjects"
            for row in self._aimed(path, "list ScaledObjects", "list scaledobjects"):
                marks = row["metadata"].get("annotations", {})
                held = marks.get(HELD, "")
                paused = marks.get(PAUSED, "false") == "true" and not held
                found.append(Autoscaler("ScaledObject", row["metadata"]["name"], paused=paused, held=held))
        return found

    def pause(self, scaled_object: str, paused: bool) -> None:
        """Set or remove KEDA's pause mark, and ours beside it."""
        from kubernetes.client import CustomObjectsApi

        mark = "true" if paused else None
        body = {"metadata": {"annotations": {PAUSED: mark, HELD: mark}}}
        with explained(f"{'pause' if paused else 'resume'} ScaledObject {scaled_object}", "patch scaledobjects"):
            CustomObjectsApi(self._client).patch_namespaced_custom_object(
                "keda.sh", "v1alpha1", self.namespace, "scaledobjects", scaled_object, body, _request_timeout=TIMEOUT_S
            )

    def released(self, scaled_object: str) -> bool:
        """Whether no HPA of this ScaledObject is left: KEDA takes it away some moments after it is marked."""
        return all(one.owner != scaled_object for one in self._hpas())

    def logs(self, since_s: float) -> dict[str, list[str]]:
        """The lines that its pods wrote in the last seconds, by pod; a pod whose log cannot be read is left out."""
        found = {}
        for one in self.pods():
            path = f"/api/v1/namespaces/{quote(self.namespace)}/pods/{quote(one.name)}/log"
            query = {"sinceSeconds": str(max(1, round(since_s))), "limitBytes": str(MOST_LOG_BYTES)}
            status, body, _ = self._raw.fetch(path, f"read the log of {one.name}", {}, **query)
            if status == 200:
                found[one.name] = body.decode("utf-8", "replace").splitlines()
        return found

    def trouble(self) -> str:
        """The pods' states, and of the first failing one events and the end of its log, if we may read them."""
        from scaletest.model.errors import ScaletestError

        pods = self.pods()
        lines = [str(one) for one in pods] or ["there is no pod"]
        failing = first_failing(pods)
        if failing:
            for look in (self._events, self._log):
                try:
                    lines += look(failing)
                except ScaletestError as error:
                    lines.append(f"({error.message})")
        return "\n  ".join(lines)

    def _hpas(self) -> list[Autoscaler]:
        found = []
        path = f"/apis/autoscaling/v2/namespaces/{quote(self.namespace)}/horizontalpodautoscalers"
        for row in self._aimed(path, "list autoscalers", "list horizontalpodautoscalers"):
            owners = row["metadata"].get("ownerReferences", [])
            owner = next((one["name"] for one in owners if one["kind"] == "ScaledObject"), "")
            held = row["metadata"].get("annotations", {}).get(HELD, "")
            found.append(Autoscaler("HorizontalPodAutoscaler", row["metadata"]["name"], owner, held=held))
        return found

    def _events(self, failing: PodState) -> list[str]:
        path = f"/api/v1/namespaces/{quote(self.namespace)}/events"
        rows = self._raw.get(
            path, "list events", "list events", fieldSelector=f"involvedObject.name={failing.name}", limit="20"
        )
        return [f"event {row.get('reason')}: {row.get('message', '')}" for row in rows["items"]][-5:]

    def _log(self, failing: PodState) -> list[str]:
        path = f"/api/v1/namespaces/{quote(self.namespace)}/pods/{quote(failing.name)}/log"
        query = {"tailLines": str(LOG_LINES), "container": failing.container}
        if failing.restarts:
            query["previous"] = "true"
        status, body, _ = self._raw.fetch(path, f"read the log of {failing.name}", {}, **query)
        if status != 200:
            return ["(no log: we may not get pods/log)" if status == 403 else f"(no log: {status})"]
        return [f"log {line}" for line in body.decode("utf-8", "replace").splitlines()]

    def _aimed(self, path: str, what: str, right: str) -> Iterator[dict[str, Any]]:
        for row in self._raw.get(path, what, right)["items"]:
            target = row["spec"].get("scaleTargetRef", {})
            if target.get("kind", "Deployment") == "Deployment" and target.get("name") == self.name:
                yield row
