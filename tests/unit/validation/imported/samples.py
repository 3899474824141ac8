"""Results of load tools, written by hand after the fields that each tool documents."""

from typing import Any


def vllm(per_s: float, in_flight: int = 32, **changes: Any) -> dict[str, Any]:
    requests = 100 * in_flight
    return {
        "date": "20261127-050000",
        "backend": "vllm",
        "model_id": "llama",
        "num_prompts": requests,
        "request_rate": "inf",
        "max_concurrency": in_flight,
        "duration": requests / per_s,
        "completed": requests,
        "failed": 0,
        "total_input_tokens": 512 * requests,
        "total_output_tokens": 128 * requests,
        "request_throughput": per_s,
        "output_throughput": 128 * per_s,
        "mean_ttft_ms": 54.58,
        "p99_ttft_ms": 89.77,
        "mean_tpot_ms": 13.58,
        **changes,
    }


def sglang(per_s: float, in_flight: int = 32) -> dict[str, Any]:
    requests = 100 * in_flight
    return {
        "backend": "sglang-oai",
        "request_rate": "inf",
        "max_concurrency": in_flight,
        "completed": requests,
        "total_input_tokens": 512 * requests,
        "total_output_tokens": 128 * requests,
        "request_throughput": per_s,
        "output_throughput": 128 * per_s,
        "mean_e2e_latency_ms": 1800.0,
        "p99_e2e_latency_ms": 2400.0,
        "mean_ttft_ms": 60.0,
    }


def _distribution(mean: float) -> dict[str, Any]:
    # the median of a rate over time is no rate: the mean is total / duration
    return {"successful": {"mean": mean, "median": mean / 8, "percentiles": {"p99": 2 * mean}}}


def guidellm(*levels: tuple[int, float]) -> dict[str, Any]:
    """levels: streams and requests/s of each benchmark in the report."""
    benchmarks = [
        {
            "config": {
                "strategy": {"type_": "concurrent", "streams": streams},
                "backend": {"model": "llama"},
            },
            "duration": 60.0,
            "scheduler_metrics": {"request_targeted_start_delay_avg": 0.0004},
            "metrics": {
                "request_totals": {"successful": round(60 * per_s), "errored": 0, "incomplete": 3},
                "requests_per_second": _distribution(per_s),
                "output_tokens_per_second": _distribution(128 * per_s),
                "prompt_token_count": _distribution(256.0),
                "output_token_count": _distribution(128.0),
                "time_to_first_token_ms": _distribution(80.0),
            },
        }
        for streams, per_s in levels
    ]
    return {"metadata": {"version": 2, "guidellm_version": "0.8.1"}, "benchmarks": benchmarks}


def aiperf(per_s: float, in_flight: int = 10, seed: int = 42) -> dict[str, Any]:
    return {
        "schema_version": "1.4",
        "aiperf_version": "0.13.0",
        "request_throughput": {"unit": "requests/sec", "avg": per_s},
        "request_count": {"unit": "requests", "avg": 640.0},
        "time_to_first_token": {"unit": "ms", "avg": 195.84, "p99": 253.45},
        "output_token_throughput": {"unit": "tokens/sec", "avg": 64 * per_s},
        "output_sequence_length": {"unit": "tokens", "avg": 64.0},
        "input_sequence_length": {"unit": "tokens", "avg": 550.0},
        "input_config": {"phases": [{"name": "warmup"}, {"concurrency": in_flight}]},
        "run_info": {"random_seed": seed},
    }


def inference_perf(per_s: float, offered: float = 0.0, late_s: float = 0.0002) -> dict[str, Any]:
    load: dict[str, Any] = {"count": 5531, "schedule_delay": {"mean": late_s, "median": late_s}}
    if offered:
        load |= {"requested_rate": offered, "achieved_rate": offered}
    return {
        "load_summary": load,
        "successes": {
            "count": 5531,
            "latency": {"time_to_first_token": {"mean": 0.0505, "p99": 0.1818}},
            "throughput": {"output_tokens_per_sec": 62.3 * per_s, "requests_per_sec": per_s},
            "output_len": {"mean": 62.3},
        },
        "failures": {"count": 0},
    }


def llmd(per_s: float, replicas: int) -> dict[str, Any]:
    return {
        "version": "0.2",
        "scenario": {
            "stack": [{"standardized": {"replicas": replicas, "accelerator": {"count": 4}}}],
            "load": {"standardized": {"concurrency": 16 * replicas}},
        },
        "results": {
            "request_performance": {
                "aggregate": {
                    "requests": {"total": 1000, "failures": 4},
                    "throughput": {
                        "request_rate": {"mean": per_s, "units": "queries/s"},
                        "output_token_rate": {"mean": 100 * per_s},
                    },
                    "latency": {"time_to_first_token": {"mean": 41.0, "units": "ms"}},
                }
            }
        },
    }


def aiperf_aggregate(per_s: float, runs: int, variation: float) -> dict[str, Any]:
    return {
        "metadata": {"num_profile_runs": runs, "num_successful_runs": runs},
        "metrics": {
            "request_throughput_avg": {"mean": per_s, "std": variation * per_s, "cv": variation},
            "output_token_throughput_avg": {"mean": 64 * per_s},
            "ttft_p99": {"mean": 250.0, "unit": "ms"},
        },
    }
