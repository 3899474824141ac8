"""The plan of a lifecycle run, written once at its start and read by all later commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import Any

from scaletest.model import checks, wire
from scaletest.model.checks import cut
from scaletest.model.errors import InvalidValue

KIND = "lifecycle"
TOOLS = ("api", "kubectl", "runai")
UNTIL = ("created", "scheduled", "ready_to_start", "started", "ready", "finished")
RUN_LABEL = "scaletest/run"
_NAMES = 1 << 24
# A duration as `sleep` takes it.
_SLEEP = re.compile(r"infinity|[0-9]{1,9}(\.[0-9]{1,9})?[smhd]?")
# Odd, so that multiplying by it visits every number below 2**24 once before it repeats.
_STEP = 0x9E3779 | 1


@dataclass(frozen=True, slots=True)
class LifecyclePlan:
    """Which objects to submit, or which to observe.

    run: six hex digits, from which names follow; kind: the name of a template;
    namespace: where the objects are; count: number of objects.
    project: of Run:ai; processes: submissions in flight, and the size of a burst.
    interval_s: open load: seconds from one burst to the next, even when the first is not done.
    delay_s: closed load: a pause after each burst.
    workers: pods of a distributed object; gpus: devices of a pod; resource: the devices' name as a
    Kubernetes resource; image: of the pods; seconds: how long pods run, as `sleep` takes it;
    pvc: whether each object has a claim for a volume.
    storage_class: of that claim; claim_template: a ResourceClaimTemplate for each pod's devices,
    instead of a resource. until: the milestone that ends an object; tool: what submits;
    tool_path: where the tool is; event_times: whether Events are watched too.
    template: its text; template_file: where it was read; api_version, object_kind: of the object.
    selector: of observed pods, empty when objects are submitted.
    """

    run: str
    kind: str
    namespace: str
    count: int
    project: str = ""
    processes: int = 8
    delay_s: float = 0.0
    interval_s: float = 0.0
    workers: int = 1
    gpus: str = "1"
    resource: str = "nvidia.com/gpu"
    image: str = "busybox"
    seconds: str = "60"
    pvc: bool = False
    storage_class: str = ""
    claim_template: str = ""
    until: str = "finished"
    tool: str = "api"
    tool_path: str = ""
    event_times: bool = False
    template: str = ""
    template_file: str = ""
    api_version: str = ""
    object_kind: str = ""
    selector: str = ""

    def __post_init__(self) -> None:
        if not self.selector:
            checks.count(self.count, "the number of workloads", minimum=1, maximum=1_000_000)
        checks.count(self.processes, "the number of processes", minimum=1, maximum=1000)
        checks.count(self.workers, "the number of workers", minimum=1, maximum=100_000)
        checks.seconds(self.delay_s, "delay")
        checks.seconds(self.interval_s, "interval")
        if self.delay_s and self.interval_s:
            raise InvalidValue("--delay and --interval exclude each other", hint="give one of them")
        if not _SLEEP.fullmatch(self.seconds):
            raise InvalidValue(
                f"pods cannot run for {cut(self.seconds, 40)} seconds",
                hint="give a number, as in 2.5, or infinity",
            )
        checks.one_of(self.until, UNTIL, "milestone")
        checks.one_of(self.tool, TOOLS, "tool")

    @property
    def label(self) -> str:
        """The label selector of everything that belongs to the run."""
        return self.selector or f"{RUN_LABEL}={self.run}"

    @property
    def steps(self) -> tuple[int, ...]:
        """An empty tuple, because a lifecycle run has no steps."""
        return ()

    @property
    def workload(self) -> str:
        """Description of the run, in one line."""
        if self.selector:
            return f"lifecycle of {self.selector} in namespace {self.namespace}, observed"
        return (
            f"lifecycle of {self.count} {self.object_kind or self.kind}s in namespace"
            f" {self.namespace}"
        )

    def names(self) -> Iterator[str]:
        """Names of all objects in the order of submission: j- and six hex digits, all different.

        They follow from the run's id, so that an interrupted run knows what it may have sent.
        """
        start = int(self.run, 16)
        for index in range(self.count):
            yield f"j-{(start + index * _STEP) % _NAMES:06x}"

    def values(self) -> dict[str, str]:
        """Values of the template's placeholders."""
        return {
            "image": self.image,
            "seconds": self.seconds,
            "resource": self.resource,
            "gpus": self.gpus,
            "workers": str(self.workers),
            "project": self.project,
            "namespace": self.namespace,
            "run": self.run,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"schema_version": wire.SCHEMA_VERSION, "kind_of_run": KIND, **asdict(self)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LifecyclePlan:
        """Read what `to_dict` wrote; raises InvalidValue."""
        types: dict[str, type | tuple[type, ...]] = {
            "str": str,
            "int": int,
            "float": (int, float),
            "bool": bool,
        }
        known = {plan_field.name: types[str(plan_field.type)] for plan_field in fields(cls)}
        try:
            return cls(**wire.take(data, "the plan", known))
        except TypeError as error:
            raise InvalidValue(f"the plan lacks a field: {error}") from error
