"""What people see of a validation is compared with files; look at them when they change
(REGENERATE=1 writes them anew). The page needs no other host and acts on no foreign text, and what
is broken or missing in a run is told.
"""

import importlib.util
import io
import json
import math
import random
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from scaletest.causes.interference import Interference
from scaletest.model import Activity, State, VerdictKind, Wait
from scaletest.model.errors import ScaletestError, UsageError
from scaletest.render.blocks import Table
from scaletest.render.text_table import align_table
from scaletest.report import formats
from scaletest.report.formats import png
from scaletest.report.formats import text as text_format
from scaletest.validation.folder import ValidationFolder
from scaletest.validation.judging.cost import cost_of_requests
from scaletest.validation.judging.evaluation import evaluate
from scaletest.validation.judging.schedule import pass_name
from scaletest.validation.judging.throughput import Throughput
from scaletest.validation.measure.tally import StepTally, progress_line
from scaletest.validation.plan import Plan
from scaletest.validation.report.law import law_sentence
from scaletest.validation.report.report import validation_report
from scaletest.validation.report.rows import COLUMNS
from scaletest.validation.report.words import speedup_bars
from scaletest.validation.run_type import RUN_TYPE, ValidationRun
from tests.conftest import missing
from tests.unit import made_runs as runs
from tests.unit.golden_files import golden
from tests.unit.made import measured
from tests.unit.report_page import Page

FILES = (
    "plan.json",
    "environment.json",
    "steps.jsonl",
    "records.jsonl",
    "samples.jsonl",
    "result.json",
)
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

DOCS = Path(__file__).parents[3] / "docs"


def test_no_law_is_told_where_a_step_that_may_refute_it_has_no_throughput() -> None:
    # given steps that scale, and a last one in which hardly anything was done
    cycles, count = {1: 1.0, 2: 1.0, 4: 1.0, 8: 1.0}, {1: 60, 2: 60, 4: 60, 8: 1}
    measurements, records = measured(cycles, count=count)
    result = evaluate(Plan(limit=8, queue="q"), measurements, records, random.Random(1))
    assert law_sentence(result) == "unknown: too few requests with 8 workers"
    assert result.growth.choice is None


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((0.0134, 0.0249), "1.94% [1.34, 2.49] of the work"),
        ((0.0, 12.04), "an unknown share of the work"),
        ((0.004, 1.5), "an unknown share of the work"),
        ((0.012, 12.04), "1% or more of the work"),
        ((0.0, 1.0), "2% [0, 100] of the work"),
    ],
)
def test_contention_is_never_shown_above_100_percent(
    example_runs: dict[str, ValidationRun], ends: tuple[float, float], text: str
) -> None:
    growth = example_runs["peak"].result.growth
    assert (
        growth.choice is not None
        and growth.interval is not None
        and growth.interval.contention is not None
    )
    contention = replace(growth.interval.contention, low=ends[0], high=ends[1])
    growth = replace(growth, interval=replace(growth.interval, contention=contention))
    assert text in law_sentence(replace(example_runs["peak"].result, growth=growth))


def on_terminal(run: ValidationRun, width: int) -> str:
    out = io.StringIO()
    text_format.print_report(
        validation_report(run), Console(file=out, width=width, color_system=None)
    )
    return out.getvalue()


@pytest.mark.parametrize("case", runs.CASES)
def test_the_summary_matches_its_golden_file(
    example_runs: dict[str, ValidationRun], case: str
) -> None:
    text = on_terminal(example_runs[case], 80)
    golden(f"summary-{case}.txt", text)
    assert len(text.splitlines()) < 25
    assert all(character.isprintable() or character == "\n" for character in text)
    verdict = example_runs[case].result.verdict.kind.value
    assert verdict in " ".join(text.splitlines()[-6:-2])
    following = "validate --local --resume" if example_runs[case].result.interrupted else "report"
    assert f"next: scaletest {following}" in text.splitlines()[-1]


@pytest.mark.parametrize(
    "form", ["html", "md", "csv", "junit"]
)  # text: above; json: the result itself, below
@pytest.mark.parametrize(
    "case", ["pass", "fail", "limited", "sampled", "mirrored", "sharing", "hostile"]
)
def test_every_format_matches_its_golden_file(
    example_runs: dict[str, ValidationRun], case: str, form: str
) -> None:
    golden(f"report-{case}.{form}", formats.render(validation_report(example_runs[case]), form))


