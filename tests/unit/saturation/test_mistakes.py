"""What cannot be saturated is told before anything is done."""

import json
from pathlib import Path

import pytest

from scaletest.cli.main import run


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("http://h/", "--agents", "0"), "agents is 0"),
        (("--service", "svc/h", "--tune", "cpus=1"), "NAME of"),
        (("http://h/", "http://i/"), "unexpected argument 'http://i/'"),
        (("http://h/", "--service", "svc/x"), "a URL and --service exclude each other"),
        (("http://h/", "--header", "@/none"), "--header @/none cannot be read"),
    ],
)
def test_impossible_options_are_refused_before_anything_is_done(
    options: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["saturate", *options]) == 2
    assert problem in capsys.readouterr().err


def test_a_dry_run_counts_the_settings_that_are_tuned(capsys: pytest.CaptureFixture[str]) -> None:
    longest = []
    for more in ((), ("--tune", "cpu=1,2", "--tune", "replicas=1,2,3")):
        assert run(["saturate", "--service", "svc/h", "--dry-run", "--format", "json", *more]) == 0
        longest.append(json.loads(capsys.readouterr().out)["longest_s"])
    assert longest[1] == 6 * longest[0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("step_tme: 20s", "did you mean step_time?"),
        ("payload: [1, 2]", "payload in"),
        ("dry_run: maybe", "dry_run"),
        ("step_time: soon", "is no duration"),
        ("load: sideways", "load in"),
        ("- 1", "not a table of keys and values"),
        ("arguments: 'ftp://h/'", "not an HTTP URL"),
        ("arguments: 'http://127.0.0.1:1/'\nmethod: GE T\n", "no method of HTTP"),
    ],
)
def test_a_plan_file_that_cannot_work_says_why(
    text: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.yaml").write_text(text)
    assert run(["saturate", "-f", str(tmp_path / "plan.yaml")]) == 2
    assert problem in capsys.readouterr().err
