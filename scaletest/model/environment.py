"""The environment of a run: where and with what it was made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model.declared import VERSIONED, Count
from scaletest.model.document import Document


@dataclass(frozen=True, slots=True)
class Environment(Document):
    """Everything that a reader needs to repeat the run."""

    document_name = "the environment"
    constants = VERSIONED

    scaletest: Annotated[str, "version"]
    began: Annotated[str, "when the run began, ISO 8601 in UTC"]
    command_line: Annotated[Sequence[str], "passwords in URLs are masked"]
    host: str
    python: Annotated[str, "version"]
    system: Annotated[str, "operating system and its version"]
    kernel: Annotated[str, "release"]
    machine: Annotated[str, "architecture"]
    processor: str
    memory: str
    clock_source: Annotated[str, "of the kernel"]
    cores: Annotated[Count | None, "that the run might use"]
    packages: Annotated[Mapping[str, str], "versions by name"]
    devices: Annotated[Sequence[str], "files that --device-glob matched"]
