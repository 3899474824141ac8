"""What tests of the rendered chart share: Helm without a cluster."""

import functools
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

# Helm 3 is supported by nobody since November 2026, but people have it.
MAIN_HELM = "helm4"
BOTH_HELMS = ("helm3", MAIN_HELM)
# Parameters of a fixture: the second Helm's tests run weekly, but for those that ask for BOTH_HELMS
# themselves.
HELMS = (pytest.param("helm3", marks=pytest.mark.weekly(part="helm3")), MAIN_HELM)
ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "scaletest"
EXAMPLES = sorted((CHART / "examples").glob("*.yaml"))
OLDEST, NEWEST = "1.30.0", "1.37.0"


@functools.cache
def template(helm: str, *arguments: str, version: str = NEWEST) -> subprocess.CompletedProcess[str]:
    """Run `helm template` on the chart: once for each way, since many tests look at the same
    objects.
    """
    line = [
        helm,
        "template",
        "trial",
        str(CHART),
        "-n",
        "bench",
        "--kube-version",
        version,
        *arguments,
    ]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def render(helm: str, *arguments: str, version: str = NEWEST) -> str:
    """What Helm makes of the chart. It must succeed."""
    done = template(helm, *arguments, version=version)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(helm: str, *arguments: str, version: str = NEWEST) -> str:
    """What Helm says against it. It must fail."""
    done = template(helm, *arguments, version=version)
    assert done.returncode != 0
    return done.stderr


def objects(text: str) -> list[dict[str, Any]]:
    """The objects of a rendered chart."""
    return [
        document
        for document in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        if document
    ]
