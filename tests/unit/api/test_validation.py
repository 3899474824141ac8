"""Validations from Python: plan, place, progress and result, without a run."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import scaletest
from scaletest.api import validation
from scaletest.cli.main import run
from scaletest.model import Record
from scaletest.model.errors import InvalidValue, NotPassed, UsageError
from scaletest.model.file_documents import file_values
from scaletest.runs.places import open_run
from scaletest.runs.stopping import stop_on_signals
from scaletest.validation.measure import launch
from scaletest.validation.options import ValidationPlace
from scaletest.validation.plan import Plan as StoredPlan
from tests.unit import made_runs as runs
from tests.unit.kept_runs import unpack
from tests.unit.report_page import Page


class Begun:
    """A run that takes no time: what it was begun with, and its folder with a stored run."""

    def __init__(self, make: Callable[[Path], object]) -> None:
        self.make = make
        self.plans: list[StoredPlan] = []
        self.places: list[ValidationPlace] = []
        self.lines: list[list[str]] = []

    def __call__(
        self,
        plan: StoredPlan,
        place: ValidationPlace,
        devices: Any,
        run_dir: str,
        labels: Any,
        progress: Any,
        command_line: list[str],
    ) -> tuple[Any, None]:
        self.plans.append(plan)
        self.places.append(place)
        self.lines.append(command_line)
        self.python_path = os.environ.get("PYTHONPATH")
        self.make(Path(run_dir))
        return open_run(Path(run_dir)), None


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Begun:
    """Takes the place of the run."""
    begun = Begun(lambda path: runs.make("pass", path.parent))
    monkeypatch.setattr(launch, "start", begun)
    return begun


def test_the_plan_is_that_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--limit", "4", "--seconds", "500ms", "--step-time", "3", "--threshold", "ratio>=1")
    assert run(["validate", "--dry-run", "--format", "json", *options, "--", "sleep", "1"]) == 0
    typed = StoredPlan.from_dict(json.loads(capsys.readouterr().out))
    plan = scaletest.Plan(
        ["sleep", "1"], limit=4, seconds="500ms", step_time=3, thresholds=("ratio>=1",)
    )
    assert plan.to_dict() == file_values(typed)
    assert plan.steps == (1, 2, 4)


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({"limt": 3}, "unknown key 'limt' in the plan", "did you mean limit?"),
        ({"limit": "3"}, "limit in the plan is '3', not a whole number", "write e.g. 8"),
        ({"limit": 0}, "limit in the plan is 0", ""),
        ({"seconds": "1 parsec"}, "seconds in the plan is '1 parsec'", "write e.g. 2.5, 90s"),
        ({"warmup": 9, "step_time": 2}, "the warm-up of 9 s", "give a shorter warmup, or a longer"),
        ({"thresholds": ["speed>1"]}, "speed", ""),
        ({"background": [{"nam": "b"}]}, "'nam'", "did you mean name?"),
        ({"per_device": [2, 1], "preset": "intel"}, "workers per device are 2 1", "per_device 1"),
    ],
)
def test_an_option_that_is_wrong_is_named_with_its_value_and_what_to_do(
    options: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(InvalidValue) as caught:
        scaletest.Plan(["sleep"], **options)
    assert message in caught.value.message and hint in caught.value.hint
    # Python shows the hint where nobody catches the error
    assert caught.value.__notes__ == [caught.value.hint]


def nobody() -> None:
    """A workload in a module."""


@pytest.mark.parametrize("workload", [nobody, f"{__name__}:nobody", [f"{__name__}:nobody"], ()])
def test_a_workload_in_python_is_named_and_its_workers_find_the_module(
    workload: Any, begun: Begun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validation.before_run, "check_plan", lambda plan: None)
    monkeypatch.setenv("PYTHONPATH", "/before")
    beside = [] if workload else [{"name": "beside", "command": [f"{__name__}:nobody"]}]
    scaletest.validate(workload, background=beside, limit=2, run_dir=tmp_path / "pass")
    commands = [begun.plans[0].command, *(load.command for load in begun.plans[0].background)]
    assert (f"{__name__}:nobody",) in commands
    assert set(filter(None, sys.path)) == set(str(begun.python_path).split(os.pathsep))
    assert os.environ["PYTHONPATH"] == "/before"


def test_numbers_and_paths_of_a_command_are_passed_as_their_text() -> None:
    assert scaletest.Plan(["sleep", 0.5, Path("a.mp4")]).to_dict()["command"] == [
        "sleep",
        "0.5",
        "a.mp4",
    ]
    assert scaletest.Plan([nobody, "--width", 3]).to_dict()["command"] == [
        f"{__name__}:nobody",
        "--width",
        "3",
    ]


def test_a_plan_takes_back_what_it_gives_and_tuples_and_mappings() -> None:
    load = MappingProxyType({"name": "beside", "command": ("sleep", "1")})
    plan = scaletest.Plan(["sleep", "1"], background=(load,), per_device=(1, 2), preset="intel")
    values = plan.to_dict()
    assert values["background"][0]["command"] == ["sleep", "1"] and values["per_device"] == [1, 2]
    assert scaletest.Plan(**values).to_dict() == values
    with pytest.raises(UsageError, match="workload and command name two programs"):
        scaletest.Plan(["sleep", "2"], **values)


def test_a_program_that_validates_when_it_is_imported_ends_with_what_to_do(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import scaletest\n"
        "def work() -> None:\n    pass\n"
        f"scaletest.validate(work, limit=1, run_dir={str(tmp_path / 'run')!r})\n"
    )
    line = [sys.executable, str(program)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 1
    assert 'call validate below: if __name__ == "__main__":' in done.stderr


@pytest.mark.parametrize(("ready_timeout", "seconds"), [("2m", 120.0), (7, 7.0), ("500ms", 0.5)])
def test_the_time_for_a_deployment_is_a_duration(
    begun: Begun, tmp_path: Path, ready_timeout: Any, seconds: float
) -> None:
    scaletest.validate(deployment="workers", ready_timeout=ready_timeout, run_dir=tmp_path / "pass")
    assert begun.places[0].deployment.ready_timeout == seconds


def test_a_wrong_time_for_a_deployment_is_refused() -> None:
    with pytest.raises(InvalidValue, match="ready_timeout in validate\\(\\) is"):
        scaletest.validate(ready_timeout="2 parsecs")


def test_a_workload_that_no_worker_can_find_is_refused() -> None:
    def inner() -> None:
        """A function that is not there when its module is imported."""

    for workload in (inner, lambda: None):
        with pytest.raises(UsageError, match="cannot be imported by another process") as caught:
            scaletest.Plan(workload)
        assert caught.value.hint.startswith("write it into a module")
    with pytest.raises(UsageError, match="'sleep 1' is neither a list nor") as caught:
        scaletest.Plan("sleep 1")
    assert '["sleep", "0.2"]' in caught.value.hint


def test_a_run_is_begun_as_the_command_begins_it(begun: Begun, tmp_path: Path) -> None:
    plan = scaletest.Plan(["sleep", "1"], limit=2)
    results = [
        scaletest.validate(plan, run_dir=str(tmp_path / number / "pass")) for number in ("1", "2")
    ]
    # expect a queue and a folder for each, and the line that does the same in a shell
    assert begun.plans[0].queue != begun.plans[1].queue
    assert [result.name for result in results] == ["pass", "pass"]
    where = results[0].path / "plan.json"
    assert begun.lines[0] == ["scaletest", "validate", "--local", "-f", str(where)]
    place = begun.places[0]
    assert (place.local, place.redis_url, place.deployment.deployment) == (True, None, "")


def test_a_deployment_takes_no_program_and_no_local_option(begun: Begun, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="for local workers"):
        scaletest.validate(["sleep", "1"], deployment="bench")
    with pytest.raises(UsageError, match=r"^no_causes is for local workers") as caught:
        scaletest.validate(deployment="bench", no_causes=True)
    assert "[--no-causes]" in caught.value.hint
    scaletest.validate(
        deployment="bench", namespace="ns", pause_autoscalers=True, run_dir=tmp_path / "pass"
    )
    place = ["--deployment", "bench", "--namespace", "ns", "--ready-timeout", "120"]
    assert begun.lines[0][2:-2] == ["--pause-autoscalers", *place]


@pytest.mark.parametrize("option", ["namespace", "context", "client", "pause_autoscalers"])
def test_what_only_a_deployment_has_is_refused_without_one(begun: Begun, option: str) -> None:
    with pytest.raises(UsageError, match=f"^{option} would have no effect without a Deployment"):
        scaletest.validate(["sleep", "1"], **{option: "x"})  # type: ignore[arg-type]
    assert not begun.plans


def test_a_program_that_is_not_there_is_refused_before_anything_starts(begun: Begun) -> None:
    with pytest.raises(UsageError, match="nosuchprog cannot be started"):
        scaletest.validate(["nosuchprog"])
    with pytest.raises(UsageError, match="limit cannot be combined with it"):
        scaletest.validate(scaletest.Plan(["sleep", "1"]), limit=2)
    assert not begun.plans


@pytest.mark.parametrize(
    "beside", [{"workload": ["sleep", "1"]}, {"limit": 2}, {"run_dir": "x"}, {"name": "x"}]
)
def test_a_run_that_goes_on_takes_no_other_plan(beside: dict[str, Any], tmp_path: Path) -> None:
    runs.make("interrupted", tmp_path)
    before = (tmp_path / "interrupted" / "steps.jsonl").read_text()
    with pytest.raises(UsageError, match="has its workload, options, folder and labels already"):
        scaletest.validate(**beside, resume=tmp_path / "interrupted")
    assert (tmp_path / "interrupted" / "steps.jsonl").read_text() == before


def test_a_run_goes_on_where_it_was_begun_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs.make("interrupted", tmp_path)
    monkeypatch.setattr(launch, "_refuse_other_machine", lambda stored: None)
    with pytest.raises(UsageError, match="started with the workers of queue q, and not") as caught:
        scaletest.validate(resume=tmp_path / "interrupted")
    assert "with its deployment, or without one" in caught.value.hint
    with pytest.raises(UsageError, match="there is no run 'nosuch'"):
        scaletest.validate(resume="nosuch")


@pytest.fixture
def usual() -> Iterator[list[int]]:
    """Signals that reach the program's own handler."""
    received: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: received.append(number))
    yield received
    signal.signal(signal.SIGTERM, before)


