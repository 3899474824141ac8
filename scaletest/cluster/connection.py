"""Find the cluster: that of a pod's service account, else that of the kubeconfig."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaletest.model.checks import cut_text
from scaletest.model.errors import Unreachable

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that was found."""

    client: Any  # the client library's, with the address and credentials
    namespace: str  # the one that was asked for, else the default


def connect_cluster(namespace: str = "", context: str = "") -> Cluster:
    """Find the cluster; no API call is made.

    Raises Unreachable when no cluster is configured.
    """
    # imported here, because it takes long
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
            chosen = next((entry for entry in contexts if entry["name"] == context), active)
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
            f"the kubeconfig cannot be read: {cut_text(' '.join(str(error).split()), 200)}",
            hint="correct it, or set KUBECONFIG to another file",
        ) from error
    except (ConfigException, OSError) as error:
        raise Unreachable(
            f"no Kubernetes cluster is configured: {cut_text(str(error), 200)}",
            hint="run it in a pod with a service account, or set KUBECONFIG",
        ) from error
    return Cluster(kubernetes.client.ApiClient(settings), namespace or default or "default")
