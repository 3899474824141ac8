"""Clients of the API server by kubeconfig or service account, and its refusals as errors."""

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
# A server's Retry-After is obeyed, but no longer than this in all.
LONGEST_OBEYED_S = 3600.0
# Statuses of client errors that pass with time: timeout, conflict, too early, too many requests.
_LATER = (408, 409, 425, 429)
_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class Missing(ScaletestError):
    """The object does not exist."""

    exit_code = 2


class Refused(ScaletestError):
    """The API server refuses the call for good: trying again does not help."""

    exit_code = 2


class Busy(Unreachable):
    """The API server is busy or unreachable (409, 429, 5xx, or a timeout): try again.

    after_s: seconds until then, when the server says so; else 0.
    """

    after_s = 0.0


class Conflict(Busy):
    """The object exists already, or was changed since it was read (409)."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A client of an API server, and its default namespace."""

    client: Any
    namespace: str


def connect(namespace: str = "", context: str = "") -> Cluster:
    """The cluster of a pod's service account, else of the kubeconfig; no API call is made.

    Raises Unreachable when no cluster is configured.
    """
    import kubernetes
    import yaml
    from kubernetes.config.config_exception import ConfigException

    config: Any = kubernetes.config  # its functions have no types
    settings = kubernetes.client.Configuration()
    settings.retries = 0  # the caller decides
    try:
        if not context and _NAMESPACE_FILE.exists():
            config.load_incluster_config(client_configuration=settings)
            default = _NAMESPACE_FILE.read_text("utf-8").strip()
        else:
            # read here, because the client library reads it only once, when it is imported
            path = os.environ.get("KUBECONFIG") or None
            config.load_kube_config(path, context=context or None, client_configuration=settings)
            default = _namespace_of(config, path, context)
    except (
        yaml.YAMLError,
        UnicodeDecodeError,
        TypeError,
        AttributeError,
        KeyError,
        RecursionError,
    ) as error:
        # the client library does not check that the file is a kubeconfig
        raise Unreachable(
            f"the kubeconfig cannot be read: {cut(' '.join(str(error).split()), 200)}",
            hint="correct it, or set KUBECONFIG to another file",
        ) from error
    except (ConfigException, OSError) as error:
        raise Unreachable(
            f"no Kubernetes cluster is configured: {cut(str(error), 200)}",
            hint="run it in a pod with a service account, or set KUBECONFIG",
        ) from error
    return Cluster(kubernetes.client.ApiClient(settings), namespace or default or "default")


@contextmanager
def explained(action: str, right: str = "") -> Iterator[None]:
    """Turn the client library's errors into ours.

    action: as in "list pods", for the message. right: what a Role must allow for it, as in
    "patch pods".
    """
    import urllib3.exceptions
    from kubernetes.client.exceptions import ApiException

    try:
        yield
    except ApiException as error:
        status: Any = error.status
        raise refusal(int(status or 0), str(error.reason), action, right) from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise Busy(
            f"cannot {action}: {cut(str(error), 200)}",
            hint="is the API server of the kubeconfig reachable?",
        ) from error


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Seconds until the API server takes the call again (Retry-After); 0 without.

    Names are lower-case.
    """
    after = headers.get("retry-after", "")
    return float(after) if after.isdigit() else 0.0


def refusal(
    status: int, reason: str, action: str, right: str = "", headers: Mapping[str, str] | None = None
) -> ScaletestError:
    """The error for an HTTP status of the API server; action and right as in `explained`."""
    if status == 404:
        return Missing(f"cannot {action}: not found", hint="check its name and the namespace")
    if status in (401, 403):
        return Unreachable(
            f"not allowed to {action}: {reason}",
            hint=f"give the service account the right to {right or action} in this namespace",
        )
    if 400 <= status < 500 and status not in _LATER:
        return Refused(
            f"cannot {action}: {status} {reason}",
            hint="correct the object; trying again does not help",
        )
    busy = Busy(
        f"cannot {action}: {status} {reason}",
        hint="the API server is overloaded or broken; try again",
    )
    busy.after_s = retry_after_s(headers or {})
    return busy


def _namespace_of(config: Any, path: str | None, context: str) -> str:
    contexts, active = config.list_kube_config_contexts(path)
    chosen = next((known for known in contexts if known["name"] == context), active)
    return str(chosen["context"].get("namespace", "") if chosen else "")
