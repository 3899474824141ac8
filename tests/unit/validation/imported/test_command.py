"""scaletest judge, as a user calls it."""

import json
from pathlib import Path

import pytest

from scaletest.cli.main import run
from tests.unit.validation.imported import samples
from tests.unit.validation.imported.test_reading import write


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_runs(ratio: float = 1.96) -> None:
    for count in (1, 2):
        for repeat, noise in enumerate((1.0, 1.004, 0.997)):
            rate = 10.0 * ratio ** (count - 1) * noise
            write(Path(f"replicas-{count}-{repeat}.json"), samples.vllm(rate, 32 * count))


def test_a_run_is_judged_stored_and_shown_again(capsys: pytest.CaptureFixture[str]) -> None:
    write_runs()
    assert run(["judge", *map(str, sorted(Path().glob("*.json")))]) == 0
    assert "every doubling up to 2 replicas reaches 1.80" in capsys.readouterr().out
    # without the files, from what was stored
    for path in Path().glob("*.json"):
        path.unlink()
    assert run(["report", "LAST", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["kind"] == "PASS"
    assert run(["report", "LAST", "-o", "page.html"]) == 0
    assert "replicas" in Path("page.html").read_text()
    assert run(["runs", "list", "--type", "import"]) == 0
    assert "vllm llama with 1, 2 replicas" in capsys.readouterr().out


def test_labels_name_the_number_of_files_that_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("one.json"), samples.vllm(10.0))
    write(Path("two.json"), samples.vllm(19.0, 64))
    assert run(["judge", "one.json", "two.json"]) == 2
    assert "one.json does not tell the number of replicas" in capsys.readouterr().err
    assert run(["judge", "--label", "1=one.json", "--label", "2=two.json"]) == 4
    assert "ratio 1.90, without an interval" in capsys.readouterr().out


def test_two_runs_compare_by_their_repeats(capsys: pytest.CaptureFixture[str]) -> None:
    for ratio, name in ((1.96, "before"), (1.4, "after")):
        write_runs(ratio)
        run(["judge", "--name", name, *map(str, sorted(Path().glob("replicas*.json")))])
    capsys.readouterr()
    assert run(["compare", "before", "after"]) == 3
    compared = capsys.readouterr().out
    assert "FAIL" in compared and "throughput (replicas 2)" in compared


def test_a_run_that_is_given_twice_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    write_runs()
    again = ["replicas-1-0.json", "--label", "1=./replicas-1-0.json"]
    assert run(["judge", *again]) == 2
    assert "replicas-1-0.json was given twice" in capsys.readouterr().err


def test_nothing_to_judge_is_a_mistake() -> None:
    assert run(["judge"]) == 2
