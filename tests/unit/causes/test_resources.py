"""Resources of steps: means of what was sampled, energy by counters, and nothing made of what is
missing.
"""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from scaletest.causes.node_use import MeasuredWindow, resources_by_step, samples_inside, windows_of
from scaletest.causes.resources import StepResources
from scaletest.model import State
from scaletest.model.node_sample import NodeSample
from scaletest.validation.judging.evaluation import Evaluation, evaluate
from scaletest.validation.plan import Plan
from tests.unit.activities import Injected, Phase, run
from tests.unit.node_samples import Resources, cpu, on_one_node, samples_of
from tests.unit.valid import checked

RENDER = "/dev/dri/renderD128"
DEVICE = f"device:{RENDER}"
COMPUTING = Injected(lambda _, n: [Phase(State.ON_CPU, 0.3)])


def evaluated(
    samples: Sequence[NodeSample] | None = None, read: object = None, **options: object
) -> Evaluation:
    """A run of 1, 2 and 4 workers on node-a, with the samples that `read` makes."""
    plan = Plan(limit=4, command=("work",), queue="q")
    measurements, records, _ = run(COMPUTING, plan.steps)
    records = on_one_node(records)
    if samples is None:
        samples = samples_of(records, read or (lambda node, n, at_s: cpu(min(2.0, n))), **options)  # type: ignore[arg-type]
    return evaluate(plan, measurements, records, random.Random(1), samples=samples)


def of(result: Evaluation, workers: int) -> StepResources:
    return next(step for step in result.resources if step.workers == workers)


def test_every_step_has_the_means_of_its_own_time() -> None:
    result = evaluated()
    assert [step.workers for step in result.resources] == [1, 2, 4]
    assert [step.cores_busy for step in result.resources] == pytest.approx([1.0, 2.0, 2.0])
    assert of(result, 1).cores == 2.0
    assert of(result, 2).nodes[0].requests_cpu == pytest.approx(2.0, rel=0.05)
    checked(json.loads(json.dumps(result.to_dict(), allow_nan=False)))


def busy_with(intervals: Callable[[MeasuredWindow], Sequence[tuple[float, float]]]) -> float | None:
    """Busy cores with 2 workers, by samples of 1, 2, ... busy cores with these begins and ends."""
    plan = Plan(limit=4, command=("work",), queue="q")
    measurements, records, _ = run(COMPUTING, plan.steps)
    records = on_one_node(records)
    step = evaluate(plan, measurements, records, random.Random(1)).steps[1]
    window, _ = windows_of(step, records)
    samples = [
        NodeSample("node-a", "worker-0", end_s, end_s - begin_s, cpu(number))
        for number, (begin_s, end_s) in enumerate(intervals(window), 1)
    ]
    used = resources_by_step([step], records, samples)
    return used[0].cores_busy if used else None


def test_a_step_without_a_sample_has_those_of_the_time_in_which_all_its_workers_worked() -> None:
    def early(window: MeasuredWindow) -> list[tuple[float, float]]:
        assert window.at_work_s < window.begin_s
        return [(window.at_work_s, window.at_work_s + 1.0)]

    assert busy_with(early) == pytest.approx(1.0)
    # those of the measured time come first
    inside = busy_with(lambda window: [*early(window), (window.begin_s, window.begin_s + 1.0)])
    assert inside == pytest.approx(2.0)


def test_a_step_of_two_requests_a_worker_has_the_samples_of_the_time_in_which_all_ran_them() -> (
    None
):
    plan = Plan(limit=4, command=("work",), queue="q")
    measurements, records, _ = run(COMPUTING, plan.steps, requests=2)
    records = on_one_node(records)
    step = evaluate(plan, measurements, records, random.Random(1)).steps[1]
    assert {sample.counted_completions.span for sample in step.samples} == {(0.0, 0.0)}
    rows = records[2, 0]
    began_s, ended_s = (
        min(row.reply.started_s for row in rows),
        max(row.reply.ended_s for row in rows),
    )
    middle_s = (began_s + ended_s) / 2
    samples = [
        NodeSample("node-a", "worker-0", middle_s + 0.1, 0.2, cpu(1.5)),
        NodeSample("node-a", "worker-0", ended_s + 0.5, 0.2, cpu(2.0)),
    ]
    (used,) = resources_by_step([step], records, samples)
    assert used.cores_busy == pytest.approx(1.5)


@pytest.mark.parametrize("outside_s", [0.02, 0.4])
def test_a_sample_that_also_tells_of_the_time_before_a_step_says_nothing_of_it(
    outside_s: float,
) -> None:
    def early(window: MeasuredWindow) -> list[tuple[float, float]]:
        return [(window.at_work_s - outside_s, window.at_work_s - outside_s + 1.0)]

    assert busy_with(early) is None


def test_a_sample_may_reach_over_the_moment_between_two_measurements_of_a_step() -> None:
    first, second = (
        MeasuredWindow(begin_s, begin_s + 5.0, {}, (), begin_s) for begin_s in (10.0, 15.05)
    )

    def inside(begin_s: float) -> int:
        sample = NodeSample("node-a", "worker-0", begin_s + 1.0, 1.0, cpu(1.0))
        return len(samples_inside([sample], [first, second]))

    assert inside(14.5) == 1
    # what begins before both, or in the time of other steps
    assert inside(9.95) == inside(19.5) == 0


def test_a_run_without_samples_has_no_resources() -> None:
    result = evaluated(samples=[])
    assert list(result.resources) == [] and result.to_dict()["resources"] == []


def test_nodes_that_served_nothing_are_left_out() -> None:
    result = evaluated(nodes=("node-a", "node-z"))
    assert {node.node for step in result.resources for node in step.nodes} == {"node-a"}


