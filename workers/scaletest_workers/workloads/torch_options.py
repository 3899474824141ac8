"""Options of a PyTorch micro-benchmark: model, training or inference, work of a request.

Imports no torch.

Models and fields are those of kube-perftest's PyTorch benchmark, which follows TorchBench. Weights
and inputs are random, since only speed is measured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from scaletest.documents.typed_arguments import TypedArguments
from scaletest.model.checks import raise_first_mistake
from scaletest.model.declared import choice
from scaletest.model.document import check_fields

# auto uses CUDA if there is a device.
DEVICES = ("auto", "cpu", "cuda")


class Model(StrEnum):
    """The model that computes."""

    ALEXNET = "alexnet"
    RESNET50 = "resnet50"
    LLAMA = "llama"


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchWork:
    """The work of one request."""

    model: Model = Model.RESNET50
    mode: Annotated[str, choice(("train", "eval"))] = "eval"
    device: Annotated[str, choice(DEVICES)] = "auto"
    # samples in a batch, each an image or a text, and batches in a request
    batch: Annotated[int, Meta(ge=1, le=1_000_000)] = 64
    batches: Annotated[int, Meta(ge=1, le=1_000_000)] = 10

    def __post_init__(self) -> None:
        check_fields(self)
        raise_first_mistake(
            (
                self.train and self.model is Model.LLAMA,
                f"{self.model} is not for training",
                "give --mode eval, or another --model",
            ),
        )

    @property
    def train(self) -> bool:
        """Whether the model is trained."""
        return self.mode == "train"


def from_words(arguments: Sequence[str]) -> TorchWork:
    """Parse the options of a request; the last of several counts.

    InvalidValue for anything else.
    """
    return TorchWork(**TypedArguments(TorchWork, "torch").values(arguments))
