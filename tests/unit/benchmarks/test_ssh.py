"""Benchmarks whose parts start processes on each other: one key, who has it, and that nothing is
left of it.
"""

import base64
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scaletest.benchmarks.documents import benchmark
from scaletest.benchmarks.kinds import BenchmarkFailed, ExecutionSite, Failure, PartAddress
from scaletest.benchmarks.kinds.registry import KINDS
from scaletest.benchmarks.objects import manifests, ssh
from scaletest.benchmarks.operator import benchmark_reconciler
from tests.unit.fake_cluster import FakeCluster, Killed, cluster_with, pod_of, settings

ADDRESSES = ("10.1.0.7", "10.1.0.8")


def site(folder: str = "/scratch/master-0", ssh: str = "") -> ExecutionSite:
    workers = [
        PartAddress("worker", at, f"one-worker-{at}", address)
        for at, address in enumerate(ADDRESSES)
    ]
    return ExecutionSite(
        {"worker": workers, "master": [PartAddress("master", 0, "", "", folder)]}, ssh=ssh
    )


def until_ended(cluster: FakeCluster, kind: str) -> Mapping[str, Any]:
    for _ in range(20):
        benchmark_reconciler.reconcile(KINDS[kind], cluster, "ns", "one", settings(cluster))
        state: Mapping[str, Any] = cluster.objects[KINDS[kind].plural, "one"].get("status", {})
        if state.get("phase") in ("Completed", "Failed"):
            return state
    raise AssertionError(state)


@pytest.mark.parametrize("fatal", range(1, 40))
def test_one_key_is_made_and_deleted_though_the_operator_is_killed(fatal: int) -> None:
    # given an operator that dies after that request
    cluster = cluster_with(kind="MPIPingPong")
    cluster.fatal = fatal
    with pytest.raises(Killed):
        until_ended(cluster, "MPIPingPong")
    # when another goes on; expect one measurement with one key, and no key at its end
    assert until_ended(cluster, "MPIPingPong")["phase"] == "Completed"
    assert [change.partition("/")[0] for change in cluster.made].count("secrets") == 1
    assert cluster.made.count("jobs/one-master") == 1
    assert {plural for plural, _ in cluster.objects} == {"mpipingpongs", "configmaps", "leases"}


def test_deleting_a_running_benchmark_deletes_its_key() -> None:
    cluster = cluster_with(kind="OpenFOAM", ready=False)
    kind = KINDS["OpenFOAM"]
    benchmark_reconciler.reconcile(kind, cluster, "ns", "one", settings(cluster))
    assert [name for plural, name in cluster.objects if plural == "secrets"]
    benchmark_reconciler.clean_up(kind, cluster, "ns", cluster.objects["openfoams", "one"])
    assert {plural for plural, _ in cluster.objects} == {"openfoams", "leases"}


def test_only_parts_that_need_it_have_a_key() -> None:
    pingpong = benchmark.read_benchmark({"kind": "MPIPingPong"})
    for role in ("worker", "master"):
        pod = pod_of(pingpong, role)
        (volume,) = [row for row in pod["volumes"] if "secret" in row]
        assert volume["secret"]["secretName"] == ssh.secret_name(pingpong.name, "u")
        assert {"name": "ssh", "mountPath": ssh.MOUNT, "readOnly": True} in pod["containers"][0][
            "volumeMounts"
        ]
    other = benchmark.read_benchmark({"kind": "IPerf"})
    assert not [row for row in pod_of(other, "client")["volumes"] if "secret" in row]


def test_two_benchmarks_of_one_name_have_two_keys() -> None:
    pingpong = benchmark.read_benchmark({"kind": "MPIPingPong"})
    first, second = (
        manifests.secret(pingpong, {"uid": uid}) for uid in ("3f0a1b2c-1", "99999999-2")
    )
    assert (
        first["metadata"]["name"] != second["metadata"]["name"] and first["data"] != second["data"]
    )


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A Secret as a pod has it."""
    folder = tmp_path / "mounted"
    folder.mkdir()
    for name, text in ssh.make_key_pair().items():
        (folder / name).write_bytes(base64.b64decode(text))
    return folder


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that need not be installed for these tests."""
    monkeypatch.setattr(ssh.shutil, "which", lambda name: f"/usr/sbin/{name}")


