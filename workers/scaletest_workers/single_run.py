"""Run a workload once, without Redis."""

import os
import resource
import sys
from dataclasses import dataclass, replace

from scaletest.processes.wake import Wake
from scaletest_workers.runtime import Runtime
from scaletest_workers.settings import Settings
from scaletest_workers.workloads.base import Result


@dataclass(frozen=True, slots=True)
class SingleRun:
    """A run without Redis."""

    result: Result
    run_s: float
    own_memory: int  # the most bytes that this process had before it

    def to_dict(self) -> dict[str, object]:
        """Return plain values, named as in a reply."""
        result = self.result
        return {
            "outcome": result.outcome.value,
            "reason": result.reason.value,
            "exit_code": result.exit_code,
            "error": result.error,
            "run_s": self.run_s,
            "timeout_s": result.timeout_s,
            "device": result.device,
            "device_info": result.device_info,
            "figures": result.figures,
            "activity": result.activity.to_dict() if result.activity else None,
        }


def run_once(settings: Settings, arguments: tuple[str, ...] = ()) -> SingleRun:
    """Run the workload once as a worker does, with its standard output on standard error.

    arguments: those of the request.
    """
    if settings.command[:1] == ("bench",):
        # the document of a benchmark is never the worker's own
        arguments = (*settings.command[1:], *arguments)
        settings = replace(settings, command=("bench",))
    own_memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    runtime = Runtime(settings, Wake())
    sys.stdout.flush()
    original = os.dup(1)
    os.dup2(2, 1)
    try:
        runtime.prepare()
        result, run_s = runtime.run(arguments, 0.0)
    finally:
        sys.stdout.flush()
        os.dup2(original, 1)
        os.close(original)
        runtime.close()
    return SingleRun(result, run_s, own_memory)
