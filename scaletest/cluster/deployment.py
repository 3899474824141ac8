"""Read a Deployment: its number of pods, their states, and why it is not ready."""

from typing import Any

from scaletest.cluster.api_calls import ApiCalls, Cluster
from scaletest.cluster.objects import read_log
from scaletest.cluster.pods import PodState, PodWarning, first_failing, pod_state, pod_warning
from scaletest.cluster.resources import DEPLOYMENTS, EVENTS, PODS
from scaletest.cluster.scalable import find_scalable
from scaletest.model.errors import ScaletestError, UsageError


def pod_templates(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Return the pod template of every Deployment in the namespace.

    Needs the right to list deployments.
    """
    return {
        deployment["metadata"]["name"]: deployment["spec"]["template"]
        for deployment in ApiCalls(cluster).list_objects(
            DEPLOYMENTS.path(cluster.namespace), DEPLOYMENTS.plural
        )
    }


class Deployment:
    """A Deployment, or another object that can be scaled, see `find_scalable`."""

    def __init__(self, cluster: Cluster, reference: str) -> None:
        self.reference = reference  # as people name it
        self.resource, self.name = find_scalable(cluster, reference)
        self.namespace = cluster.namespace
        self._api = ApiCalls(cluster)
        self._title = f"{self.resource.kind.lower()} {self.name} in namespace {cluster.namespace}"
        deployment = self._read()
        self.template: dict[str, Any] = deployment["spec"].get("template", {})
        self.annotations: dict[str, str] = deployment["metadata"].get("annotations", {})
        if self.resource == DEPLOYMENTS:
            labels = deployment["spec"]["selector"].get("matchLabels", {})
            self.selector = ",".join(f"{key}={label}" for key, label in labels.items())
        else:
            self.selector = self._read_scale(deployment)

    def _read_scale(self, document: dict[str, Any]) -> str:
        """Return the selector of the pods by the subresource /scale.

        UsageError when it does not count what spec.replicas does.
        """
        scale = self._api.get(
            f"{self.resource.path(self.namespace, self.name)}/scale",
            f"read the scale of {self._title}",
            f"get {self.resource.plural}/scale",
        )
        wanted = document["spec"].get("replicas")
        selector = str(scale.get("status", {}).get("selector") or "")
        if scale.get("spec", {}).get("replicas", 0) != (wanted or 0) or not selector:
            raise UsageError(
                f"the /scale of {self._title} is not its spec.replicas, or has no selector",
                hint="scale it by a command: <set_replicas> 'kubectl scale ... --replicas={n}'",
            )
        return selector

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
            self.resource.path(self.namespace, self.name),
            f"read {self._title}",
            f"get {self.resource.plural}",
        )

    def _events(self, selector: str, **query: str) -> list[dict[str, Any]]:
        return self._api.list_objects(
            EVENTS.path(self.namespace), EVENTS.plural, fieldSelector=selector, **query
        )

    def _describe_events(self, failing: PodState) -> list[str]:
        return [
            f"event {event.get('reason')}: {event.get('message', '')}"
            for event in self._events(f"involvedObject.name={failing.name}", limit="20")
        ][-5:]

    def _describe_log(self, failing: PodState) -> list[str]:
        query = {"tailLines": "15", "container": failing.container}
        if failing.restarts:
            query["previous"] = "true"  # the container that ended says why
        status, text = read_log(self._api, self.namespace, failing.name, **query)
        if status == 403:
            return ["(no log: we may not get pods/log)"]
        if status != 200:
            return [f"(no log: {status})"]
        return [f"log {line}" for line in text.splitlines()]
