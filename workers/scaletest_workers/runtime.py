"""A worker's workload, and how a request becomes a reply, without Redis."""

from __future__ import annotations

import math
import os
import resource
import socket
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaletest.model import Outcome, Reason, checks, wire
from scaletest.model.errors import NoDevice
from scaletest.model.record import effective_limit
from scaletest.processes.wake import Wake
from scaletest_workers.devices import DeviceChooser, NoneFree
from scaletest_workers.settings import Settings
from scaletest_workers.workloads import registry
from scaletest_workers.workloads.base import (
    SUCCEEDED,
    PreparedWorkload,
    Result,
    WorkloadSetup,
    failed_result,
)

if TYPE_CHECKING:  # a single run needs no Redis
    from scaletest.broker.fast_lane import TakenRequest


class Runtime:
    """The workload of one worker, and the names of its node and pod."""

    def __init__(self, settings: Settings, interrupt: Wake) -> None:
        """Make the workload. interrupt: ends a run from outside."""
        self.settings = settings
        self.node = os.environ.get(settings.node_env, "") or socket.gethostname()
        self.pod = os.environ.get(settings.pod_env, "") or socket.gethostname()
        self.devices = DeviceChooser(settings.devices)
        sampler = None
        if not settings.no_causes:
            # it takes a while to import, and --help needs none of it
            from scaletest.observe.sampler import RequestSampler

            sampler = RequestSampler()
        self._takes_arguments = not settings.ignore_arguments
        self._workload = registry.make(
            WorkloadSetup(
                command=settings.command or (registry.SLEEP,),
                interrupt=interrupt,
                devices=self.devices,
                program=settings.program,
                sampler=sampler,
                allow_commands=settings.allow_commands,
                node=self.node,
            )
        )

    def prepare(self) -> None:
        """Get ready before the first request, where the workload can.

        Raises UsageError when it cannot work, and Interrupted.
        """
        # other workloads must not fail here for lack of a device, but request by request
        if isinstance(self._workload, PreparedWorkload):
            self._workload.prepare(self.devices.choose() if self.devices.wanted else None)

    def run(self, arguments: tuple[str, ...], limit_s: float) -> tuple[Result, float]:
        """Run one request; return its result and the monotonic seconds it took.

        Raises Interrupted, and NoneFree when this worker's slot was lost and no other is free:
        nothing ran then.
        """
        began = time.monotonic()
        limit = effective_limit(self.settings.time_limit_s, limit_s)
        try:
            chosen = self.devices.choose() if self.devices.wanted else None
            result = self._workload.run(arguments if self._takes_arguments else (), limit, chosen)
            if chosen is not None:
                # a failure whose device has disappeared has that reason
                path = chosen.device.path
                if result.outcome is Outcome.FAILED and not Path(path).exists():
                    result = replace(
                        result,
                        reason=Reason.NO_DEVICE,
                        error=f"the device {path} went away during the run: {result.error}",
                    )
                result = replace(result, device=path, device_info=chosen.info())
        except NoneFree:
            raise
        except NoDevice as error:
            result = failed_result(error, Reason.NO_DEVICE)
        except (ValueError, OSError) as error:
            # A workload that breaks is a failed request with its text, never a dead worker.
            result = Result(Outcome.FAILED, Reason.EXIT, error=f"{type(error).__name__}: {error}")
        return result, time.monotonic() - began

    def close(self) -> None:
        """End the processes of the workload."""
        self._workload.close()

    def reply_json(
        self, taken: TakenRequest, worker: str, result: Result, run_s: float
    ) -> tuple[str, float]:
        """Return the reply as JSON without its end time, which Redis stamps, and the wait in s."""
        wait_s = 0.0  # unknown for what RQ's client enqueued
        if taken.enqueued_us:
            wait_s = max(0, taken.started_us - taken.enqueued_us) / 1e6
        row: dict[str, Any] = {
            "id": taken.id,
            "outcome": result.outcome.value,
            "exit_code": result.exit_code,
            "wait_s": wait_s,
            "run_s": run_s,
            "attempts": taken.attempt or 1,  # a stock worker counts none
            "worker": worker,
            "node": self.node,
            "pod": self.pod,
            "enqueued_s": taken.enqueued_us / 1e6,
            "started_s": taken.started_us / 1e6,
        }
        if result is not SUCCEEDED:  # most runs need none of this
            row["reason"] = result.reason.value
            row["error"] = checks.cut_text(result.error)
            row["timeout_s"] = result.timeout_s
            row["device"] = result.device
            row["device_info"] = result.device_info
            # a figure that a tool printed as nan or inf is unknown
            row["figures"] = {
                name: figure
                for name, figure in result.figures.items()
                if not isinstance(figure, float) or math.isfinite(figure)
            }
            if result.value is not None:
                row["value"] = result.value
            if result.activity is not None:
                row["activity"] = result.activity.to_dict()
        return wire.dump(row), wait_s


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
            "value": result.value,
            "activity": result.activity.to_dict() if result.activity else None,
        }


def run_once(settings: Settings, arguments: tuple[str, ...] = ()) -> SingleRun:
    """Run the workload once as a worker does, with its standard output on standard error.

    arguments: those of the request.
    """
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
