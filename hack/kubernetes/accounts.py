"""A service account's kubeconfig: who has it can do what the account may, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

from hack.kubernetes.plane import ControlPlane

LIFE = "24h"


def kubeconfig(plane: ControlPlane, namespace: str, account: str, path: Path) -> Path:
    """Write it. The account must exist."""
    whole = json.loads(plane.kubeconfig.read_text())
    token = plane.kubectl("-n", namespace, "create", "token", account, f"--duration={LIFE}").strip()
    whole["users"] = [{"name": "admin", "user": {"token": token}}]
    whole["contexts"][0]["context"]["namespace"] = namespace
    path.touch(0o600)
    path.write_text(json.dumps(whole))
    return path
