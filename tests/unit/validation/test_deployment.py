"""validate --deployment from the command line, against a cluster and a client that the test
plays, where it runs when no option says it, and which pods count as ready.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from scaletest.cli.main import run
from scaletest.cluster import api_calls, discovery, rights
from scaletest.cluster.api_calls import Busy, Refused
from scaletest.cluster.changes import BEFORE, Patch
from scaletest.cluster.hold_autoscalers import Autoscaler, Autoscalers
from scaletest.cluster.pods import PodState
from scaletest.cluster.resources import DEPLOYMENTS, HPAS, SCALED_OBJECTS, Resource
from scaletest.cluster.rights import Right
from scaletest.model import NodeSample, Outcome, Record, Reply
from scaletest.model.errors import WaitTimeout
from scaletest.validation.folder import ValidationFolder
from scaletest.validation.measure.deployment_target import LOOK_S, PATIENCE_S, KubernetesBackend
from scaletest.validation.measure.runner import ValidationRunner
from scaletest.validation.plan import Plan
from tests.unit.fakes import Clock
from tests.unit.told import telling

RUN_S = 0.02
URL = "http://client.example:9996"


class Played:
    """A Deployment, and a client whose requests all take RUN_S. What was done to them is in
    `done`.
    """

    def __init__(self) -> None:
        self.done: list[str] = []
        self.replicas, self.most = 3, 100
        self.lacking: tuple[Right, ...] = (*rights.CAPACITY, *rights.QUOTA)
        self.scalers: list[Autoscaler] = []
        self.annotations = {"scaletest/queue": "q"}
        self.served = {"apps"}
        self.parallel = 1
        self.slots: list[float] = []
        self.kept: list[Record] = []
        self.token = ""

    # what is used of the cluster room
    def deployment(self, cluster: Any, name: str) -> Any:
        spec = {"containers": [{"resources": {"limits": {"gpu.intel.com/xe": "1"}}}]}
        return SimpleNamespace(
            name=name,
            reference=name,
            namespace="bench",
            annotations=self.annotations,
            template={"spec": spec},
            pods=lambda: [
                PodState(f"p-{n}", "node", "Running", True, False) for n in range(self.replicas)
            ],
            placed=lambda: self.replicas,
            trouble=lambda: "",
        )

    def autoscalers(self, cluster: Any, deployment: str) -> Any:
        scalers = Autoscalers.__new__(Autoscalers)
        scalers.found, scalers._deployment = self.scalers, deployment
        scalers._resource = DEPLOYMENTS
        return scalers

    def changes(self, cluster: Any, deployment: Any) -> Any:
        return SimpleNamespace(
            take_over=lambda resource, name, note: note and self.done.append(f"take over {note}"),
            note=lambda *arguments: None,
            change=self._change,
            close=lambda: self.done.append("put back"),
        )

    def _change(self, resource: Resource, name: str, patch: Patch) -> None:
        if resource is not DEPLOYMENTS:
            self.done.append(f"hold {name} {patch.spec}")
            return
        self.replicas = patch.spec["replicas"]
        if self.replicas > self.most:
            raise Refused(f"cannot scale to {self.replicas}")
        self.done.append(f"scale {self.replicas}")

    # what is used of the client's HTTP
    def direct(self, url: str, token: str = "") -> Any:
        self.token = token
        return SimpleNamespace(name=url, get=self._get)

    def _get(self, path: str, **query: str) -> tuple[int, bytes, dict[str, str]]:
        if path == "/api/v1/samples":  # in a thread of its own
            number = int(query.get("since", "0-0").partition("-")[0]) + 1
            sample = NodeSample("node", "w-0", float(number), 1.0, {"cpu": {"user": 0.5}})
            return (
                200,
                f"{sample.to_json()}\n".encode(),
                {"scaletest-samples-position": f"{number}-0"},
            )
        self._work()
        if path == "/parallel":
            self.parallel = int(query["value"])
            self.done.append(f"parallel {self.parallel}")
            self.slots = [time.time()] * self.parallel
            return 200, b"{}", {}
        if path == "/api/v1/stats":
            stats = {"queue": "q", "load": "closed", "parallel": self.parallel, "max_parallel": 8}
            more = {"in_flight": len(self.slots), "record_seq": len(self.kept)}
            return 200, json.dumps({**stats, **more}).encode(), {}
        since = int(query["since"])
        return 200, "\n".join(record.to_json() for record in self.kept[since:]).encode(), {}

    def _work(self) -> None:
        now = time.time()
        for number, began in enumerate(self.slots):
            while began + RUN_S <= now:
                times = {"enqueued_s": began, "started_s": began, "ended_s": began + RUN_S}
                reply = Reply(
                    f"r-{len(self.kept)}",
                    Outcome.SUCCEEDED,
                    run_s=RUN_S,
                    worker=f"w-{number}",
                    **times,
                )
                self.kept.append(Record("q", 0, reply, RUN_S))
                began += RUN_S
            self.slots[number] = began


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    fake = Played()
    cluster = SimpleNamespace(namespace="bench")
    monkeypatch.setattr(api_calls, "connect_cluster", lambda namespace, context: cluster)
    monkeypatch.setattr(
        "scaletest.validation.measure.deployment_target.Deployment", fake.deployment
    )
    monkeypatch.setattr(
        "scaletest.validation.measure.deployment_target.Autoscalers", fake.autoscalers
    )
    monkeypatch.setattr("scaletest.validation.measure.deployment_target.Changes", fake.changes)
    monkeypatch.setattr(discovery, "api_groups", lambda cluster: fake.served)
    monkeypatch.setattr(
        rights,
        "missing_rights",
        lambda cluster, wanted: [right for right in wanted if right in fake.lacking],
    )
    monkeypatch.setattr("scaletest.validation.measure.deployment_target.Direct", fake.direct)
    monkeypatch.setenv("SCALETEST_CLIENT_TOKEN", "secret")
    return fake


def validate(folder: Path, *options: str) -> int:
    common = ["--deployment", "sleep", "--client", URL, "--progress", "plain"]
    return run(
        [
            "validate",
            *common,
            *(options or ["--seconds", str(RUN_S), "--step-time", "0.5", "--limit", "2"]),
            *(["--run-dir", str(folder)] if "--resume" not in options else []),
        ]
    )


def steps(folder: Path) -> list[int]:
    return [
        json.loads(line)["workers"]
        for line in (folder / "steps.jsonl").read_text("utf-8").splitlines()
    ]


def test_a_remote_client_is_steered_and_everything_is_restored(
    played: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = validate(tmp_path / "run")
    output = capsys.readouterr()
    assert code in (0, 3, 4), output.err
    assert played.token == "secret"
    changes = [change for change in played.done if change != "parallel 0"]
    up, down = (
        ["scale 1", "parallel 1", "scale 2", "parallel 2"],
        ["scale 2", "parallel 2", "scale 1", "parallel 1"],
    )
    assert changes == [*up, *down, "parallel 1", "put back"]
    assert steps(tmp_path / "run") == [1, 2, 2, 1]
    rows = [
        json.loads(line)
        for line in (tmp_path / "run" / "records.jsonl").read_text("utf-8").splitlines()
    ]
    assert {row["step"] for row in rows} == {1, 2}
    samples = ValidationFolder(tmp_path / "run").load().samples
    assert (
        [sample.at_s for sample in samples]
        == [float(number) for number in range(1, len(samples) + 1)]
        != []
    )
    # and what is not known, or no longer works, is said
    assert "capacity is unknown: we may not list nodes" in output.err


def test_an_interrupted_run_resumes_with_the_missing_steps(
    played: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # given a run that ended at its third step, and put everything back
    played.most = 3
    folder = tmp_path / "run"
    code = validate(
        folder,
        "--seconds",
        str(RUN_S),
        "--step-time",
        "0.5",
        "--limit",
        "4",
    )
    assert code == 2
    assert "cannot scale to 4" in capsys.readouterr().err
    assert played.done[-1] == "put back"
    # when it goes on
    played.most, played.done = 100, []
    code = validate(folder, "--resume", str(folder))
    assert code in (0, 3, 4), capsys.readouterr().err
    # expect only the missing measurements, and the rest as it was
    assert [change for change in played.done if change != "parallel 0"] == [
        "scale 4",
        "parallel 4",
        "scale 4",
        "parallel 4",
        "scale 2",
        "parallel 2",
        "scale 1",
        "parallel 1",
        "parallel 1",
        "put back",
    ]
    assert steps(folder) == [1, 2, 4, 4, 2, 1]


@pytest.mark.parametrize(
    ("change", "code", "problem"),
    [
        (
            lambda p: setattr(p, "lacking", rights.NEEDED[1:2]),
            7,
            "we may not patch deployments.apps",
        ),
        (
            lambda p: setattr(p, "scalers", [Autoscaler(HPAS, "h")]),
            2,
            "HorizontalPodAutoscaler h",
        ),
        (
            lambda p: setattr(p, "scalers", [Autoscaler(SCALED_OBJECTS, "s")]),
            2,
            "--pause-autoscalers",
        ),
        (
            lambda p: p.annotations.update(
                {BEFORE: '{"at": "now", "undo": {"spec": {"replicas": 2, "template": {}}}}'}
            ),
            2,
            "scaletest cluster restore -n bench --deployment sleep",
        ),
    ],
)
def test_impossible_options_are_refused_before_anything_changes(
    played: Played,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[Played], None],
    code: int,
    problem: str,
) -> None:
    played.served = {"keda.sh"}
    change(played)
    assert validate(tmp_path / "run") == code
    assert problem in capsys.readouterr().err
    assert played.done == []
    assert not (tmp_path / "run").exists()


def test_without_keda_no_right_on_its_kinds_is_needed(
    played: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    played.lacking = (*rights.CAPACITY, *rights.QUOTA, rights.KEDA, *rights.PAUSE)
    assert validate(tmp_path / "run") in (0, 3, 4), capsys.readouterr().err


def test_an_hpa_is_held_and_what_a_killed_run_left_is_put_back(
    played: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # given an HPA, and a number of pods that a killed run left
    note = '{"at": "now", "undo": {"spec": {"replicas": 2}}}'
    played.annotations[BEFORE] = note
    played.scalers = [Autoscaler(HPAS, "h")]
    code = validate(
        tmp_path / "run",
        *("--seconds", str(RUN_S), "--step-time", "0.5", "--limit", "1"),
        "--pause-autoscalers",
    )
    assert code in (0, 3, 4), capsys.readouterr().err
    changes = [change for change in played.done if not change.startswith("parallel")]
    held = "hold h {'minReplicas': 1, 'maxReplicas': 1}"
    assert changes[0] == f"take over {note}" and changes[-1] == "put back"
    assert set(changes[1:-1]) == {held, "scale 1"} and changes[1] == held


@pytest.mark.parametrize("client", ["sleep", "pod/x", "svc/", "ftp://x"])
def test_an_invalid_client_url_is_refused(played: Played, tmp_path: Path, client: str) -> None:
    line = [
        "validate",
        "--deployment",
        "sleep",
        "--client",
        client,
        "--run-dir",
        str(tmp_path / "run"),
    ]
    assert run(line) == 2


def test_pods_may_take_as_long_as_the_backend_says(tmp_path: Path) -> None:
    # given workers that take 200 s
    now = [0.0]

    def ready() -> int:
        now[0] += 50.0
        return int(now[0] >= 200.0)

    backend: Any = SimpleNamespace(scale=lambda workers: None, ready=ready, close=lambda: None)
    progress = telling([])
    plan = Plan(limit=1, queue="q", seconds=1.0)

    def runner(name: str, **options: Any) -> ValidationRunner:
        folder = ValidationFolder.create(tmp_path / name)
        folder.begin(plan, {})
        return ValidationRunner(plan, folder, progress, clock=lambda: now[0], **options)

    class LoadBegan(Exception):
        """The pods were waited for."""

    load: Any = Mock(set_parallel=Mock(side_effect=LoadBegan))
    # expect that only who gave them less gives up
    with pytest.raises(WaitTimeout):
        runner("short").run(backend, load)
    now[0] = 0.0
    # who gave them enough begins the load
    with pytest.raises(LoadBegan):
        runner("long", ready_s=300.0).run(backend, load)


@pytest.mark.parametrize("word", ["nosuchprog", "plan.yaml"])
def test_a_word_that_is_no_program_starts_no_run(
    word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    (tmp_path / "plan.yaml").write_text("limit: 2\n")
    assert run(["validate", word, "--limit", "2"]) == 2
    error = capsys.readouterr().err
    assert ("nosuchprog cannot be started" in error) == (word == "nosuchprog")
    assert ("-f plan.yaml" in error) == (word == "plan.yaml")
    assert not (tmp_path / "scaletest").exists()


class FakeDeployment:
    """A Deployment, its autoscalers and changes of them. Pods are ready as soon as they are asked
    for. `fail` may raise before each look at them.
    """

    name = "sleep"

    def __init__(self) -> None:
        self.wanted = 3
        self.calls: list[str] = []
        self.fail: Callable[[], None] = lambda: None
        self.made: Callable[[int], list[PodState]] = lambda count: [
            pod(f"p-{n}") for n in range(count)
        ]

    def scale(self, patch: Patch, changes: object) -> None:
        self.wanted = patch.spec["replicas"]
        self.calls.append(f"scale {self.wanted}")

    def close(self) -> None:
        self.calls.append("put back")

    def pods(self) -> list[PodState]:
        self.calls.append("pods")
        self.fail()
        return self.made(self.wanted)

    def trouble(self) -> str:
        return "pod p-0 is Pending: Unschedulable"


def pod(name: str, *, ready: bool = True, going: bool = False) -> PodState:
    return PodState(name, "node", "Running", ready, going)


@pytest.fixture
def deployment() -> FakeDeployment:
    return FakeDeployment()


@pytest.fixture
def clock() -> Clock:
    return Clock(100.0)


@pytest.fixture
def backend(deployment: FakeDeployment, clock: Clock) -> KubernetesBackend:
    """Waits for half a minute until pods are ready."""
    return KubernetesBackend(deployment, deployment, deployment, clock=clock, ready_s=30.0)  # type: ignore[arg-type]


def be_busy() -> None:
    raise Busy("the API server is being replaced")


def test_everything_is_put_back_when_the_backend_closes(
    backend: KubernetesBackend, deployment: FakeDeployment
) -> None:
    backend.scale(1)
    backend.scale(2)
    assert backend.ready() == 2
    backend.close()
    assert deployment.calls == ["scale 1", "scale 2", "pods", "put back"]


@pytest.mark.parametrize(
    ("pods", "ready"),
    [
        ([pod("a"), pod("b")], 2),
        ([pod("a"), pod("b", ready=False)], 1),
        # one that goes may still take a request
        ([pod("a"), pod("b"), pod("c", going=True)], 0),
        ([pod("a"), pod("b", going=True)], 1),
        ([], 0),
    ],
)
def test_only_pods_that_are_ready_count_and_none_while_others_go(
    pods: list[PodState], ready: int, backend: KubernetesBackend, deployment: FakeDeployment
) -> None:
    deployment.made = lambda count: pods
    backend.scale(2)
    assert backend.ready() == ready


def test_pods_that_are_never_ready_end_the_run_with_the_reason(
    backend: KubernetesBackend, deployment: FakeDeployment, clock: Clock
) -> None:
    deployment.made = lambda count: [pod("a", ready=False)]
    backend.scale(1)
    clock.now += 30.0
    assert backend.ready() == 0
    clock.now += 1.0
    with pytest.raises(WaitTimeout, match="0 of 1 pods of sleep are ready 30 s after") as error:
        backend.ready()
    assert "Unschedulable" in error.value.message
    assert "<ready_timeout>" in error.value.hint


def test_a_pod_that_goes_later_has_as_long_to_come_back(
    backend: KubernetesBackend, deployment: FakeDeployment, clock: Clock
) -> None:
    backend.scale(1)
    assert backend.ready() == 1
    clock.now += 1000.0
    assert backend.ready() == 1
    deployment.made = lambda count: []
    clock.now += 20.0
    assert backend.ready() == 0
    deployment.made = lambda count: [pod("again")]
    clock.now += 9.0
    assert backend.ready() == 1


def test_an_api_server_that_is_away_is_waited_for_and_then_ends_the_run(
    backend: KubernetesBackend, deployment: FakeDeployment, clock: Clock
) -> None:
    backend.scale(1)
    deployment.fail = be_busy
    assert backend.ready() == 0
    deployment.fail = lambda: None
    clock.now += LOOK_S
    assert backend.ready() == 1
    deployment.fail = be_busy
    clock.now += PATIENCE_S
    assert backend.ready() == 1
    clock.now += 1.0
    with pytest.raises(Busy):
        backend.ready()
