"""Where the files of load tools have what a verdict needs.

A format is a table of paths, as its tool documents them. A path names keys, with dots between; a
number chooses a row of a list. Of several paths the first that leads to something counts.

Words mean different things in different tools, so a latency keeps its tool's name and is never
compared with another tool's: "time per output token" begins after the first token in vLLM, and with
it in guidellm; the pause between tokens is a mean of each request in guidellm and aiperf, and of
every single gap in vLLM and inference-perf.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

Paths = tuple[str, ...]
MILLISECONDS = 1e-3


@dataclass(frozen=True, slots=True)
class Format:
    """The format of a tool's results."""

    tool: str
    marks: Paths  # a file has the first format all of whose marks lead to something in it
    # By fields of ToolResult, and by these: requests are all that were sent (errors are those that
    # did not succeed), late is what the client was, and input_total and output_total are the tokens
    # of all successful requests, where no mean is there.
    paths: Mapping[str, Paths]
    latencies: Mapping[str, str] = field(default_factory=dict)  # paths by name
    latency_unit_s: float = 1.0  # where the file does not name one
    late_unit_s: float = 1.0
    counts: Mapping[str, str] = field(default_factory=dict)  # paths by what they count
    levels: str = ""  # path to a list with one level of load a row
    # whether the time of the throughput includes the start and the end of the load, in which fewer
    # requests are in flight
    includes_ends: bool = False
    # arguments for the number in flight, and for that of requests; how each run gets new prompts
    in_flight_option: str = "{} in flight"
    longer_option: str = "{} requests"
    new_prompts_option: str = "give each run a seed of its own"


def _vllm_latencies(end_to_end: str) -> dict[str, str]:
    names = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "latency": end_to_end}
    return {
        f"{name}.{statistic}": f"{statistic}_{key}_ms"
        for name, key in names.items()
        for statistic in ("mean", "p99")
    }


_GUIDELLM = "metrics.{}.successful.{}"
_GUIDELLM_LATENCIES = {
    "ttft": "time_to_first_token_ms",
    "tpot": "time_per_output_token_ms",
    "itl": "inter_token_latency_ms",
}
_AIPERF_LATENCIES = {
    "ttft": "time_to_first_token",
    "itl": "inter_token_latency",
    "latency": "request_latency",
}
_STAGE_LATENCIES = {
    "ttft": "time_to_first_token",
    "tpot": "time_per_output_token",
    "itl": "inter_token_latency",
    "latency": "request_latency",
}
_REPORT = "results.request_performance.aggregate"

