"""An extension API server, which answers for an API group: its keys, flags and registration.

It runs outside the cluster on the loopback address. The API server finds it by a Service of type
ExternalName, trusts it by its own certificate authority, and passes on the user's name with the
aggregator's certificate.
"""

import base64
import json
from collections.abc import Sequence
from pathlib import Path

from hack.kubernetes import keys
from hack.kubernetes.accounts import kubeconfig
from hack.kubernetes.plane import CommandFailed, ControlPlane
from hack.kubernetes.process import free_ports


class Extension:
    """One extension API server. Its roles must name the same namespace, account and service."""

    def __init__(self, plane: ControlPlane, namespace: str, account: str, service: str) -> None:
        self._plane, self._namespace, self._account, self._service = (
            plane,
            namespace,
            account,
            service,
        )
        self.folder = plane.folder / service
        self._registered: list[str] = []
        (self._port,) = free_ports(1)

    def prepare(self) -> Path:
        """Create its keys and a kubeconfig, and return the kubeconfig's path.

        Its account must exist.
        """
        self.folder.mkdir(exist_ok=True)
        keys.make_server_keys(self.folder, f"{self._service}.{self._namespace}.svc", "localhost")
        return kubeconfig(self._plane, self._namespace, self._account, self.folder / "kubeconfig")

    def flags(self) -> list[str]:
        """Return the flags that every extension API server has."""
        config = self.folder / "kubeconfig"
        return [
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--tls-cert-file={self.folder}/tls.crt",
            f"--tls-private-key-file={self.folder}/tls.key",
            f"--lister-kubeconfig={config}",
            f"--authentication-kubeconfig={config}",
            f"--authorization-kubeconfig={config}",
        ]

    def register(self, groups: Sequence[tuple[str, str]]) -> None:
        """Register it for these groups and versions; wait for its answer. Raises CommandFailed."""
        meta = {"name": self._service, "namespace": self._namespace}
        spec = {
            "type": "ExternalName",
            "externalName": "localhost",
            "ports": [{"port": self._port}],
        }
        self._plane.apply([{"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}])
        authority = base64.b64encode((self.folder / "ca.crt").read_bytes()).decode()
        self._registered = [f"{version}.{group}" for group, version in groups]
        for name, (group, version) in zip(self._registered, groups, strict=True):
            registration = {
                "group": group,
                "version": version,
                "service": {**meta, "port": self._port},
                "caBundle": authority,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
            }
            head = {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": name},
            }
            self._plane.apply([{**head, "spec": registration}])
        for name in self._registered:
            self._plane.insist(
                "wait", "--for=condition=Available", f"apiservice/{name}", "--timeout=5s"
            )

    def forget(self) -> None:
        """Delete its registrations."""
        for name in self._registered:
            self._plane.kubectl("delete", "apiservice", name, "--ignore-not-found")
        self._registered = []


def check_free(plane: ControlPlane, group: str, program: str) -> None:
    """Raise CommandFailed when another program answers for the group: only one can."""
    for service in json.loads(plane.kubectl("get", "apiservices", "-o", "json"))["items"]:
        owner = (service["spec"].get("service") or {}).get("name", "")
        if service["spec"].get("group") == group and owner:
            raise CommandFailed(
                f"{program} cannot run: {owner} answers for {group}, and only one can; "
                "hack/cluster down ends it, then `up` with one of --keda and --adapter"
            )
