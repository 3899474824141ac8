"""Annotations of the pods of a namespace."""

from __future__ import annotations

from scaletest.cluster.connection import TIMEOUT_S, Busy, Missing, Refused, connect, explained

__all__ = ["Busy", "Missing", "PodAnnotations", "Refused"]


class PodAnnotations:
    """Writes annotations of pods in one namespace. Needs the right to patch pods there."""

    def __init__(self, namespace: str = "", context: str = "") -> None:
        from kubernetes.client import CoreV1Api

        cluster = connect(namespace, context)
        self.namespace = cluster.namespace
        self._api = CoreV1Api(cluster.client)

    def annotate(self, name: str, annotations: dict[str, str]) -> None:
        """Merge annotations into a pod's.

        Raises Missing, Refused, Busy, and Unreachable without the right.
        """
        body = {"metadata": {"annotations": annotations}}
        with explained(f"patch pod {name} in namespace {self.namespace}", "patch pods"):
            self._api.patch_namespaced_pod(name, self.namespace, body, _request_timeout=TIMEOUT_S)
