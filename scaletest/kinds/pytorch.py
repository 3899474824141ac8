"""PyTorch: training or inference of a model on synthetic input, by plain torch in the workers' own process.

Results are not TorchBench's and are marked so: models, batches and timing are ours. What TorchBench prints, in both of
its forms, and GNU time's block after it can be read as well, so that logs of kube-perftest can be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.kinds import parsing
from scaletest.kinds.common import CommonSpec, PodOverrides
from scaletest.kinds.fields import spec_field
from scaletest.kinds.kind import (
    BenchmarkFailed,
    ExecutionSite,
    Failure,
    Headline,
    Kind,
    Part,
    Task,
    ToolMeasurement,
    ToolOutput,
    bound,
)
from scaletest.kinds.torch import UNAVAILABLE
from scaletest.model.errors import InvalidValue

_INSTALL = "pip install --upgrade 'scaletest[torch]' wherever the benchmark runs, or name an image that has PyTorch"
MODULE = "workers.torch_child"
NOT_TORCHBENCH = "own micro-benchmark of plain torch, not TorchBench: compare it with itself only"
_BENCH = re.compile(
    r"^(CPU Wall Time per batch|CPU Total Wall Time|GPU Time per batch|CPU Peak Memory|GPU \d+ Peak Memory):"
    r"\s+(\d{1,12}(?:\.\d{1,9})?) (milliseconds|GB)\s*$",
    re.MULTILINE,
)
_RUNNING = re.compile(
    r"^Running (\w+) method from (\S+) on (\S+) in \w+ mode with input batch size (\d+)\b", re.MULTILINE
)
_GNU = re.compile(r"^\s*(User time|System time) \(seconds\): (\d{1,9}\.\d\d)\s*$", re.MULTILINE)
_ELAPSED = re.compile(
    r"Elapsed \(wall clock\) time \(h:mm:ss or m:ss\): (?:(\d{1,6}):)?(\d{1,2}):(\d{1,2}(?:\.\d\d)?)\s*$", re.M
)


@dataclass(frozen=True, kw_only=True)
class PyTorchSpec(CommonSpec):
    """device, model, benchmarkType and inputBatchSize are the original's; model had no default."""

    device: str = spec_field("cpu", "Where it computes.", choices=("cpu", "cuda"))
    model: str = spec_field(
        "resnet50", "What it computes; llama for inference only.", choices=("alexnet", "resnet50", "llama", "matmul")
    )
    benchmark_type: str = spec_field("eval", "Training or inference.", choices=("train", "eval"))
    input_batch_size: int = spec_field(64, "Samples in a batch.", minimum=2, maximum=1_000_000, multiple=2)
    batches: int = spec_field(10, "Batches that are timed.", minimum=1, maximum=1_000_000)
    worker: PodOverrides = spec_field(PodOverrides(), "How the worker's pod differs.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.benchmark_type == "train" and self.model in ("llama", "matmul"):
            raise InvalidValue(f"{self.model} is for inference only", hint="use benchmarkType eval, or another model")


def tasks(spec: PyTorchSpec, site: ExecutionSite) -> Sequence[Task]:
    """One request, as words in a line of JSON, to the process that the workers' torch workload uses."""
    words = ["--model", spec.model, "--mode", spec.benchmark_type, "--device", spec.device]
    words += ["--batch", str(spec.input_batch_size), "--batches", str(spec.batches)]
    ask = 'request=$1; shift; printf "%s\\n" "$request" | { time -p "$@"; }'
    line = ("bash", "-c", ask, "torch", json.dumps(words), *bound(spec, [*site.python, "-m", MODULE]))
    return (Task("worker", 0, line),)


def parse(spec: PyTorchSpec, output: ToolOutput) -> ToolMeasurement:
    """The workload's answer, or TorchBench's text. Raises Failed."""
    if output.exit_code == UNAVAILABLE or (output.exit_code and "No module named" in output.stderr):
        raise BenchmarkFailed(Failure.NO_BINARY, "PyTorch cannot be used here", parsing.last_lines(output), _INSTALL)
    parsing.ended_well(output, "PyTorch")
    if "CPU Peak Memory" in output.text or "Wall Time" in output.text:
        return _torchbench(spec, output)
    data = parsing.json_object(output.stdout, "PyTorch")
    said = data.get("error")
    if said:
        raise _failed(data, str(said))
    found = data.get("figures")
    if not isinstance(found, Mapping):
        raise parsing.bad("PyTorch's answer has no figures", [json.dumps(data)])
    used = found.get("torch_device")
    if used != spec.device:
        raise BenchmarkFailed(Failure.MISMATCH, f"PyTorch computed on {used} instead of {spec.device}")
    wanted = {"batches": spec.batches, "samples": spec.batches * spec.input_batch_size}
    for name, value in wanted.items():
        if parsing.number(found, name) != value:
            raise BenchmarkFailed(Failure.MISMATCH, f"PyTorch computed {found[name]} {name} instead of {value}")
    headlines = {
        "batchTime": parsing.positive(found, "batch_wall_ms") / 1e3,
        "samplesPerSecond": parsing.positive(found, "samples_per_s"),
        "cpuMemory": parsing.positive(found, "cpu_peak_mib") * 2**20,
    }
    computed = spec.input_batch_size / headlines["batchTime"]
    parsing.check_agreement(headlines["samplesPerSecond"], computed, "samples_per_s")
    if spec.device == "cuda":
        headlines["gpuBatchTime"] = parsing.positive(found, "batch_gpu_ms") / 1e3
        headlines["gpuMemory"] = parsing.positive(found, "gpu_peak_mib") * 2**20
    return ToolMeasurement(
        headlines, {"figures": dict(found), "gpuCount": gpus(spec), **_times(output)}, notes=(NOT_TORCHBENCH,)
    )


def _failed(answer: Mapping[str, Any], error: str) -> BenchmarkFailed:
    """What the child could not do, and whether that says anything of what was to be measured."""
    if answer.get("unavailable"):
        return BenchmarkFailed(Failure.NO_BINARY, "the installed PyTorch cannot compute this", [error], _INSTALL)
    failure = Failure.NO_DEVICE if answer.get("no_device") else Failure.EXIT
    return BenchmarkFailed(failure, "PyTorch says that it failed", [error])


def absent(spec: PyTorchSpec) -> dict[str, str]:
    """The headlines that this spec cannot have, with the reason."""
    names = ("gpuBatchTime", "gpuMemory") if spec.device != "cuda" else ()
    return dict.fromkeys(names, f"device {spec.device} uses no GPU")


def gpus(spec: PyTorchSpec) -> int:
    """Devices that the limits ask for."""
    limits = spec.resources.get("limits")
    rows = limits.items() if isinstance(limits, Mapping) else ()
    return sum(int(value) for name, value in rows if "gpu" in str(name) and str(value).isdigit())


def _check_torchbench(spec: PyTorchSpec, output: ToolOutput) -> None:
    """Raises Failed when TorchBench says that it ran something else, or more than that."""
    names = [name for name, _, _ in _BENCH.findall(output.text)]
    if len(set(names)) != len(names):
        raise parsing.bad("TorchBench wrote a number more than once", names)
    wanted = (spec.benchmark_type, spec.model, spec.device, str(spec.input_batch_size))
    used = _RUNNING.findall(output.text)
    if used != [wanted]:
        lines = [" ".join(run) for run in used]
        raise BenchmarkFailed(Failure.MISMATCH, f"TorchBench did not run {' '.join(wanted)} alone", lines)


def _torchbench(spec: PyTorchSpec, output: ToolOutput) -> ToolMeasurement:
    _check_torchbench(spec, output)
    rows = {name: (float(value), unit) for name, value, unit in _BENCH.findall(output.text)}
    wall = rows.get("CPU Wall Time per batch") or rows.get("CPU Total Wall Time")
    if wall is None or wall[1] != "milliseconds" or wall[0] <= 0:
        raise parsing.bad("TorchBench's wall time is missing", parsing.last_lines(output))
    headlines = {"batchTime": wall[0] / 1e3}
    for name, (value, unit) in rows.items():
        if name == "GPU Time per batch":
            headlines["gpuBatchTime"] = value / 1e3
        elif name == "CPU Peak Memory" and unit == "GB":
            headlines["cpuMemory"] = value * 1e9
    if spec.device == "cuda" and not headlines.get("gpuBatchTime"):
        raise parsing.bad("TorchBench's GPU time is missing", parsing.last_lines(output))
    notes = () if "CPU Wall Time per batch" in rows else ("TorchBench printed a total, not a time per batch",)
    plain = {name: {"value": value, "unit": unit} for name, (value, unit) in rows.items()}
    return ToolMeasurement(headlines, {"torchbench": plain, **_times(output)}, notes=notes)


def _times(output: ToolOutput) -> dict[str, Any]:
    """What `time -p` or GNU time say, in s."""
    found = {
        name: float(value) for name, value in re.findall(r"^(real|user|sys) (\d{1,9}\.\d+)\s*$", output.text, re.M)
    }
    gnu = dict(_GNU.findall(output.text))
    if gnu:
        found |= {"user": float(gnu.get("User time", 0)), "sys": float(gnu.get("System time", 0))}
    elapsed = _ELAPSED.search(output.text)
    if elapsed:
        hours, minutes, seconds = (float(part or 0) for part in elapsed.groups())
        found["real"] = 3600 * hours + 60 * minutes + seconds
    return {"time": found} if found else {}


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
        Headline("batchTime", "s", False, "Wall-clock time of one batch."),
        Headline("samplesPerSecond", "1/s", True, "Samples a second."),
        Headline("gpuBatchTime", "s", False, "Time of one batch on the GPU, by its own events."),
        Headline("cpuMemory", "B", False, "Most memory of the process."),
        Headline("gpuMemory", "B", False, "Most memory that torch had on the GPU."),
    ),
    columns=("model", "benchmarkType", "device", "inputBatchSize"),
    image="torch",
)
