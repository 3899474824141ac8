"""Read a Deployment: its number of pods, their states, and why it is not ready."""

from typing import Any

from scaletest.cluster.api_calls import ApiCalls
from scaletest.cluster.connection import Cluster
from scaletest.cluster.objects import read_log
from scaletest.cluster.pods import PodState, PodWarning, first_failing, pod_state, pod_warning
from scaletest.cluster.resources import DEPLOYMENTS, EVENTS, PODS
from scaletest.model.errors import ScaletestError

LOG_LINES = 15


def pod_templates(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Return the pod template of every Deployment in the namespace.

    Needs the right to list deployments.
    """
    return {
        deployment["metadata"]["name"]: deployment["spec"]["template"]
        for deployment in ApiCalls(cluster).objects(
            DEPLOYMENTS.path(cluster.namespace), DEPLOYMENTS.plural
        )
    }


class Deployment:
    """A Deployment of workers."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.name, self.namespace = name, cluster.namespace
        self._api = ApiCalls(cluster)
        self._title = f"deployment {name} in namespace {cluster.namespace}"
        deployment = self._read()
        self.template: dict[str, Any] = deployment["spec"]["template"]
        self.annotations: dict[str, str] = deployment["metadata"].get("annotations", {})
        self.selector = ",".join(
            f"{key}={label}"
            for key, label in deployment["spec"]["selector"].get("matchLabels", {}).items()
        )

    def replicas(self) -> int:
        """Return the desired number of pods."""
        return int(self._read()["spec"].get("replicas", 0))

    def pods(self) -> list[PodState]:
        """Return its pods, also terminating ones, but not those of Jobs with the same labels."""
        pods = self._api.get(
            PODS.path(self.namespace),
            f"list the pods of {self._title}",
            "list pods",
            labelSelector=self.selector,
        )
        return [
            pod_state(pod)
            for pod in pods["items"]
            if pod["status"].get("phase") not in ("Succeeded", "Failed")
        ]

    def placed(self) -> int:
        """Return the number of its pods that are on a node and stay there."""
        return sum(not pod.going and bool(pod.node) for pod in self.pods())

    def warnings(self) -> list[PodWarning]:
        """Return the warnings about all pods of the namespace.

        Needs the right to list events.
        """
        return list(map(pod_warning, self._events("involvedObject.kind=Pod,type=Warning")))

    def trouble(self) -> str:
        """Describe the states of the pods, and for the first failing one its events and log."""
        pods = self.pods()
        lines = [str(pod) for pod in pods] or ["there is no pod"]
        failing = first_failing(pods)
        if failing:
            for describe in (self._describe_events, self._describe_log):
                try:
                    lines += describe(failing)
                except ScaletestError as error:
                    lines.append(f"({error.message})")
        return "\n  ".join(lines)

    def _read(self) -> dict[str, Any]:
        return self._api.get(
            DEPLOYMENTS.path(self.namespace, self.name), f"read {self._title}", "get deployments"
        )

    def _events(self, selector: str, **query: str) -> list[dict[str, Any]]:
        path = EVENTS.path(self.namespace)
        return self._api.objects(path, EVENTS.plural, fieldSelector=selector, **query)

    def _describe_events(self, failing: PodState) -> list[str]:
        events = self._events(f"involvedObject.name={failing.name}", limit="20")
        return [f"event {event.get('reason')}: {event.get('message', '')}" for event in events][-5:]

    def _describe_log(self, failing: PodState) -> list[str]:
        query = {"tailLines": str(LOG_LINES), "container": failing.container}
        if failing.restarts:
            query["previous"] = "true"  # the container that ended says why
        status, text = read_log(self._api, self.namespace, failing.name, **query)
        if status == 403:
            return ["(no log: we may not get pods/log)"]
        if status != 200:
            return [f"(no log: {status})"]
        return [f"log {line}" for line in text.splitlines()]