def test_a_signal_reaches_the_program_when_all_is_taken_down(usual: list[int]) -> None:
    events: list[str] = []
    with stop_on_signals(events.append, unwind=True, hand_on=True) as stack:
        stack.callback(lambda: events.append(f"down {usual}"))
        signal.raise_signal(signal.SIGTERM)
        assert events == ["SIGTERM"]
    assert (events, usual) == (["SIGTERM", "down []"], [signal.SIGTERM])


def test_a_second_signal_ends_it_at_once_and_one_reaches_the_program(usual: list[int]) -> None:
    events: list[str] = []
    with (
        pytest.raises(SystemExit),
        stop_on_signals(events.append, unwind=True, hand_on=True) as stack,
    ):
        stack.callback(lambda: events.append("down"))
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
        events.append("never")
    assert (events, usual) == (["SIGTERM", "down"], [signal.SIGTERM])


def test_a_hangup_that_nohup_lets_us_ignore_ends_nothing() -> None:
    events: list[str] = []
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signals(events.append, unwind=True):
            signal.raise_signal(signal.SIGHUP)
        assert (events, signal.getsignal(signal.SIGHUP)) == ([], signal.SIG_IGN)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_what_a_result_of_a_validation_holds(tmp_path: Path) -> None:
    runs.make("limited", tmp_path)
    path = tmp_path / "limited"
    result = scaletest.load_run(path)
    assert (result.name, result.path, result.run_type) == ("limited", path, "validation")
    assert result.plan["limit"] == 4
    assert [step.workers for step in result.steps] == [1, 2, 4]
    assert {measure.name for measure in result.measures} >= {"throughput", "ratio", "run.p50"}
    assert result.causes is not None and result.causes.causes
    runs.make("peak", tmp_path)
    law = scaletest.load_run(tmp_path / "peak").law
    assert law is not None and law.choice.law.name == "usl"
    records = result.records
    assert isinstance(next(records), Record)
    assert 1 + sum(1 for _ in records) == len((path / "records.jsonl").read_text().splitlines())
    assert result.to_dict()["verdict"]["kind"] == result.verdict.kind


