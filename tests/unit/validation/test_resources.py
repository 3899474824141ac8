"""Resources in reports: only what is known, sums where nodes are many, lines of cores and devices,
foreign names.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from scaletest.model import Record, State
from scaletest.report import formats
from scaletest.validation.judging.evaluation import Evaluation, evaluate
from scaletest.validation.plan import Plan
from scaletest.validation.report import resources as usage
from scaletest.validation.report.report import validation_report
from scaletest.validation.report.time_chart import draw_time_by_state
from scaletest.validation.run_type import ValidationRun
from tests.unit import made_runs as runs
from tests.unit.activities import Injected, Phase, run
from tests.unit.node_samples import Resources, cpu, samples_of
from tests.unit.report_page import Page

COMPUTING = Injected(lambda _, n: [Phase(State.ON_CPU, 0.3)])


def evaluated(
    resources: Resources,
    nodes: Sequence[str] = ("node-a",),
    plan: Plan | None = None,
    devices: int = 2,
) -> Evaluation:
    """The result of `spread_run`."""
    return spread_run(resources, nodes, plan, devices).result


def spread_run(
    resources: Resources,
    nodes: Sequence[str] = ("node-a",),
    plan: Plan | None = None,
    devices: int = 2,
) -> ValidationRun:
    """A run whose workers are spread over the nodes, all of which do the same, and over some
    devices.
    """
    plan = plan or Plan(limit=4, command=("work",), queue="q")
    measurements, records, _ = run(COMPUTING, plan.steps)
    records = {key: [_spread(row, nodes, devices) for row in rows] for key, rows in records.items()}
    samples = samples_of(records, lambda node, workers, at_s: resources, nodes)
    result = evaluate(plan, measurements, records, random.Random(1), samples=samples)
    return ValidationRun("run", "/runs/run", result, {}, records)


def _spread(row: Record, nodes: Sequence[str], devices: int) -> Record:
    number = int(row.reply.worker.rpartition("-")[2])
    device = f"/dev/dri/renderD{128 + number % devices}" if devices else ""
    return replace(row, reply=replace(row.reply, node=nodes[number % len(nodes)], device=device))


def test_columns_without_any_value_are_left_out() -> None:
    table = usage.resources_table(evaluated(cpu(1.0)))
    titles, rows = table.titles, table.rows
    assert titles == ["workers", "cores busy", "requests' own"]
    assert [row[:2] for row in rows] == [("1", "1.0 of 2"), ("2", "1.0 of 2"), ("4", "1.0 of 2")]
    assert not usage.resources_table(evaluated({})).titles


def test_the_line_has_a_figure_of_each_step() -> None:
    result = evaluated({**cpu(1.0), "pressure": {"cpu_some": 0.5}})
    assert usage.resources_line(result) == "cores busy 1.0, 1.0, 1.0 of 2; pressure 50%, 50%, 50%"
    gap = replace(result, resources=[step for step in result.resources if step.workers != 2])
    assert usage.resources_line(gap) == "cores busy 1.0, n/a, 1.0 of 2; pressure 50%, n/a, 50%"
    assert usage.resources_line(replace(result, resources=())) == ""


def test_every_node_has_a_row_and_its_name() -> None:
    table = usage.resources_table(evaluated(cpu(1.0), ("node-a", "node-b")))
    titles, rows = table.titles, table.rows
    assert titles[:2] == ["workers", "node"]
    assert [" ".join(row[:2]) for row in rows] == [
        "1 node-a",
        "2 node-a",
        "2 node-b",
        "4 node-a",
        "4 node-b",
    ]


def test_a_limit_a_throttled_device_and_the_busiest_disk_and_network_are_shown() -> None:
    resources = {
        "container": {"cpu_limit": 0.2, "throttled_periods": 0.95},
        "device:/dev/dri/renderD128": {"busy": 0.9, "throttled": 1.0},
        "disk:sda": {"busy": 0.1},
        "disk:sdb": {"busy": 0.8},
        "network:eth0": {"received": 1e6, "sent": 1e6},
        "network:eth1": {"received": 1e3},
        "pressure": {"cpu_some": 0.0, "io_some": 0.4, "memory_some": 0.0},
    }
    table = usage.resources_table(evaluated(resources))
    titles, rows = table.titles, table.rows
    row = dict(zip(titles, rows[-1], strict=True))
    assert row["CPU limit"] == "0.2, throttled 95%" and row["device"] == "renderD128 90% throttled"
    assert (
        row["disk"] == "sdb 80%"
        and row["network"] == "eth0 2.00 MB/s"
        and row["pressure"] == "CPU 0%, I/O 40%"
    )


def test_a_run_of_one_step_shows_where_its_requests_spend_the_time_and_names_no_cause() -> None:
    result = evaluated(cpu(1.0), plan=Plan(limit=1, command=("work",), queue="q"))
    assert result.causes is not None and result.causes.sentence == "" and result.causes.causes == ()
    assert draw_time_by_state(result) is not None
    page = formats.render(validation_report(ValidationRun("a7c3", "/runs/a7c3", result)), "html")
    assert (
        "One step does not tell what grows with the workers." in page and "From 1 to 1" not in page
    )
    assert "What limits it" not in formats.render(
        validation_report(ValidationRun("a7c3", "/runs/a7c3", result)), "md"
    )


def _hostile(row: Record) -> Record:
    node = "node-b" if row.reply.worker.endswith("1") else runs.HOSTILE
    return replace(row, reply=replace(row.reply, node=node, device=runs.HOSTILE))


@pytest.mark.parametrize("form", formats.texts())
def test_no_format_acts_on_the_names_of_nodes_disks_and_devices(tmp_path: Path, form: str) -> None:
    example = runs.make("limited", tmp_path)
    records = {key: [_hostile(row) for row in rows] for key, rows in example.records.items()}
    resources = {
        f"disk:{runs.HOSTILE}": {"busy": 1.0},
        f"device:{runs.HOSTILE}": {"busy": 1.0, "throttled": 1.0},
    }
    both = (runs.HOSTILE, "node-b")
    measurements = [sample.measurement for step in example.result.steps for sample in step.samples]
    samples = samples_of(records, lambda node, workers, at_s: {**cpu(2.0), **resources}, both)
    result = evaluate(example.result.plan, measurements, records, random.Random(1), samples=samples)
    text = formats.render(validation_report(replace(example, result=result, records=records)), form)
    assert not {"\x1b", "\u202e"} & set(text)
    assert form != "html" or not {"script", "img"} & {tag for tag, _ in Page(text).tags}
