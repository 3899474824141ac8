"""What was measured at one number of replicas on one way. Pure."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from msgspec import Meta

from scaletest.load.level_load import LoadResult
from scaletest.model.attempt import Attempt
from scaletest.model.declared import Count
from scaletest.model.document import Document
from scaletest.stats.percentiles import quantile
from scaletest.stats.streams import summarise_streams
from scaletest.validation.imported.result import Number, ToolResult
from scaletest.validation.service.course import VisitCourse, rates

TOOL = "scaletest"
# Answers whose lengths scatter by more than this part are judged by their tokens.
SAME_LENGTH = 0.02
PERCENTS = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class ReplicaShare(Document):
    """What one replica did in the measured time."""

    document_name = "the share of a replica"

    requests: Annotated[Number, "that it answered"]
    latency_s: Annotated[Number, "mean of its successes"]
    per_token_s: Annotated[Number | None, "mean time of each further token; null without streams"]


@dataclass(frozen=True, slots=True)
class ReplicaMetrics(Document):
    """What one replica told of itself; null where it does not."""

    document_name = "the metrics of a replica"

    requests: Annotated[Number | None, "that it served"] = None
    tokens_per_s: Annotated[Number | None, "that it generated"] = None
    held: Annotated[Number | None, "requests in its batch and its queue, on average"] = None
    cache_queries: Annotated[Number | None, "tokens of prompts that were looked up"] = None
    cache_hits: Annotated[Number | None, "of these, found in the prefix cache"] = None


@dataclass(frozen=True, slots=True)
class ReplicaPod(Document):
    """How the pod of a replica fared while it was loaded."""

    document_name = "the pod of a replica"

    node: str
    restarts: Annotated[Count, "of its containers"]
    stayed_ready: bool
    throttled: Annotated[
        Number | None, "part of the time in which its CPU limit was reached; null if unknown"
    ]


@dataclass(frozen=True, slots=True)
class ServiceVisit(ToolResult):
    """One step on one way. What was not measured is null."""

    document_name = "the visit"

    windows: Annotated[tuple[Number, ...], "successes per second in equal windows"] = ()
    token_windows: Annotated[tuple[Number, ...], "output tokens per second in them"] = ()
    seconds: Annotated[Number, "that were measured"] = 0.0
    middle_s: Annotated[Number, "the middle of them, from the start of the run"] = 0.0
    scale_s: Annotated[Number, "from asking for the replicas until they were ready"] = 0.0
    warm_s: Annotated[Number, "from the start of the load until all replicas were warm"] = 0.0
    is_warm: Annotated[bool, "whether they were"] = True
    lengths_vary: Annotated[bool, "whether answers had different lengths"] = False
    counts_chunks: Annotated[bool, "whether chunks were counted instead of tokens"] = False
    kept_in_flight: Annotated[Number, "requests in flight on average"] = 0.0
    cpu: Annotated[Number, "cores that the load generator used"] = 0.0
    beat_s: Annotated[Number, "how late the load generator's timers fired, 99th percentile"] = 0.0
    outcomes: Annotated[Mapping[str, Count], "failures by kind"] = field(default_factory=dict)
    replicas: Annotated[
        Mapping[str, ReplicaShare], Meta(max_length=10_000), "by name, where answers tell theirs"
    ] = field(default_factory=dict)
    metrics: Annotated[
        Mapping[str, ReplicaMetrics], Meta(max_length=10_000), "what replicas told of themselves"
    ] = field(default_factory=dict)
    pods: Annotated[Mapping[str, ReplicaPod], Meta(max_length=10_000), "of a cluster, by name"] = (
        field(default_factory=dict)
    )
    direct_per_s: Annotated[
        Number | None,
        "successes per second of the same load on the replicas' own addresses in turn; null where"
        " shares were even, or addresses are unknown",
    ] = None
    direct: Annotated[
        Mapping[str, ReplicaShare], Meta(max_length=10_000), "what each replica did under that load"
    ] = field(default_factory=dict)

    @property
    def failed_share(self) -> float:
        """Part of the requests that failed; 1 where none succeeded."""
        failed, successes = sum(self.outcomes.values()), self.successes or 0.0
        return failed / (failed + successes) if successes else 1.0

    @property
    def served(self) -> dict[str, float]:
        """Requests by replica: of answers that name theirs, else by the replicas' own count."""
        if self.replicas:
            return {name: share.requests for name, share in self.replicas.items()}
        return {
            name: row.requests for name, row in self.metrics.items() if row.requests is not None
        }

    @property
    def held(self) -> float | None:
        """Requests that all replicas had on average, in batches and queues; None if unknown."""
        numbers = [row.held for row in self.metrics.values() if row.held is not None]
        return sum(numbers) if numbers and len(numbers) == len(self.metrics) else None

    @property
    def generated_per_s(self) -> float | None:
        """Tokens a second by the replicas' own count; None if unknown."""
        rates = [row.tokens_per_s for row in self.metrics.values() if row.tokens_per_s is not None]
        return sum(rates) if rates and len(rates) == len(self.metrics) else None

    @property
    def cache_hit_rate(self) -> float | None:
        """The part of the prompts' tokens that a prefix cache had; None if unknown."""
        queries = sum(row.cache_queries or 0.0 for row in self.metrics.values())
        hits = sum(row.cache_hits or 0.0 for row in self.metrics.values())
        return hits / queries if queries > 0 else None


