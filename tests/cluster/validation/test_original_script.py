"""The calls of the original's validate-scaling.sh on a release of the chart.

The script knows the workers' pods by a prefix alone, and takes each answer of the client as a line.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.kubernetes import ControlPlane, tool
from scaletest.broker import Queues
from tests.cluster.charts import CHART
from tests.cluster.conftest import Agent, Helm, needs_own
from tests.conftest import eventually

pytestmark = needs_own
RELEASE, LOAD = "bench-scaletest-sleep", "load"
SECONDS = 0.25
Shell = Callable[[str], str]


@pytest.fixture
def agent(plane: ControlPlane, namespace: str, url: str, redis: Any) -> Iterator[Agent]:
    """Processes for the pods of workers in the namespace."""
    Queues(redis).add("sleep")
    agent = Agent(plane, namespace, url)
    try:
        yield agent
    finally:
        agent.close()


@pytest.fixture
def shell(plane: ControlPlane, namespace: str, agent: Agent) -> Shell:
    """Run a line of sh, with DEPLOYMENT, SPACE and the URL of a client in its environment."""
    agent.serve_client(LOAD, "sleep", str(SECONDS))
    rows = plane.kubectl("-n", namespace, "get", "endpointslices", LOAD, "-o", "json")
    endpoints = json.loads(rows)
    address = f"{endpoints['endpoints'][0]['addresses'][0]}:{endpoints['ports'][0]['port']}"
    kubectl = Path(tool("kubernetes", "kubectl")).parent
    environment = {
        **os.environ,
        "PATH": f"{kubectl}:{os.environ['PATH']}",
        "KUBECONFIG": str(plane.kubeconfig),
        "DEPLOYMENT": f"{RELEASE}-worker",
        "SPACE": namespace,
        "URL": f"http://{address}",
    }

    def run(line: str) -> str:
        done = subprocess.run(
            ["sh", "-c", line], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    return run


def test_the_calls_of_the_originals_script_measure_one_two_and_four_workers(
    shell: Shell, namespace: str, main_helm: Helm, redis: Any
) -> None:
    # given a release with its client, whose pod runs in the same namespace
    main_helm("install", "bench", str(CHART), "-n", namespace)

    def asked(path: str) -> str:
        """The answer as a shell reads it: a line that does not end is none."""
        return shell(f'curl -sSf "$URL/{path}" | {{ read -r answer && echo "$answer"; }}')

    def scaled(count: int) -> None:
        assert asked("parallel?type=plain&value=0") == "0"
        shell(f"kubectl -n $SPACE scale deployment/$DEPLOYMENT --replicas={count}")
        running = 'kubectl -n $SPACE get pods | grep -c "^$DEPLOYMENT-.* Running " || true'
        eventually(lambda: shell(running) == str(count))
        eventually(lambda: len(Queues(redis).worker_names("sleep")) == count)

    # when the workers are scaled to the most, to none, and then doubled
    scaled(4)
    scaled(0)
    everything = f'kubectl -n $SPACE get pods | grep "^{RELEASE}-.* Running "'
    assert shell(everything).startswith(f"{RELEASE}-client-")
    for count in (1, 2, 4):
        scaled(count)
        assert asked("reset?type=plain") == "Reseted"
        assert asked(f"parallel?type=plain&value={count}") == str(count)
        # expect all of them at work at once, and a rate; how high it is decides the machine
        eventually(lambda count=count: Queues(redis).state("sleep").running == count)
        eventually(lambda: float(asked("reqs-per-sec?type=plain")) > 0)
        assert asked("fails?type=plain") == "0"
        assert "successfully completed requests / second" in shell('curl -sSf "$URL/stats"')
    assert "Node | Success replies:" in shell('curl -sSf "$URL/nodes"')
    assert asked("parallel?type=plain&value=0") == "0"
    scaled(1)
