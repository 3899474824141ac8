"""What is printed and logged: a terminal obeys nothing of it."""

import io
import logging
from pathlib import Path

import pytest
import yaml

from scaletest.broker.queue_state import QueueEntry, printable_name, split_entries
from scaletest.cli.main import run
from scaletest.cli.output import Output, as_text, echo, set_up_logging, write
from scaletest.cli.stored import deliver_finished
from scaletest.model.checks import cut_text, escape_unprintable
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.render.text import clean_text
from scaletest.validation.report.report import validation_report
from tests.unit import made_runs as runs

EVIL = "a\x1b]0;T\x07\x9b2J\u202e\rb"
HARMLESS = r"a\x1b]0;T\x07\x9b2J\u202e\rb"


def test_one_function_makes_texts_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    assert escape_unprintable(EVIL) == cut_text(EVIL) == clean_text(EVIL) == HARMLESS
    assert escape_unprintable("é ± 漢\n\t", keep="\n\t") == "é ± 漢\n\t"
    echo(EVIL + "\n\tx")
    echo(EVIL, err=True, nl=False)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == (f"{HARMLESS}\n\tx\n", HARMLESS)


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_hostile_text_in_yaml_and_json_is_escaped_and_read_back(
    form: str,
) -> None:
    data = {"names": [EVIL, "1\u00a0234", "a\u202eb", "a\x7fb"], "unit": "µs"}
    text = as_text(data, form)
    assert escape_unprintable(text, keep="\n") == text
    assert yaml.safe_load(text) == data


def test_a_wrong_option_is_printed_harmlessly(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["queue", "list", f"--{EVIL}"]) == 2
    assert HARMLESS in capsys.readouterr().err


def test_a_log_line_is_one_line_that_no_terminal_obeys(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging(False)
    logging.getLogger("scaletest.broker").warning("worker %s", f"{EVIL}\n12:00:00 ERROR forged")
    try:
        raise ValueError(EVIL)
    except ValueError:
        logging.getLogger("scaletest.broker").exception("it failed")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith(rf"WARNING worker {HARMLESS}\n12:00:00 ERROR forged")
    assert lines[-1] == f"ValueError: {HARMLESS}"


def test_log_lines_of_rq_keep_only_their_colour_codes() -> None:
    set_up_logging(False)
    log = io.StringIO()
    logger = logging.getLogger("rq.worker")
    handler = logging.StreamHandler(log)
    logger.addHandler(handler)
    logger.warning("\x1b[32m%s\x1b[39m", EVIL)
    logger.removeHandler(handler)
    assert log.getvalue() == f"\x1b[32m{HARMLESS}\x1b[39m\n"


def test_valid_queue_entries_are_separated_from_foreign_ones() -> None:
    rows = {
        b"q": b'{"maximum": 5, "note": "n"}',
        b"old": b"{}",
        b"\xff": b"{}",
        b"a b": b"{}",
        b"bad": b"nonsense",
    }
    queues, foreign = split_entries(rows)
    assert {name: entry.maximum for name, entry in queues.items()} == {"q": 5, "old": 0}
    assert foreign.keys() == {b"\xff", b"a b", b"bad"}
    assert [printable_name(name) for name in (b"\xff", b"\x1b", b"q")] == [r"\xff", r"\x1b", "q"]


@pytest.mark.parametrize(
    "value", ["", "[" * 100_000, "1", "null", '{"maximum": -1}', '{"maximum": true}', '{"note": 1}']
)
def test_a_foreign_queue_entry_is_refused(value: str) -> None:
    with pytest.raises(InvalidValue, match="entry"):
        QueueEntry.from_json(value)


def test_a_page_is_written_byte_for_byte(
    capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    page = "µ\u00a0%\r\n"
    write(page, Path("-"))
    write(page, tmp_path / "page")
    assert capfdbinary.readouterr().out == (tmp_path / "page").read_bytes() == page.encode()
    with pytest.raises(UsageError, match="Is a directory"):
        write(page, tmp_path)


@pytest.mark.parametrize("file", ["folder", "nowhere/report.html", ""])
def test_an_output_that_cannot_be_written_is_refused_before_measuring(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    assert run(["validate", "--local", "--limit", "1", "--run-dir", "run", "-o", file]) == 2
    error = capsys.readouterr().err
    assert "cannot be written" in error and "give another -o FILE" in error
    assert not (tmp_path / "run").exists()


def test_the_verdict_of_a_run_is_also_shown_when_its_report_goes_into_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = validation_report(runs.make("pass", tmp_path))
    deliver_finished(report, Output(tmp_path / "report.md", "md"))
    shown = capsys.readouterr()
    written, verdict = shown.err.splitlines()
    assert shown.out == "" and written.endswith("report.md written")
    assert verdict.startswith("PASS  ")
    deliver_finished(report, Output(Path("-"), "md"))
    assert capsys.readouterr().err == ""


def test_commands_that_programs_call_are_hidden_and_work(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["bench", "--help"]) == 0
    assert "execute" not in capsys.readouterr().out
    assert run(["bench", "execute", "--help"]) == 0
