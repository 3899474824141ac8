"""A saturation run in every form, made of a simulated service: as agreed, and safe with foreign
text; and the queries that the guide asks of its files.
"""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import pytest
from msgspec import structs

from hack.guides import ROOT, read_blocks
from scaletest.cli import main
from scaletest.model import VerdictKind
from scaletest.model.attempt import Attempt, PodTroubles
from scaletest.model.errors import UsageError
from scaletest.report import formats
from scaletest.report.formats import png
from scaletest.runs import registry
from scaletest.runs.environment import read_environment
from scaletest.saturation.folder import SaturationFolder
from scaletest.saturation.judging.evaluation import evaluate
from scaletest.saturation.plan import SaturationPlan, SaturationStep
from scaletest.saturation.report.charts import draw_charts, step_state
from scaletest.saturation.report.report import saturation_report
from scaletest.saturation.run_type import SaturationRun
from scaletest.stats.estimate import Estimate
from tests.conftest import missing
from tests.unit.golden_files import golden
from tests.unit.simulated import Simulated, run, stored

DOCS = Path(__file__).parents[3] / "docs"
HOSTILE = "<script>\x1b[31m|=cmd`\n"
SHORT = SaturationPlan("http://h/", step_s=2.0, warm_s=0.5)


def example_run(
    target: str = "http://127.0.0.1:8080/score", load: str = "open", interrupted: str = ""
) -> SaturationRun:
    """8 slots of 10 ms that refuse when more than 64 wait."""
    plan = SaturationPlan(target, load=load, step_s=2.0, warm_s=0.5)
    steps, samples = stored(plan, Simulated(room=64), 1)
    result = evaluate(plan, steps, samples, interrupted=interrupted, elapsed_s=31.0)
    environment = {
        "host": "bench",
        "cores": 4,
        "command_line": ["scaletest", "saturate", target],
    }
    return SaturationRun(
        "made",
        "/runs/made",
        result,
        environment,
        samples,
        {"lines": ["deployment model: 2 replicas"]},
    )


def test_a_step_that_cannot_be_stored_says_where_the_others_are(tmp_path: Path) -> None:
    steps, samples = stored(SHORT, Simulated(), 1)
    folder = SaturationFolder(tmp_path / "gone")
    with pytest.raises(UsageError, match="cannot be written") as caught:
        folder.store(steps[0], samples[0])
    assert "the steps measured so far are kept" in caught.value.hint
    # and a run of which nothing is known goes, one with a step stays
    for name, count in (("empty", 0), ("begun", 1)):
        folder = SaturationFolder.create(tmp_path / name)
        folder.begin(SHORT, {})
        for step in steps[:count]:
            folder.store(step, samples[step.number])
        folder.forget_empty()
        assert folder.path.exists() is bool(count)


def test_a_run_that_is_measured_is_shown_as_running(tmp_path: Path) -> None:
    steps, samples = stored(SHORT, Simulated(), 1)
    folder = SaturationFolder.create(tmp_path / "half")
    folder.begin(SHORT, {})
    for step in steps[:2]:
        folder.store(step, samples[step.number])
    with folder.locked():
        report = registry.report(folder)
    assert report.head.verdict.kind is VerdictKind.RUNNING
    for form in formats.texts():
        assert "INVALID" not in formats.render(report, form), form
    assert registry.judge_run(folder).verdict.kind is VerdictKind.INVALID


@pytest.mark.parametrize("form", sorted(set(formats.texts()) - {"json"}))
@pytest.mark.parametrize("load", ["open", "closed"])
def test_every_format_matches_its_golden_file(load: str, form: str) -> None:
    golden(
        f"saturation-{load}.{form}", formats.render(saturation_report(example_run(load=load)), form)
    )


@pytest.mark.parametrize("form", formats.texts())
def test_foreign_text_is_harmless(form: str) -> None:
    text = formats.render(
        saturation_report(example_run(f"http://h/{HOSTILE}", interrupted=HOSTILE)), form
    )
    assert "\x1b" not in text
    if form in ("html", "junit"):
        assert "<script>" not in text
    if form == "junit":
        ElementTree.fromstring(text)
    if form == "md":
        # in a code span it is text
        assert all("`" in line for line in text.splitlines() if "<script>" in line)


def test_json_holds_everything() -> None:
    row = json.loads(formats.render(saturation_report(example_run()), "json"))
    assert row["verdict"]["kind"] == "PASS" and row["saturation_per_s"]["value"] == pytest.approx(
        800, rel=0.05
    )
    assert len(row["steps"]) == len(example_run().result.steps)
    assert row["pods"][0]["queueing_share"] == pytest.approx(0.0, abs=0.01)


def test_columns_of_csv_are_documented() -> None:
    page = (DOCS / "reference" / "reports.md").read_text()
    for name in (
        "level",
        "goodput_per_s",
        "backlog_growth_per_s",
        "queueing_share",
        "tester_bottleneck",
    ):
        assert f"`{name}`" in page


