"""From a kubeconfig or a service account to a client of the API server; its refusals as errors one can act on."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaletest.model.checks import cut
from scaletest.model.errors import ScaletestError, Unreachable

TIMEOUT_S = 5.0
# A server that says when to come again is obeyed, however long that is, but no longer than this in all.
LONGEST_OBEYED_S = 3600.0
# Answers to what the client did that pass all the same: timeout, conflict, too early, too many.
_LATER = (408, 409, 425, 429)
_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Missing(ScaletestError):
    """The object does not exist."""

    exit_code = 2


class Refused(ScaletestError):
    """The API server will not do this to this object, however often it is asked."""

    exit_code = 2


class Busy(Unreachable):
    """The API server wants to be asked later (409, 429, 5xx, or a timeout).

    after_s: so long, when it says so; else 0.
    """

    after_s = 0.0


class Conflict(Busy):
    """The object is there already, or somebody else changed it since it was read (409)."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A client of an API server, and the namespace that is meant when none is said."""

    client: Any
    namespace: str


def connect(namespace: str = "", context: str = "") -> Cluster:
    """The cluster of a pod's service account, else of the kubeconfig. Nothing is asked yet.

    Raises Unreachable when no cluster is configured.
    """
    import kubernetes
    from kubernetes.config.config_exception import ConfigException

    config: Any = kubernetes.config  # its functions have no types
    settings = kubernetes.client.Configuration()
    settings.retries = 0  # who calls decides
    try:
        if not context and _NAMESPACE_FILE.exists():
            config.load_incluster_config(client_configuration=settings)
            found = _NAMESPACE_FILE.read_text("utf-8").strip()
        else:
            # asked now: the client library looks when it is imported, and never again
            where = os.environ.get("KUBECONFIG") or None
            config.load_kube_config(where, context=context or None, client_configuration=settings)
            found = _namespace_of(config, where, context)
    except (ConfigException, OSError) as error:
        raise Unreachable(
            f"no Kubernetes cluster is configured: {cut(str(error), 200)}",
            hint="run it in a pod with a service account, or set KUBECONFIG",
        ) from error
    return Cluster(kubernetes.client.ApiClient(settings), namespace or found or "default")


@contextmanager
def explained(what: str, right: str = "") -> Iterator[None]:
    """Turn the client library's errors into ours. right: what a Role must allow for it, as in "patch pods"."""
    import urllib3.exceptions
    from kubernetes.client.exceptions import ApiException

    try:
        yield
    except ApiException as error:
        status: Any = error.status
        raise refusal(int(status or 0), str(error.reason), what, right) from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise Busy(
            f"cannot {what}: {cut(str(error), 200)}", hint="is the API server of the kubeconfig reachable?"
        ) from error


def told(headers: Mapping[str, str]) -> float:
    """The seconds after which the API server wants to be asked again; 0 when it does not say. Names are lower-case."""
    after = headers.get("retry-after", "")
    return float(after) if after.isdigit() else 0.0


def refusal(
    status: int, reason: str, what: str, right: str = "", headers: Mapping[str, str] | None = None
) -> ScaletestError:
    """The error for an HTTP status that the API server answered."""
    if status == 404:
        return Missing(f"cannot {what}: there is none", hint="look at its name and at the namespace")
    if status in (401, 403):
        return Unreachable(
            f"Kubernetes does not let us {what}: {reason}",
            hint=f"give the service account the right to {right or what} in this namespace",
        )
    if 400 <= status < 500 and status not in _LATER:
        return Refused(f"cannot {what}: {status} {reason}", hint="it will not be done to this object: look at it")
    busy = Busy(f"cannot {what}: {status} {reason}", hint="the API server is busy or broken; try again")
    busy.after_s = told(headers or {})
    return busy


def _namespace_of(config: Any, where: str | None, context: str) -> str:
    contexts, active = config.list_kube_config_contexts(where)
    chosen = next((row for row in contexts if row["name"] == context), active)
    return str(chosen["context"].get("namespace", "") if chosen else "")
