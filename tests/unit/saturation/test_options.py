"""Options of the command line: without their secrets, and what cannot be saturated is told before
anything is done.
"""

import json
from pathlib import Path

import pytest

from scaletest.cli.main import run
from scaletest.load.requests import without_secrets
from scaletest.saturation.measure.target import http_call
from scaletest.saturation.options import TimedHttpOptions
from scaletest.saturation.plan import SaturationPlan


def test_a_command_line_loses_its_secrets() -> None:
    arguments = [
        "saturate",
        "http://me:word@h/?code=abc&x=1",
        "-H",
        "Authorization: Bearer abc",
        "--header=K: abc",
    ]
    assert "abc" not in " ".join(without_secrets(arguments)) and "word" not in " ".join(
        without_secrets(arguments)
    )
    assert without_secrets(["-H", "K: abc"]) == ["-H", "K: ***"]


def test_a_typed_address_comes_before_that_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text("arguments: http://127.0.0.1:1/\n")
    assert run(["saturate", "-f", str(plan), "--dry-run"]) == 0
    assert "http://127.0.0.1:1/" in capsys.readouterr().out
    assert run(["saturate", "-f", str(plan), "--dry-run", "http://127.0.0.1:2/"]) == 0
    assert "http://127.0.0.1:2/" in capsys.readouterr().out


def test_headers_with_credentials_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("Authorization: Bearer abc\nX-Tenant: 1\n")
    options = TimedHttpOptions("", "", (f"@{tmp_path / 'key'}", "Accept: text/plain"))
    headers = http_call(options, SaturationPlan("x"), "http://h/").headers
    assert headers == {
        "User-Agent": "scaletest",
        "Authorization": "Bearer abc",
        "X-Tenant": "1",
        "Accept": "text/plain",
    }


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
        longest.append(json.loads(capsys.readouterr().out)["most_s"])
    assert longest[1] == 6 * longest[0]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("step_tme: 20s", "did you mean step_time?"),
        ("arguments: http://127.0.0.1:1/\npayload: [1, 2]", "is no single value"),
        ("dry_run: maybe", "unknown setting dry_run"),
        ("step_time: soon", "invalid duration"),
        ("start: [1]", "start in"),
        ("load: sideways", "in the plan file of -f"),
        ("- 1", "write one OPTION: VALUE per line"),
        ("arguments: 'ftp://h/'", "not an HTTP URL"),
        ("arguments: 'http://127.0.0.1:1/'\nmethod: GE T\n", "not an HTTP method"),
    ],
)
def test_a_plan_file_that_cannot_work_says_why(
    text: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.yaml").write_text(text)
    assert run(["saturate", "-f", str(tmp_path / "plan.yaml")]) == 2
    assert problem in capsys.readouterr().err
