"""Runs that version 0.1.0 wrote: listed, shown, reported and compared, with the same results.

tests/data/v0.1/README.md tells how each was made. Fields may be added; verdicts that differ stand
in VERDICTS, with the reason. What is not possible yet is expected to fail, so that whoever makes it
possible takes the mark away.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import shutil
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from xml.etree import ElementTree

import pytest

from scaletest.runs.places import place_of
from tests.conftest import call_here

DATA = Path(__file__).parents[1] / "data" / "v0.1"
RUNS = sorted(path.parent.name for path in DATA.glob("*/run.tar.gz"))
DAMAGED = sorted(path.name for path in DATA.glob("damaged-*"))
TYPES = ("validation", "saturation", "benchmark", "lifecycle")
FORMS = ("text", "html", "md", "csv", "json", "junit")

Say = Callable[..., CompletedProcess[str]]


@dataclass(frozen=True)
class Change:
    """A verdict of version 0.1.0 and today's."""

    before: str
    now: str
    reason: str


REFUTED_FIRST = "what sound steps refute is a FAIL, also when the run was interrupted later"
# saturation-refuted-interrupted stays INVALID: a search refutes a rate when it measured the ends of
# its bracket again, and this one was interrupted before.
VERDICTS = {
    "benchmark-refuted-unmeasured": Change(
        "INVALID", "FAIL", "a refuted threshold counts before a benchmark that was not measured"
    ),
    "saturation-sweep-limit": Change(
        "FAIL", "INVALID", "a latency limit that too few requests decide is measured longer today"
    ),
    "saturation-sweep-interrupted": Change("INVALID", "FAIL", REFUTED_FIRST),
    "validation-refuted-interrupted": Change("INVALID", "FAIL", REFUTED_FIRST),
}
WITH_THRESHOLDS = "`report` judges a lifecycle with the thresholds that it was run with"
# The same of damaged runs: what version 0.1.0 reported of them.
DAMAGED_VERDICTS = {
    "damaged-lifecycle-no-environment": Change("PASS", "FAIL", WITH_THRESHOLDS),
    "damaged-lifecycle-records-cut": Change("INVALID", "FAIL", WITH_THRESHOLDS),
}
# Of a result: sentences, which may be put better, and where the folder lies.
MESSAGE_KEYS = {"reason", "remedy", "sentence", "folder"}
# Of a result's first level: the verdict and its conditions have a test of their own.
JUDGED = {"verdict", "thresholds"}
# A warning that spoke of one step in the plural.
REWORDED = re.compile(r"^1 steps had")
# run or type -> keys of the first level that changed on purpose
QUERIES = {"queries": "they count seconds since 1970"}
CHANGED = {
    "validation-refuted-interrupted": dict.fromkeys(
        ("steps", "scaling", "serial_fraction"),
        "with few cycles the correlation of requests no longer makes intervals absurdly wide",
    ),
    "saturation": QUERIES,
    "lifecycle": {"thresholds": WITH_THRESHOLDS},
    "saturation-sweep-limit": {
        "saturation_per_s": "its steps do not follow today's rules, so there is no point",
        "warnings": "the width of the bracket is not told, since there is none",
    },
}


def type_of(name: str) -> str:
    """The type of a run, which its name begins with."""
    return name.removeprefix("damaged-").partition("-")[0]


def expected_to_fail(value: Any, name: str, reason: str) -> Any:
    """A parameter whose test fails until somebody takes the mark away."""
    return pytest.param(value, id=name, marks=pytest.mark.xfail(strict=True, reason=reason))


def groups(names: Sequence[str], missing: dict[str, str]) -> list[Any]:
    """Each name as a tuple; all of a type that `missing` has together, and expected to fail."""
    possible = [pytest.param((name,), id=name) for name in names if type_of(name) not in missing]
    return possible + [
        expected_to_fail(tuple(name for name in names if type_of(name) == kind), kind, reason)
        for kind, reason in missing.items()
    ]


def runs(*kinds: str) -> list[str]:
    """The runs of these types."""
    return [name for name in RUNS if type_of(name) in kinds]


@pytest.fixture(scope="module")
def data_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's data with all runs, imported."""
    home = tmp_path_factory.mktemp("data")
    for name in RUNS:
        archive = str(DATA / name / "run.tar.gz")
        done = call_here("runs", "import", archive, env={"XDG_DATA_HOME": str(home)})
        assert done.returncode == 0, done.stderr
    return home


