"""The settings file: it gives defaults to options, and its mistakes name the key and the file."""

import json
from pathlib import Path

import click
import pytest

from scaletest.cli.main import cli, run
from scaletest.validation.before_run import device_names
from scaletest.validation.commands import validate_options
from scaletest.validation.commands.quick_run import HERE
from scaletest.validation.commands.validate import command as validate

# A command that needs nothing and prints any form.
SIZE = ("size", "--rate", "1/s", "--latency", "1s")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a settings file that is not there yet."""
    folder = tmp_path / "xdg" / "scaletest"
    folder.mkdir(parents=True)
    monkeypatch.delenv("SCALETEST_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    return folder / "config.yaml"


def plan_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    """The plan that `validate` shows."""
    assert run(["validate", "--dry-run", "--format", "json", *arguments]) == 0
    shown: dict[str, object] = json.loads(capsys.readouterr().out)
    return shown


def test_an_absent_file_and_an_empty_one_change_nothing(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without = plan_of(capsys, "--limit", "2")
    for text in ("", "# nothing\n", "validate:\nsaturate: {}\n"):
        file.write_text(text)
        assert plan_of(capsys, "--limit", "2") | {"queue": ""} == without | {"queue": ""}


def test_the_command_line_counts_most_then_environment_plan_file_settings_default(
    file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file.write_text("validate:\n  limit: 3\n  seconds: 200ms\n  threshold: ratio>=1.5\n")
    plan = tmp_path / "plan.yaml"
    plan.write_text("limit: 4\n")
    shown = plan_of(capsys)
    assert (shown["limit"], shown["seconds"], shown["scale"]) == (3, 0.2, 1.8)
    # one value will do for an option that may be repeated
    assert shown["thresholds"] == ["ratio>=1.5"]
    assert plan_of(capsys, "-f", str(plan))["limit"] == 4
    monkeypatch.setenv("SCALETEST_VALIDATE_LIMIT", "5")
    assert plan_of(capsys, "-f", str(plan))["limit"] == 5
    assert plan_of(capsys, "--limit", "6")["limit"] == 6
    # also when it says the default
    assert plan_of(capsys, "--limit", "8")["limit"] == 8


def test_the_suffix_of_a_file_counts_more_than_the_usual_format(file: Path, tmp_path: Path) -> None:
    file.write_text("size:\n  format: json\n")
    for name, begin in (("r.yaml", "schema_version:"), ("r.txt", "1 requests"), ("r", "{")):
        assert run([*SIZE, "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_text().startswith(begin)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("validat: {}", "unknown setting validat in ", "did you mean validate?"),
        ("validate: {limt: 3}", "unknown setting validate.limt in ", "did you mean limit?"),
        ("validate: {zzz: 3}", "unknown setting validate.zzz", "see: SCALETEST_CONFIG= scaletest "),
        ("validate: 3", "validate in ", "write one KEY: VALUE per line"),
        ("validate: {limit: many}", "'many' is not a valid integer", "correct it in the settings"),
        ("validate: {seconds: soon}", "--seconds: invalid duration 'soon'", "write e.g. 90s"),
        ("a: [", "is not valid YAML in line 1", "do without it: SCALETEST_CONFIG="),
        ("- 1", "expected settings", "write one KEY: VALUE per line"),
    ],
)
def test_a_mistake_names_the_key_and_what_to_do(
    text: str, message: str, hint: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text)
    assert run(["validate", "--dry-run"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert message in first and second.strip().startswith(hint)


def test_the_settings_of_a_command_in_a_group_are_checked(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text, hint in (
        ("bench: {run: {sed: 3}}", "unknown setting bench.run.sed"),
        ("bench: {rn: {}}", "unknown setting bench.rn"),
    ):
        file.write_text(text)
        assert run(["bench", "run", "Fio"]) == 2
        assert hint in capsys.readouterr().err
        # who calls another command is not held up
        assert run([*SIZE]) == 0


def test_a_named_file_must_be_there_and_no_name_is_no_file(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALETEST_CONFIG", str(file))
    assert run([*SIZE]) == 2
    assert f"the settings file {file} cannot be read" in capsys.readouterr().err
    file.write_text("a: [")
    monkeypatch.setenv("SCALETEST_CONFIG", "")
    assert run([*SIZE]) == 0


def test_a_plan_takes_no_limit_of_the_settings_for_a_typed_one(tmp_path: Path) -> None:
    for name in ("card0", "card1"):
        (tmp_path / name).touch()
    arguments = ["--per-device", "1,2", "--device-glob", str(tmp_path / "card*")]
    root = click.Context(cli, info_name="scaletest")
    with validate.make_context(
        "validate", arguments, parent=root, default_map={"limit": 1}
    ) as context:
        plan, is_limited = validate_options.read_plan(context)
    assert HERE.prepare(plan, device_names, is_limited=is_limited).limit == 4
