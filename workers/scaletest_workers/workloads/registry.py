"""All workloads by name: those built in, and those of the entry points `scaletest.workloads`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from scaletest import plugins
from scaletest.model.checks import cut_text
from scaletest.model.errors import UsageError, suggestion
from scaletest.model.workload import REFERENCE

if TYPE_CHECKING:  # they take a while to import, and names need none of them
    from scaletest_workers.workloads.base import ServedWorkload, WorkloadSetup

GROUP = "scaletest.workloads"
SLEEP = "sleep"
# The function or class that makes each, as MODULE:NAME; it is imported when a worker runs it.
BUILT_IN: Mapping[str, str] = {
    "bench": "scaletest_workers.workloads.bench:BenchWorkload",
    "fakedev": "scaletest_workers.workloads.fakedev:FakeDevice",
    SLEEP: "scaletest_workers.workloads.sleep:Sleep",
    "torch": "scaletest_workers.workloads.torch:TorchWorkload",
    "transcode": "scaletest_workers.workloads.transcode.workload:TranscodeWorkload",
}
_PYTHON = "scaletest_workers.workloads.python:PythonWorkload"
_COMMAND = "scaletest_workers.workloads.command:Command"


def make(setup: WorkloadSetup) -> ServedWorkload:
    """Make the workload that a worker's command names; UsageError when that fails.

    It is built in, MODULE:NAME of Python, or a program.
    """
    target = BUILT_IN.get(setup.command[0]) or (_PYTHON if is_python(setup.command) else _COMMAND)
    module, _, function = target.partition(":")
    workload: ServedWorkload = getattr(import_module(module), function)(setup)
    return workload


def is_python(command: tuple[str, ...]) -> bool:
    """Return whether the first word names a class or function of Python."""
    return REFERENCE.fullmatch("".join(command[:1])) is not None


def resolve_name(name: str) -> str:
    """Return the first word of a worker's command for a workload's name.

    UsageError for an unknown name.
    """
    if name in BUILT_IN or REFERENCE.fullmatch(name):
        return name
    by_name = plugins.Plugins(GROUP, BUILT_IN).by_name
    if name not in by_name:
        raise UsageError(
            f"there is no workload {cut_text(repr(name), 60)}",
            hint=f"{suggestion(name, [*BUILT_IN, *by_name])}; or name a class or function of Python"
            " as PACKAGE.MODULE:NAME",
        )
    plugin = by_name[name]
    if not REFERENCE.fullmatch(plugin.target):
        raise plugin.unusable("it is not MODULE:NAME")
    return plugin.target
