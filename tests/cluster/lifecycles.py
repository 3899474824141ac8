"""What the tests of lifecycles share: the program in a namespace of the plane, and its results."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hack.kubernetes import ControlPlane
from tests.conftest import program
from tests.unit.valid import FILES, checked, fits

Run = Callable[..., subprocess.CompletedProcess[str]]


def runner(plane: ControlPlane, namespace: str, tmp_path: Path) -> Run:
    """Runs `scaletest lifecycle ...` in the namespace, with output in tmp_path."""
    whole = json.loads(plane.kubeconfig.read_text())
    whole["contexts"][0]["context"]["namespace"] = namespace
    config = tmp_path / "kubeconfig"
    config.write_text(json.dumps(whole))

    def run(*arguments: str, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            program("lifecycle", *arguments),
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "KUBECONFIG": str(config), **environment},
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    run.environment = {**os.environ, "KUBECONFIG": str(config)}  # type: ignore[attr-defined]
    return run


def report_of(lifecycle: Run, folder: str) -> dict[str, Any]:
    """The result of the run in a folder, as the general report has it."""
    environment = lifecycle.environment  # type: ignore[attr-defined]
    done = subprocess.run(
        program("report", folder, "--format", "json"),
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(environment["KUBECONFIG"]).parent,
        env=environment,
    )
    return dict(json.loads(done.stdout))


def run_json(lifecycle: Run, *arguments: str, code: int = 0, **environment: str) -> dict[str, Any]:
    """`run` with its result. What it prints and what it leaves fits the schemas."""
    done = lifecycle(
        "run",
        "--output-dir",
        "out",
        "--format",
        "json",
        "-g",
        "0",
        *arguments,
        code=code,
        **environment,
    )
    folder = Path(lifecycle.environment["KUBECONFIG"]).parent / "out"  # type: ignore[attr-defined]
    assert fits(folder) == set(FILES)
    return checked(json.loads(done.stdout), "lifecycle-result")


def step(result: dict[str, Any], name: str) -> dict[str, Any]:
    steps = [row for row in result["steps"] if row["step"] == name]
    assert steps, f"nothing of {name}"
    return dict(steps[0])
