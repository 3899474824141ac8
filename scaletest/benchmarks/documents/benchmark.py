"""Read a benchmark from its document, in our YAML or that of kube-perftest."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scaletest.benchmarks.documents import kube_perftest
from scaletest.benchmarks.documents.result import BenchmarkPhase, BenchmarkResult
from scaletest.benchmarks.kinds import (
    API_VERSION,
    GROUP,
    BenchmarkFailed,
    CommonSpec,
    Failure,
    Kind,
    registry,
)
from scaletest.model import checks, errors, file_documents, writing

# Limit for names in a cluster: Jobs and pods have longer ones, which must be valid host names.
MOST_NAME = 40
NAME_PATTERN = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Benchmark(writing.Written):
    """One measurement."""

    name: str
    kind: Kind
    spec: CommonSpec
    warnings: tuple[str, ...] = ()
    permutation: int = 0  # its index in the set
    repetition: int = 0  # from 0; -1 for the warm-up

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
            for member in writing.document_members(self.kind.spec)
            if "trusted" in member.rule.extra
            and getattr(self.spec, member.attribute) != member.default
        )

    def document(self) -> dict[str, Any]:
        """Return its document, without fields that have their defaults."""
        return {
            "apiVersion": API_VERSION,
            "kind": self.kind.name,
            "metadata": {"name": self.name},
            "spec": self.spec.to_dict(),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the document with the place in the set."""
        return {
            **self.document(),
            "permutation": self.permutation,
            "repetition": self.repetition,
        }

    def failed_by(
        self,
        error: BenchmarkFailed | errors.ScaletestError | OSError,
        *,
        started_s: float = 0.0,
        finished_s: float = 0.0,
    ) -> BenchmarkResult:
        """Return its result after an error."""
        if isinstance(error, errors.ScaletestError):
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


def read_benchmark(document: Any) -> Benchmark:
    """Read a document, ours or kube-perftest's. InvalidValue names what is wrong."""
    warnings: list[str] = []
    body = read_envelope(document, warnings)
    kind = registry.kind_of(body["kind"])
    spec = file_documents.read_file_document(
        kind.spec, body["spec"], f"the spec of {kind.name}", warnings
    )
    return Benchmark(read_name(body, kind.name.lower()), kind, spec, tuple(warnings))


def read_envelope(document: Any, warnings: list[str]) -> dict[str, Any]:
    """Return the document with apiVersion and spec, converted if it is kube-perftest's.

    A conversion, and a field that hostNetwork makes void, add a warning. Raises InvalidValue for
    other API groups and unknown keys.
    """
    if not isinstance(document, Mapping) or not document.get("kind"):
        raise errors.InvalidValue(
            "the document has no kind", hint="see an example with: scaletest bench explain KIND"
        )
    group = str(document.get("apiVersion", API_VERSION)).partition("/")[0]
    unknown = set(document) - {"apiVersion", "kind", "metadata", "spec", "status"}
    checks.raise_first_mistake(
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
    if group in kube_perftest.GROUPS:
        warnings.append(f"apiVersion {body['apiVersion']} is read as {API_VERSION}")
        body = kube_perftest.convert(body, API_VERSION)
    # with hostNetwork a pod has no network of its own that these could be about
    spec = body["spec"]
    if isinstance(spec, Mapping) and spec.get("hostNetwork") is True:
        ignored = [name for name in ("networkName", "mtu") if spec.get(name)]
        warnings += [
            f"{name} is ignored: with hostNetwork pods use the node's network" for name in ignored
        ]
        body["spec"] = {name: value for name, value in spec.items() if name not in ignored}
    return body


def read_name(document: Mapping[str, Any], default: str) -> str:
    """Return metadata.name, or the default."""
    metadata = document.get("metadata") or {}
    name = metadata.get("name", default) if isinstance(metadata, Mapping) else None
    if not isinstance(name, str) or not NAME_PATTERN.fullmatch(name):
        raise errors.InvalidValue(
            f"the name {str(name)[:60]!r} cannot be used", hint="use a-z, 0-9, '-' and '.'"
        )
    return name


def is_set(document: Any) -> bool:
    """Check whether the document is a set of benchmarks."""
    return isinstance(document, Mapping) and document.get("kind") == registry.SET
