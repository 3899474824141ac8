"""Read the document to run: of a file or a kind, with what the command line changes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scaletest.benchmarks.documents.benchmark import is_set
from scaletest.benchmarks.documents.sweep import merge
from scaletest.benchmarks.kinds import API_VERSION
from scaletest.benchmarks.kinds.registry import KINDS, SET, kind_of
from scaletest.benchmarks.options import BenchmarkChanges
from scaletest.documents import reader
from scaletest.model.errors import InvalidValue, UsageError


def read_document(
    subject: str, changes: BenchmarkChanges, *, on_this_machine: bool
) -> dict[str, Any]:
    """Return the document to run: of a file or of a kind, with what the options change.

    on_this_machine: fields that have another default here get it where the document has none.
    """
    path = Path(subject)
    if path.suffix in (".yaml", ".yml", ".json") or path.is_file():
        hint = "give a file with one benchmark or one BenchmarkSet"
        document = reader.read_file(path, str(path), hint)
        if not isinstance(document, dict):
            raise InvalidValue(f"{path} contains no benchmark", hint=hint)
    else:
        document = {"apiVersion": API_VERSION, "kind": kind_of(subject).name, "spec": {}}
    document = _change(document, changes)
    if not on_this_machine:
        return document
    benchmark, path_of_spec = document, ["spec"]
    if is_set(document):
        benchmark = (document.get("spec") or {}).get("template") or {}
        path_of_spec = ["spec", "template", "spec"]
    kind = KINDS.get(str(benchmark.get("kind")))
    if kind is None:
        return document
    return dict(merge(_nest(path_of_spec, dict(kind.here)), document))


def _change(document: dict[str, Any], changes: BenchmarkChanges) -> dict[str, Any]:
    """Return the document with the changes; a benchmark becomes a set where they are about one."""
    # --set a.b=value as maps in maps; the value is read as YAML
    change: dict[str, Any] = {}
    for setting in changes.sets:
        key, sign, text = setting.partition("=")
        if not sign or not key:
            raise UsageError(
                f"<set> {setting!r} is not KEY=VALUE", hint="write it as in <set> streams=2"
            )
        value = reader.read(text, f"the value of <set> {setting!r}", "put quotes around it")
        nested = _nest(key.split("."), value)
        change = {**change, **nested} if _unsets(nested) else dict(merge(change, nested))
    of_set: dict[str, Any] = {}
    if changes.repetitions is not None:
        of_set["repetitions"] = changes.repetitions
    if changes.thresholds:
        of_set["thresholds"] = list(changes.thresholds)
    if is_set(document):
        template = {"template": {"spec": change}} if change else {}
        return dict(merge(document, {"spec": {**of_set, **template}}))
    document = dict(merge(document, {"spec": change}))
    if not of_set:
        return document
    name = (document.get("metadata") or {}).get("name") or str(document.get("kind")).lower()
    template = {key: value for key, value in document.items() if key != "metadata"}
    return {
        "apiVersion": API_VERSION,
        "kind": SET,
        "metadata": {"name": name},
        "spec": {"template": template, **of_set},
    }


def _nest(path: Sequence[str], value: Any) -> Any:
    """Put a value into maps in maps: {"a": {"b": value}} for the path a, b."""
    for name in reversed(path):
        value = {name: value}
    return value


def _unsets(value: Any) -> bool:
    """Check whether it takes a field back: null must come through to the document."""
    return value is None or (isinstance(value, dict) and any(map(_unsets, value.values())))
