"""Find a cluster by the service account of a pod, or by the kubeconfig."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaletest.model.checks import cut
from scaletest.model.errors import Unreachable

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A client of an API server, and its default namespace."""

    client: Any
    namespace: str


def connect(namespace: str = "", context: str = "") -> Cluster:
    """Find the cluster of a pod's service account, else of the kubeconfig; no API call is made.

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
            contexts, active = config.list_kube_config_contexts(path)
            chosen = next((known for known in contexts if known["name"] == context), active)
            default = str(chosen["context"].get("namespace", "") if chosen else "")
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