@pytest.fixture
def say(data_home: Path) -> Say:
    """Calls the program as that user."""

    def call(*arguments: str) -> CompletedProcess[str]:
        return call_here(*arguments, env={"XDG_DATA_HOME": str(data_home), "COLUMNS": "200"})

    return call


@pytest.fixture
def damaged(tmp_path: Path) -> Callable[[str], Path]:
    """Copies a damaged run, since reading may lock the folder; its place."""

    def copied(name: str) -> Path:
        return Path(shutil.copytree(DATA / name / "run", tmp_path / name.removeprefix("damaged-")))

    return copied


def printed(name: str) -> dict[str, Any]:
    """The result.json of version 0.1.0; {} when there was none."""
    archive = DATA / name / "run.tar.gz"
    with tarfile.open(archive) as members:
        paths = [path for path in members.getnames() if path.endswith("/result.json")]
        if not paths:
            return {}
        stream = members.extractfile(paths[0])
        assert stream is not None
        return dict(json.load(stream))


def reported(name: str) -> dict[str, Any]:
    """What version 0.1.0 reported of the folder; {} where result.json has it all."""
    path = DATA / name / "report.json.gz"
    return dict(json.loads(gzip.decompress(path.read_bytes()))) if path.exists() else {}


def verdict_before(name: str) -> str:
    """The verdict that version 0.1.0 printed, or reported where it was killed before that."""
    result = printed(name) or reported(name)
    return str(result["verdict"]["kind"])


def verdict_now(name: str) -> str:
    """The verdict that is expected of today's program."""
    change = VERDICTS.get(name)
    return change.now if change else verdict_before(name)


def result_of(say: Say, run: str) -> dict[str, Any]:
    """Today's result of a run."""
    done = say("report", run, "-t", "json")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def today_grouped(group: dict[str, Any]) -> dict[str, Any]:
    """A group of failures on one device of a node, as today's groups tell it."""
    places = [{"node": group["node"], "device": group["device"], "count": group["count"]}]
    others = {key: value for key, value in group.items() if key not in ("node", "device")}
    return {**others, "places": places}


