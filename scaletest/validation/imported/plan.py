"""The plan of a validation whose numbers come from load tools."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from msgspec import Meta

from scaletest.model.declared import VERSIONED, choice
from scaletest.model.document import Document, check_fields
from scaletest.model.threshold import VALIDATION_MEASURES, Threshold, parse_threshold

KIND = "import"
MEASURES = {name: VALIDATION_MEASURES[name] for name in ("ratio", "efficiency", "throughput")}
REQUESTS, TOKENS = "requests", "tokens"
UNITS = {REQUESTS: "requests/s", TOKENS: "output tokens/s"}
# Of two replicas. More devices inside one replica, as by tensor parallelism, need not double.
USUAL_SCALE = 1.8
PARALLEL_AXES = ("tensor-parallel", "pipeline-parallel", "tp", "pp")


@dataclass(frozen=True, slots=True)
class ImportedPlan(Document):
    """What is judged, and what is wanted of it."""

    document_name = "the plan"
    constants: ClassVar = {**VERSIONED, "kind": KIND}
    intervals: ClassVar = "from run to run"  # what their scatter is
    latency_names: ClassVar = "Latencies are called as the tool calls them."

    steps: Annotated[tuple[int, ...], "numbers of replicas, ascending"]
    axis: Annotated[str, Meta(max_length=40), "what was doubled"] = "replicas"
    measure: Annotated[str, choice(UNITS), "whose ratio is judged"] = REQUESTS
    scale: Annotated[
        float,
        Meta(ge=0, lt=2, extra={"hint": "give the ratio wanted, below 2.00, which is perfect"}),
        "the ratio wanted for each doubling; 0: none, nothing is judged",
    ] = USUAL_SCALE
    price: Annotated[float, Meta(ge=0, le=1e9), "of one for an hour; 0: unknown"] = 0.0
    tolerate_failures: Annotated[float, Meta(ge=0, lt=1), "share of the requests that may fail"] = (
        0.01
    )
    thresholds: Annotated[tuple[str, ...], "further conditions of a PASS"] = ()
    source: Annotated[str, "the tool, and the model that it loaded"] = ""

    def __post_init__(self) -> None:
        check_fields(self)
        for threshold in self.thresholds:
            read_threshold(threshold)

    @property
    def workload(self) -> str:
        """What was measured, in one line."""
        numbers = ", ".join(map(str, self.steps))
        return f"{self.source} with {numbers} {self.axis}"


def read_threshold(text: str) -> Threshold:
    """Read a threshold on what files of load tools have; InvalidValue on any other."""
    return parse_threshold(text, MEASURES, "'efficiency(8)>=0.8' or 'ratio>=1.9'")
