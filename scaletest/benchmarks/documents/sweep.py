"""Expand a set into its benchmarks: generated values, merge or templates, repetitions, order.

Maps merge; lists and other values replace; null unsets. kube-perftest appends lists, so those of
its documents are joined before.
"""

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from scaletest.benchmarks.documents import Benchmark, read_benchmark
from scaletest.benchmarks.documents.benchmark import is_set, read_envelope, read_name
from scaletest.benchmarks.documents.benchmark_set import DISJOINT, RANDOM, SetSpec
from scaletest.benchmarks.documents.generators import Nodes, generate
from scaletest.benchmarks.kinds import API_VERSION
from scaletest.benchmarks.plan import BenchmarkPlan
from scaletest.documents.templates import fill_templates
from scaletest.model import checks, errors, file_documents, texts

MOST_BENCHMARKS = 100_000


def plan_of(
    document: Any, nodes: Nodes, rng: random.Random | None = None
) -> tuple[BenchmarkPlan, list[str]]:
    """Build the plan of a set or of a single benchmark; return it with its warnings.

    rng: for tests; by default a generator from the set's seed. Raises InvalidValue, which names
    the permutation at fault.
    """
    if not is_set(document):
        single = read_benchmark(document)
        plan = BenchmarkPlan(
            single.name, (single,), ({},), dict(document), paused=single.spec.paused
        )
        return plan, list(single.warnings)
    warnings = list[str]()
    body = read_envelope(document, warnings)
    spec = file_documents.read_file_document(
        SetSpec, body["spec"], "the spec of BenchmarkSet", warnings
    )
    name = read_name(body, "benchmark-set")
    rng = rng or random.Random(spec.seed)
    permutations = _list_permutations(spec, nodes, rng)
    members = [
        _make_member(spec, name, number, values) for number, values in enumerate(permutations)
    ]
    for member in members:
        warnings += [line for line in member.warnings if line not in warnings]
    plan = BenchmarkPlan(
        name=name,
        benchmarks=tuple(_order_benchmarks(spec, name, members, rng)),
        permutations=tuple(permutations),
        document=dict(document),
        repetitions=spec.repetitions,
        stop_on_failure=spec.on_failure == "stop",
        disjoint=spec.parallelism == DISJOINT,
        paused=spec.paused or any(member.spec.paused for member in members),
        thresholds=spec.thresholds,
    )
    plan.parse_thresholds()  # refuse them now, not after everything has been measured
    return plan, warnings


def _list_permutations(spec: SetSpec, nodes: Nodes, rng: random.Random) -> list[Mapping[str, Any]]:
    """List the values of all permutations: those of the product, then the explicit ones."""
    values = spec.matrix if spec.has_matrix else spec.permutations
    lists = {
        key: generate(source, f"{key} of product", nodes, rng)
        for key, source in values.product.items()
    }
    # before the product is made, which may be too large for the memory
    size = math.prod(map(len, lists.values())) if lists or not values.explicit else 0
    size = (size + len(values.explicit)) * spec.repetitions
    checks.raise_first_mistake(
        (
            size > MOST_BENCHMARKS,
            f"the set has {size} benchmarks, more than {MOST_BENCHMARKS}",
            "measure less, or take a sample",
        )
    )
    permutations: list[Mapping[str, Any]] = []
    # without a product only what is explicit; without both the template alone is measured
    if lists or not values.explicit:
        for combination in itertools.product(*lists.values()):
            permutations.append(dict(zip(lists, combination, strict=True)))
    return [*permutations, *values.explicit]


def _make_member(spec: SetSpec, name: str, number: int, values: Mapping[str, Any]) -> Benchmark:
    """Return the benchmark of a permutation. InvalidValue names the permutation."""
    document: dict[str, Any] = {
        "apiVersion": spec.template.get("apiVersion", API_VERSION),
        "kind": spec.template.get("kind"),
        "metadata": {"name": name},
    }
    body = spec.template.get("spec") or {}
    try:
        if spec.has_matrix:
            document["spec"] = fill_templates(body, {"p": dict(values)})
        else:
            document["spec"] = merge(body, values)
        return replace(read_benchmark(document), permutation=number)
    except errors.InvalidValue as error:
        raise errors.InvalidValue(
            f"permutation {number + 1} {texts.as_yaml(dict(values))}: {error.message}",
            hint=error.hint,
        ) from error


def merge(base: Any, change: Any) -> Any:
    """Merge a change into the base: maps merge, None unsets, anything else replaces."""
    if not (isinstance(base, Mapping) and isinstance(change, Mapping)):
        return change
    union = dict(base)
    for key, replacement in change.items():
        if replacement is None:
            union.pop(key, None)
        else:
            union[key] = merge(union.get(key), replacement)
    return union


def _order_benchmarks(
    spec: SetSpec, name: str, members: list[Benchmark], rng: random.Random
) -> Iterator[Benchmark]:
    """Yield warm-ups, then all repetitions of the members, in order and with their own names."""
    for index in range(spec.warm_up):
        yield replace(members[0], name=f"{name}-warm-up-{index + 1}", repetition=-1)
    count = len(members) * spec.repetitions
    order: Iterable[tuple[Benchmark, int]] = itertools.product(members, range(spec.repetitions))
    if spec.order == RANDOM:
        # shuffled in blocks of one repetition each, so that a drift affects all permutations alike
        order = (
            (member, repetition)
            for repetition in range(spec.repetitions)
            for member in rng.sample(members, len(members))
        )
    for member, repetition in order:
        number = member.permutation * spec.repetitions + repetition + 1
        padded = str(number).zfill(len(str(count)))
        yield replace(member, name=f"{name}-{padded}", repetition=repetition)
