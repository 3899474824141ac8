"""One way to an API server: the connection of a pod, else that of kubectl; errors that a user can act on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scaletest.model.checks import cut
from scaletest.model.errors import Unreachable

TIMEOUT_S = 5.0
# Answers to what the client did that pass all the same: timeout, conflict, too early, too many.
_LATER = (408, 409, 425, 429)
_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Missing(Exception):
    """The object does not exist."""


class Refused(Exception):
    """The API server will not do this to this object, however often it is asked."""


class Busy(Exception):
    """The API server wants to be asked later (409, 429, 5xx, or a timeout)."""


class Pods:
    """Pods of one namespace. Needs the right to patch pods there."""

    def __init__(self, namespace: str = "", context: str = "") -> None:
        import kubernetes
        from kubernetes.config.config_exception import ConfigException

        config: Any = kubernetes.config  # its functions have no types
        try:
            if not context and _NAMESPACE_FILE.exists():
                config.load_incluster_config()
                found = _NAMESPACE_FILE.read_text("utf-8").strip()
            else:
                config.load_kube_config(context=context or None)
                found = _namespace_of(config, context)
        except (ConfigException, OSError) as error:
            raise Unreachable(
                f"no Kubernetes cluster is configured: {cut(str(error), 200)}",
                hint="run it in a pod with a service account, or set KUBECONFIG",
            ) from error
        self.namespace = namespace or found or "default"
        self._api = kubernetes.client.CoreV1Api()

    def annotate(self, name: str, annotations: dict[str, str]) -> None:
        """Merge annotations into a pod's. Raises Missing, Refused, Busy, and Unreachable when we may not."""
        body = {"metadata": {"annotations": annotations}}
        with explained(f"patch pod {name} in namespace {self.namespace}"):
            self._api.patch_namespaced_pod(name, self.namespace, body, _request_timeout=TIMEOUT_S)


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn the client library's errors into ours."""
    import urllib3.exceptions
    from kubernetes.client.exceptions import ApiException

    try:
        yield
    except ApiException as error:
        status: Any = error.status
        if status == 404:
            raise Missing(what) from error
        if status in (401, 403):
            raise Unreachable(
                f"Kubernetes does not let us {what}: {error.reason}",
                hint="give the service account the right to patch pods in this namespace",
            ) from error
        refused = 400 <= status < 500 and status not in _LATER
        raise (Refused if refused else Busy)(f"cannot {what}: {status} {error.reason}") from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise Busy(f"cannot {what}: {cut(str(error), 200)}") from error


def _namespace_of(config: Any, context: str) -> str:
    contexts, active = config.list_kube_config_contexts()
    chosen = next((row for row in contexts if row["name"] == context), active)
    return str(chosen["context"].get("namespace", "") if chosen else "")
