"""Kubeconfigs of service accounts: they grant the rights of the account and no others."""

import json
from pathlib import Path

from hack.kubernetes.plane import ControlPlane

LIFE = "24h"


def kubeconfig(plane: ControlPlane, namespace: str, account: str, path: Path) -> Path:
    """Write the kubeconfig and return its path. The account must exist."""
    whole = json.loads(
        plane.kubectl("config", "view", "--raw", "--flatten", "--minify", "-o", "json")
    )
    context = whole["contexts"][0]["context"]
    token = plane.kubectl("-n", namespace, "create", "token", account, f"--duration={LIFE}").strip()
    whole["users"] = [{"name": context["user"], "user": {"token": token}}]
    context["namespace"] = namespace
    path.touch(0o600)
    path.write_text(json.dumps(whole))
    return path