def measure_visit(
    course: VisitCourse,
    result: LoadResult,
    place: ServiceVisit,
    metrics: Mapping[str, ReplicaMetrics],
) -> ServiceVisit:
    """Return what the attempts of a visit say. place: count, way, and what is known before."""
    begin_s, end_s = course.from_s or 0.0, course.until_s
    attempts = [row for row in result.samples if row.ended_s > begin_s and row.sent_s < end_s]
    outcomes = Counter(row.outcome for row in attempts if not row.ok)
    succeeded = [row for row in attempts if row.ok]
    windows = rates(succeeded, begin_s, end_s)
    in_flight_s = sum(min(row.ended_s, end_s) - max(row.sent_s, begin_s) for row in attempts)
    visit = replace(
        place,
        requests_per_s=statistics.fmean(windows),
        errors=float(outcomes.total()),
        windows=tuple(windows),
        seconds=end_s - begin_s,
        warm_s=begin_s,
        is_warm=course.is_warm,
        kept_in_flight=in_flight_s / (end_s - begin_s) if end_s > begin_s else 0.0,
        cpu=result.cpu,
        beat_s=result.beat_s,
        outcomes=dict(outcomes),
        metrics=metrics,
    )
    # what an answer is like is known of those that ended
    ended = [row for row in succeeded if row.ended_s <= end_s]
    visit = replace(
        visit,
        successes=float(len(ended)),
        latencies=_latencies(ended),
        replicas=_shares(ended),
    )
    streams = summarise_streams(ended, end_s - begin_s)
    if streams is None:
        return visit
    token_windows = rates(succeeded, begin_s, end_s, tokens=True)
    lengths = [row.tokens for row in ended]
    return replace(
        visit,
        tokens_per_s=statistics.fmean(token_windows),
        input_tokens=streams.prompt_tokens,
        output_tokens=streams.output_tokens,
        token_windows=tuple(token_windows),
        lengths_vary=statistics.pstdev(lengths) > SAME_LENGTH * streams.output_tokens,
        counts_chunks=streams.counts_chunks,
    )


def _latencies(ended: Sequence[Attempt]) -> dict[str, float]:
    """Return mean and percentiles of latency, time to first token, and time per further token."""
    series = {
        "latency": [row.ended_s - row.sent_s for row in ended],
        "ttft": [row.first_s - row.sent_s for row in ended if row.first_s is not None],
        "tpot": [row.per_token_s for row in ended if row.per_token_s is not None],
    }
    latencies = {}
    for name, times_s in series.items():
        if times_s:
            latencies[f"{name}.mean"] = statistics.fmean(times_s)
            times_s.sort()
            for percent in PERCENTS:
                latencies[f"{name}.p{percent}"] = quantile(times_s, percent / 100)
    return latencies


def _shares(ended: Sequence[Attempt]) -> dict[str, ReplicaShare]:
    """Return what each replica did, where answers name it."""
    by_replica: dict[str, list[Attempt]] = defaultdict(list)
    for row in ended:
        if row.pod:
            by_replica[row.pod].append(row)
    shares = {}
    for name, rows in sorted(by_replica.items()):
        per_token = [row.per_token_s for row in rows if row.per_token_s is not None]
        shares[name] = ReplicaShare(
            requests=float(len(rows)),
            latency_s=statistics.fmean(row.ended_s - row.sent_s for row in rows),
            # a few answers that a buffer did not hold back say nothing about the others
            per_token_s=statistics.fmean(per_token) if 2 * len(per_token) > len(rows) else None,
        )
    return shares
