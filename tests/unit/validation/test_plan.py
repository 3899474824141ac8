"""Plan files: every setting can be given in one, mistakes are named, and the order of origins
holds.
"""

import dataclasses
import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scaletest.cli.main import run as program
from scaletest.cli.schema import documents
from scaletest.model.errors import InvalidValue, ScaletestError, UsageError
from scaletest.model.file_documents import file_values
from scaletest.model.threshold import VALIDATION_MEASURES, parse_step_threshold
from scaletest.validation import plan as schemas
from scaletest.validation.commands import validate, validate_options
from scaletest.validation.commands.quick_run import HERE
from scaletest.validation.plan import Plan

SCHEMA = documents()["plan-file"]()
FULL = """
limit: 6
scale: 1.5
seconds: 2
step_time: 0
precision: 0.05
max_step: 90
warmup: 4.5
command: [ffmpeg, -i, "1.mkv"]
device_glob: /dev/dri/*
preset: intel
per_device: [2]
time_limit: 30
tolerate_failures: 2
price: 1.2
repeats: 3
thresholds: ["efficiency(4)>=0.8", "failures<1%"]
background:
  - {name: noise, workers: 2, parallel: 3, seconds: 0.5, command: [cat], device_glob: "",
     time_limit: 5}
"""
texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
good: dict[str, st.SearchStrategy[Any]] = {
    "limit": st.integers(1, 1000),
    "scale": st.floats(1, 2, exclude_max=True),
    "seconds": st.floats(0, 1000) | st.integers(0, 1000),
    "step_time": st.just(0) | st.floats(100, 1000),
    "precision": st.floats(0.001, 0.5),
    "max_step": st.just(0) | st.floats(100, 1000),
    "warmup": st.none() | st.floats(0, 50),
    "command": st.lists(texts, max_size=4),
    "device_glob": texts,
    "preset": st.sampled_from(["intel", "nvidia", "amd"]),
    "time_limit": st.floats(0, 1000),
    "tolerate_failures": st.integers(0, 1000),
    "price": st.floats(0, 1000),
    "repeats": st.integers(1, 10),
    "thresholds": st.lists(
        st.sampled_from(["failures<1%", "ratio>=1.5", "run.p99<2s"]), max_size=3
    ),
}
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=9) | st.integers(), inner, max_size=3)
    ),
)


def context(*arguments: str) -> click.Context:
    return validate.command.make_context(
        "validate", list(arguments), auto_envvar_prefix="SCALETEST_VALIDATE"
    )


def plan_of(*arguments: str) -> Plan:
    plan, _ = validate_options.read_plan(context(*arguments))
    return replace(plan, queue="q")


def on_four_devices(*arguments: str) -> Plan:
    """The plan of a run here, where four devices are."""
    plan, is_limited = validate_options.read_plan(context(*arguments))
    return HERE.prepare(plan, lambda plan: ["device"] * 4, is_limited=is_limited)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "plan.yaml"
    path.write_text(FULL)
    return path


def test_a_file_can_say_everything(file: Path) -> None:
    plan = plan_of("-f", str(file))
    values = plan.to_dict()
    assert set(yaml.safe_load(FULL)) == set(SCHEMA["properties"])
    for field, default in Plan().to_dict().items():
        if field not in ("schema_version", "queue", "devices", "step_s"):
            assert values[field] != default, f"{field} did not arrive"
    assert (plan.warmup_s, plan.max_step_s, plan.time_limit_s) == (4.5, 90, 30)
    assert plan.command == ("ffmpeg", "-i", "1.mkv")
    assert (plan.background[0].name, plan.background[0].time_limit_s) == ("noise", 5)


def test_every_field_of_the_plan_has_a_key_and_an_option() -> None:
    fields = {field.name for field in dataclasses.fields(Plan)} - {"queue", "devices"}
    assert {member.attribute for member in schemas.FILE_MEMBERS.values()} == fields
    options = {option.name for option in validate.command.params}
    assert set(SCHEMA["properties"]) - options == {"background"}
    # and the program's defaults are the plan's
    assert plan_of() == Plan(queue="q")


