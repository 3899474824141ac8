"""The calls of the original's validate-scaling.sh on a release of the chart, and an upgrade of
0.1.0 while requests run.

The script knows the workers' pods by a prefix alone, and takes each answer of the client as a line.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hack.kubernetes import ControlPlane, tool
from scaletest.broker import Queues
from tests.cluster.conftest import CHART, Agent, Helm, needs_own
from tests.conftest import eventually, program

pytestmark = needs_own
PREVIOUS = Path(__file__).parent / "chart-previous"
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


def test_an_upgrade_from_0_1_0_loses_no_request_and_leaves_no_old_object(
    plane: ControlPlane, namespace: str, main_helm: Helm, agent: Agent, url: str, redis: Any
) -> None:
    def names(kinds: str) -> list[str]:
        return plane.kubectl("-n", namespace, "get", kinds, "-o", "name").split()

    # given the workers of 0.1.0, busy
    queues = Queues(redis)
    main_helm(
        "install", "bench", str(PREVIOUS), "-n", namespace, "--set", "queues.sleep.replicas=2"
    )
    assert f"deployment.apps/{RELEASE}" in names("deployments")
    eventually(lambda: len(queues.worker_names("sleep")) == 2)
    old = set(queues.worker_names("sleep"))
    line = program("client", "--redis-url", url, "--queue", "sleep", "--batch", "60")
    client = subprocess.Popen(
        [*line, "--format", "json", "--listen", "127.0.0.1:0", "--", "0.3"],
        stdout=subprocess.PIPE,
        text=True,
    )
    eventually(lambda: queues.state("sleep").running == 2)
    # when the release is upgraded, which also renames them
    main_helm("upgrade", "bench", str(CHART), "-n", namespace, "--reuse-values")
    out, _ = client.communicate(timeout=280)
    # expect every request answered once, the last ones by new workers
    statistics = json.loads(out)
    assert client.returncode == 0
    assert (statistics["succeeded"], statistics["failed"]) == (60, 0)
    eventually(lambda: len(queues.worker_names("sleep")) == 2)
    assert not old & set(queues.worker_names("sleep"))
    # and nothing of the old Deployment
    assert f"deployment.apps/{RELEASE}-worker" in names("deployments")
    mine = f"{RELEASE}-"

    def orphans() -> list[str]:
        owned = [name.split("/")[1] for name in names("deployments,replicasets,pods,pdb")]
        known = (f"{mine}worker", f"{mine}client")
        return [
            name for name in owned if f"{name}-".startswith(mine) and not name.startswith(known)
        ]

    eventually(lambda: not orphans())