@pytest.mark.parametrize("form", formats.texts())
@pytest.mark.parametrize("case", runs.CASES)
def test_every_format_shows_every_case_in_valid_text(
    example_runs: dict[str, ValidationRun], case: str, form: str
) -> None:
    text = formats.render(validation_report(example_runs[case]), form)
    assert text.endswith("\n")
    assert text.encode().decode() == text
    if form not in ("csv", "junit"):
        assert example_runs[case].result.verdict.kind.value in text


def test_the_table_fits_into_80_columns_whatever_is_in_it() -> None:
    columns = {"N": "1024", "requests/s": "123456 ± 1234", "ratio": "1.234 ± 0.123"}
    columns |= dict.fromkeys(("speed-up", "effic.", "wait p95", "run p95", "failed"), "12.3 ms")
    table = Table(list(columns), [list(columns.values())], spare=("speed-up",))
    assert len(list(align_table(table, 80))) == 2
    assert max(map(len, align_table(table, 80))) <= 80


def test_causes_fit_on_one_screen_with_eight_steps_and_every_warning(tmp_path: Path) -> None:
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
    lines = on_terminal(runs.slower_at_last(tmp_path, plan, activity, plan.steps), 80).splitlines()
    assert len(lines) < 25
    rows = [line for line in lines if re.match(r"  +\d+% \[", line)]
    assert rows and all(len(line) <= 80 for line in rows)


@pytest.mark.parametrize("form", formats.texts())
def test_no_format_acts_on_the_object_of_a_cause(tmp_path: Path, form: str) -> None:
    activity = Activity(
        {State.DISK: 0.3, State.ON_CPU: 0.1}, (Wait(State.DISK, runs.HOSTILE, 0.3),), cpu_s=0.1
    )
    plan = Plan(limit=4, command=("x",), queue="q", tolerate_failures=99)
    text = formats.render(validation_report(runs.slower_at_last(tmp_path, plan, activity)), form)
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


def test_columns_of_csv_are_documented() -> None:
    page = (DOCS / "reference" / "reports.md").read_text("utf-8")
    assert {name for name in COLUMNS if f"| `{name}` |" not in page} == set()


def test_json_is_the_result(example_runs: dict[str, ValidationRun]) -> None:
    data = json.loads(formats.render(validation_report(example_runs["fail"]), "json"))
    assert data.pop("folder") == "/runs/a7c3"
    assert data == example_runs["fail"].result.to_dict()


def test_hostile_text_in_markdown_mentions_no_user_and_breaks_no_table(
    example_runs: dict[str, ValidationRun],
) -> None:
    text = formats.render(validation_report(example_runs["hostile"]), "md")
    widths = {
        len(re.findall(r"(?<!\\)\|", line)) for line in text.splitlines() if line.startswith("|")
    }
    assert len(widths) == 1
    outside = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", text)
    assert "<" not in outside.replace("\\<", "")
    assert "@" not in outside