def test_pods_in_trouble_are_in_every_form_and_harmless() -> None:
    # given a level that the requests alone would have held, at which pods failed
    saturation = example_run()
    enough = next(step for step in saturation.result.steps if not step.saturated and step.growth)
    event = f"Unhealthy: Readiness probe failed: statuscode: 502 {HOSTILE} (3x)"
    troubles = PodTroubles(("model-a", "model-b"), 1, (event,))
    steps = [
        replace(step.step, pods=troubles if step is enough else PodTroubles())
        for step in saturation.result.steps
    ]
    stored_steps = [SaturationStep.from_json(step.to_json()) for step in steps]
    assert stored_steps == steps
    plan, samples = saturation.result.plan, dict(saturation.samples)
    (judged,) = (
        step
        for step in evaluate(plan, stored_steps, samples).steps
        if step.step.number == enough.step.number
    )
    assert judged.saturated == "2 pods did not stay ready, 1 restart"
    assert judged.to_dict()["pods"]["unready"] == ["model-a", "model-b"]
    result = replace(saturation.result, steps=(judged,))
    report = saturation_report(replace(saturation, result=result))
    for form in ("text", "html", "md", "csv"):
        content = formats.render(report, form)
        assert "2 pods did not stay ready, 1 restart" in content, form
        assert "<script>\x1b" not in content and "\x1b[31m" not in content, form
        assert form == "csv" or "Readiness probe failed: statuscode: 502" in content, form


def test_a_run_without_steps_can_be_shown() -> None:
    plan = SaturationPlan("http://h/")
    result = evaluate(plan, [], {}, interrupted="Ctrl-C")
    assert result.verdict.kind is VerdictKind.INVALID
    for form in formats.texts():
        report = saturation_report(SaturationRun("made", "/runs/made", result))
        assert formats.render(report, form), form


def test_a_run_with_a_failed_probe_reports_it() -> None:
    plan = SaturationPlan("http://h/")
    step = SaturationStep(0, "warm", "closed", 1.0, 1.0, 1)
    result = evaluate(plan, [step], {0: [Attempt(0, 0.0, 0.0, 0.0, 0.1, "503")]})
    assert result.verdict.reason == "no request of the probe succeeded"


def test_a_stored_run_is_judged_as_it_was_decided() -> None:
    live = run(SHORT, Simulated(room=64), 1)
    steps, samples = stored(SHORT, Simulated(room=64), 1)
    again = evaluate(SHORT, steps, samples)
    assert (again.point, again.verdict) == (live.point, live.verdict)


def test_a_run_measured_by_other_rules_is_invalid_with_the_step_named() -> None:
    # given a stored run one step of which another version measured elsewhere
    steps, samples = stored(SHORT, Simulated(room=64), 1)
    assert evaluate(SHORT, steps, samples).verdict.kind is VerdictKind.PASS
    steps[4] = replace(steps[4], level=1.1 * steps[4].level)
    result = evaluate(SHORT, steps, samples)
    # expect every step shown, and nothing concluded from them
    assert len(result.steps) == len(steps) and result.point is None and result.operating is None
    assert (
        result.verdict.kind is VerdictKind.INVALID
        and "would not have measured step 4" in result.verdict.reason
    )


def test_sizes_from_an_invalid_run_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # given a run that met no limit
    plan = SaturationPlan("http://h/", step_s=4.0, warm_s=0.5, start=20.0, maximum=40.0)
    steps, samples = stored(plan, Simulated(), 1)
    folder = SaturationFolder.create(tmp_path / "run")
    folder.begin(plan, read_environment(["scaletest", "saturate"]))
    for step in steps:
        folder.store(step, samples[step.number])
    folder.write("result.json", {})
    assert main.run(["size", "--run", str(folder.path), "--replicas", "1", "--format", "json"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any("that run is INVALID" in line and "no limit was reached" in line for line in notes)


@pytest.mark.parametrize(("grown", "expected"), [(0.0, "held"), (1.0, "held"), (7.0, "undecided")])
def test_a_level_that_completed_much_less_than_was_offered_has_not_held(
    grown: float, expected: str
) -> None:
    # given 56 requests/s offered, and a backlog whose growth may be chance
    held = next(step for step in example_run().result.steps if step_state(step) == "held")
    growth = Estimate(grown, grown - 10.0, grown + 10.0)
    assert step_state(replace(held, offered=56.0, growth=growth)) == expected


def test_the_picture_of_a_saturation_has_both_charts() -> None:
    if not importlib.util.find_spec("matplotlib"):
        missing("matplotlib")
    example = example_run()
    assert formats.content(saturation_report(example), "png").startswith(b"\x89PNG")
    latency, goodput, *_ = png.draw_figure(
        draw_charts(example.result, "the point").charts, "title"
    ).axes
    assert (latency.get_yscale(), goodput.get_yscale()) == ("log", "linear")
    assert latency.get_yticklabels()[0].get_text() == "10 ms"


def test_duckdb_answers_the_queries_of_the_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a run of eleven agents whose service refuses on overload
    folder = SaturationFolder.create(tmp_path / "run")
    folder.begin(SHORT, {})
    steps, samples = stored(SHORT, Simulated(slots=2, room=8), 1)
    for step in steps:
        of_agents = [
            structs.replace(sample, agent=str(sample.request % 11))
            for sample in samples[step.number]
        ]
        folder.store(step, of_agents)
    # when the queries of the guide are asked in its folder
    monkeypatch.chdir(folder.path)
    guide = read_blocks(ROOT / "docs/reference/reports.md")
    view, queries = (block.text for block in guide if block.language == "sql")
    with duckdb.connect() as database:
        database.execute(view)
        found = [database.sql(query) for query in queries.split(";") if query.strip()]
        total, errors, seconds, clients, messages = [answer.fetchall() for answer in found]
    rows = [sample for each in samples.values() for sample in each]
    assert total == [(len(rows),)]
    assert sum(row[-1] for row in errors) == sum(not row.ok for row in rows)
    assert sum(row[1] for row in seconds) == sum(row.ok for row in rows)
    assert len(clients) == len(messages) == 11
