"""Read the document to run: of a file or a kind, with what the command line changes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scaletest.benchmarks.documents.benchmark import is_set
from scaletest.benchmarks.documents.sweep import merge
from scaletest.benchmarks.kinds import API_VERSION, registry
from scaletest.benchmarks.options import BenchmarkChanges
from scaletest.documents import reader
from scaletest.model.errors import InvalidValue, UsageError


def read_document(
    subject: str, changes: BenchmarkChanges, *, on_this_machine: bool
) -> dict[str, Any]:
    """Return the document to run: of a file or of a kind, with what the options change.

    on_this_machine: a kind begins with the defaults that it has for a machine like this one.
    """
    path = Path(subject)
    if path.suffix in (".yaml", ".yml", ".json") or path.is_file():
        hint = "give a file with one benchmark or one BenchmarkSet"
        document = reader.read_file(path, str(path), hint)
        if not isinstance(document, dict):
            raise InvalidValue(f"{path} contains no benchmark", hint=hint)
    else:
        kind = registry.kind_of(subject)
        spec = dict(kind.here) if on_this_machine else {}
        document = {"apiVersion": API_VERSION, "kind": kind.name, "spec": spec}
    return _apply_changes(document, changes)


def _apply_changes(document: dict[str, Any], changes: BenchmarkChanges) -> dict[str, Any]:
    """Return the document with the changes; a benchmark becomes a set where they are about one."""
    change = _read_settings(changes.sets)
    # what only a set has
    set_fields: dict[str, Any] = {}
    if changes.repetitions is not None:
        set_fields["repetitions"] = changes.repetitions
    if changes.thresholds:
        set_fields["thresholds"] = list(changes.thresholds)
    if is_set(document):
        template = {"template": {"spec": change}} if change else {}
        return dict(merge(document, {"spec": {**set_fields, **template}}))
    document = dict(merge(document, {"spec": change}))
    if not set_fields:
        return document
    # make the benchmark the template of a set
    name = (document.get("metadata") or {}).get("name") or str(document.get("kind")).lower()
    template = {key: value for key, value in document.items() if key != "metadata"}
    return {
        "apiVersion": API_VERSION,
        "kind": registry.SET,
        "metadata": {"name": name},
        "spec": {"template": template, **set_fields},
    }


def _read_settings(settings: Sequence[str]) -> dict[str, Any]:
    """Read each a.b=VALUE, with the value in YAML, into maps in maps."""
    change: dict[str, Any] = {}
    for setting in settings:
        key, sign, text = setting.partition("=")
        if not sign or not key:
            raise UsageError(
                f"<set> {setting!r} is not KEY=VALUE", hint="write e.g. <set> streams=2"
            )
        *parents, name = key.split(".")
        inner = change
        for parent in parents:
            if not isinstance(inner.get(parent), dict):
                inner[parent] = {}
            inner = inner[parent]
        inner[name] = reader.read(text, f"the value of <set> {setting!r}", "put quotes around it")
    return change
