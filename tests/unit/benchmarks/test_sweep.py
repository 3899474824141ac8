"""Sweeps: values, generators, templates, order, names."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.benchmarks.documents import BenchmarkPhase, BenchmarkResult, Node
from scaletest.benchmarks.documents.generators import generate
from scaletest.benchmarks.documents.sweep import merge, plan_of
from scaletest.benchmarks.judging.evaluation import evaluate_benchmarks
from scaletest.benchmarks.plan import BenchmarkPlan
from scaletest.model.errors import InvalidValue

NODES = [Node("b", {"disk": "ssd"}), Node("a", {"disk": "ssd"}), Node("c", {"disk": "hdd"})]
README = {
    "apiVersion": "perftest.stackhpc.com/v1alpha1",
    "kind": "BenchmarkSet",
    "metadata": {"name": "iperf"},
    "spec": {
        "template": {
            "apiVersion": "perftest.stackhpc.com/v1alpha1",
            "kind": "IPerf",
            "spec": {"duration": 30},
        },
        "repetitions": 1,
        "permutations": {
            "product": {"hostNetwork": [True, False], "streams": [1, 2, 4, 8, 16, 32, 64]},
            "explicit": [{"hostNetwork": True, "streams": 128}],
        },
    },
}


def a_set(**spec: Any) -> dict[str, Any]:
    return {
        "kind": "BenchmarkSet",
        "metadata": {"name": "s"},
        "spec": {"template": {"kind": "IPerf"}, **spec},
    }


def counts(planned: BenchmarkPlan, done: dict[str, BenchmarkResult]) -> tuple[int, int]:
    """How many benchmarks succeeded and failed, without warm-ups."""
    run = evaluate_benchmarks(planned, done)
    return len(run.counted) - len(run.failures), len(run.failures)


def plan(**spec: Any) -> BenchmarkPlan:
    return plan_of(a_set(**spec), lambda: NODES)[0]


def test_the_original_set_is_expanded_as_its_readme_says() -> None:
    planned, warnings = plan_of(README, list)
    assert len(planned.permutations) == planned.count == 15
    assert planned.benchmarks[0].name == "iperf-01" and planned.benchmarks[-1].name == "iperf-15"
    last: Any = planned.benchmarks[-1].spec
    assert (last.host_network, last.streams, last.duration) == (True, 128, 30)
    assert any("perftest.stackhpc.com" in line for line in warnings)
    assert BenchmarkPlan.from_dict(planned.to_dict()).to_dict() == planned.to_dict()


def test_repetitions_are_adjacent_or_in_shuffled_blocks() -> None:
    given_order = plan(repetitions=2, permutations={"product": {"streams": [1, 2, 4]}})
    assert [benchmark.permutation for benchmark in given_order.benchmarks] == [0, 0, 1, 1, 2, 2]
    spec = {
        "repetitions": 3,
        "order": "random",
        "seed": 5,
        "permutations": {"product": {"streams": [1, 2, 4, 8]}},
    }
    shuffled = plan(**spec)
    blocks = [
        [benchmark.permutation for benchmark in shuffled.benchmarks[at : at + 4]]
        for at in (0, 4, 8)
    ]
    assert all(sorted(block) == [0, 1, 2, 3] for block in blocks)
    assert len({tuple(block) for block in blocks}) > 1
    assert plan(**spec).benchmarks == shuffled.benchmarks, "the same seed gives the same order"
    assert len({benchmark.name for benchmark in shuffled.benchmarks}) == 12


def test_warm_ups_come_first_and_do_not_count() -> None:
    planned = plan(warmUp=2, permutations={"product": {"streams": [1, 2]}})
    assert [benchmark.warm_up for benchmark in planned.benchmarks] == [True, True, False, False]
    assert planned.count == 2
    done = {
        benchmark.name: BenchmarkResult(benchmark.name, BenchmarkPhase.FAILED)
        for benchmark in planned.benchmarks
        if benchmark.warm_up
    }
    assert counts(planned, done) == (0, 0)


def test_generators_nest() -> None:
    pairs = {"combinations": {"length": 2, "source": {"nodes": {"selector": {"disk": "ssd"}}}}}
    planned = plan(
        matrix={"product": {"nodes": pairs}},
        template={"kind": "IPerf", "spec": {"nodes": "{{ p.nodes | toyaml }}"}},
    )
    assert [benchmark.spec.nodes for benchmark in planned.benchmarks] == [("a", "b")]
    chance = random.Random(1)

    def values(source: Any) -> list[Any]:
        return generate(source, "x", lambda: NODES, chance)

    assert values({"values": [1, 2]}) == [1, 2]
    assert values({"nodes": None}) == ["a", "b", "c"]
    assert values({"permutations": {"length": 2, "source": [1, 2]}}) == [[1, 2], [2, 1]]
    assert values({"permutations": {"length": 2, "withReplacement": True, "source": [1]}}) == [
        [1, 1]
    ]
    assert values({"combinations": {"length": 2, "withReplacement": True, "source": [1, 2]}}) == [
        [1, 1],
        [1, 2],
        [2, 2],
    ]
    sample = values({"sample": {"size": 3, "source": list(range(100))}})
    assert len(sample) == 3 and sample == sorted(sample)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ([], "has no values"),
        ({"nodes": {"selector": {"disk": "tape"}}}, "x has no values"),
        ({"nodes": {"selector": 3}}, "is not a map of labels"),
        ({"combinations": {"length": 3, "source": [1, 2]}}, "has no values"),
        ({"combinations": {"length": 0, "source": [1, 2]}}, "has length 0"),
        ({"sample": {"size": 3, "source": [1, 2]}}, "has size 3"),
        ({"sample": {"source": [1, 2]}}, "has size None"),
        ({"magic": []}, "no generator"),
        ({"sample": {"seed": 1}}, "takes only"),
        ("1,2", "neither a list"),
        ({"permutations": {"length": 9, "source": list(range(40))}}, "more than 100000"),
    ],
)
def test_a_generator_without_usable_values_is_refused_with_the_reason(
    source: Any, problem: str
) -> None:
    with pytest.raises(InvalidValue, match=problem) as error:
        generate(source, "x", lambda: NODES, random.Random(1))
    assert error.value.hint


def test_a_sampled_sweep_stores_its_choice_and_repeats_it() -> None:
    spec = {
        "permutations": {
            "product": {"streams": {"sample": {"size": 3, "source": list(range(1, 100))}}}
        },
        "seed": 7,
    }
    first, again = plan(**spec), plan(**spec)
    assert first.permutations == again.permutations
    assert BenchmarkPlan.from_dict(first.to_dict()).permutations == first.permutations


def test_a_mistake_names_its_permutation() -> None:
    with pytest.raises(InvalidValue, match=r'permutation 2 \{"streams": 0\}'):
        plan(permutations={"product": {"streams": [1, 0]}})
    with pytest.raises(InvalidValue, match="exclude each other"):
        plan(permutations={"product": {"streams": [1]}}, matrix={"product": {"streams": [1]}})
    with pytest.raises(InvalidValue, match="more than"):
        plan(repetitions=1000, permutations={"product": {"streams": list(range(1, 129))}})


@pytest.mark.parametrize("count", [9, 10, 999, 1000])
def test_names_are_padded_to_the_width_of_the_largest(count: int) -> None:
    names = [row.name for row in plan(repetitions=count).benchmarks]
    assert len({len(name) for name in names}) == 1
    assert names[-1].endswith(f"-{count}")


JSON = st.recursive(
    st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abc"), JSON), st.dictionaries(st.sampled_from("abc"), JSON))
def test_merging_the_same_values_twice_changes_a_spec_once(base: Any, change: Any) -> None:
    once = merge(base, change)
    assert merge(once, change) == once
    assert merge(base, {}) == base
