"""Options of a PyTorch micro-benchmark: model, training or inference, work of a request.

Imports no torch.

Models and fields are those of kube-perftest's PyTorch benchmark, which follows TorchBench, and a
plain matrix product. Weights and inputs are random, since only speed is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from scaletest.kinds.typed_arguments import TypedArguments
from scaletest.model import declared
from scaletest.model.checks import refuse


class Model(StrEnum):
    """The model that computes."""

    ALEXNET = "alexnet"
    RESNET50 = "resnet50"
    LLAMA = "llama"
    MATMUL = "matmul"


# Default and minimum of --size: side of an image, tokens of a text, side of a matrix.
SIZES = {
    Model.ALEXNET: (224, 63),
    Model.RESNET50: (224, 32),
    Model.LLAMA: (32, 1),
    Model.MATMUL: (1024, 1),
}
# The child's exit code when PyTorch cannot be loaded, as EX_UNAVAILABLE of sysexits.h.
UNAVAILABLE = 69
DEVICES = ("auto", "cpu", "cuda")
DTYPES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchWork:
    """The work of one request.

    device: auto uses CUDA if there is a device. batch: samples in a batch; a sample is an
    image, a text, or a product of two matrices. batches: in one request. size: 0 for the
    model's default. threads: of the CPU, 0 for torch's default.
    """

    model: Model = Model.MATMUL
    mode: Annotated[str, declared.choice(("train", "eval"))] = "eval"
    device: Annotated[str, declared.choice(DEVICES)] = "auto"
    batch: Annotated[int, Meta(ge=1, le=1_000_000)] = 64
    batches: Annotated[int, Meta(ge=1, le=1_000_000)] = 10
    size: int = 0
    dtype: Annotated[str, declared.choice(DTYPES)] = "float32"
    threads: Annotated[int, Meta(ge=0, le=4096)] = 0

    def __post_init__(self) -> None:
        declared.check(self)
        least = SIZES[self.model][1]
        refuse(
            (
                self.size and not least <= self.size <= 65536,
                f"{self.model} cannot have size {self.size}",
                f"give a number from {least} to 65536",
            ),
            (
                self.train and self.model in (Model.LLAMA, Model.MATMUL),
                f"{self.model} is not for training",
                "give --mode eval, or another --model",
            ),
        )

    @property
    def train(self) -> bool:
        """Whether the model is trained."""
        return self.mode == "train"

    @property
    def side(self) -> int:
        """The size, or the default of the model."""
        return self.size or SIZES[self.model][0]

    @property
    def flops(self) -> float:
        """Floating-point operations of one matrix product; 0 (unknown) for models."""
        return 2.0 * self.side**3 if self.model is Model.MATMUL else 0.0


def from_words(arguments: Sequence[str]) -> TorchWork:
    """Parse the options of a request; the last of several counts.

    InvalidValue for anything else.
    """
    return TorchWork(**TypedArguments(TorchWork, "torch").values(arguments))