def test_require_is_silent_for_a_pass_and_else_names_the_reasons(tmp_path: Path) -> None:
    steps = [runs.rows(workers, 0.5, 30, noise=0.05) for workers in (1, 2)]
    for name, limit_s in (("met", "9s"), ("missed", "100ms")):
        plan = StoredPlan(limit=2, queue="q", thresholds=(f"run.p50<{limit_s}", "failures<1"))
        runs.stored(tmp_path / name, plan, steps)
    scaletest.load_run(tmp_path / "met").require()
    result = scaletest.load_run(tmp_path / "missed")
    with pytest.raises(NotPassed) as caught:
        result.require()
    assert isinstance(caught.value, AssertionError)
    first, second = str(caught.value).splitlines()
    assert first == f"missed is FAIL: {result.verdict.reason}"
    assert second.startswith("threshold run.p50<100ms is FAIL: ")
    assert (caught.value.hint, caught.value.exit_code) == (result.verdict.remedy, 3)
    # and an undecided run is none that passed
    runs.make("interrupted", tmp_path)
    with pytest.raises(NotPassed, match="is INVALID") as caught:
        scaletest.load_run(tmp_path / "interrupted").require()
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("suffix", ["html", "htm", "md", "csv", "json", "xml", "txt"])
def test_a_report_is_written_in_the_form_of_its_suffix(suffix: str, tmp_path: Path) -> None:
    runs.make("pass", tmp_path)
    result = scaletest.load_run(tmp_path / "pass")
    forms = {"htm": "html", "xml": "junit", "txt": "text"}
    path = result.report(tmp_path / f"report.{suffix}")
    assert path.read_bytes().decode() == result.text(forms.get(suffix, suffix))


