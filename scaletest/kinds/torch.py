"""A PyTorch micro-benchmark: which model, training or inference, how much of it one request is. Imports no torch.

Models and fields are those of kube-perftest's PyTorch benchmark (device, model, benchmarkType, inputBatchSize; after
TorchBench), and a plain matrix product. Weights and inputs are random: speed is measured, not learning.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn

from scaletest.model import checks
from scaletest.model.errors import InvalidValue


class Model(StrEnum):
    """What is computed."""

    ALEXNET = "alexnet"
    RESNET50 = "resnet50"
    LLAMA = "llama"
    MATMUL = "matmul"


# Side of an image, tokens of a text, side of a matrix: where --size does not say otherwise, and the least that works.
SIZES = {Model.ALEXNET: (224, 63), Model.RESNET50: (224, 32), Model.LLAMA: (32, 1), Model.MATMUL: (1024, 1)}
# Exit code of the child where PyTorch is not installed or cannot be loaded, as EX_UNAVAILABLE of sysexits.h.
UNAVAILABLE = 69
DEVICES = ("auto", "cpu", "cuda")
DTYPES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True, slots=True)
class TorchWork:
    """What one request does.

    device: auto takes CUDA where there is one. batch: samples at once; one sample is an image, a text, or a product of
    two matrices. batches: of one request. size: 0 for the model's own. threads: of the CPU, 0 for torch's own choice.
    """

    model: Model = Model.MATMUL
    train: bool = False
    device: str = "auto"
    batch: int = 64
    batches: int = 10
    size: int = 0
    dtype: str = "float32"
    threads: int = 0

    def __post_init__(self) -> None:
        checks.count(self.batch, "batch", minimum=1, maximum=1_000_000)
        checks.count(self.batches, "batches", minimum=1, maximum=1_000_000)
        checks.count(self.threads, "threads", maximum=4096)
        least = SIZES[self.model][1]
        if self.size and not least <= self.size <= 65536:
            raise InvalidValue(
                f"{self.model} cannot have size {self.size}", hint=f"give a number from {least} to 65536"
            )
        if self.train and self.model in (Model.LLAMA, Model.MATMUL):
            raise InvalidValue(f"{self.model} is not for training", hint="give --mode eval, or another --model")

    @property
    def side(self) -> int:
        """The size that counts."""
        return self.size or SIZES[self.model][0]

    @property
    def flops(self) -> float:
        """Floating point operations of one sample, of a matrix product; 0 for models, where nobody counted."""
        return 2.0 * self.side**3 if self.model is Model.MATMUL else 0.0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidValue(f"torch: {message}", hint="docs/how-to/torch.md lists its options")


def from_words(words: Sequence[str]) -> TorchWork:
    """Read a request's words; later ones win. InvalidValue for anything else."""
    parser = _Parser(prog="torch", add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    parser.add_argument("--model", type=str, choices=[one.value for one in Model])
    parser.add_argument("--mode", choices=["train", "eval"])
    parser.add_argument("--device", choices=DEVICES)
    parser.add_argument("--dtype", choices=DTYPES)
    for name in ("--batch", "--batches", "--size", "--threads"):
        parser.add_argument(name, type=int)
    row = vars(parser.parse_args(list(words)))
    if "model" in row:
        row["model"] = Model(row["model"])
    if "mode" in row:
        row["train"] = row.pop("mode") == "train"
    return TorchWork(**row)