def test_a_server_lets_in_this_key_alone_on_the_measured_address(
    keys: Path, tmp_path: Path
) -> None:
    foam = benchmark.read_benchmark({"kind": "OpenFOAM", "spec": {"sshPort": 2345}})
    task = ssh.server_task(foam, site(), 1, keys, tmp_path / "ssh")
    settings = (tmp_path / "ssh" / "sshd_config").read_text("utf-8")
    assert (task.port, task.argv[0]) == (2345, "/usr/sbin/sshd")
    assert {"Port 2345", "ListenAddress 10.1.0.8", "AuthenticationMethods publickey"} <= set(
        settings.splitlines()
    )
    public = (keys / ssh.PUBLIC).read_text("utf-8")
    assert (tmp_path / "ssh" / "authorized_keys").read_text("utf-8") == f"restrict {public}"
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "ssh").iterdir()} == {0o600}


def test_mpirun_gets_the_configuration_and_starts_every_daemon_itself() -> None:
    pingpong = benchmark.read_benchmark({"kind": "MPIPingPong"})
    (task,) = pingpong.kind.tasks(pingpong.spec, site(ssh="/tmp/ssh/ssh_config"))
    line = " ".join(task.argv)
    assert "--mca plm_rsh_args -F /tmp/ssh/ssh_config --mca plm_rsh_no_tree_spawn 1" in line
    assert task.files["hosts"] == "one-worker-0 slots=1\none-worker-1 slots=1\n"


def test_the_case_is_copied_to_every_worker_when_there_are_several_processes() -> None:
    for processes, wanted in ((1, False), (2, True)):
        foam = benchmark.read_benchmark(
            {"kind": "OpenFOAM", "spec": {"problemSize": "XS", "numProcs": processes}}
        )
        (task,) = foam.kind.tasks(foam.spec, site())
        assert task.shared is wanted
    lines = [
        argv[-1]
        for argv in ssh.copy_commands(site(ssh="/tmp/ssh/ssh_config"), Path("/scratch/master-0"))
    ]
    assert len(lines) == 2 and "one-worker-0" in lines[0] and "one-worker-1" in lines[1]


def test_a_copied_case_lies_at_the_same_path_on_every_worker(tmp_path: Path) -> None:
    # given an ssh that runs the command here, below another root
    folder = tmp_path / "a case"
    (folder / "system").mkdir(parents=True)
    (folder / "system" / "controlDict").write_text("x")
    (command,) = set(
        ssh.copy_commands(
            ExecutionSite({"worker": [PartAddress("worker", 0, "w", "")]}, ssh="cfg"), folder
        )
    )
    fake = tmp_path / "bin" / "ssh"
    fake.parent.mkdir()
    fake.write_text(
        f'#!/bin/sh\ncd {tmp_path} && cat >packed && mv "a case" kept; shift 3; sh -c "$*"'
        " <packed\n"
    )
    fake.chmod(0o755)
    subprocess.run(command, check=True, env={"PATH": f"{fake.parent}:/usr/bin:/bin"})
    assert (folder / "system" / "controlDict").read_text() == "x"


def test_a_missing_ssh_server_is_named(
    keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pingpong = benchmark.read_benchmark({"kind": "MPIPingPong"})
    monkeypatch.setattr(ssh.shutil, "which", lambda name: None)
    with pytest.raises(BenchmarkFailed, match="sshd not found") as raised:
        ssh.server_task(pingpong, site(), 0, keys, tmp_path / "ssh")
    assert raised.value.failure is Failure.NO_BINARY
