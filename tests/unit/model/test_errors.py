"""What was probably meant: of commands, runs, queues, kinds and names."""

from pathlib import Path

import pytest

from scaletest.benchmarks.kinds.registry import kind_of
from scaletest.cli.main import run
from scaletest.model.errors import InvalidValue, UndeclaredQueue, nearest_name, suggestion
from tests.unit.made_runs import make


def test_the_nearest_name_is_found_whatever_its_case() -> None:
    assert nearest_name("iprf", ["Fio", "IPerf"]) == "IPerf"
    assert nearest_name("foo", ["bs", "fioPort", "iodepth"]) == ""
    assert nearest_name("zzz", ["Fio", "IPerf"]) == nearest_name("x", []) == ""
    assert suggestion("FOI", ["Fio", "IPerf"]) == "did you mean Fio?"
    assert suggestion("zzz", ["Fio", "IPerf"]) == "there are Fio, IPerf"
    assert suggestion("zzz", []) == "there are none"


def test_a_kind_and_a_queue_suggest_the_nearest() -> None:
    with pytest.raises(InvalidValue) as caught:
        kind_of("openfaom")
    assert caught.value.hint == "did you mean OpenFOAM?"
    assert UndeclaredQueue("sleeep", ["sleep"]).hint.startswith("did you mean sleep? If not, decl")
    assert UndeclaredQueue("q", ["sleep"]).hint == "declare it with: scaletest queue add q"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["validat"], "did you mean validate?"),
        (["zzz"], "see: scaletest --help"),
        (["queue", "lst"], "did you mean list?"),
        (["report", "pas"], "did you mean pass?"),
        (["report", "zzz"], "see: scaletest runs list"),
    ],
)
def test_an_unknown_command_or_run_suggests_the_nearest(
    words: list[str],
    hint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    make("pass", tmp_path / "scaletest" / "runs")
    assert run(words) == 2
    assert hint in capsys.readouterr().err
