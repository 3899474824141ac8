"""A benchmark as a document, in our YAML or that of kube-perftest, and its result.

In a log a result is framed: one line that begins with a mark, to find it among other lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from scaletest.benchmarks import kube_perftest
from scaletest.benchmarks.kinds.kind import BenchmarkFailed, CommonSpec, Failure, Kind
from scaletest.benchmarks.kinds.registry import API_VERSION, GROUP, SET, kind_of
from scaletest.model import Activity, checks, wire
from scaletest.model.document import Document
from scaletest.model.errors import InvalidValue, ScaletestError
from scaletest.model.file_documents import read_written
from scaletest.model.writing import Written, members

NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


class BenchmarkPhase(StrEnum):
    """Progress of a benchmark. The last two phases are final."""

    PENDING = "Pending"
    PREPARING = "Preparing"
    RUNNING = "Running"
    SUMMARISING = "Summarising"
    COMPLETED = "Completed"
    FAILED = "Failed"

    @property
    def ended(self) -> bool:
        """Whether the phase is final."""
        return self in (BenchmarkPhase.COMPLETED, BenchmarkPhase.FAILED)


@dataclass(frozen=True, slots=True)
class Benchmark(Written):
    """One measurement.

    permutation: its index in the set; repetition: from 0; -1 for the warm-up.
    """

    name: str
    kind: Kind
    spec: CommonSpec
    warnings: tuple[str, ...] = ()
    permutation: int = 0
    repetition: int = 0

    @property
    def warm_up(self) -> bool:
        """Whether it is a warm-up, which does not count."""
        return self.repetition < 0

    @property
    def limit_s(self) -> float:
        """Time limit in seconds, after which it fails."""
        return float(self.spec.time_limit or self.kind.limit_s(self.spec))

    @property
    def trusted(self) -> tuple[str, ...]:
        """Fields that decide what runs or where files are written."""
        return tuple(
            member.name
            for member in members(self.kind.spec)
            if "trusted" in member.rule.extra
            and getattr(self.spec, member.attribute) != member.default
        )

    def document(self) -> dict[str, Any]:
        """The document of the benchmark, without fields that have their defaults."""
        return {
            "apiVersion": API_VERSION,
            "kind": self.kind.name,
            "metadata": {"name": self.name},
            "spec": self.spec.to_dict(),
        }

    def to_dict(self) -> dict[str, Any]:
        """The document with the place in the set."""
        places = {"permutation": self.permutation, "repetition": self.repetition}
        return {**self.document(), **places}

    def failed_by(
        self,
        error: BenchmarkFailed | ScaletestError | OSError,
        *,
        started_s: float = 0.0,
        finished_s: float = 0.0,
    ) -> BenchmarkResult:
        """Its result after an error."""
        if isinstance(error, ScaletestError):
            error = BenchmarkFailed(Failure.REFUSED, error.message, remedy=error.hint)
        elif isinstance(error, OSError):
            error = BenchmarkFailed(
                Failure.EXIT, f"{error.filename or 'a file'}: {error.strerror or error}"
            )
        return BenchmarkResult(
            self.name,
            BenchmarkPhase.FAILED,
            failure=error.failure,
            message=error.message,
            lines=error.lines,
            remedy=error.remedy,
            started_s=started_s,
            finished_s=finished_s,
        )


@dataclass(frozen=True, slots=True)
class BenchmarkResult(Document):
    """The result of a benchmark, as it is stored and sent. Times in seconds since the epoch.

    failure, message, lines: why nothing was measured. remedy: what to do, where that is more
    specific than the advice of the failure. environment: versions and places that the executor
    found. activities: by part, as in server-0, where its time went; empty where it was not
    sampled.
    """

    document_name = "the benchmark's result"
    name: str
    phase: BenchmarkPhase
    headlines: Mapping[str, float] = field(default_factory=dict)
    result: Mapping[str, Any] = field(default_factory=dict)
    network: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    failure: Failure = Failure.NONE
    message: str = ""
    lines: tuple[str, ...] = ()
    remedy: str = ""
    notes: tuple[str, ...] = ()
    started_s: float = 0.0
    finished_s: float = 0.0
    permutation: int = 0
    repetition: int = 0
    activities: Mapping[str, Activity] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the benchmark completed."""
        return self.phase is BenchmarkPhase.COMPLETED

    @property
    def advice(self) -> str:
        """Advice after a failure."""
        return self.remedy or self.failure.advice


