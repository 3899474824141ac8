"""Benchmarks for real on this machine: namespaces, tools, sweeps, interruption, the queue. They
need no quiet.
"""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scaletest.benchmarks.documents import BenchmarkPhase, BenchmarkResult, benchmark
from scaletest.benchmarks.kinds import Failure
from scaletest.benchmarks.measure import namespaces
from scaletest.benchmarks.measure.local_executor import LocalExecutor
from scaletest.model.errors import UsageError
from tests.conftest import call, call_here, eventually, missing, need, processes_with, program
from tests.unit.benchmarks.test_kube_perftest import DOCUMENTS


@pytest.fixture(scope="session")
def isolated() -> None:
    """Network namespaces can be made."""
    need("ip")
    if not namespaces.can_create_namespaces():
        missing("the right to make network namespaces")


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make this shell script the iperf3 of benchmarks."""

    def write(script: str) -> None:
        tools = tmp_path / "bin"
        tools.mkdir()
        (tools / "iperf3").write_text(f"#!/bin/sh\n{script}\n")
        (tools / "iperf3").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")

    return write


def measure(kind: str, folder: Path, **spec: Any) -> tuple[BenchmarkResult, list[BenchmarkPhase]]:
    asked = benchmark.read_benchmark({"kind": kind, "spec": spec})
    executor = LocalExecutor(logs=folder)
    executor.refuse(asked)
    phases: list[BenchmarkPhase] = []
    return executor.run(asked, phases.append), phases


def measured(kind: str, folder: Path, **spec: Any) -> BenchmarkResult:
    """The result of a benchmark that ends well."""
    ended, phases = measure(kind, folder, **spec)
    assert ended.ok, (ended.message, ended.lines)
    assert phases == [
        BenchmarkPhase.PREPARING,
        BenchmarkPhase.RUNNING,
        BenchmarkPhase.SUMMARISING,
        BenchmarkPhase.COMPLETED,
    ]
    return ended


def log_of(folder: Path, kind: str, part: str) -> str:
    return (folder / kind.lower() / f"{part}.out").read_text("utf-8")


@pytest.mark.parametrize(
    ("mtu", "family", "mss"), [(1500, "IPv4", 1448), (9000, "IPv4", 8948), (1500, "IPv6", 1428)]
)
def test_iperf_over_a_veth_pair_has_the_tools_own_numbers(
    isolated: None, tmp_path: Path, mtu: int, family: str, mss: int
) -> None:
    need("iperf3")
    ended = measured("IPerf", tmp_path, duration=1, streams=2, mtu=mtu, ipFamily=family)
    data = json.loads(log_of(tmp_path, "IPerf", "client-0"))
    assert ended.headlines["bandwidth"] == data["end"]["sum_received"]["bits_per_second"]
    assert (
        ended.network["mtu"] == mtu
        and ended.network["family"] == family
        and ended.network["interface"] == "eth0"
    )
    assert ended.result["mss"] == mss, "what the tool negotiated says that the MTU was in force"


@pytest.mark.parametrize("direction", ["forward", "reverse", "both"])
@pytest.mark.parametrize("protocol", ["TCP", "UDP"])
def test_iperf_measures_each_direction(
    isolated: None, tmp_path: Path, protocol: str, direction: str
) -> None:
    need("iperf3")
    ended = measured(
        "IPerf", tmp_path, duration=1, protocol=protocol, bitrate="5M", direction=direction
    )
    assert ended.headlines["bandwidth"] < 6e6
    assert ("reverseBandwidth" in ended.headlines) == (direction == "both")
    assert 0 <= ended.headlines.get("lost", 0) <= 1
    assert ("lost" in ended.headlines) == (protocol == "UDP")


def test_iperf_2_has_the_sum_of_its_streams(isolated: None, tmp_path: Path) -> None:
    need("iperf")
    ended = measured("IPerf", tmp_path, tool="iperf", duration=1, streams=2)
    log = log_of(tmp_path, "IPerf", "client-0")
    rates = re.findall(r"^\[ +\d+\] .* (\d+) Kbits/sec$", log, re.MULTILINE)
    assert len(rates) == 2 and ended.headlines["bandwidth"] == 1e3 * sum(map(int, rates))


def test_iperf_on_one_node_uses_the_loopback_and_reads_nothing_of_an_interrupted_attempt(
    tmp_path: Path,
) -> None:
    need("iperf3")
    logs = tmp_path / "iperf"
    logs.mkdir()
    (logs / "client-0.out").write_text('{"error": "interrupt - the client has terminated"}')
    ended = measured("IPerf", tmp_path, duration=1, placement="sameNode")
    assert ended.headlines["bandwidth"] > 0 and ended.network["interface"] == "lo"


def test_iperf_without_namespaces_uses_the_loopback_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("iperf3")
    monkeypatch.setattr(namespaces, "can_create_namespaces", lambda: False)
    ended = measured("IPerf", tmp_path, duration=1)
    assert ended.network["interface"] == "lo" and "run as root" in ended.notes[0]
    with pytest.raises(UsageError, match="no network namespaces") as error:
        measure("IPerf", tmp_path, mtu=9000)
    assert "run as root" in error.value.hint


def test_the_cpus_of_the_spec_are_those_of_the_tool(
    isolated: None, tmp_path: Path, stand_in: Callable[[str], None]
) -> None:
    real = need("iperf3", "taskset")
    stand_in(f'grep Cpus_allowed_list /proc/self/status >&2\nexec {real} "$@"')
    measured("IPerf", tmp_path / "logs", duration=1, cpuAffinity="0")
    assert (tmp_path / "logs" / "iperf" / "client-0.err").read_text().split() == [
        "Cpus_allowed_list:",
        "0",
    ]


@pytest.mark.parametrize("user", [0, 65534])
def test_three_nodes_reach_each_other_as_root_and_as_anybody(isolated: None, user: int) -> None:
    """In a child of ours that gives up its rights, since a namespace needs none where users may
    make them.
    """
    need("iperf3")
    if user and os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = _three_nodes(user)
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 2:
        pytest.skip("this kernel lets only root make namespaces")
    assert status == 0


def _three_nodes(user: int) -> int:
    if user:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        if not namespaces.can_create_namespaces():
            return 2
    network = namespaces.Namespaces(3, 1400, "IPv6")
    try:
        for index in range(3):
            line = [
                *network.enter(index),
                "ip",
                "-json",
                "route",
                "get",
                network.address((index + 1) % 3),
            ]
            ways = json.loads(subprocess.run(line, capture_output=True, check=True).stdout)
            assert ways[0]["dev"] == "eth0"
        for index in (0, 1):
            server = [
                *network.enter(2),
                "iperf3",
                "-6",
                "--server",
                "--one-off",
                "--port",
                "7777",
                "--forceflush",
            ]
            serving = subprocess.Popen(server, stdout=subprocess.PIPE)
            assert serving.stdout and any(b"listening" in line for line in serving.stdout)
            ask = [
                *network.enter(index),
                "iperf3",
                "-6",
                "-J",
                "-n",
                "1K",
                "-p",
                "7777",
                "-c",
                network.address(2),
            ]
            data = json.loads(
                subprocess.run(ask, capture_output=True, check=True, timeout=60).stdout
            )
            assert data["start"]["tcp_mss_default"] == 1400 - 40 - 20 - 12, (
                "IPv6, TCP and its time stamps"
            )
            serving.communicate(timeout=60)
    finally:
        network.close()
    return 0


def test_mpi_pingpong_between_two_namespaces(isolated: None, tmp_path: Path) -> None:
    need("mpirun", "mpicc")
    ended = measured("MPIPingPong", tmp_path, maxlog=8, timeLimit=280)
    rows = [line.split() for line in log_of(tmp_path, "MPIPingPong", "master-0").splitlines()]
    times = [float(row[2]) for row in rows if len(row) == 4 and row[0].isdigit()]
    assert len(times) == 10
    assert ended.headlines["minimumLatency"] == pytest.approx(min(times) * 1e-6)
    assert "Data for node: node-0" in log_of(tmp_path, "MPIPingPong", "master-0")


@pytest.mark.parametrize("workers", [1, 2])
def test_fio_on_files_of_its_workers(isolated: None, tmp_path: Path, workers: int) -> None:
    need("fio")
    ended = measured(
        "Fio",
        tmp_path,
        numWorkers=workers,
        size="8M",
        runtime="1s",
        bs="64k",
        rw="randrw",
        direct=0,
        ioengine="psync",
    )
    text = log_of(tmp_path, "Fio", "master-0")
    whole = json.loads(text[text.index("\n{") :])["client_stats"][-1]
    assert whole["jobname"] == ("All clients" if workers > 1 else "scaletest")
    assert ended.headlines["readBandwidth"] == whole["read"]["bw_bytes"]
    assert ended.headlines["writeIops"] == whole["write"]["iops"]


def test_openfoam_on_two_ranks(isolated: None, tmp_path: Path) -> None:
    if shutil.which("icoFoam") is None:
        pytest.skip("OpenFOAM is not installed; it is too large for CI, so this is run by hand")
    ended = measured("OpenFOAM", tmp_path, problemSize="XS", numProcs=2, timeLimit=280)
    real = [
        line
        for line in (tmp_path / "openfoam" / "master-0.err").read_text().splitlines()
        if line.startswith("real")
    ]
    assert ended.headlines["wallTime"] == float(real[-1].split()[1])
    assert ended.result["steps"] == 50 and ended.result["cells"] == 8000


@pytest.mark.parametrize("kind", ["RDMABandwidth", "RDMALatency"])
def test_rdma_without_a_device_fails_as_no_device(
    isolated: None, tmp_path: Path, kind: str
) -> None:
    need("ib_read_bw", "ib_read_lat")
    if Path("/sys/class/infiniband").is_dir() and any(Path("/sys/class/infiniband").iterdir()):
        pytest.skip("this machine has an RDMA device")
    ended, _ = measure(kind, tmp_path)
    assert ended.failure is Failure.NO_DEVICE and ended.lines


def test_a_client_never_starts_before_its_server_is_ready(
    isolated: None, tmp_path: Path, stand_in: Callable[[str], None]
) -> None:
    real = need("iperf3")
    stand_in(f'case "$*" in *--server*) sleep 1.5;; esac\nexec {real} "$@"')
    measured("IPerf", tmp_path / "logs", duration=1)


@pytest.mark.parametrize(
    ("script", "limit_s", "failure", "message"),
    [
        ("sleep 100", 1, Failure.TIMED_OUT, "was not ready in time"),
        ("echo the port is taken >&2; exit 3", 60, Failure.EXIT, "the port is taken"),
    ],
)
def test_a_server_that_never_serves_ends_the_benchmark(
    isolated: None,
    tmp_path: Path,
    stand_in: Callable[[str], None],
    script: str,
    limit_s: int,
    failure: Failure,
    message: str,
) -> None:
    stand_in(script)
    ended, phases = measure("IPerf", tmp_path / "logs", timeLimit=limit_s)
    assert ended.failure is failure and message in " ".join((ended.message, *ended.lines))
    assert phases[-1] is BenchmarkPhase.FAILED


def test_a_file_larger_than_the_free_space_is_refused_before_it_is_written(tmp_path: Path) -> None:
    need("fio")
    ended, _ = measure("Fio", tmp_path, size="900P", placement="sameNode")
    assert ended.failure is Failure.REFUSED and "GB free" in ended.message


def interfaces() -> str:
    return subprocess.run(
        ["ip", "-brief", "link"], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_namespace_or_file_remains_however_a_benchmark_ends(
    isolated: None, tmp_path: Path, number: int
) -> None:
    need("iperf3")
    before, others = interfaces(), set(processes_with("scaletest-node"))
    # hours, of a length that no other test on this machine has
    seconds = 10_000 + os.getpid() % 60_000
    time = f"--time\x00{seconds}\x00"
    line = [
        "bench",
        "run",
        "IPerf",
        "--set",
        f"duration={seconds}",
        "--run-dir",
        str(tmp_path / "run"),
    ]
    process = subprocess.Popen(
        program(*line), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        eventually(lambda: len(processes_with(time)) == 1)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    eventually(lambda: not processes_with(time) and set(processes_with("scaletest-node")) <= others)
    assert interfaces() == before, "the machine's own interfaces are as they were"
    if number != signal.SIGKILL:
        assert process.returncode == 4 and "interrupted" in errors


@pytest.mark.parametrize(
    ("kind", "program_name", "changes"),
    [
        ("IPerf", "iperf3", ["duration=1"]),
        ("IPerf", "iperf3", ["duration=1", "hostNetwork=true", "networkName=ns/net", "mtu=9000"]),
        ("MPIPingPong", "mpirun", ["maxlog=8"]),
        ("Fio", "fio", ["runtime=1s", "size=8M", "direct=0"]),
    ],
)
def test_documents_of_kube_perftest_are_measured_here(
    isolated: None, tmp_path: Path, kind: str, program_name: str, changes: list[str]
) -> None:
    need(program_name)
    file = tmp_path / "theirs.yaml"
    (document,) = [each for each in DOCUMENTS if each["kind"] == kind]
    file.write_text(json.dumps(document))
    sets = [word for change in changes for word in ("--set", change)]
    done = call("bench", "run", str(file), "--run-dir", str(tmp_path / "run"), *sets)
    assert done.returncode == 0, done.stderr
    ignored = [line for line in done.stderr.splitlines() if "is ignored" in line]
    assert len(ignored) == sum(change.startswith(("networkName", "mtu")) for change in changes)
    assert ("the volume claim was not used" in done.stdout) == (kind == "Fio")


def test_a_killed_sweep_resumes_after_the_last_measured_benchmark(
    isolated: None, tmp_path: Path
) -> None:
    need("iperf3")
    text = """
