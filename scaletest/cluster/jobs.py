"""Run load agents as the pods of one Job."""

import logging

from scaletest.cluster.api_calls import ApiCalls, Busy, Cluster, Missing
from scaletest.cluster.objects import Document, ObjectClient
from scaletest.cluster.resources import JOBS, SECRETS, Resource
from scaletest.model.errors import AgentLost, ScaletestError

logger = logging.getLogger("scaletest.cluster")


class AgentJob:
    """A Job of load agents, and a Secret for the Redis URL, which may hold a password.

    Needs the rights to create and delete jobs and secrets, and to get jobs.
    """

    def __init__(
        self, cluster: Cluster, rendezvous: str, image: str, agents: int, redis_url: str
    ) -> None:
        self.name = f"scaletest-agents-{rendezvous}"
        self._rendezvous, self._agents, self._image = rendezvous, agents, image
        self._redis_url = redis_url
        self._namespace = cluster.namespace
        self._api = ApiCalls(cluster)
        self._objects = ObjectClient(cluster)

    def create(self) -> None:
        """Create the Job and its Secret, which it owns, so both are deleted together."""
        job = self._create(JOBS, self.manifest())
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": self.name,
            "uid": job["metadata"]["uid"],
        }
        secret = {
            "metadata": {"name": self.name, "ownerReferences": [owner]},
            "stringData": {"url": self._redis_url},
        }
        # the pods cannot start before the Secret exists, so it does no harm that it comes second
        self._create(SECRETS, secret)

    def _create(self, resource: Resource, body: Document) -> Document:
        action, right = f"create {resource.kind.lower()} {self.name}", f"create {resource.plural}"
        return self._api.write("POST", resource.path(self._namespace), body, action, right)

    def manifest(self) -> Document:
        """Make the Job: a pod for each agent, without retries and API rights, spread over nodes."""
        labels = {
            "app.kubernetes.io/name": "scaletest",
            "app.kubernetes.io/component": "agent",
            "scaletest/meeting": self._rendezvous,
        }
        url = {
            "name": "SCALETEST_REDIS_URL",
            "valueFrom": {"secretKeyRef": {"name": self.name, "key": "url"}},
        }
        container = {
            "name": "agent",
            "image": self._image,
            "args": ["saturate", "--agent", self._rendezvous],
            "env": [url, {"name": "HOME", "value": "/tmp"}],
            # no limit beside them: an agent that is held back sends late
            "resources": {"requests": {"cpu": "500m", "memory": "256Mi"}},
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
            },
        }
        pod = {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "containers": [container],
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"scaletest/meeting": self._rendezvous}},
                }
            ],
        }
        return {
            "metadata": {"name": self.name, "labels": labels},
            "spec": {
                "parallelism": self._agents,
                "completions": self._agents,
                "backoffLimit": 0,
                "activeDeadlineSeconds": 86_400,
                "ttlSecondsAfterFinished": 600,
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        }

    def check(self) -> None:
        """Raise AgentLost when a pod has ended or the Job was deleted before the run ended."""
        try:
            status = self._api.get(
                JOBS.path(self._namespace, self.name), f"read job {self.name}", "get jobs"
            ).get("status", {})
        except Missing as error:
            raise AgentLost(
                f"job {self.name}, whose pods are the agents, was deleted", hint="run it again"
            ) from error
        except Busy:
            # unknown for now; agents that are gone also send no results, which the run notices
            return
        ended = (status.get("failed") or 0) + (status.get("succeeded") or 0)
        if ended:
            raise AgentLost(
                f"{ended} agents of job {self.name} ended by themselves",
                hint=f"kubectl logs job/{self.name}",
            )

    def delete(self) -> None:
        """Delete both; it is fine if they do not exist."""
        for resource in (JOBS, SECRETS):
            try:
                self._objects.delete(resource, self._namespace, self.name)
            except ScaletestError as error:
                logger.error("delete %s %s yourself: %s", resource.kind.lower(), self.name, error)
