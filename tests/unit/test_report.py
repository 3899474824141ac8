"""What people see is compared with files; look at them when they change (REGENERATE=1 writes them
anew).
"""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from scaletest.archive import RunFolder
from scaletest.cli.main import run as scaletest
from scaletest.model import Activity, Plan, State, VerdictKind, Wait
from scaletest.model.errors import ScaletestError, UsageError
from scaletest.render.contents import Table
from scaletest.render.text_table import aligned
from scaletest.report import formats, progress, words
from scaletest.report.formats import text as text_format
from scaletest.report.run import Run, read
from scaletest.report.validation import validation_report
from scaletest.report.validation.sheet import COLUMNS
from tests.conftest import missing
from tests.unit import runs

GOLDEN = Path(__file__).parent / "golden"
DOCS = Path(__file__).parents[2] / "docs"
KINDS = {
    "pass": VerdictKind.PASS,
    "fail": VerdictKind.FAIL,
    "limited": VerdictKind.FAIL,
    "sampled": VerdictKind.FAIL,
    "failures": VerdictKind.FAIL,
    "repeats": VerdictKind.PASS,
    "mirrored": VerdictKind.PASS,
    "peak": VerdictKind.FAIL,
    "sharing": VerdictKind.FAIL,
    "interrupted": VerdictKind.INVALID,
    "nothing": VerdictKind.INVALID,
    "hostile": VerdictKind.INVALID,
}


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Every case, read from its folder."""
    path = tmp_path_factory.mktemp("runs")
    return {case: runs.make(case, path) for case in runs.CASES}


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((0.0134, 0.0249), "contention 1.94% [1.34, 2.49],"),
        ((0.0, 12.04), "contention unknown,"),
        ((0.004, 1.5), "contention unknown,"),
        ((0.012, 12.04), "contention 1% or more,"),
        ((0.0, 1.0), "contention 2% [0, 100],"),
    ],
)
def test_no_more_than_the_whole_request_is_said_to_wait(
    made: dict[str, Run], ends: tuple[float, float], text: str
) -> None:
    growth = made["peak"].result.growth
    assert (
        growth.choice is not None
        and growth.interval is not None
        and growth.interval.contention is not None
    )
    contention = replace(growth.interval.contention, low=ends[0], high=ends[1])
    growth = replace(growth, interval=replace(growth.interval, contention=contention))
    assert text in words.law(replace(made["peak"].result, growth=growth))


def golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("REGENERATE"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
    assert text == path.read_bytes().decode()


def on_terminal(run: Run, width: int) -> str:
    out = io.StringIO()
    text_format.show(validation_report(run), Console(file=out, width=width, color_system=None))
    return out.getvalue()


@pytest.mark.parametrize("case", runs.CASES)
def test_every_case_is_judged_as_expected(made: dict[str, Run], case: str) -> None:
    assert made[case].result.verdict.kind is KINDS[case]


@pytest.mark.parametrize("case", runs.CASES)
def test_summary_is_as_agreed(made: dict[str, Run], case: str) -> None:
    text = on_terminal(made[case], 80)
    golden(f"summary-{case}.txt", text)
    assert len(text.splitlines()) < 25
    assert all(character.isprintable() or character == "\n" for character in text)
    assert made[case].result.verdict.kind.value in text.splitlines()[-4] + text.splitlines()[-3]
    following = "validate --local --resume" if made[case].result.interrupted else "report"
    assert f"next: scaletest {following}" in text.splitlines()[-1]


@pytest.mark.parametrize(
    "form", ["html", "md", "csv", "junit"]
)  # text: above; json: the result itself, below
@pytest.mark.parametrize(
    "case", ["pass", "fail", "limited", "sampled", "mirrored", "sharing", "hostile"]
)
def test_every_form_is_as_agreed(made: dict[str, Run], case: str, form: str) -> None:
    golden(f"report-{case}.{form}", formats.render(validation_report(made[case]), form))


@pytest.mark.parametrize("form", formats.names())
@pytest.mark.parametrize("case", runs.CASES)
def test_every_form_tells_every_case_in_valid_text(
    made: dict[str, Run], case: str, form: str
) -> None:
    text = formats.render(validation_report(made[case]), form)
    assert text.endswith("\n")
    assert text.encode().decode() == text
    if form not in ("csv", "junit"):
        assert made[case].result.verdict.kind.value in text


def test_the_table_fits_into_80_columns_whatever_is_in_it() -> None:
    columns = {"N": "1024", "requests/s": "123456 ± 1234", "ratio": "1.234 ± 0.123"}
    columns |= dict.fromkeys(("speed-up", "effic.", "wait p95", "run p95", "failed"), "12.3 ms")
    table = Table(list(columns), [list(columns.values())])
    assert len(list(aligned(table, 80))) == 2
    assert max(map(len, aligned(table, 80))) <= 80


def test_eight_steps_fit_on_a_screen_even_when_everything_is_wrong(tmp_path: Path) -> None:
    plan = Plan(limit=128, command=("x" * 500,), queue="q")
    steps = [runs.rows(n, 0.2, 45, noise=0.2, fail_every=9, error=f"error {n}") for n in plan.steps]
    lines = on_terminal(runs.loaded(runs.stored(tmp_path / "run", plan, steps)), 80).splitlines()
    assert len(lines) < 25
    assert all(len(line) <= 80 for line in lines[1:10])


def limited(path: Path, plan: Plan, activity: Activity, workers: Sequence[int] = (1, 2, 4)) -> Run:
    """A run whose last step took longer, and says so: see `activity` of all requests but those of
    the first step.
    """
    steps = [runs.rows(n, 0.2 * n, 40, noise=0.05, fail_every=9) for n in workers]
    for step in steps:
        first = Activity({State.ON_CPU: 0.2}, cpu_s=0.2)
        step[:] = [
            replace(row, reply=replace(row.reply, activity=first if row.step == 1 else activity))
            for row in step
        ]
    return runs.loaded(runs.stored(path / "run", plan, steps))


def test_causes_fit_on_the_screen_of_eight_steps_where_everything_is_wrong(tmp_path: Path) -> None:
    plan = Plan(
        limit=128,
        command=("x" * 500,),
        queue="q",
        thresholds=("ratio>1.9", "run.p50<1s", "efficiency>0.9"),
    )
    waits = (Wait(State.DISK, "/data/" + "x" * 150, 0.1),)
    activity = Activity(
        {State.ON_CPU: 0.2, State.DISK: 0.1, State.NETWORK: 0.05, State.PIPE: 0.03},
        waits,
        cpu_s=0.2,
    )
    lines = on_terminal(limited(tmp_path, plan, activity, plan.steps), 80).splitlines()
    assert len(lines) < 25
    rows = [line for line in lines if re.match(r"  +\d+% \[", line)]
    assert rows and all(len(line) <= 80 for line in rows)


@pytest.mark.parametrize("form", formats.names())
def test_no_form_acts_on_the_object_of_a_cause(tmp_path: Path, form: str) -> None:
    activity = Activity(
        {State.DISK: 0.3, State.ON_CPU: 0.1}, (Wait(State.DISK, runs.HOSTILE, 0.3),), cpu_s=0.1
    )
    plan = Plan(limit=4, command=("x",), queue="q", tolerate_failures=99)
    text = formats.render(validation_report(limited(tmp_path, plan, activity)), form)
    assert not {"\x1b", "\u202e"} & set(text)
    assert form == "csv" or "waiting for a disk" in text
    assert form != "html" or not {"script", "img"} & {tag for tag, _ in Page(text).tags}


def test_a_slow_worker_is_named_also_where_no_doubling_fails(tmp_path: Path) -> None:
    plan = Plan(limit=4, command=("x",), queue="q", scale=1.0, thresholds=("efficiency>0.9",))
    steps = [runs.rows(n, 0.2, 40, noise=0.05) for n in plan.steps]
    slow = runs.rows(4, 0.6, 14, noise=0.05)
    steps[-1] = [row for row in steps[-1] if row.reply.pod != "pod-3"] + [
        row for row in slow if row.reply.pod == "pod-3"
    ]
    usual, long = (Activity({State.ON_CPU: seconds}, cpu_s=seconds) for seconds in (0.2, 0.6))
    for step in steps:
        activities = [long if row.reply.run_s > 0.4 else usual for row in step]
        step[:] = [
            replace(row, reply=replace(row.reply, activity=activity))
            for row, activity in zip(step, activities, strict=True)
        ]
    run = runs.loaded(runs.stored(tmp_path / "run", plan, steps))
    assert run.result.causes is not None and run.result.causes.slow is not None
    sentence = "nly one worker is slow, worker-0-3: 0.6 s a request, 0.2 s elsewhere"
    assert "ratio" not in run.result.verdict.reason
    for form in ("text", "md", "html"):
        assert sentence in formats.render(validation_report(run), form)


def test_a_page_says_why_no_cause_is_named(tmp_path: Path) -> None:
    plan = Plan(limit=4, command=("x",), queue="q", tolerate_failures=99)
    page = Page(
        formats.render(
            validation_report(limited(tmp_path, plan, Activity({State.ON_CPU: 0.2}, cpu_s=0.2))),
            "html",
        )
    )
    assert "The cause is unknown: 100% of the added 0.2 s was not observed." in page.text


class Page(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "img", "link", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("case", runs.CASES)
def test_the_page_acts_on_nothing_foreign_and_asks_nobody(made: dict[str, Run], case: str) -> None:
    page = Page(formats.render(validation_report(made[case]), "html"))
    assert not page.open
    names = {tag for tag, _ in page.tags}
    assert not names & {
        "script",
        "img",
        "link",
        "iframe",
        "object",
        "embed",
        "base",
        "form",
        "a",
        "image",
        "use",
    }
    for tag, attributes in page.tags:
        assert not any(
            name.startswith("on") or name in ("src", "href", "xlink:href") for name in attributes
        ), tag
    styles = [attributes["style"] or "" for _, attributes in page.tags if "style" in attributes]
    assert all(re.fullmatch(r"width:[0-9.]+%", style) for style in styles)
    policy = next(
        a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None and "default-src 'none'" in policy and "script" not in policy


@pytest.mark.parametrize("case", runs.CASES)
def test_the_page_holds_no_address(made: dict[str, Run], case: str) -> None:
    text = formats.render(validation_report(made[case]), "html")
    if case == "hostile":  # there it is foreign text that was asked for, and only shown
        text = text.replace("http://evil.example/x", "")
    assert not re.search(
        r"(?i)(?<![\w-])(https?|ftp|data|file|javascript):|url\((?!#)|@import|//[a-z]", text
    )


def test_hostile_text_stays_text(made: dict[str, Run]) -> None:
    text = formats.render(validation_report(made["hostile"]), "html")
    assert "<script" not in text and "<img" not in text
    assert text.count("</style>") == 1
    assert "49" not in Page(text).text.partition("How to reproduce")[2].partition("Environment")[0]
    assert "</style><script>alert(1)</script>" in Page(text).text
    assert "\x1b" not in text and "\u202e" not in text


def test_ids_on_a_page_are_unique(made: dict[str, Run]) -> None:
    for run in made.values():
        ids = [
            a["id"]
            for _, a in Page(formats.render(validation_report(run), "html")).tags
            if "id" in a
        ]
        assert len(ids) == len(set(ids))


def test_every_chart_speaks_to_those_who_cannot_see_it(made: dict[str, Run]) -> None:
    page = Page(formats.render(validation_report(made["pass"]), "html"))
    charts = [attributes for tag, attributes in page.tags if tag == "svg"]
    ids = {attributes.get("id") for _, attributes in page.tags}
    assert len(charts) > 8
    for chart in charts:
        assert chart["role"] == "img"
        assert set((chart["aria-labelledby"] or "").split()) <= ids


def test_csv_columns_are_documented_and_hold_the_numbers(made: dict[str, Run]) -> None:
    table = list(
        csv.DictReader(io.StringIO(formats.render(validation_report(made["pass"]), "csv")))
    )
    assert [row["workers"] for row in table] == ["1", "2", "4", "8"]
    assert float(table[3]["throughput_per_s"]) == pytest.approx(
        made["pass"].result.steps[3].throughput.per_s
    )
    assert table[0]["ratio"] == "" and float(table[3]["ratio"]) == pytest.approx(2, rel=0.05)
    page = (DOCS / "reference" / "reports.md").read_text("utf-8")
    assert {name for name in COLUMNS if f"| `{name}` |" not in page} == set()


@pytest.mark.parametrize("case", runs.CASES)
def test_junit_has_a_case_for_every_doubling(made: dict[str, Run], case: str) -> None:
    root = ElementTree.fromstring(formats.render(validation_report(made[case]), "junit"))
    plan, verdict = made[case].result.plan, made[case].result.verdict
    found = {one.get("name"): one for one in root.iter("testcase")}
    # one less for the doublings, one more for the verdict
    assert len(found) == (1 if plan.compares else len(plan.steps))
    tags = {VerdictKind.PASS: None, VerdictKind.FAIL: "failure", VerdictKind.INVALID: "error"}
    inner = [child.tag for child in found["verdict"]]
    assert inner == ([tags[verdict.kind]] if tags[verdict.kind] else [])
    assert root.get("tests") == str(len(found))
    assert root.get("failures") == str(len(list(root.iter("failure"))))
    assert root.get("errors") == str(len(list(root.iter("error"))))


def test_json_is_the_result(made: dict[str, Run]) -> None:
    data = json.loads(formats.render(validation_report(made["fail"]), "json"))
    assert data.pop("folder") == "/runs/a7c3"
    assert data == made["fail"].result.to_dict()


def test_markdown_mentions_nobody_and_breaks_no_table(made: dict[str, Run]) -> None:
    text = formats.render(validation_report(made["hostile"]), "md")
    widths = {
        len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("|")
    }
    assert len(widths) == 1
    outside = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", text)
    assert "<" not in outside.replace("\\<", "")
    assert "@" not in outside


def test_a_run_is_found_by_name_and_written_to_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    root = tmp_path / "scaletest" / "runs"
    runs.make("pass", root)
    for name in ("LAST", "pass", "ass", str(root / "pass")):
        assert scaletest(["report", name]) == 0
        assert "scaletest report pass -o report.html" in capfd.readouterr().out
    page = tmp_path / "report.html"
    assert scaletest(["report", "LAST", "-t", "html", "-o", str(page)]) == 0
    assert capfd.readouterr().out == ""
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert scaletest(["report", "LAST", "-t", "html", "-o", str(tmp_path / "no" / "where")]) == 2
    assert "cannot be written" in capfd.readouterr().err
    assert scaletest(["report", "other"]) == 2
    assert "there is no run 'other'" in capfd.readouterr().err


def test_a_missing_matplotlib_is_said_in_one_line(
    made: dict[str, Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scaletest.report.png import save

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match="needs matplotlib") as caught:
        save(made["pass"].result, tmp_path / "x.png")
    assert "scaletest[plot]" in caught.value.hint


def test_a_run_without_throughput_has_no_picture(made: dict[str, Run], tmp_path: Path) -> None:
    from scaletest.report.png import save

    with pytest.raises(UsageError, match="no throughput"):
        save(made["nothing"].result, tmp_path / "x.png")


@pytest.mark.parametrize("case", ["pass", "fail", "sampled", "repeats", "mirrored", "peak"])
def test_the_picture_is_drawn(made: dict[str, Run], tmp_path: Path, case: str) -> None:
    if not importlib.util.find_spec("matplotlib"):
        missing("matplotlib")
    from scaletest.report.png import save

    save(made[case].result, tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="cannot be written"):
        save(made[case].result, tmp_path / "no" / "x.png")


FILES = (
    "plan.json",
    "environment.json",
    "steps.jsonl",
    "records.jsonl",
    "samples.jsonl",
    "result.json",
)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "content", [b"{", b"\xff\xfe\n", b"[]\n", b"null\n"], ids=["half", "bytes", "list", "null"]
)
def test_a_broken_file_is_an_error_that_names_the_run(
    tmp_path: Path, name: str, content: bytes
) -> None:
    folder = runs.stored(tmp_path / "run", Plan(limit=1, queue="q"), [runs.rows(1, 0.5, 12)])
    (folder.path / name).write_bytes(content)
    if content == b"{" and name.endswith(
        "jsonl"
    ):  # a line that was being written when the run was killed
        lost = name != "samples.jsonl"  # without the last sample a run is judged all the same
        assert read(folder, tmp_path).result.verdict.kind is (
            VerdictKind.INVALID if lost else VerdictKind.PASS
        )
        return
    if name == "samples.jsonl":
        _expect_missing_samples(folder)
        return
    with pytest.raises(UsageError, match=r"run run (cannot be read|holds bytes)") as caught:
        read(folder, tmp_path)
    assert str(folder.path) in caught.value.hint


def _expect_missing_samples(folder: RunFolder) -> None:
    """The run is judged, and says so."""
    result = read(folder, folder.path.parent).result
    assert result.verdict.kind is VerdictKind.PASS
    (line,) = [
        line for line in result.warnings if line.startswith("samples of the nodes are missing: ")
    ]
    assert "samples.jsonl" in line


def test_samples_that_may_not_be_read_are_missing(tmp_path: Path) -> None:
    folder = runs.stored(tmp_path / "run", Plan(limit=1, queue="q"), [runs.rows(1, 0.5, 12)])
    (folder.path / "samples.jsonl").mkdir()
    _expect_missing_samples(folder)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        "elapsed_s",
        "interrupted",
        "command_line",
        "began",
        "host",
        "processor",
        "cores",
        "devices",
        "packages",
    ]
)


@given(st.dictionaries(KEYS | st.text(max_size=5), json_values, max_size=6))
def test_any_environment_and_result_can_be_shown(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, object]
) -> None:
    path = tmp_path_factory.mktemp("any") / "run"
    folder = runs.stored(path, Plan(limit=1, queue="q"), [runs.rows(1, 0.5, 12)])
    for name in ("environment.json", "result.json"):
        (path / name).write_text(json.dumps(data))
    try:
        run = read(folder, path.parent)
    except ScaletestError:
        return
    for form in formats.names():
        formats.render(validation_report(run), form).encode()


def test_no_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no run"):
        read(RunFolder(tmp_path), tmp_path)


def test_plain_progress_tells_phases_and_every_ten_seconds() -> None:
    now = [0.0]
    out = io.StringIO()
    teller = progress.choose(Console(file=out), plain=False)
    assert type(teller) is progress.PlainProgress
    teller = progress.PlainProgress(Console(file=out), lambda: now[0])
    teller.phase(2, "measuring")
    for now[0] in (1.0, 9.0, 10.5, 11.0):
        teller.tick(2, now[0], 20.0, 7, 1, None)
    teller.step("2 workers: done")
    teller.close()
    assert out.getvalue().splitlines() == [
        "2 workers: measuring",
        "2 workers: measuring, 7 done, 1 failed, 10 s of 20 s at most",
        "2 workers: done",
    ]


def test_a_page_names_the_way_of_every_measuring(made: dict[str, Run]) -> None:
    # given a run that goes up and down once, with a load beside it
    page = Page(formats.render(validation_report(made["mirrored"]), "html")).text
    courses = page.partition("Throughput over time")[2].partition("Wait and run times")[0]
    beside = page.partition("Other queues")[2].partition("How to reproduce")[0]
    # expect a panel and a row of the load for every step and way, with its name, and no number of a
    # repeat
    for way in ("way up", "way down"):
        assert [
            f"{count}, {way}" in courses for count in ("1 worker", "2 workers", "4 workers")
        ] == [True] * 3
        assert len(re.findall(rf"storage\s*[124]\s*{way}", beside)) == 3
    assert "repeat" not in courses + beside
    assert "interval of both ways" in page and "--repeats 3" not in page
    assert "those of the way up" in page


def test_a_page_numbers_repeats_and_the_only_measuring_has_no_number(made: dict[str, Run]) -> None:
    repeats = Page(formats.render(validation_report(made["repeats"]), "html")).text
    assert "2 workers, repeat 3" in repeats and "those of the first repeat" in repeats
    assert "repeat 1" not in Page(formats.render(validation_report(made["pass"]), "html")).text


def test_further_pairs_are_numbered_from_the_second_on() -> None:
    plan = Plan(order="mirrored")
    found = [words.measuring(plan, repeat) for repeat in range(4)]
    assert found == ["way up", "way down", "way up, pair 2", "way down, pair 2"]