def differences(before: Any, now: Any, path: str = "") -> Iterator[str]:
    """Where `now` differs from `before`, added fields and sentences left out."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key, value in before.items():
            if key not in MESSAGE_KEYS:
                yield from differences(value, now.get(key, "missing"), f"{path}.{key}")
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        for index, pair in enumerate(zip(before, now, strict=True)):
            yield from differences(*pair, f"{path}[{index}]")
    elif not same(before, now):
        yield f"{path}: {before!r:.80} was reported, now {now!r:.80}"


def same(before: Any, now: Any) -> bool:
    """Whether two values are equal; sums of floats may be formed in another order."""
    if isinstance(before, float) and isinstance(now, float | int):
        return math.isclose(before, now, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(before, str):
        before = REWORDED.sub("1 step had", before)
    return bool(before == now)


def check_form(text: str, form: str, verdict: str) -> None:
    """A report in this form is well formed and tells the verdict."""
    if form == "csv":
        rows = list(csv.reader(io.StringIO(text)))
        assert len({len(row) for row in rows}) == 1 and len(rows[0]) > 3
        return
    if form == "json":
        assert json.loads(text)["verdict"]["kind"] == verdict
    elif form == "junit":
        suite = ElementTree.fromstring(text)
        failures = int(suite.get("failures", "0")) + int(suite.get("errors", "0"))
        assert suite.findall(".//testcase") and (failures == 0) == (verdict == "PASS")
    elif form == "html":
        assert text.startswith("<!") and text.rstrip().endswith("</html>") and "<table" in text
        assert verdict in text
    else:
        assert re.search(rf"\b{verdict}\b", text)


def test_a_difference_is_seen_an_added_field_and_a_sentence_are_none() -> None:
    before = {"steps": [{"rate": 1.0, "reason": "a"}], "count": 1}
    assert not list(differences(before, {"steps": [{"rate": 1.0}], "count": 1, "more": 2}))
    for now in (
        {"steps": [{"rate": 1.001}], "count": 1},
        {"steps": [], "count": 1},
        {"steps": [{"rate": 1.0}]},
        {"steps": [{"rate": None}], "count": 1},
    ):
        assert len(list(differences(before, now))) == 1


def test_the_list_names_every_run_as_before(say: Say) -> None:
    rows = {row["run"]: row for row in json.loads(say("runs", "list", "--format", "json").stdout)}
    before = {row["run"]: row for row in json.loads((DATA / "list.json").read_text())}
    assert rows.keys() == before.keys() == set(RUNS)
    for name, row in before.items():
        row["verdict"] = printed_verdict(name)
    assert list(differences(before, rows)) == []


def test_the_table_lists_every_run_with_its_verdict(say: Say) -> None:
    lines = say("runs", "list").stdout.splitlines()[1:]
    verdicts = {line.split()[0]: line.split()[4] for line in lines}
    assert verdicts == {name: printed_verdict(name) for name in RUNS}


def printed_verdict(name: str) -> str:
    """The verdict of result.json, that of the report when there is none."""
    return str(printed(name).get("verdict", {}).get("kind") or verdict_now(name))


@pytest.mark.parametrize("name", RUNS)
def test_the_run_is_shown(say: Say, name: str) -> None:
    text, data = say("runs", "show", name), say("runs", "show", name, "--format", "json")
    assert (text.returncode, data.returncode) == (0, 0), text.stderr + data.stderr
    assert "0.1.0" in text.stdout
    assert json.loads(data.stdout)["environment"]["host"] == "machine"


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", RUNS)
def test_the_run_is_reported_in_every_form(say: Say, name: str, form: str) -> None:
    done = say("report", name, "-t", form)
    assert done.returncode == 0, done.stderr
    check_form(done.stdout, form, result_of(say, name)["verdict"]["kind"])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", runs("benchmark"))
def test_the_benchmark_is_reported_by_its_own_command(say: Say, name: str, form: str) -> None:
    done = say("report", name, "-t", form)
    assert (done.returncode, done.stdout) == (0, say("report", name, "-t", form).stdout)


@pytest.mark.parametrize("option", ["--png", "-o"])
@pytest.mark.parametrize(
    "name", ["validation-lock", "saturation-open", "benchmark-sweep", "lifecycle-burst"]
)
def test_the_run_is_drawn(say: Say, name: str, option: str, tmp_path: Path) -> None:
    done = say("report", name, option, str(tmp_path / "run.png"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_the_lifecycle_is_drawn_by_its_own_command(say: Say, data_home: Path) -> None:
    folder = place_of(data_home / "scaletest" / "runs", "lifecycles") / "lifecycle-burst"
    done = say("lifecycle", "plot", "--plot", "detailed", "-o", str(folder))
    assert done.returncode == 0, done.stderr
    assert (folder / "detailed.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", RUNS)
def test_the_figures_are_those_of_version_0_1(say: Say, name: str) -> None:
    result = printed(name)
    before = result if "kind" in result else reported(name)
    exempt = JUDGED | CHANGED.get(type_of(name), {}).keys() | CHANGED.get(name, {}).keys()
    now = result_of(say, name)
    figures = {key: value for key, value in before.items() if key not in exempt}
    if type_of(name) == "validation":
        figures["failures"] = [today_grouped(group) for group in figures["failures"]]
    assert len(figures) > 5
    assert list(differences(figures, now)) == []


@pytest.mark.parametrize("name", RUNS)
def test_the_verdict_is_that_of_version_0_1_or_listed(say: Say, name: str) -> None:
    before, now = printed(name) or reported(name), result_of(say, name)
    assert now["verdict"]["kind"] == verdict_now(name)
    if "thresholds" in before:
        assert list(differences(before["thresholds"], now["thresholds"])) == []


def test_the_listed_verdicts_were_those_of_version_0_1() -> None:
    assert {name: change.before for name, change in VERDICTS.items()} == {
        name: verdict_before(name) for name in VERDICTS
    }


def compared(say: Say, name: str, *command: str) -> dict[str, Any]:
    """The comparison of a run with itself."""
    done = say(*command, name, name, "--format", "json")
    comparison = dict(json.loads(done.stdout)) if done.stdout else {}
    assert comparison, done.stderr
    assert done.returncode == {"PASS": 0, "INVALID": 4}[comparison["verdict"]["kind"]]
    return comparison


@pytest.mark.parametrize("name", RUNS)
def test_the_run_is_compared_with_itself(say: Say, name: str) -> None:
    comparison = compared(say, name, "compare")
    assert comparison["type"] == type_of(name)
    (candidate,) = comparison["candidates"]
    assert not {row["measure"] for row in candidate["measures"] if row["significant"]}


UNCHANGED = {"equivalent", "not worse", "undecided"}


def deciding(comparison: dict[str, Any]) -> list[dict[str, Any]]:
    """The measures on which the verdict of a comparison with one candidate rests."""
    (candidate,) = comparison["candidates"]
    return [row for row in candidate["measures"] if row["decides"]]


@pytest.mark.parametrize("name", runs("validation"))
def test_every_step_is_compared(say: Say, name: str) -> None:
    rows = deciding(compared(say, name, "compare"))
    assert [row["where"]["workers"] for row in rows] == [
        step["workers"] for step in result_of(say, name)["steps"]
    ]
    assert {row["change"] for row in rows} <= UNCHANGED


@pytest.mark.parametrize("name", runs("benchmark"))
def test_the_benchmark_is_compared_with_itself(say: Say, name: str) -> None:
    rows = deciding(compared(say, name, "compare"))
    measured = [row for row in result_of(say, name)["permutations"] if row["succeeded"]]
    assert len({json.dumps(row["where"]) for row in rows}) == len(measured)
    assert {row["change"] for row in rows} <= UNCHANGED


@pytest.mark.parametrize("name", runs("lifecycle"))
def test_the_lifecycle_is_compared_with_itself(say: Say, name: str, data_home: Path) -> None:
    folder = str(place_of(data_home / "scaletest" / "runs", "lifecycles") / name)
    (candidate,) = compared(say, folder, "lifecycle", "compare")["candidates"]
    phases = {row["measure"].partition(".")[0]: row["change"] for row in candidate["measures"]}
    assert phases.keys() >= {row["step"] for row in result_of(say, name)["steps"]}
    assert set(phases.values()) <= UNCHANGED


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_run_is_listed(damaged: Callable[[str], Path], name: str) -> None:
    folder = damaged(name)
    below = "lifecycles" if type_of(name) == "lifecycle" else "runs"
    home = folder.parent / "home"
    (home / "scaletest" / below).mkdir(parents=True)
    folder.rename(home / "scaletest" / below / folder.name)
    done = call_here("runs", "list", "--format", "json", env={"XDG_DATA_HOME": str(home)})
    (row,) = json.loads(done.stdout)
    assert row["run"] == folder.name
    assert ("plan.json" in row["problem"]) == name.endswith("-plan")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [name for name in DAMAGED if reported(name)])
def test_a_damaged_run_is_reported_as_before(
    say: Say, damaged: Callable[[str], Path], name: str, form: str
) -> None:
    folder, before = str(damaged(name)), reported(name)
    done = say("report", folder, "-t", form)
    assert done.returncode == 0, done.stderr
    change = DAMAGED_VERDICTS.get(name)
    if change:
        assert before["verdict"]["kind"] == change.before
        before["verdict"] = {"kind": change.now}
    check_form(done.stdout, form, before["verdict"]["kind"])
    if form == "json":
        exempt = CHANGED.get(type_of(name), {})
        unchanged = {key: value for key, value in before.items() if key not in exempt}
        assert list(differences(unchanged, json.loads(done.stdout))) == []


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [name for name in DAMAGED if not reported(name)])
def test_what_cannot_be_read_is_told_as_before(
    say: Say, damaged: Callable[[str], Path], name: str, form: str
) -> None:
    done = say("report", str(damaged(name)), "-t", form)
    assert (done.returncode, done.stdout) == (2, "")
    file_of_run = re.search(r"\S+ of run \S+", (DATA / name / "error.txt").read_text())
    assert file_of_run and file_of_run[0] in done.stderr


@pytest.mark.parametrize("form", FORMS)
def test_the_files_of_the_run_ai_tool_are_reported(
    damaged: Callable[[str], Path], form: str
) -> None:
    folder, before = damaged("lifecycle-original"), reported("lifecycle-original")
    done = call_here("lifecycle", "report", "--output-dir", str(folder), "-t", form)
    assert done.returncode == 0, done.stderr
    check_form(done.stdout, form, before["verdict"]["kind"])
    if form == "json":
        assert list(differences(before, json.loads(done.stdout))) == []


@pytest.mark.parametrize("name", ["validation-pass", "saturation-open"])
def test_a_duration_that_nothing_can_hold_is_none(
    data_home: Path, tmp_path: Path, name: str
) -> None:
    source = place_of(data_home / "scaletest" / "runs", "runs") / name
    folder = Path(shutil.copytree(source, tmp_path / name))
    stored = json.loads((folder / "result.json").read_text()) | {"elapsed_s": 10**400}
    (folder / "result.json").write_text(json.dumps(stored))
    done = call_here("report", str(folder), "--format", "json")
    assert (done.returncode, json.loads(done.stdout)["elapsed_s"]) == (0, 0.0), done.stderr
