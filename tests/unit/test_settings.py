"""The settings file: it gives defaults to options, its mistakes have a line, and `config` writes,
shows and edits it.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import click
import pytest
import yaml

from scaletest.cli import settings, settings_template, validate_options
from scaletest.cli.main import cli, run
from scaletest.cli.quick_run import HERE
from scaletest.cli.validate import command as validate
from tests.unit.test_cli_options import COMMANDS
from workers.before_run import device_names


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of a settings file that is not there yet, in a folder that is not there either."""
    monkeypatch.delenv("SCALETEST_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path / "xdg" / "scaletest" / "config.yaml"


def written(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, tuple[object, str]]:
    """What `config view` says, by key."""
    assert run(["config", "view", "--format", "json", *arguments]) == 0
    rows = json.loads(capsys.readouterr().out)
    return {key: (row["value"], row["origin"]) for key, row in rows.items()}


def test_tests_read_no_settings_of_the_developer() -> None:
    assert os.environ["SCALETEST_CONFIG"] == "" and settings.place(os.environ) is None


def test_an_absent_file_and_an_empty_one_change_nothing(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without = shown(capsys)
    for text in ("", "# nothing\n", "validate:\nsaturate: {}\n"):
        written(file, text)
        assert shown(capsys) == without
    assert all(origin == "default" for _, origin in without.values())


def test_the_command_line_counts_most_then_environment_plan_file_settings_default(
    file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written(file, "# mine\nvalidate:\n  limit: 3\n  seconds: 200ms\n  threshold: [run.p99<2s]\n")
    plan = tmp_path / "plan.yaml"
    plan.write_text("limit: 4\n")
    assert shown(capsys)["limit"] == (3, f"settings {file}:3")
    assert shown(capsys)["seconds"] == (0.2, f"settings {file}:4")
    assert shown(capsys)["thresholds"] == (["run.p99<2s"], f"settings {file}:5")
    assert shown(capsys)["scale"] == (1.8, "default")
    assert shown(capsys, "-f", str(plan))["limit"] == (4, f"file {plan}")
    monkeypatch.setenv("SCALETEST_VALIDATE_LIMIT", "5")
    assert shown(capsys, "-f", str(plan))["limit"] == (5, "environment SCALETEST_VALIDATE_LIMIT")
    assert shown(capsys, "--limit", "6")["limit"] == (6, "flag")


def test_a_command_takes_its_own_key_before_the_shared_one(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(file, "format: json\nsize:\n  format: yaml\n")
    assert run(["autoscale", "rules"]) == run(["size", "--rate", "1/s", "--latency", "1s"]) == 0
    rules, _, size = capsys.readouterr().out.partition("\n}\n")
    assert rules.startswith("{") and size.startswith("schema_version: 1\n")


def test_the_suffix_of_a_file_counts_more_than_the_usual_format(file: Path, tmp_path: Path) -> None:
    written(file, "format: json\n")
    for name, begin in (("r.yaml", "original-count:"), ("r.txt", "original-count "), ("r", "{")):
        assert run(["autoscale", "rules", "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_text().startswith(begin)


def test_a_format_that_a_command_lacks_leaves_it_its_own(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(file, "format: text\n")
    assert run(["config", "schema", "record"]) == 0
    assert run(["runs", "list"]) == 0
    assert '"$schema"' in capsys.readouterr().out


def test_a_shared_namespace_sends_no_benchmark_to_a_cluster(file: Path) -> None:
    loaded = settings.load(_environment(written(file, "namespace: team\nredis_url: redis://h\n")))
    assert settings.default_map(loaded, COMMANDS["bench run"], ("bench", "run")) == {
        "redis_url": "redis://h"
    }
    assert settings.default_map(loaded, validate, ("validate",)) == {
        "redis_url": "redis://h",
        "namespace": "team",
    }


def _environment(file: Path) -> dict[str, str]:
    return {"SCALETEST_CONFIG": str(file)}


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("redis_ur: x\n", "line 1: redis_ur is no setting", "did you mean redis_url?"),
        ("# x\nvalidat:\n", "line 2: validat is no setting", "did you mean validate?"),
        ("validate:\n  limt: 3\n", "line 2: validate.limt is no", "did you mean limit?"),
        ("bench:\n  run:\n    sed: 3\n", "line 3: bench.run.sed is no", "did you mean seed?"),
        ("bench:\n  rn: {}\n", "line 2: bench.rn is no setting", "did you mean run?"),
        ("queue:\n  list:\n    zzz: 1\n", "line 3: queue.list.zzz", "see: scaletest queue list"),
        ("config:\n  view: {}\n", "line 1: config is no setting", "see: scaletest --help"),
        ("validate: 3\n", "line 1: validate holds no settings", "write one KEY: VALUE a line"),
        ("format: html\n", "line 1: format is wrong", "write one of text, json, yaml"),
        ("a: 1\na: 2\n", "in line 2, column 1: 'a' stands twice", "leave one of the two out"),
        ("a: [\n", "is not valid YAML in line 2", "correct it, or make a new one: scaletest conf"),
        ("- 1\n", "holds no map of keys", "correct it, or make"),
    ],
)
def test_a_mistake_is_told_with_its_line_by_every_command(
    text: str, message: str, hint: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(file, text)
    for arguments in (["autoscale", "rules"], ["runs", "list"]):
        assert run(arguments) == 2
        first, second = capsys.readouterr().err.splitlines()
        assert message in first and str(file) in first
        assert second.strip().startswith(hint)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("limit: many", "validate.limit is wrong: 'many' is not a valid integer"),
        ("limit: [1]", "validate.limit is wrong: a list is too much"),
        ("limit: {a: 1}", "is no text and no number"),
        ("order: sideways", "validate.order is wrong: 'sideways' is not one of"),
        ("seconds: soon", "validate.seconds is wrong: --seconds: 'soon' is no duration"),
        ("local: 3", "validate.local is wrong: 3 is neither true nor false"),
        ("deployment: no", "validate.deployment is wrong: False is no text"),
    ],
)
def test_a_wrong_value_is_told_with_its_line(
    text: str, message: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(file, f"# x\nvalidate:\n  {text}\n")
    assert run(["validate", "--dry-run"]) == 2
    error = capsys.readouterr().err
    assert f"error: {file}, line 3: " in error and message in error
    # who runs another command is not held up
    assert run(["autoscale", "rules"]) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["validate", "--help"],
        ["help", "validate"],
        ["version"],
        ["--version"],
        ["config", "schema"],
        ["config", "view"],
        ["completion", "bash"],
        ["--help"],
    ],
)
def test_help_and_config_work_with_a_broken_file(
    arguments: list[str], file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(file, "a: [\n")
    assert run(arguments) == 0
    error = capsys.readouterr().err
    assert ("it is left out here" in error) == (arguments == ["config", "view"])


def test_help_shows_no_password(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(file, "redis_url: redis://u:secret@h:1/0\nui:\n  redis_url: redis://u:secret@h:2/0\n")
    assert run(["queue", "list", "--help"]) == run(["help", "ui"]) == 0
    assert "secret" not in capsys.readouterr().out
    rows = shown(capsys)
    assert rows["redis_url"] == ("redis://u:***@h:1/0", f"settings {file}:1")
    assert rows["ui.redis_url"] == ("redis://u:***@h:2/0", f"settings {file}:3")


def test_a_named_file_must_be_there_and_no_name_is_no_file(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCALETEST_CONFIG", str(file))
    assert run(["autoscale", "rules"]) == 2
    assert f"the settings file {file} cannot be read" in capsys.readouterr().err
    written(file, "a: [")
    monkeypatch.setenv("SCALETEST_CONFIG", "")
    assert run(["autoscale", "rules"]) == 0
    for arguments in (["init"], ["set", "validate.limit", "3"]):
        assert run(["config", *arguments]) == 2
        assert "SCALETEST_CONFIG is empty" in capsys.readouterr().err


def test_a_home_that_is_closed_to_the_process_holds_no_settings(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", closed)
    assert settings.load(os.environ) == settings.SettingsFile()


def test_init_writes_a_file_that_changes_nothing_for_its_owner_alone(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without = shown(capsys)
    assert run(["config", "init"]) == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert shown(capsys) == without
    before = file.read_text()
    assert run(["config", "init"]) == 2
    assert "is there already" in capsys.readouterr().err
    file.write_text("a: [")
    assert run(["config", "init", "--force"]) == 0
    assert file.read_text() == before


def test_every_line_of_a_new_file_can_be_used() -> None:
    text = settings_template.text(cli)
    used = "".join(
        f"{line.replace('# ', '', 1)}\n" if _is_key(line) else f"{line}\n"
        for line in text.splitlines()
    )
    values = yaml.safe_load(used)
    assert set(values) == {
        *settings.SHARED,
        *(arguments[0] for arguments in settings_template.OFTEN),
    }
    for arguments, names in settings_template.OFTEN.items():
        section = values
        for word in arguments:
            section = section[word]
        command = COMMANDS[" ".join(arguments)]
        assert tuple(section) == names
        for name in names:
            if section[name] is not None:
                settings.converted(settings.options_of(command)[name], command, section[name])


def _is_key(line: str) -> bool:
    name = line.strip().removeprefix("# ").partition(":")[0]
    known = {
        *settings.SHARED,
        *(name for names in settings_template.OFTEN.values() for name in names),
    }
    return line.strip().startswith("# ") and name in known


def test_set_changes_one_line_and_keeps_mode_and_links(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real = tmp_path / "dotfiles.yaml"
    real.write_text("# mine\nvalidate:\n  limit: 3 # few\n")
    real.chmod(0o640)
    file.parent.mkdir(parents=True)
    file.symlink_to(real)
    for arguments in (
        ["validate.limit", "16"],
        ["validate.no-causes", "yes"],
        ["bench.run.threshold", "['bandwidth>=1e9']"],
        ["redis_url", "redis://h:1/0"],
        ["validate.seconds", "500ms"],
    ):
        assert run(["config", "set", *arguments]) == 0, capsys.readouterr().err
    assert file.is_symlink() and stat.S_IMODE(real.stat().st_mode) == 0o640
    assert real.read_text() == (
        "# mine\nvalidate:\n  limit: 16 # few\n  no_causes: true\n  seconds: 500ms\n"
        "bench:\n  run:\n    threshold: [bandwidth>=1e9]\nredis_url: redis://h:1/0\n"
    )
    assert shown(capsys)["bench.run.threshold"][0] == ["bandwidth>=1e9"]
    assert not list(tmp_path.glob(".*.new"))


def test_set_makes_the_file_when_there_is_none(file: Path) -> None:
    assert run(["config", "set", "format", "yaml"]) == 0
    assert file.read_text() == "format: yaml\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("key", "value", "message", "hint"),
    [
        (
            "validate.limt",
            "3",
            "there is no setting 'validate.limt'",
            "did you mean validate.limit?",
        ),
        ("validat.limit", "3", "there is no setting 'validat'", "did you mean validate?"),
        ("bench.rn.seed", "3", "there is no setting 'bench.rn'", "did you mean bench.run?"),
        ("limit", "3", "there is no setting 'limit'", "did you mean quick.limit or "),
        ("config.view", "3", "there is no setting 'config'", ""),
        ("validate.limit", "x", "'x' is not a valid integer", ""),
        ("validate.limit", "[1]", "a list is too much", "give one value"),
        ("validate.local", "maybe", "'maybe' is neither true nor false", "write true or false"),
        ("format", "pdf", "there is no form 'pdf'", "there are text, json, yaml"),
        ("validate.seconds", "1 parsec", "is no duration", "write it as in 90s"),
    ],
)
def test_set_refuses_what_no_option_takes(
    key: str, value: str, message: str, hint: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["config", "set", key, value]) == 2
    error = capsys.readouterr().err
    assert message in error and hint in error
    assert not file.exists()


def test_a_plan_takes_no_limit_of_the_settings_for_a_typed_one(file: Path, tmp_path: Path) -> None:
    for name in ("card0", "card1"):
        (tmp_path / name).touch()
    loaded = settings.load(_environment(written(file, "validate:\n  limit: 1\n")))
    arguments = ["--per-device", "1,2", "--device-glob", str(tmp_path / "card*")]
    root = click.Context(cli, info_name="scaletest")
    root.meta[settings.META] = loaded
    defaults = settings.default_map(loaded, validate, ("validate",))
    with validate.make_context("validate", arguments, parent=root, default_map=defaults) as context:
        plan, is_limited = validate_options.plan(context)
    assert HERE.prepared(plan, device_names, is_limited=is_limited).limit == 4
