"""The plan of a lifecycle run: which objects to submit, and how fast."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from scaletest.model.declared import VERSIONED, Count, Seconds, choice
from scaletest.model.document import Document, check_fields

KIND = "lifecycle"
TOOLS = ("api", "kubectl", "runai")
UNTIL = ("created", "scheduled", "ready_to_start", "started", "ready", "finished")
RUN_LABEL = "scaletest/run"


@dataclass(frozen=True, slots=True)
class LifecyclePlan(Document):
    """Which objects to submit."""

    document_name = "the plan"
    constants: ClassVar = {**VERSIONED, "kind": KIND}
    steps: ClassVar[tuple[int, ...]] = ()  # a lifecycle has none

    run: Annotated[str, "six hex digits, from which names follow"]
    workload_type: Annotated[str, "the name of a template"]
    namespace: Annotated[str, "where the objects are"]
    count: Annotated[
        int, Meta(ge=1, le=1_000_000, title="the number of workloads"), "number of objects."
    ]
    project: Annotated[str, "of Run:ai"] = ""
    processes: Annotated[
        int,
        Meta(ge=1, le=1000, title="the number of processes"),
        "submissions in flight, and the size of a burst.",
    ] = 8
    delay_s: Annotated[Seconds, Meta(title="delay"), "a pause after each burst."] = 0.0
    workers: Annotated[
        int, Meta(ge=1, le=100000, title="the number of workers"), "pods of a distributed object"
    ] = 1
    gpus: Annotated[str, "devices of a pod"] = "1"
    resource: Annotated[str, "the devices' name as a Kubernetes resource"] = "nvidia.com/gpu"
    image: Annotated[str, "of the pods"] = "busybox"
    seconds: Annotated[str, "how long pods run, as `sleep` takes it"] = "60"
    pvc: Annotated[bool, "whether each object has a claim for a volume."] = False
    until: Annotated[str, choice(UNTIL, "milestone"), "the milestone that ends an object"] = (
        "finished"
    )
    tool: Annotated[str, choice(TOOLS, "tool"), "what submits"] = "api"
    context: Annotated[str, "of the kubeconfig; the current one without it."] = ""
    event_times: Annotated[bool, "whether Events are watched too."] = False
    template: Annotated[str, "its text"] = ""
    template_file: Annotated[str, "where it was read"] = ""
    api_version: Annotated[str, "of the object."] = ""
    object_kind: Annotated[str, "of the object."] = ""
    thresholds: Annotated[tuple[str, ...], "further conditions of a PASS, e.g. ready.p99<30s."] = ()
    tolerate_failures: Annotated[
        Count, Meta(title="tolerated failures"), "how many workloads may fail or be rejected."
    ] = 0

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def label(self) -> str:
        """The label selector of everything that belongs to the run."""
        return f"{RUN_LABEL}={self.run}"

    @property
    def workload(self) -> str:
        """Description of the run, in one line."""
        return (
            f"lifecycle of {self.count} {self.object_kind or self.workload_type}s in namespace"
            f" {self.namespace}"
        )

    def names(self) -> Iterator[str]:
        """Yield the names of all objects in the order of submission, all different.

        They are j- and six hex digits, and follow from the run's id, so that an interrupted run
        knows what it may have sent.
        """
        start = int(self.run, 16)
        for index in range(self.count):
            # the step is odd, so each number of six hex digits comes once before one comes again
            yield f"j-{(start + index * 0x9E3779) % (1 << 24):06x}"