def test_workers_per_device_are_numbers_in_every_form(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("per_device: [1, 2, 4]\npreset: intel\n")
    file = str(tmp_path / "p.yaml")
    for arguments, expected in {
        ("-f", file): (1, 2, 4),
        ("-f", file, "--per-device", "5"): (5,),
    }.items():
        assert plan_of(*arguments).per_device == expected
    for text in (
        "--per-device=x",
        "--per-device=1;2",
        "--per-device=1.5",
    ):
        with pytest.raises((click.BadParameter, InvalidValue)):
            plan_of("--preset", "intel", text)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"per_device": (2, 1), "preset": "intel"}, "per device are 2 1"),
        ({"per_device": (1, 1), "preset": "intel"}, "per device are 1 1"),
        ({"per_device": (0,), "preset": "intel"}, "workers per device"),
        ({"per_device": (1, 2)}, "no device to share"),
        (
            {"per_device": (2,), "preset": "intel", "devices": 2, "limit": 8},
            "8 workers do not fit into 4 slots",
        ),
        ({"per_device": (1, 2), "preset": "intel", "thresholds": ("ratio>1",)}, "has no ratio"),
        ({"preset": "acme"}, "preset is"),
    ],
)
def test_shares_that_cannot_be_are_refused(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidValue, match=text):
        Plan(**settings)


def test_several_numbers_per_device_are_the_steps_and_need_all_devices(tmp_path: Path) -> None:
    arguments = ("--per-device", "1,2,3", "--preset", "intel")
    plan = on_four_devices(*arguments)
    assert (plan.steps, plan.limit, [plan.share(workers) for workers in plan.steps]) == (
        (4, 8, 12),
        12,
        [1, 2, 3],
    )
    with pytest.raises(UsageError, match="limit is 8, fewer than 3 workers on each of 4 devices"):
        on_four_devices(*arguments, "--limit", "8")
    # one number is how the workers of an ordinary run share
    plan = on_four_devices("--per-device", "2", "--preset", "intel")
    assert (plan.steps, plan.share(1), plan.share(8)) == ((1, 2, 4, 8), 2, 2)


@given(st.fixed_dictionaries({}, optional=good))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_written_plan_is_read_back(tmp_path: Path, values: dict[str, Any]) -> None:
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(values, allow_unicode=True), encoding="utf-8")
    plan = plan_of("-f", str(tmp_path / "p.yaml"))
    written = file_values(plan)
    assert {key: written[key] for key in values} == values
    # and the plan as it is stored is a plan file again
    (tmp_path / "plan.json").write_text(json.dumps(plan.to_dict()))
    assert plan_of("-f", str(tmp_path / "plan.json")) == plan


@given(
    st.text(max_size=80)
    | anything.map(lambda value: yaml.safe_dump(value, allow_unicode=True))
    | st.binary(max_size=40)
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_garbage_is_a_usage_error_and_nothing_else(tmp_path: Path, data: str | bytes) -> None:
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    (tmp_path / "p.yaml").write_bytes(raw)
    try:
        plan_of("-f", str(tmp_path / "p.yaml"))
    except ScaletestError as error:
        assert error.exit_code == 2
        assert error.hint


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "typo"]), anything, max_size=3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_wrong_values_under_right_keys_are_a_usage_error(
    tmp_path: Path, values: dict[str, Any]
) -> None:
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(values, allow_unicode=True), encoding="utf-8")
    try:
        plan_of("-f", str(tmp_path / "p.yaml"))
    except ScaletestError as error:
        assert error.exit_code == 2


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("limt: 3", "unknown key 'limt'", "did you mean limit"),
        ("max-step: 3", "unknown key 'max-step'", "did you mean max_step"),
        ("max_step_s: 3", "unknown key 'max_step_s'", "did you mean max_step"),
        ("zzz: 3", "unknown key 'zzz'", "there are limit"),
        ("3: 3", "unknown key 3", "there are"),
        ("limit: eight", "limit in .* is 'eight', not a whole number", "e.g. 8"),
        ("limit: 8.0", "not a whole number", ""),
        ("limit: yes", "is true, not a whole number", ""),
        ("seconds: '1'", "not a number", ""),
        ("seconds: 1e-3", "is '1e-3', not a number", "2.5"),
        ("seconds: .nan", "seconds in .* is nan", ""),
        ("limit: 0", "limit in .* is 0", "from 1 to"),
        ("command: sleep 1", "not a list", r"\[a, b\]"),
        ("command: [sleep, 1]", r"command\[1\] in .* is 1, not text", "in quotes"),
        ("thresholds: [eff>1]", "names eff", ""),
        ("thresholds: ['ratio(3)>=1.5']", "not a step", "1, 2, 4, 8"),
        ("background: [{workers: 2}]", "lacks name", ""),
        ("background: [{name: a, speed: 2}]", "unknown key 'speed'", "there are name"),
        ("background: [{name: a}, {name: a}]", "same name", ""),
        ('device_glob: "\\ud800"', "surrogates not allowed", ""),
        ('{"limit": 1, "limit": 2}', "'limit' stands twice", ""),
        ("limit: 1\nlimit: 2", "'limit' stands twice", ""),
        ("background: [{name: a, name: b}]", "'name' stands twice", ""),
        ("[limit]", "not a table", ""),
        ("", "is empty", ""),
        ("limit: [1", "not valid YAML in line", ""),
        ("a: !!python/object:os.system x", "not valid YAML", ""),
        ("limit: &a [*a]", "nests too deeply", ""),
        ("[" * 1500, "not valid YAML", ""),
        ("seconds: 2026-13-45", "not valid YAML", ""),
    ],
)
def test_every_mistake_in_a_plan_file_is_named(
    tmp_path: Path, text: str, problem: str, hint: str
) -> None:
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(UsageError, match=problem) as caught:
        plan_of("-f", str(tmp_path / "p.yaml"))
    assert caught.value.hint
    assert re.search(hint, caught.value.hint)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for name, problem in (("missing", "No such file"), (".", "Is a directory")):
        with pytest.raises(UsageError, match=problem):
            plan_of("-f", str(tmp_path / name))
    (tmp_path / "long").write_text("#" * 1_000_001)
    with pytest.raises(InvalidValue, match="longer than"):
        plan_of("-f", str(tmp_path / "long"))