def test_a_figure_is_the_mean_of_the_samples_that_have_it_and_missing_where_none_does() -> None:
    def read(node: str, workers: int, at_s: float) -> Resources:
        return cpu(1.0, **({"steal": 0.5} if int(at_s) % 2 else {}))

    step = of(evaluated(read=read), 4)
    assert step.total("cpu", "steal") == pytest.approx(0.5)
    assert step.total("memory", "total") is None
    assert step.busiest("disk") is None


def test_the_sum_over_nodes_is_unknown_where_one_of_them_does_not_say() -> None:
    plan = Plan(limit=4, command=("work",), queue="q")
    measurements, records, _ = run(COMPUTING, plan.steps)
    samples = samples_of(
        records,
        lambda node, n, at_s: cpu(1.0) if node == "node-a" else {"memory": {"total": 1e9}},
        ("node-a", "node-b"),
    )
    last = evaluate(plan, measurements, records, random.Random(1), samples=samples).resources[-1]
    assert [node.node for node in last.nodes] == ["node-a", "node-b"]
    assert last.cores_busy is None and last.cores is None and last.highest("cpu", "cores") == 2.0


def test_the_busiest_disk_is_named_with_its_node() -> None:
    def read(node: str, workers: int, at_s: float) -> Resources:
        return {
            "disk:sda": {"busy": 0.2},
            "disk:nvme0n1": {"busy": 0.9 if workers else 0.0},
            "disk:sdb": {"read": 1.0},
        }

    disk = of(evaluated(read=read), 2).busiest("disk")
    assert disk is not None and (disk.node, disk.name) == ("node-a", "nvme0n1")
    assert disk.figures["busy"] == pytest.approx(0.9)


class Counter:
    """A device that uses 30 W before the run and 90 W while it lasts; its counter may begin anew in
    a step.
    """

    def __init__(self, reset_with: int = 0, names: Sequence[str] = (DEVICE,)) -> None:
        self.joules, self.reset_with, self.names, self.second = 1000.0, reset_with, names, 0

    def __call__(self, node: str, workers: int, at_s: float) -> Resources:
        self.joules += 90.0 if workers else 30.0
        self.second += bool(workers) and workers == self.reset_with
        if self.second == 5:
            self.joules, self.reset_with, self.second = 5.0, 0, 0
        return {name: {"energy_j": self.joules} for name in self.names}


def computed_on_a_device(pci: str, figures: dict[str, float]) -> StepResources:
    """Four workers, each of whose requests keeps an engine busy for a tenth of a second in 0.3
    s.
    """
    plan = Plan(limit=4, command=("work",), queue="q")
    measurements, records, _ = run(COMPUTING, plan.steps)
    for key, rows in on_one_node(records).items():
        for number, row in enumerate(rows):
            activity = row.reply.activity
            assert activity is not None
            busy = replace(
                activity, engines={"0000:03:00.0 video": 0.1, "0000:03:00.0 render": 0.01}
            )
            reply = replace(row.reply, activity=busy, device=RENDER, device_info={"pci": pci})
            rows[number] = replace(row, reply=reply)
        records[key] = rows
    samples = samples_of(
        records, lambda node, n, at_s: {**cpu(1.0), **({DEVICE: figures} if figures else {})}
    )
    return of(evaluate(plan, measurements, records, random.Random(1), samples=samples), 2)


def test_a_device_that_no_sample_calls_busy_is_as_busy_as_the_requests_keep_its_engines() -> None:
    figures = computed_on_a_device("0000:03:00.0", {"frequency": 0.5}).nodes[0].resources[DEVICE]
    assert figures["busy"] == figures["busy.video"] == pytest.approx(2 * 0.1 / 0.3, rel=0.1)
    assert figures["busy.render"] == pytest.approx(2 * 0.01 / 0.3, rel=0.1)
    assert figures["frequency"] == 0.5


def test_figures_of_a_device_in_samples_win_over_those_in_replies() -> None:
    figures = computed_on_a_device("0000:03:00.0", {"busy": 0.9}).nodes[0].resources[DEVICE]
    assert figures == {"busy": pytest.approx(0.9)}


def test_engines_of_a_device_that_requests_do_not_name_stand_under_its_address() -> None:
    node = computed_on_a_device("", {}).nodes[0]
    assert node.resources["device:0000:03:00.0"]["busy"] == pytest.approx(2 * 0.1 / 0.3, rel=0.1)


def test_energy_is_the_difference_of_the_counter_for_each_request() -> None:
    both = (DEVICE, "device:/dev/dri/renderD129")
    result = evaluated(read=Counter(names=both))
    step = of(result, 2)
    energy = step.nodes[0].energy[RENDER]
    rate = next(step.throughput.per_s for step in result.steps if step.workers == 2)
    assert energy.joules / energy.seconds == pytest.approx(90.0)
    assert energy.per_request_j == pytest.approx(90.0 / rate, rel=0.05)
    assert step.joules_per_request == pytest.approx(2 * energy.per_request_j)
    checked(json.loads(json.dumps(result.to_dict(), allow_nan=False)))


def test_a_counter_that_began_anew_gives_no_number() -> None:
    result = evaluated(read=Counter(reset_with=2))
    assert of(result, 2).nodes[0].energy == {} and of(result, 2).joules_per_request is None
    later = of(result, 4).nodes[0].energy[RENDER]
    assert later.joules / later.seconds == pytest.approx(90.0)


def test_joules_are_unknown_where_one_of_the_devices_that_requests_ran_on_has_no_counter() -> None:
    step = of(evaluated(read=Counter()), 4)
    assert step.nodes[0].devices == {RENDER, "/dev/dri/renderD129"}
    assert step.joules_per_request is None and RENDER in step.nodes[0].energy
    assert of(evaluated(read=Counter()), 1).joules_per_request is not None
