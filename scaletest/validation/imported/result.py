"""What a load tool found at one number of replicas, in one form for all tools."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from msgspec import Meta

from scaletest.model.declared import VERSIONED, Count, Positive
from scaletest.model.document import Document

Number = Annotated[float, Meta(ge=0, le=1e15)]


@dataclass(frozen=True, slots=True)
class ToolResult(Document):
    """One run of a load tool. What its file does not say is null."""

    document_name = "the result"
    constants = VERSIONED

    count: Annotated[Count, "the number of replicas, GPUs or whatever was doubled; 0: unknown"]
    repeat: Annotated[Count, "which run at this number it is, from 0"]
    tool: str
    file: str
    requests_per_s: Annotated[Number | None, "successful requests"] = None
    tokens_per_s: Annotated[Number | None, "output tokens of all requests together"] = None
    successes: Annotated[Number | None, "requests that succeeded"] = None
    errors: Annotated[Number | None, "requests that failed"] = None
    in_flight: Annotated[Number | None, "requests that the client kept in flight, at most"] = None
    offered_per_s: Annotated[Number | None, "the rate that was asked for, of open load"] = None
    input_tokens: Annotated[Number | None, "mean length of a prompt"] = None
    output_tokens: Annotated[Number | None, "mean length of an answer"] = None
    late_s: Annotated[Number | None, "how late the client sent its requests"] = None
    seed: Annotated[Number | None, "of the prompts"] = None
    model: str = ""
    version: Annotated[str, "of the tool"] = ""
    latencies: Annotated[
        Mapping[str, Number], "seconds, by the tool's own name and the statistic"
    ] = field(default_factory=dict)
    repeats: Annotated[Positive, "runs that the file sums up"] = 1
    deviation: Annotated[Number, "relative standard deviation of these runs"] = 0.0
    levels: Annotated[Positive, "levels of load in the file, of which this one did most"] = 1

    @property
    def key(self) -> tuple[int, int]:
        """What tells it from the others of a run."""
        return self.count, self.repeat