FORMATS = (
    Format(
        tool="guidellm",
        marks=("metadata.guidellm_version", "benchmarks"),
        paths={
            # the means are totals over time; the medians are not
            "requests_per_s": (_GUIDELLM.format("requests_per_second", "mean"),),
            "tokens_per_s": (_GUIDELLM.format("output_tokens_per_second", "mean"),),
            "successes": ("metrics.request_totals.successful",),
            "errors": ("metrics.request_totals.errored",),
            "in_flight": ("config.strategy.streams", "config.strategy.max_concurrency"),
            "offered_per_s": ("config.strategy.rate",),
            "input_tokens": (_GUIDELLM.format("prompt_token_count", "mean"),),
            "output_tokens": (_GUIDELLM.format("output_token_count", "mean"),),
            "late": ("scheduler_metrics.request_targeted_start_delay_avg",),
            "model": ("config.backend.model",),
            "version": ("metadata.guidellm_version",),  # of the whole file
        },
        levels="benchmarks",
        latencies={
            f"{name}.{statistic}": _GUIDELLM.format(key, path)
            for name, key in _GUIDELLM_LATENCIES.items()
            for statistic, path in (("mean", "mean"), ("p99", "percentiles.p99"))
        },
        latency_unit_s=MILLISECONDS,
        in_flight_option="--profile kind=concurrent,streams={}",
    ),
    Format(
        tool="aiperf",
        marks=("schema_version", "request_throughput.avg"),
        paths={
            "requests_per_s": ("request_throughput.avg",),
            "tokens_per_s": ("output_token_throughput.avg",),
            "successes": ("request_count.avg",),
            "errors": ("error_request_count.avg",),
            # the first up to version 0.9
            "in_flight": ("input_config.loadgen.concurrency", "input_config.phases.-1.concurrency"),
            "offered_per_s": ("input_config.loadgen.request_rate", "input_config.phases.-1.rate"),
            "input_tokens": ("input_sequence_length.avg",),
            "output_tokens": ("output_sequence_length.avg",),
            "seed": ("run_info.random_seed", "input_config.input.random_seed"),
            "model": ("input_config.endpoint.model_names.0",),
            "version": ("aiperf_version",),
        },
        latencies={
            f"{name}.{statistic}": f"{key}.{path}"
            for name, key in _AIPERF_LATENCIES.items()
            for statistic, path in (("mean", "avg"), ("p99", "p99"))
        },
        latency_unit_s=MILLISECONDS,
        in_flight_option="--concurrency {}",
        new_prompts_option="give each run a --random-seed of its own",
    ),
    Format(
        tool="aiperf",
        marks=("metadata.num_profile_runs", "metrics.request_throughput_avg.mean"),
        paths={
            "requests_per_s": ("metrics.request_throughput_avg.mean",),
            "tokens_per_s": ("metrics.output_token_throughput_avg.mean",),
            "successes": ("metrics.request_count_avg.mean",),
            "errors": ("metrics.error_request_count_avg.mean",),
            "output_tokens": ("metrics.output_sequence_length_avg.mean",),
            "input_tokens": ("metrics.input_sequence_length_avg.mean",),
            "repeats": ("metadata.num_successful_runs",),
            "deviation": ("metrics.request_throughput_avg.cv",),
        },
        latencies={
            f"{name}.{statistic}": f"metrics.{key}_{part}.mean"
            for name, key in {**_AIPERF_LATENCIES, "ttft": "ttft", "itl": "itl"}.items()
            for statistic, part in (("mean", "avg"), ("p99", "p99"))
        },
        latency_unit_s=MILLISECONDS,
    ),
    Format(
        tool="sglang",
        marks=("output_throughput", "mean_e2e_latency_ms"),
        paths={
            "requests_per_s": ("request_throughput",),
            "tokens_per_s": ("output_throughput",),
            "successes": ("completed",),
            "requests": ("num_prompts",),
            "in_flight": ("max_concurrency",),
            "offered_per_s": ("request_rate",),
            "input_total": ("total_input_tokens",),
            "output_total": ("total_output_tokens",),
        },
        latencies=_vllm_latencies("e2e_latency"),
        latency_unit_s=MILLISECONDS,
        includes_ends=True,
        in_flight_option="--max-concurrency {}",
        longer_option="--num-prompts {}",
    ),
    Format(
        tool="vllm",
        marks=("output_throughput", "request_throughput", "completed"),
        paths={
            "requests_per_s": ("request_throughput",),
            "tokens_per_s": ("output_throughput",),
            "successes": ("completed",),
            "errors": ("failed",),
            # files of before 2025 do not count what failed
            "requests": ("num_prompts",),
            "in_flight": ("max_concurrency",),
            "offered_per_s": ("request_rate",),
            "input_total": ("total_input_tokens",),
            "output_total": ("total_output_tokens",),
            "late": ("mean_client_queue_time_ms",),
            "model": ("model_id",),
        },
        late_unit_s=MILLISECONDS,
        latencies=_vllm_latencies("e2el"),
        latency_unit_s=MILLISECONDS,
        includes_ends=True,
        in_flight_option="--max-concurrency {}",
        longer_option="--num-prompts {}",
    ),
    Format(
        tool="inference-perf",
        marks=("load_summary", "successes"),
        paths={
            "requests_per_s": ("successes.throughput.requests_per_sec",),
            "tokens_per_s": ("successes.throughput.output_tokens_per_sec",),
            "successes": ("successes.count",),
            "errors": ("failures.count",),
            "in_flight": ("load_summary.concurrency",),
            "offered_per_s": ("load_summary.requested_rate",),
            "input_tokens": ("successes.prompt_len.mean",),
            "output_tokens": ("successes.output_len.mean",),
            "late": ("load_summary.schedule_delay.median", "load_summary.schedule_delay.mean"),
        },
        latencies={
            f"{name}.{statistic}": f"successes.latency.{key}.{statistic}"
            for name, key in _STAGE_LATENCIES.items()
            for statistic in ("mean", "p99")
        },
        includes_ends=True,
        in_flight_option="load.stages with concurrency_level: {}",
        longer_option="load.stages with num_requests: {}",
    ),
    Format(
        tool="llm-d",
        marks=("scenario", _REPORT),
        paths={
            "requests_per_s": (f"{_REPORT}.throughput.request_rate.mean",),
            "tokens_per_s": (f"{_REPORT}.throughput.output_token_rate.mean",),
            "requests": (f"{_REPORT}.requests.total",),
            "errors": (f"{_REPORT}.requests.failures",),
            "in_flight": ("scenario.load.standardized.concurrency",),
            "offered_per_s": ("scenario.load.standardized.rate_qps",),
            "input_tokens": (f"{_REPORT}.requests.input_length.mean",),
            "output_tokens": (f"{_REPORT}.requests.output_length.mean",),
            "model": ("scenario.stack.0.standardized.model.name",),
            "version": ("version",),
        },
        latencies={
            f"{name}.{statistic}": f"{_REPORT}.latency.{key}.{statistic}"
            for name, key in _STAGE_LATENCIES.items()
            for statistic in ("mean", "p99")
        },
        counts={
            "replicas": "scenario.stack.0.standardized.replicas",
            "gpus": "scenario.stack.0.standardized.accelerator.count",
            "tensor-parallel": "scenario.stack.0.standardized.accelerator.parallelism.tp",
        },
    ),
    Format(
        tool="table",
        marks=("n", "throughput"),
        paths={
            "requests_per_s": ("throughput",),
        },
        counts={"": "n"},
    ),
)
