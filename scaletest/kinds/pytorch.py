"""PyTorch: training or inference of a model on random input, by the program of the torch workload.

Models, batches and timing are ours, so a note says that results are not TorchBench's. The output of
TorchBench, in both of its forms, and that of GNU time after it can be parsed too, for logs of
kube-perftest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta

from scaletest.kinds import parsing
from scaletest.kinds.kind import (
    BenchmarkFailed,
    CommonSpec,
    ExecutionSite,
    Failure,
    Headline,
    Kind,
    Part,
    PodOverrides,
    Task,
    ToolMeasurement,
    ToolOutput,
    bound,
)
from scaletest.kinds.torch import UNAVAILABLE
from scaletest.model import checks
from scaletest.model.declared import choice

_INSTALL = (
    "pip install --upgrade 'scaletest[torch]' wherever the benchmark runs, or name an image that"
    " has PyTorch"
)
MODULE = "workers.torch_child"
NOT_TORCHBENCH = "own micro-benchmark of plain torch, not TorchBench: compare it with itself only"
_BENCH = re.compile(
    r"^(CPU Wall Time per batch|CPU Total Wall Time|GPU Time per batch|CPU Peak Memory|GPU \d+ Peak"
    r" Memory):"
    r"\s+(\d{1,12}(?:\.\d{1,9})?) (milliseconds|GB)\s*$",
    re.MULTILINE,
)
_RUNNING = re.compile(
    r"^Running (\w+) method from (\S+) on (\S+) in \w+ mode with input batch size (\d+)\b",
    re.MULTILINE,
)
_GNU = re.compile(r"^\s*(User time|System time) \(seconds\): (\d{1,9}\.\d\d)\s*$", re.MULTILINE)
_ELAPSED = re.compile(
    r"Elapsed \(wall clock\) time \(h:mm:ss or m:ss\):"
    r" (?:(\d{1,6}):)?(\d{1,2}):(\d{1,2}(?:\.\d\d)?)\s*$",
    re.M,
)


@dataclass(frozen=True, kw_only=True)
class PyTorchSpec(CommonSpec):
    """Spec of PyTorch.

    kube-perftest has device, model (without default), benchmarkType, inputBatchSize.
    """

    device: Annotated[str, choice(("cpu", "cuda")), "Device that computes."] = "cpu"
    model: Annotated[
        str,
        choice(("alexnet", "resnet50", "llama", "matmul")),
        "Model; llama and matmul for inference only.",
    ] = "resnet50"
    benchmark_type: Annotated[str, choice(("train", "eval")), "Training or inference."] = "eval"
    input_batch_size: Annotated[
        int, Meta(ge=2, le=1_000_000, multiple_of=2), "Samples in a batch."
    ] = 64
    batches: Annotated[int, Meta(ge=1, le=1_000_000), "Batches that are timed."] = 10
    worker: Annotated[PodOverrides, "Changes to the worker's pod."] = field(default=PodOverrides())

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.refuse(
            (
                self.benchmark_type == "train" and self.model in ("llama", "matmul"),
                f"{self.model} is for inference only",
                "use benchmarkType eval, or another model",
            )
        )


def tasks(spec: PyTorchSpec, site: ExecutionSite) -> Sequence[Task]:
    """The program of the torch workload, with one request: a number and its options in JSON."""
    options = [
        *("--model", spec.model, "--mode", spec.benchmark_type, "--device", spec.device),
        *("--batch", str(spec.input_batch_size), "--batches", str(spec.batches)),
    ]
    ask = 'request=$1; shift; printf "%s\\n" "$request" | { time -p "$@"; }'
    return (
        Task(
            "worker",
            0,
            (
                "bash",
                "-c",
                ask,
                "torch",
                json.dumps([1, options]),
                *bound(spec, [*site.python, "-m", MODULE]),
            ),
        ),
    )


def parse(spec: PyTorchSpec, output: ToolOutput) -> ToolMeasurement:
    """Parse the workload's answer, or TorchBench's text."""
    parsing.fail_if(
        output.exit_code == UNAVAILABLE
        or (output.exit_code and "No module named" in output.stderr),
        "PyTorch cannot be used here",
        parsing.last_lines(output),
        failure=Failure.NO_BINARY,
        remedy=_INSTALL,
    )
    parsing.ended_well(output, "PyTorch")
    if "CPU Peak Memory" in output.text or "Wall Time" in output.text:
        return _torchbench(spec, output)
    figures = _figures(parsing.json_object(output.stdout, "PyTorch"))
    used = figures.get("torch_device")
    parsing.fail_if(
        used != spec.device,
        f"PyTorch computed on {used} instead of {spec.device}",
        failure=Failure.MISMATCH,
    )
    wanted = {"batches": spec.batches, "samples": spec.batches * spec.input_batch_size}
    for name, count in wanted.items():
        parsing.fail_if(
            parsing.number(figures, name) != count,
            f"PyTorch computed {figures[name]} {name} instead of {count}",
            failure=Failure.MISMATCH,
        )
    headlines = {
        "batchTime": parsing.positive(figures, "batch_wall_ms") / 1e3,
        "samplesPerSecond": parsing.positive(figures, "samples_per_s"),
        "cpuMemory": parsing.positive(figures, "cpu_peak_mib") * 2**20,
    }
    parsing.check_agreement(
        headlines["samplesPerSecond"],
        spec.input_batch_size / headlines["batchTime"],
        "samples_per_s",
    )
    if spec.device == "cuda":
        headlines["gpuBatchTime"] = parsing.positive(figures, "batch_gpu_ms") / 1e3
        headlines["gpuMemory"] = parsing.positive(figures, "gpu_peak_mib") * 2**20
    return ToolMeasurement(
        headlines,
        {"figures": dict(figures), "gpuCount": gpus(spec), **_times(output)},
        notes=(NOT_TORCHBENCH,),
    )


def _figures(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """The measured numbers.

    Raises BenchmarkFailed for a missing package or device, or a failure of the computation.
    """
    if error := answer.get("error"):
        parsing.fail_if(
            answer.get("unavailable"),
            "the installed PyTorch cannot compute this",
            [str(error)],
            failure=Failure.NO_BINARY,
            remedy=_INSTALL,
        )
        raise BenchmarkFailed(
            Failure.NO_DEVICE if answer.get("no_device") else Failure.EXIT,
            "PyTorch reports an error",
            [str(error)],
        )
    figures = answer.get("figures")
    if not isinstance(figures, Mapping):
        raise parsing.bad("PyTorch's answer has no figures", [json.dumps(answer)])
    return figures


def absent(spec: PyTorchSpec) -> dict[str, str]:
    """Headlines that this spec cannot have, each with the reason."""
    return dict.fromkeys(
        ("gpuBatchTime", "gpuMemory") if spec.device != "cuda" else (),
        f"device {spec.device} uses no GPU",
    )


def gpus(spec: PyTorchSpec) -> int:
    """Number of GPUs in the limits."""
    limits = spec.resources.get("limits")
    if not isinstance(limits, Mapping):
        return 0
    counts = [str(count) for name, count in limits.items() if "gpu" in str(name)]
    return sum(int(count) for count in counts if count.isdigit())


def _torchbench(spec: PyTorchSpec, output: ToolOutput) -> ToolMeasurement:
    rows = _BENCH.findall(output.text)
    numbers: dict[str, dict[str, Any]] = {
        name: {"value": float(number), "unit": unit} for name, number, unit in rows
    }
    parsing.fail_if(
        len(numbers) != len(rows),
        "TorchBench wrote a number more than once",
        [name for name, _, _ in rows],
    )
    wanted = (spec.benchmark_type, spec.model, spec.device, str(spec.input_batch_size))
    used = _RUNNING.findall(output.text)
    parsing.fail_if(
        used != [wanted],
        f"TorchBench did not run {' '.join(wanted)} alone",
        [" ".join(run) for run in used],
        failure=Failure.MISMATCH,
    )
    by_batch = "CPU Wall Time per batch" in numbers
    headlines = _torchbench_headlines(numbers)
    parsing.fail_if(
        "batchTime" not in headlines,
        "TorchBench's wall time is missing",
        parsing.last_lines(output),
    )
    parsing.fail_if(
        spec.device == "cuda" and not headlines.get("gpuBatchTime"),
        "TorchBench's GPU time is missing",
        parsing.last_lines(output),
    )
    notes = () if by_batch else ("TorchBench printed a total, not a time per batch",)
    return ToolMeasurement(headlines, {"torchbench": numbers, **_times(output)}, notes=notes)


def _torchbench_headlines(numbers: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    headlines = {}
    wall = numbers.get("CPU Wall Time per batch") or numbers.get("CPU Total Wall Time")
    if wall and wall["value"] > 0 and wall["unit"] == "milliseconds":
        headlines["batchTime"] = wall["value"] / 1e3
    if gpu := numbers.get("GPU Time per batch"):
        headlines["gpuBatchTime"] = gpu["value"] / 1e3
    if (memory := numbers.get("CPU Peak Memory")) and memory["unit"] == "GB":
        headlines["cpuMemory"] = memory["value"] * 1e9
    return headlines


def _times(output: ToolOutput) -> dict[str, Any]:
    """Times of `time -p` or GNU time, in seconds."""
    times = {name: float(seconds) for name, seconds in parsing.TIMES.findall(output.text)}
    gnu = dict(_GNU.findall(output.text))
    if gnu:
        times |= {"user": float(gnu.get("User time", 0)), "sys": float(gnu.get("System time", 0))}
    elapsed = _ELAPSED.search(output.text)
    if elapsed:
        hours, minutes, seconds = (float(part or 0) for part in elapsed.groups())
        times["real"] = 3600 * hours + 60 * minutes + seconds
    return {"time": times} if times else {}


KIND = Kind(
    name="PyTorch",
    plural="pytorches",
    help="Training or inference of a model, by PyTorch.",
    spec=PyTorchSpec,
    measures="worker",
    layout=lambda spec: (Part("worker", 0, 0),),
    programs=lambda spec: ("bash",),
    tasks=tasks,
    parse=parse,
    absent=absent,
    limit_s=lambda spec: 600 + spec.batches * spec.input_batch_size,
    headlines=(
        Headline("batchTime", "time of a batch", "s", False, "Wall-clock time of one batch."),
        Headline("samplesPerSecond", "sample rate", "1/s", True, "Samples per second."),
        Headline(
            "gpuBatchTime",
            "time of a batch on the GPU",
            "s",
            False,
            "Time of one batch on the GPU, by CUDA events.",
        ),
        Headline("cpuMemory", "peak memory", "B", False, "Peak memory of the process."),
        Headline(
            "gpuMemory", "peak memory on the GPU", "B", False, "Peak memory of torch on the GPU."
        ),
    ),
    columns=("model", "benchmarkType", "device", "inputBatchSize"),
    image="torch",
)