apiVersion: perftest.stackhpc.com/v1alpha1
kind: BenchmarkSet
metadata: {name: net}
spec:
  template:
    apiVersion: perftest.stackhpc.com/v1alpha1
    kind: IPerf
    spec: {duration: 1}
  repetitions: 2
  permutations:
    product: {streams: [1, 8]}
"""
    (tmp_path / "sweep.yaml").write_text(text)
    run = tmp_path / "run"
    process = subprocess.Popen(
        program("bench", "run", str(tmp_path / "sweep.yaml"), "--run-dir", str(run)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    records = run / "records.jsonl"
    eventually(lambda: records.exists() and records.read_text().count("\n") >= 1)
    process.kill()
    process.wait()
    done = records.read_text().splitlines()[:1]
    resumed = call("bench", "run", "--resume", str(run), "--format", "json")
    assert resumed.returncode == 0, resumed.stderr
    data = json.loads(resumed.stdout)
    assert [row["succeeded"] for row in data["permutations"]] == [2, 2]
    assert (
        data["environment"]["programs"]["iperf3"].startswith("iperf 3")
        and data["environment"]["system"]
    )
    assert records.read_text().splitlines()[:1] == done, "what had ended was not measured again"
    assert len(records.read_text().splitlines()) == 4
    # it is no slower than its copy; with two repetitions that differ much nothing more may be known
    again = shutil.copytree(run, tmp_path / "again")
    shown = call_here("compare", str(run), str(again), "--tolerance", "99%")
    assert shown.returncode in (0, 4) and shown.stdout.count(" 1.000 [") == 2, shown.stdout


def test_a_benchmark_is_a_request_to_a_worker(
    isolated: None, url: str, queues: Any, start: Callable[..., Any], tmp_path: Path
) -> None:
    need("iperf3")
    worker = start("bench")
    line = [
        "bench",
        "run",
        "IPerf",
        "--set",
        "duration=1",
        "--set",
        "mtu=9000",
        "--queue",
        "q",
        "--redis-url",
        url,
    ]
    done = call(*line, "--format", "json", "--run-dir", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)["benchmarks"][0]["status"]
    assert status["headlines"]["bandwidth"] > 0 and status["network"]["mtu"] == 9000
    assert status["environment"]["worker"] and status["result"]["mss"] == 8948
    assert worker.poll() is None


def test_a_worker_refuses_a_directory_unless_it_was_told_to_take_it(
    isolated: None, url: str, queues: Any, start: Callable[..., Any], tmp_path: Path
) -> None:
    need("fio")
    files = tmp_path / "files"
    line = ["bench", "run", "Fio", "--queue", "q", "--redis-url", url, "--format", "json"]
    for setting in ("size=1M", "runtime=1s", f"directory={files}"):
        line += ["--set", setting]
    # given a worker, expect a refusal that says what to do, and nothing run
    worker = start("bench")
    refused = call(*line, "--run-dir", str(tmp_path / "refused"))
    assert refused.returncode == 4, refused.stderr
    status = json.loads(refused.stdout)["benchmarks"][0]["status"]
    assert status["failure"] == "refused"
    assert "takes no directory" in status["message"]
    assert "<allow_commands>" in json.dumps(status)
    assert not files.exists()
    worker.terminate()
    assert worker.wait(120) == 0
    # and one that takes them
    start("--allow-commands", "bench")
    call(*line, "--run-dir", str(tmp_path / "taken"))
    assert files.exists()