def test_a_report_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    runs.make("pass", tmp_path)
    result = scaletest.load_run(tmp_path / "pass")
    with pytest.raises(UsageError, match="unsupported report format") as caught:
        result.report(tmp_path / "report.htlm")
    assert caught.value.hint == "did you mean html?"
    with pytest.raises(UsageError, match="'pnj'"):
        result.text("pnj")


@pytest.mark.parametrize("case", ["pass", "hostile"])
def test_the_output_of_a_notebook_is_the_report_in_a_frame(case: str, tmp_path: Path) -> None:
    runs.make(case, tmp_path)
    result = scaletest.load_run(tmp_path / case)
    html = result._repr_html_()
    assert type(html) is str
    ((tag, attributes),) = Page(html).tags
    assert (tag, attributes["sandbox"]) == ("iframe", "")
    page = Page(attributes["srcdoc"])
    assert page.open == []
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe"}
    assert result.verdict.reason.split(",")[0][:20] in page.text


@pytest.mark.parametrize(
    "name", ["validation-fail", "saturation-fail", "lifecycle-pass", "benchmark-fail"]
)
def test_every_run_type_has_a_result(name: str, tmp_path: Path) -> None:
    result = scaletest.load_run(unpack(name, tmp_path).path)
    assert result.run_type == name.partition("-")[0]
    assert result.verdict.kind == name.partition("-")[2].upper()
    assert result.plan and result.measures and result.text() and result._repr_html_()
    is_validation = name == "validation-fail"
    assert bool(result.steps) is bool(list(result.records)) is is_validation
    assert is_validation or (result.law, result.causes) == (None, None)


def test_a_run_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for name in ("", "a\0b"):
        with pytest.raises(UsageError, match="there is no run"):
            scaletest.load_run(name)
    with pytest.raises(UsageError, match="there is no run 'LAST'"):
        scaletest.load_run()
