"""Measure training or inference of a model on random input, by the torch workload's program.

Models, batches and timing are ours, so a note says that results are not TorchBench's.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta

from scaletest.benchmarks.kinds import (
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
    bind_to_cpus,
    fail_if,
    parsing,
)
from scaletest.model import checks, declared, workload

# the remedy where PyTorch cannot be used
_INSTALL = (
    "pip install --upgrade 'scaletest[torch]' wherever the benchmark runs, or name an image that"
    " has PyTorch"
)
MODULE = "scaletest_workers.torch_child"


@dataclass(frozen=True, kw_only=True)
class PyTorchSpec(CommonSpec):
    """Spec of PyTorch.

    kube-perftest has device, model (without default), benchmarkType, inputBatchSize.
    """

    device: Annotated[str, declared.choice(("cpu", "cuda")), "Device that computes."] = "cpu"
    model: Annotated[
        str, declared.choice(("alexnet", "resnet50", "llama")), "Model; llama for inference only."
    ] = "resnet50"
    benchmark_type: Annotated[str, declared.choice(("train", "eval")), "Training or inference."] = (
        "eval"
    )
    input_batch_size: Annotated[
        int, Meta(ge=2, le=1_000_000, multiple_of=2), "Samples in a batch."
    ] = 64
    batches: Annotated[int, Meta(ge=1, le=1_000_000), "Batches that are timed."] = 10
    worker: Annotated[PodOverrides, "Changes to the worker's pod."] = field(default=PodOverrides())

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.raise_first_mistake(
            (
                self.benchmark_type == "train" and self.model == "llama",
                f"{self.model} is for inference only",
                "use benchmarkType eval, or another model",
            )
        )


def tasks(spec: PyTorchSpec, site: ExecutionSite) -> Sequence[Task]:
    """Return the only task: the torch workload's program, which is sent one request and timed.

    The request is a line of JSON, [1, options]: its number, and options as of a command line.
    """
    options = [
        *("--model", spec.model, "--mode", spec.benchmark_type, "--device", spec.device),
        *("--batch", str(spec.input_batch_size), "--batches", str(spec.batches)),
    ]
    # the program reads requests from stdin, a line each; `time -p` is built into bash
    ask = 'request=$1; shift; printf "%s\\n" "$request" | { time -p "$@"; }'
    return (
        Task(
            role="worker",
            index=0,
            argv=(
                "bash",
                "-c",
                ask,
                "torch",  # $0 of the script
                json.dumps([1, options]),
                *bind_to_cpus(spec, [*site.python, "-m", MODULE]),
            ),
        ),
    )


def parse(spec: PyTorchSpec, output: ToolOutput) -> ToolMeasurement:
    """Parse the workload's answer, a JSON object with `figures` or with `error`.

    Raises BenchmarkFailed when it has no figures, when they are not of what the spec asks for, or
    when they contradict each other.
    """
    figures = _read_figures(output)
    # it computed what the spec asks for, where the spec asks for it
    device = figures.get("torch_device")
    fail_if(
        device != spec.device,
        f"PyTorch computed on {device} instead of {spec.device}",
        failure=Failure.MISMATCH,
    )
    expected = {"batches": spec.batches, "samples": spec.batches * spec.input_batch_size}
    for name, count in expected.items():
        fail_if(
            parsing.number(figures, name) != count,
            f"PyTorch computed {figures[name]} {name} instead of {count}",
            failure=Failure.MISMATCH,
        )
    # the headlines, in base units: s, 1/s and bytes
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
    # what `time -p` wrote, if it did
    times = {name: float(seconds) for name, seconds in parsing.TIMES.findall(output.text)}
    return ToolMeasurement(
        headlines,
        {"figures": dict(figures), **({"time": times} if times else {})},
        notes=("own micro-benchmark of plain torch, not TorchBench: compare it with itself only",),
    )


def _read_figures(output: ToolOutput) -> Mapping[str, Any]:
    """Return the figures of the workload's answer; BenchmarkFailed says why it has none."""
    # the program itself failed: PyTorch is missing, too old, or finds no device
    fail_if(
        output.exit_code == workload.UNAVAILABLE
        or (output.exit_code and "No module named" in output.stderr),
        "PyTorch cannot be used here",
        parsing.last_lines(output),
        failure=Failure.NO_BINARY,
        remedy=_INSTALL,
    )
    parsing.check_exit(output, "PyTorch")
    # it answered with an error
    answer = parsing.json_object(output.stdout, "PyTorch")
    if error := answer.get("error"):
        fail_if(
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
        raise BenchmarkFailed(
            Failure.BAD_OUTPUT, "PyTorch's answer has no figures", [json.dumps(answer)]
        )
    return figures


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
    limit_s=lambda spec: 600 + spec.batches * spec.input_batch_size,
    headlines=(
        Headline(
            "batchTime", "time of a batch", "s", higher=False, help="Wall-clock time of one batch."
        ),
        Headline("samplesPerSecond", "sample rate", "1/s", higher=True, help="Samples per second."),
        Headline(
            "gpuBatchTime",
            "time of a batch on the GPU",
            "s",
            higher=False,
            help="With device cuda: time of one batch on the GPU, by CUDA events.",
        ),
        Headline("cpuMemory", "peak memory", "B", higher=False, help="Peak memory of the process."),
        Headline(
            "gpuMemory",
            "peak memory on the GPU",
            "B",
            higher=False,
            help="With device cuda: peak memory of torch on the GPU.",
        ),
    ),
    columns=("model", "benchmarkType", "device", "inputBatchSize"),
    image="torch",
)
