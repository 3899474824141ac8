"""A quick look at real programs on this machine."""

import pytest

from tests.conftest import call


def test_a_program_gets_a_short_answer_and_the_command_that_measures_it_well() -> None:
    looked = call("quick", "--limit", "2", "--", "sleep", "0.1")
    assert looked.returncode == 0, looked.stderr
    lines = looked.stdout.splitlines()
    assert len(lines) <= 15
    assert "2 workers" in looked.stdout
    assert any(line.startswith("  scaletest validate --limit ") for line in lines)
    assert "it took " in looked.stderr and "measuring with up to 2 workers" in looked.stderr
    report = call("report", "LAST", "--format", "brief")
    assert report.returncode == 0, report.stderr


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ((), "no program was given"),
        (("--", "no-such-program"), "no-such-program cannot be started: there is no such program"),
        (("--", "false"), "the program failed: false returned error code 1"),
        (("--", "false"), "try it alone with: scaletest worker --once -- false"),
        (
            ("--", "sleep", "9"),
            "measure it thoroughly with: scaletest validate --limit 4 --seconds 10s",
        ),
        (("--limit", "1", "--", "true"), "limit is 1"),
        (("--limit", "100001", "--", "true"), "limit is 100001"),
        (("--device-glob", "/nonexistent/*", "--", "true"), "/nonexistent/*"),
    ],
)
def test_what_cannot_be_looked_at_is_refused_before_anything_is_measured(
    typed: tuple[str, ...], reason: str
) -> None:
    refused = call("quick", *typed)
    assert refused.returncode == 2
    assert reason in refused.stderr
    assert not refused.stdout
