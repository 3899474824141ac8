"""prometheus-adapter and Debian's Prometheus as processes beside the control plane.

HPAs read the exporter's metrics from them, by the rules of
charts/scaletest/prometheus-adapter.yaml.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from hack.kubernetes.extension import Extension, check_free
from hack.kubernetes.names import Names
from hack.kubernetes.plane import ControlPlane
from hack.kubernetes.process import ROOT, NotBuilt, free_ports, tool

NAMESPACE, NAME = "monitoring", "prometheus-adapter"
GROUPS = (
    ("external.metrics.k8s.io", "v1beta1"),
    ("custom.metrics.k8s.io", "v1beta2"),
    ("custom.metrics.k8s.io", "v1beta1"),
)
PROGRAMS = (NAME, "prometheus")
RULES = ROOT / "charts" / "scaletest" / "prometheus-adapter.yaml"
INTERVAL = "2s"


class Adapter:
    """prometheus-adapter and its Prometheus for one control plane."""

    def __init__(self, plane: ControlPlane, names: Names) -> None:
        self._plane, self._names = plane, names
        self._extension = Extension(plane, NAMESPACE, NAME, NAME)

    def up(self) -> None:
        """Start both and wait until the metrics APIs answer. Raises NotBuilt, CommandFailed."""
        prometheus, adapter = shutil.which("prometheus"), tool("prometheus-adapter", "adapter")
        if not prometheus:
            raise NotBuilt(
                "Prometheus is not installed on this machine; apt-get install prometheus"
            )
        for group, _ in GROUPS:
            check_free(self._plane, group, NAME)
        self._plane.apply(_rights())
        # the kinds of objects that the chart's monitoring values create
        self._plane.kubectl("apply", "--server-side", "-f", tool("crds", "crds.yaml"))
        self._extension.prepare()
        (port,) = free_ports(1)
        at = f"127.0.0.1:{port}"
        self._targets.write_text("[]")
        configuration = {"global": {"scrape_interval": INTERVAL}, "scrape_configs": [self._job()]}
        config = self._extension.folder / "prometheus.yml"
        config.write_text(json.dumps(configuration))  # JSON is YAML
        store = f"--storage.tsdb.path={self._extension.folder}/tsdb"
        line = [prometheus, f"--config.file={config}", store, f"--web.listen-address={at}"]
        self._plane.start("prometheus", self._names.served(self._plane, line))
        line = [
            adapter,
            *self._extension.flags(),
            f"--cert-dir={self._extension.folder}",
            f"--config={RULES}",
        ]
        # a series that ended is forgotten soon; the age must cover some scrapes
        line += [
            f"--prometheus-url=http://{at}/",
            f"--metrics-relist-interval={INTERVAL}",
            "--metrics-max-age=30s",
        ]
        self._plane.start(NAME, line)
        self._extension.register(GROUPS)

    def scrape(self, namespace: str, service: str, port: int = 9998) -> None:
        """Let Prometheus scrape a Service, with the labels that a ServiceMonitor adds."""
        target = f"{service}.{namespace}.svc:{port}"
        known = json.loads(self._targets.read_text())
        known.append({"targets": [target], "labels": {"namespace": namespace, "service": service}})
        self._targets.write_text(json.dumps(known))

    def down(self) -> None:
        """End both."""
        self._extension.forget()
        for name in PROGRAMS:
            self._plane.stop(name)

    def _job(self) -> dict[str, Any]:
        discovery = {"files": [str(self._targets)], "refresh_interval": INTERVAL}
        return {"job_name": "services", "file_sd_configs": [discovery]}

    @property
    def _targets(self) -> Path:
        return self._extension.folder / "targets.json"


def _rights() -> list[dict[str, Any]]:
    """Build the roles and bindings of the adapter, and of HPAs to read its metrics."""
    account = {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}
    hpa = {
        "kind": "ServiceAccount",
        "name": "horizontal-pod-autoscaler",
        "namespace": "kube-system",
    }
    group = "rbac.authorization.k8s.io"
    look = {
        "apiGroups": [""],
        "resources": ["namespaces", "pods", "services"],
        "verbs": ["get", "list", "watch"],
    }
    read = {
        "apiGroups": sorted({name for name, _ in GROUPS}),
        "resources": ["*"],
        "verbs": ["get", "list"],
    }

    def bind(
        name: str, kind: str, role: str, subject: dict[str, str], **where: str
    ) -> dict[str, Any]:
        meta = {"name": name, **where}
        reference = {"apiGroup": group, "kind": kind, "name": role}
        binding = "RoleBinding" if where else "ClusterRoleBinding"
        head = {"apiVersion": f"{group}/v1", "kind": binding, "metadata": meta}
        return {**head, "roleRef": reference, "subjects": [subject]}

    reader = "extension-apiserver-authentication-reader"
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": NAME, "namespace": NAMESPACE},
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": NAME},
            "rules": [look],
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "metrics-reader"},
            "rules": [read],
        },
        bind(NAME, "ClusterRole", NAME, account),
        bind(f"{NAME}-delegator", "ClusterRole", "system:auth-delegator", account),
        bind("hpa-metrics-reader", "ClusterRole", "metrics-reader", hpa),
        bind(f"{NAME}-auth", "Role", reader, account, namespace="kube-system"),
    ]
