"""The run types. A new one is a package with a module `run_type`, and one line here."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, cast

from scaletest.model.checks import cut
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.runs.folder import ENVIRONMENT, PLAN, RESULT, AnyPlan, RunFolder
from scaletest.runs.run_type import RunType

RUNS = "runs"


@dataclass(frozen=True, slots=True)
class Registered:
    """Where a run type is defined; it is imported when a run of it is met.

    plan: the file that tells its folders from others. place: the folder beside `runs` in which they
    lie.
    """

    module: str
    plan: str = PLAN
    place: str = RUNS


TYPES: dict[str, Registered] = {
    "validation": Registered("scaletest.validation.run_type"),
    "saturation": Registered("scaletest.saturation.run_type"),
    "benchmark": Registered("scaletest.benchmarks.run_type"),
    "lifecycle": Registered("scaletest.lifecycle.run_type", "lifecycle.json", "lifecycles"),
}


def run_type(name: str) -> RunType:
    """The run type of that name; InvalidValue when there is none."""
    if name not in TYPES:
        raise InvalidValue(
            f"there is no run type {cut(repr(name), 40)}", hint=f"there are {', '.join(TYPES)}"
        )
    return cast(RunType, import_module(TYPES[name].module).RUN_TYPE)


def type_of(folder: RunFolder) -> RunType:
    """The run type of a stored run; InvalidValue when it is unknown."""
    return run_type(folder.kind)


def summary(folder: RunFolder) -> tuple[AnyPlan, dict[str, Any], dict[str, Any]]:
    """Plan, environment and result, without the records; UsageError when this is no run."""
    if not folder.exists:
        raise UsageError(f"{folder.path} holds no run", hint="see: scaletest runs list")
    with folder.trouble("read"):
        plan = type_of(folder).plan(folder.read(folder.layout.plan))
        return plan, folder.read(ENVIRONMENT), folder.read(RESULT)
