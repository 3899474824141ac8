"""Options of the command line without their secrets."""

from pathlib import Path

import pytest

from scaletest.cli.main import run
from scaletest.saturation.measure.runner import without_secrets
from scaletest.saturation.measure.target import http_call
from scaletest.saturation.options import HttpOptions
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
    options = HttpOptions("", "", (f"@{tmp_path / 'key'}", "Accept: text/plain"), "")
    headers = http_call(options, SaturationPlan("x"), "http://h/").headers
    assert headers == {
        "User-Agent": "scaletest",
        "Authorization": "Bearer abc",
        "X-Tenant": "1",
        "Accept": "text/plain",
    }