def read(document: Any) -> Benchmark:
    """The benchmark of a document, ours or kube-perftest's. InvalidValue names what is wrong."""
    warnings: list[str] = []
    body = envelope(document, warnings)
    kind = kind_of(body["kind"])
    spec = read_written(kind.spec, body["spec"], f"the spec of {kind.name}", warnings)
    return Benchmark(name_of(body, kind.name.lower()), kind, spec, tuple(warnings))


def envelope(document: Any, warnings: list[str]) -> dict[str, Any]:
    """The document with apiVersion and spec, converted if it is kube-perftest's, and without what
    hostNetwork makes void; each adds a warning. InvalidValue for other API groups and unknown keys.
    """
    if not isinstance(document, Mapping) or not document.get("kind"):
        raise InvalidValue(
            "the document has no kind", hint="see an example with: scaletest bench explain KIND"
        )
    group = str(document.get("apiVersion", API_VERSION)).partition("/")[0]
    unknown = set(document) - {"apiVersion", "kind", "metadata", "spec", "status"}
    checks.refuse(
        (
            group not in (GROUP, *kube_perftest.GROUPS),
            f"apiVersion {group[:60]!r} is unknown",
            f"write {API_VERSION}",
        ),
        (
            unknown,
            f"the document has an unknown key {min(map(str, unknown), default='')!r}",
            "put it under spec",
        ),
    )
    body = {"apiVersion": API_VERSION, **document, "spec": document.get("spec") or {}}
    if kube_perftest.written_for(body["apiVersion"]):
        warnings.append(f"apiVersion {body['apiVersion']} is read as {API_VERSION}")
        body = kube_perftest.converted(body, API_VERSION)
    return {**body, "spec": _without_void(body["spec"], warnings)}


def _without_void(spec: Any, warnings: list[str]) -> Any:
    """The spec without the fields that are about a network of the pod, where it has none."""
    if not isinstance(spec, Mapping) or spec.get("hostNetwork") is not True:
        return spec
    void = [name for name in ("networkName", "mtu") if spec.get(name)]
    warnings += [
        f"{name} is ignored: with hostNetwork pods use the node's network" for name in void
    ]
    return {name: value for name, value in spec.items() if name not in void}


def name_of(document: Mapping[str, Any], default: str) -> str:
    """metadata.name, or the default."""
    metadata = document.get("metadata") or {}
    name = metadata.get("name", default) if isinstance(metadata, Mapping) else None
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidValue(
            f"the name {str(name)[:60]!r} cannot be used", hint="use a-z, 0-9, '-' and '.'"
        )
    return name


def is_set(document: Any) -> bool:
    """Whether the document is a set of benchmarks."""
    return isinstance(document, Mapping) and document.get("kind") == SET


MARK = "SCALETEST-RESULT "
MOST_CHARACTERS = 200_000


def frame(result: BenchmarkResult) -> str:
    """The line of a result; without its details if it would be too long for readers of logs."""
    line = _line(result)
    if len(line) <= MOST_CHARACTERS:
        return line
    note = f"the details were left out: {len(line)} characters are too many"
    return _line(replace(result, result={}, notes=(*result.notes, note)))


def _line(result: BenchmarkResult) -> str:
    """Encode as ASCII, so that readers split no Unicode line ends, and printers escape nothing."""
    return MARK + json.dumps(result.to_dict(), separators=(",", ":"), allow_nan=False)


def unframe(log: str) -> BenchmarkResult | None:
    """The last complete framed result of a log; None without one."""
    for line in reversed(log.splitlines()):
        if line.startswith(MARK):
            try:
                return BenchmarkResult.from_dict(
                    wire.load(line.removeprefix(MARK), "the framed result")
                )
            except InvalidValue:
                continue
    return None