def test_lists_replace_those_of_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_file = ("-f", str(file))
    assert plan_of(*given_file).command == ("ffmpeg", "-i", "1.mkv")
    assert plan_of(*given_file, "--", "true").command == ("true",)
    assert plan_of(*given_file, "--threshold", "ratio>1").thresholds == ("ratio>1",)
    monkeypatch.setenv("SCALETEST_VALIDATE_THRESHOLD", "ratio>1 run.p50<3s")
    assert plan_of(*given_file).thresholds == ("ratio>1", "run.p50<3s")


def test_a_run_that_goes_on_keeps_its_plan(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option, more in (
        ("--file", ["-f", str(file)]),
        ("--threshold", ["--threshold", "ratio>1"]),
        ("a command", ["ls"]),
    ):
        assert program(["validate", "--local", "--resume", "x", *more]) == 2
        assert f"{option} cannot be given with --resume" in capsys.readouterr().err


def test_standard_input_is_a_file_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(b"limit: 3\nthresholds: ['ratio(3)>1']"))
    )
    assert program(["validate", "--dry-run", "-f", "-", "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["limit"], shown["thresholds"], shown["steps"]) == (3, ["ratio(3)>1"], [1, 2, 3])


def test_examples_in_the_documentation_work(tmp_path: Path) -> None:
    folder = Path(__file__).parents[3] / "docs" / "how-to"
    pages = [folder / "thresholds.md", folder / "validate.md"]
    blocks = [
        block
        for page in pages
        for block in re.findall(r"```yaml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
        if "command:" in block
    ]
    assert len(blocks) >= 2
    for block in blocks:
        (tmp_path / "p.yaml").write_text(block)
        assert plan_of("-f", str(tmp_path / "p.yaml")).command
    (page,) = [page for page in pages if page.name == "thresholds.md"]
    shown = re.findall(r"^\| `([^`]+)`", page.read_text("utf-8"), re.MULTILINE)
    assert {parse_step_threshold(text).measure.partition(".")[0] for text in shown} == {
        name.partition(".")[0] for name in VALIDATION_MEASURES
    }


@pytest.mark.parametrize(
    "options", [("--step-time=1", "--warmup=5"), ("--max-step=3", "--warmup=3"), ("--warmup=60",)]
)
def test_a_warm_up_as_long_as_its_step_is_refused(options: tuple[str, ...]) -> None:
    with pytest.raises(InvalidValue, match="leaves nothing of a step"):
        plan_of("--seconds", "0.1", *options)