def test_a_missing_matplotlib_is_reported_in_one_line(
    example_runs: dict[str, ValidationRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match="needs matplotlib") as caught:
        png.render(validation_report(example_runs["pass"]))
    assert "scaletest[plot]" in caught.value.hint


def test_a_run_without_throughput_has_no_picture(example_runs: dict[str, ValidationRun]) -> None:
    with pytest.raises(UsageError, match="nothing to draw") as caught:
        png.render(validation_report(example_runs["nothing"]))
    # whether it was interrupted or not
    assert caught.value.hint == "the other formats have its tables"


@pytest.mark.parametrize("case", ["pass", "fail", "sampled", "repeats", "mirrored", "peak"])
def test_the_picture_is_drawn(
    example_runs: dict[str, ValidationRun], tmp_path: Path, case: str
) -> None:
    if not importlib.util.find_spec("matplotlib"):
        missing("matplotlib")
    content = formats.content(validation_report(example_runs[case]), "png")
    assert content.startswith(b"\x89PNG")


def test_the_picture_names_the_cause_and_what_it_costs(
    example_runs: dict[str, ValidationRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    titles: list[str] = []
    monkeypatch.setattr(png, "draw_picture", lambda _, title: titles.append(title))
    png.render(validation_report(example_runs["sampled"]))
    assert titles[0].splitlines()[1:] == [
        "4 workers wait 0.3 s of each request for a CPU.",
        "Without it about 4.0x [3.9, 4.1] instead of 2.0x.",
    ]


def test_a_step_that_was_not_measured_has_no_bar(example_runs: dict[str, ValidationRun]) -> None:
    result = example_runs["pass"].result
    *others, last = result.steps
    unmeasured = replace(last, throughput=Throughput(0.0, math.inf, 0, 0, False))
    bars = speedup_bars(replace(result, steps=[*others, unmeasured]))
    assert len(bars) == len(result.steps) - 1 and "8 workers" not in "".join(bars)


def test_a_line_of_progress_counts_requests_and_tells_the_rate_without_an_exponent() -> None:
    tally = StepTally()
    tally.completions, tally.failures = 740_000, 1
    told = progress_line(2, tally, 10.5, 20.0, Throughput(12_345.6, 10.0, 740_000, 740_000, True))
    assert told == (
        "2 workers: measuring, 740000 done, 12350/s ± 0.1%, 1 failed, 10 s of 20 s at most"
    )


def test_a_page_says_why_no_cause_is_named(tmp_path: Path) -> None:
    plan = Plan(limit=4, command=("x",), queue="q", tolerate_failures=99)
    page = Page(
        formats.render(
            validation_report(
                runs.slower_at_last(tmp_path, plan, Activity({State.ON_CPU: 0.2}, cpu_s=0.2))
            ),
            "html",
        )
    )
    # with the time of the failed requests, which bring nothing: nine eighths of 0.2 s
    assert "The cause is unknown: 99% of the added 0.22 s was not observed." in page.text


def test_reports_say_what_was_not_observed(example_runs: dict[str, ValidationRun]) -> None:
    run = example_runs["limited"]
    assert run.result.causes is not None
    causes = replace(run.result.causes, observed=0.94)
    report = validation_report(replace(run, result=replace(run.result, causes=causes)))
    assert causes.sentence.endswith("; 6% not observed")
    assert re.search(r"^  6% +not observed$", formats.render(report, "text"), re.MULTILINE)
    assert re.search(r"\| not observed \| 6% \|", formats.render(report, "md"))
    assert re.search(r"not observed\s*6%", Page(formats.render(report, "html")).text)


def test_a_price_tells_what_requests_cost_and_what_is_lost(
    example_runs: dict[str, ValidationRun],
) -> None:
    run = example_runs["limited"]
    steps = run.result.steps
    # at 3.6 an hour, 1,000 requests cost as many units as one takes seconds of a worker
    cost = cost_of_requests(replace(run.result.plan, price=3.6), steps)
    assert cost is not None and cost.workers == 4
    cycles_s = [step.workers / step.throughput.per_s for step in steps]
    assert cost.per_thousand.value == pytest.approx(cycles_s[-1])
    assert cost.lost.value == pytest.approx(cycles_s[-1] - cycles_s[0])
    assert 0 < cost.lost.low < cost.lost.value < cost.lost.high
    priced = replace(run.result, plan=replace(run.result.plan, price=3.6), cost=cost)
    report = validation_report(replace(run, result=priced))
    for name in ("text", "md", "html"):
        line = "1,000 requests cost 1.20 with 4 workers at 3.6/h each, 0.897 of that is lost"
        assert line in formats.render(report, name)


def test_nothing_limits_a_run_that_the_machine_spoilt(
    example_runs: dict[str, ValidationRun],
) -> None:
    run = example_runs["limited"]
    neighbour = Interference("other programs", "node-a", 0.0, 9.0, 0.5, "others used 1 core")
    verdict = replace(run.result.verdict, kind=VerdictKind.INVALID, reason="unsteady")
    result = replace(run.result, disturbed=(neighbour,), verdict=verdict)
    report = validation_report(replace(run, result=result))
    for name in ("text", "md"):
        assert "what limits it" not in formats.render(report, name).lower()
    assert "what to try" not in formats.render(report, "html").lower()


@pytest.mark.parametrize("case", runs.CASES)
def test_the_page_loads_no_other_resource_and_runs_no_foreign_text(
    example_runs: dict[str, ValidationRun], case: str
) -> None:
    page = Page(formats.render(validation_report(example_runs[case]), "html"))
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
        "image",
        "use",
    }
    ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
    for tag, attributes in page.tags:
        if tag == "a":
            # links lead to headings of the page itself
            assert attributes.keys() == {"href"}
            address = attributes.pop("href") or ""
            assert address.startswith("#") and address[1:] in ids
        assert not any(
            name.startswith("on") or name in ("src", "href", "xlink:href") for name in attributes
        ), tag
    styles = [attributes["style"] or "" for _, attributes in page.tags if "style" in attributes]
    # pages whose policy forbids styles in attributes show the same blocks
    assert not styles
    policy = next(
        a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None and "default-src 'none'" in policy and "script" not in policy


@pytest.mark.parametrize("case", runs.CASES)
def test_the_page_holds_no_url(example_runs: dict[str, ValidationRun], case: str) -> None:
    text = formats.render(validation_report(example_runs[case]), "html")
    if case == "hostile":  # there it is foreign text that was asked for, and only shown
        text = text.replace("http://evil.example/x", "")
    assert not re.search(
        r"(?i)(?<![\w-])(https?|ftp|data|file|javascript):|url\((?!#)|@import|//[a-z]", text
    )


def test_hostile_text_is_escaped_on_the_page(example_runs: dict[str, ValidationRun]) -> None:
    text = formats.render(validation_report(example_runs["hostile"]), "html")
    assert "<script" not in text and "<img" not in text
    assert text.count("</style>") == 1
    assert "49" not in Page(text).text.rpartition("How to reproduce")[2].partition("Environment")[0]
    assert "</style><script>alert(1)</script>" in Page(text).text
    assert "\x1b" not in text and "\u202e" not in text


def test_ids_on_a_page_are_unique(example_runs: dict[str, ValidationRun]) -> None:
    for run in example_runs.values():
        ids = [
            a["id"]
            for _, a in Page(formats.render(validation_report(run), "html")).tags
            if "id" in a
        ]
        assert len(ids) == len(set(ids))


def test_every_chart_has_a_title_and_description_for_screen_readers(
    example_runs: dict[str, ValidationRun],
) -> None:
    page = Page(formats.render(validation_report(example_runs["pass"]), "html"))
    pictures = [attributes for tag, attributes in page.tags if tag == "svg"]
    # bars of cells are decoration: their text stands beside them
    charts = [attributes for attributes in pictures if "aria-hidden" not in attributes]
    ids = {attributes.get("id") for _, attributes in page.tags}
    assert len(charts) > 8
    for chart in charts:
        assert chart["role"] == "img"
        assert set((chart["aria-labelledby"] or "").split()) <= ids


def test_further_pairs_are_numbered_from_the_second_on() -> None:
    names = [pass_name(repeat) for repeat in range(4)]
    assert names == ["ascending pass", "descending pass", "ascending pass 2", "descending pass 2"]


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
        assert RUN_TYPE.judge(folder).result.verdict.kind is (
            VerdictKind.INVALID if lost else VerdictKind.PASS
        )
        return
    with pytest.raises(UsageError, match=r"run run (cannot be read|holds bytes)") as caught:
        RUN_TYPE.judge(folder)
    assert str(folder.path) in caught.value.hint


@given(st.dictionaries(KEYS | st.text(max_size=5), json_values, max_size=6))
def test_any_environment_and_result_can_be_shown(
    tmp_path_factory: pytest.TempPathFactory, data: dict[str, object]
) -> None:
    path = tmp_path_factory.mktemp("any") / "run"
    folder = runs.stored(path, Plan(limit=1, queue="q"), [runs.rows(1, 0.5, 12)])
    for name in ("environment.json", "result.json"):
        (path / name).write_text(json.dumps(data))
    try:
        run = RUN_TYPE.judge(folder)
    except ScaletestError:
        return
    for form in formats.texts():
        formats.render(validation_report(run), form).encode()


def test_a_folder_without_a_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no run"):
        RUN_TYPE.judge(ValidationFolder(tmp_path))
