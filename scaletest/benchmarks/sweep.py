"""From a set to its benchmarks: values, merge or templates, repetitions, order. Pure; chance and nodes are parameters.

Merging: maps merge, lists and other values replace, null unsets. kube-perftest appended lists, so that nothing in
one could be taken back.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import yaml
from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from scaletest.benchmarks.generators import Nodes, generate
from scaletest.kinds import benchmark, fields
from scaletest.kinds.benchmark import Benchmark
from scaletest.kinds.benchmark_set import DISJOINT, MOST, RANDOM, SetSpec, Values
from scaletest.kinds.crd import MOST_NAME
from scaletest.kinds.plan import BenchmarkPlan
from scaletest.kinds.registry import API_VERSION
from scaletest.model.errors import InvalidValue

MOST_TEXT = 100_000


def plan_of(document: Any, nodes: Nodes, chance: random.Random | None = None) -> tuple[BenchmarkPlan, list[str]]:
    """The plan of a set or of a single benchmark, and warnings. InvalidValue says what is wrong in which permutation.

    chance: for tests; else it is made from the set's seed.
    """
    if not benchmark.is_set(document):
        one = benchmark.read(document)
        plan = BenchmarkPlan(one.name, (one,), ({},), dict(document), paused=one.spec.paused)
        return plan, list(one.warnings)
    body, warnings = benchmark.envelope(document), list[str]()
    spec = fields.read(SetSpec, body.get("spec") or {}, "the spec of BenchmarkSet", warnings)
    name = benchmark.name_of(body, "benchmark-set")
    found = chance or random.Random(spec.seed)
    permutations = _permutations(spec, nodes, found)
    count = len(permutations) * spec.repetitions
    if count > MOST:
        raise InvalidValue(f"the set has {count} benchmarks, more than {MOST}", hint="measure less, or take a sample")
    made = [_made(spec, name, number, values) for number, values in enumerate(permutations)]
    for one in made:
        warnings += [line for line in one.warnings if line not in warnings]
    warnings += _twice(permutations)
    plan = BenchmarkPlan(
        name=name,
        benchmarks=tuple(_ordered(spec, name, made, found)),
        permutations=tuple(permutations),
        document=dict(document),
        repetitions=spec.repetitions,
        stop_on_failure=spec.on_failure == "stop",
        disjoint=spec.parallelism == DISJOINT,
        paused=spec.paused or any(one.spec.paused for one in made),
        thresholds=spec.thresholds,
    )
    plan.check_thresholds()  # now, not when all has been measured
    return plan, warnings


def merged(base: Any, change: Any) -> Any:
    """The change laid over the base."""
    if not (isinstance(base, Mapping) and isinstance(change, Mapping)):
        return change
    found = dict(base)
    for key, value in change.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), value)
    return found


def padded(number: int, count: int) -> str:
    """A number from 1 on, as wide as the largest one is."""
    return str(number).zfill(len(str(count)))


def _permutations(spec: SetSpec, nodes: Nodes, chance: random.Random) -> list[Mapping[str, Any]]:
    values = spec.matrix if SetSpec.varied(spec.matrix) else spec.permutations
    lists = {key: generate(source, f"{key} of product", nodes, chance) for key, source in values.product.items()}
    if math.prod(map(len, lists.values())) > MOST:
        raise InvalidValue(f"the product has more than {MOST} permutations", hint="measure less, or take a sample")
    product = [dict(zip(lists, row, strict=True)) for row in itertools.product(*lists.values())] if lists else []
    found: list[Mapping[str, Any]] = [*product, *values.explicit]
    return found or _nothing_varies(values)


def _twice(permutations: list[Mapping[str, Any]]) -> list[str]:
    """A warning for the first that is there again."""
    seen: dict[str, int] = {}
    for number, values in enumerate(permutations):
        first = seen.setdefault(repr(sorted(values.items())), number)
        if first != number:
            return [f"permutation {number + 1} is the same as {first + 1}; repetitions measure one several times"]
    return []


def _nothing_varies(values: Values) -> list[Mapping[str, Any]]:
    """One benchmark, the template itself."""
    assert not values.product and not values.explicit
    return [{}]


def _made(spec: SetSpec, name: str, number: int, values: Mapping[str, Any]) -> Benchmark:
    template = {"apiVersion": API_VERSION, **spec.template}
    body = template.get("spec") or {}
    try:
        filled = rendered(body, values) if SetSpec.varied(spec.matrix) else merged(body, values)
        document = {"apiVersion": template["apiVersion"], "kind": template.get("kind"), "spec": filled}
        return replace(benchmark.read({**document, "metadata": {"name": name}}), permutation=number)
    except InvalidValue as error:
        raise InvalidValue(
            f"permutation {number + 1} {fields.as_yaml(dict(values))}: {error.message}", hint=error.hint
        ) from error


def stem(name: str, longest: str) -> str:
    """The name of a set as its benchmarks begin with it: cut where the longest end would not fit.

    What was cut off is told by a checksum, so that two sets never give the same names.
    """
    if len(name) + len(longest) <= MOST_NAME:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name[: MOST_NAME - len(longest) - len(mark) - 1].rstrip('-.')}-{mark}"


def _ordered(spec: SetSpec, name: str, made: list[Benchmark], chance: random.Random) -> list[Benchmark]:
    total, times = len(made) * spec.repetitions, range(spec.repetitions)
    name = stem(name, max(f"-{total}", f"-warm-up-{spec.warm_up}" if spec.warm_up else "", key=len))

    def copy(one: Benchmark, repetition: int) -> Benchmark:
        number = one.permutation * spec.repetitions + repetition + 1
        return replace(one, name=f"{name}-{padded(number, total)}", repetition=repetition)

    warm = [replace(made[0], name=f"{name}-warm-up-{n + 1}", repetition=-1) for n in range(spec.warm_up)]
    if spec.order != RANDOM:
        return [*warm, *(copy(one, repetition) for one in made for repetition in times)]
    # blocks: whatever drifts with time falls on all permutations alike
    blocks = [chance.sample(made, len(made)) for _ in times]
    return [*warm, *(copy(one, repetition) for repetition, block in enumerate(blocks) for one in block)]


# -- templates ------------------------------------------------------------------------------------------------------

_ENGINE = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
_ENGINE.filters["toyaml"] = lambda value: yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip()
_ENGINE.globals.clear()


def rendered(value: Any, values: Mapping[str, Any]) -> Any:
    """Strings with {{ }} filled in from `p`, the permutation's values; one that is nothing else is read as YAML."""
    if isinstance(value, Mapping):
        return {key: rendered(one, values) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [rendered(one, values) for one in value]
    if not isinstance(value, str) or "{{" not in value:
        return value
    try:
        text = _ENGINE.from_string(value).render(p=dict(values))
        if len(text) > MOST_TEXT:
            raise InvalidValue(f"the template {value[:60]!r} makes more than {MOST_TEXT} characters", hint="shorten it")
        whole = value.strip().startswith("{{") and value.strip().endswith("}}") and value.count("{{") == 1
        return yaml.safe_load(text) if whole else text
    except (TemplateError, yaml.YAMLError, TypeError, ValueError, ArithmeticError, MemoryError) as error:
        raise InvalidValue(
            f"the template {value[:60]!r} cannot be filled in: {error}", hint="use values as p.NAME"
        ) from error
