"""Workloads from templates: YAML that is read first and filled in then, value by value, never as
text.

Placeholders are those of `documents.templates`, as in `"{{ workers }}"`, or `${workers}`, which
means the same but for one thing: alone it needs no quotes to be a number, and with quotes it is
text. Any field may stand in a template: what is not filled in passes through. Without placeholders
a user's YAML works as well: it gets its name, and our labels, and what options ask for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from scaletest.documents import reader
from scaletest.documents.templates import changed, fill
from scaletest.lifecycle.kinds import RUNAI_GROUP, WORKLOAD_LABEL
from scaletest.model.checks import cut
from scaletest.model.errors import InvalidValue
from scaletest.model.lifecycle import RUN_LABEL

FOLDER = Path(__file__).parent / "templates"
MOUNT_PATH, VOLUME = "/path-new", "scaletest-pvc"
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,8}")
_ALONE = re.compile(r"\$\{([a-z_]+)\}")
_BRACES = re.compile(r"\{[{%#]")


@dataclass(frozen=True, slots=True)
class Extras:
    """What options add to every pod. pvc: an ephemeral claim; storage_class: "" for the default
    one.

    claim_template: a ResourceClaimTemplate of the namespace, for devices by DRA.
    """

    pvc: bool = False
    storage_class: str = ""
    claim_template: str = ""


NO_EXTRAS = Extras()


def text_of(name: str, file: Path | None) -> str:
    """The template's text: of a file, else of the kind of that name. UsageError when the file
    cannot be read.
    """
    path = file or FOLDER / f"{name}.yaml"
    return reader.text_of(path, f"the template {file or name}", "give --template FILE")


class Workloads:
    """Makes the object of each workload. values: what placeholders stand for, `name` excepted."""

    def __init__(
        self, text: str, values: Mapping[str, str], run: str, extras: Extras = NO_EXTRAS
    ) -> None:
        self._values = {name: _number_or_text(value) for name, value in values.items()}
        self._run, self._extras = run, extras
        self._parsed = changed(_parse(text), _translated, _jinja)
        self.sample = self.make("j-000000")

    @property
    def api_version(self) -> str:
        """The version of the objects."""
        return str(self.sample["apiVersion"])

    @property
    def kind(self) -> str:
        """The kind of the objects."""
        return str(self.sample["kind"])

    def make(self, name: str) -> dict[str, Any]:
        """The object of that name. Raises InvalidValue for a placeholder that nothing fills."""
        body: dict[str, Any] = fill(self._parsed, {**self._values, "name": name})
        labels = {RUN_LABEL: self._run, WORKLOAD_LABEL: name}
        _label(body, labels)
        body["metadata"]["name"] = name
        body["metadata"].pop("generateName", None)
        if body["kind"] == "Pod":
            self._extend(body["spec"], labels)
        for template in pod_templates(body.get("spec")):
            _label(template, labels)
            self._extend(template["spec"], labels)
        if self._extras.pvc and str(body["apiVersion"]).startswith(RUNAI_GROUP):
            body["spec"]["pvcs"] = {"items": {"pvc": {"value": self._runai_pvc()}}}
        _drop_zero(body)
        return body

    def _extend(self, spec: dict[str, Any], labels: Mapping[str, str]) -> None:
        main = spec["containers"][0]
        if self._extras.pvc:
            claim: dict[str, Any] = {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Mi"}},
            }
            if self._extras.storage_class:
                claim["storageClassName"] = self._extras.storage_class
            volume = {"volumeClaimTemplate": {"metadata": {"labels": dict(labels)}, "spec": claim}}
            spec.setdefault("volumes", []).append({"name": VOLUME, "ephemeral": volume})
            main.setdefault("volumeMounts", []).append({"name": VOLUME, "mountPath": MOUNT_PATH})
        if self._extras.claim_template:
            claim = {"name": "device", "resourceClaimTemplateName": self._extras.claim_template}
            spec.setdefault("resourceClaims", []).append(claim)
            main.setdefault("resources", {}).setdefault("claims", []).append({"name": "device"})

    def _runai_pvc(self) -> dict[str, Any]:
        claim = {"ephemeral": True, "size": "1Mi", "path": MOUNT_PATH, "readWriteOnce": True}
        if self._extras.storage_class:
            claim["storageClass"] = self._extras.storage_class
        return claim


def _number_or_text(value: str) -> int | str:
    return int(value) if _NUMBER.fullmatch(value) else value


def pod_templates(value: Any) -> Iterator[dict[str, Any]]:
    """Every pod template below a value: what stands under `template` and has containers."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if (
                key == "template"
                and isinstance(inner, dict)
                and (inner.get("spec") or {}).get("containers")
            ):
                yield inner
            else:
                yield from pod_templates(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from pod_templates(inner)


def _parse(text: str) -> dict[str, Any]:
    bodies = reader.read_all(text, "the template", "give one Kubernetes object", quoted=True)
    if len(bodies) != 1:
        raise InvalidValue(
            f"the template holds {len(bodies)} objects",
            hint="give the workload alone; create what it needs before",
        )
    body = bodies[0]
    if not isinstance(body, dict) or not body.get("apiVersion") or not body.get("kind"):
        raise InvalidValue(
            "the template is no Kubernetes object", hint="it needs apiVersion, kind and metadata"
        )
    return body


def _translated(text: str) -> str:
    """A text with `${NAME}` as Jinja writes it.

    Alone and without quotes it becomes a number where it holds one, in quotes it stays text.
    """
    alone = _ALONE.fullmatch(text)
    if alone is None:
        return _jinja(text)
    quoted = "string | " if isinstance(text, reader.Quoted) else ""
    return f"{{{{ {alone[1]} | {quoted}toyaml }}}}"


def _jinja(text: str) -> str:
    if "${" not in text:
        return text
    return Template.pattern.sub(_placeholder, _BRACES.sub(r"{{ '\g<0>' }}", text))


def _placeholder(match: re.Match[str]) -> str:
    name = match["named"] or match["braced"]
    if not name and not match["escaped"]:
        raise InvalidValue(
            f"the template has a dollar sign that begins no ${{NAME}}: {cut(match.string, 80)}",
            hint="write $$ for a dollar sign",
        )
    return f"{{{{ {name} }}}}" if name else "$"


def _label(body: dict[str, Any], labels: Mapping[str, str]) -> None:
    metadata = body.setdefault("metadata", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), **labels}


def _drop_zero(value: Any) -> None:
    """Take limits of no device out of every container: a resource of 0 would ask for a kind that
    may not exist.
    """
    if isinstance(value, dict):
        limits = value.get("limits")
        if isinstance(limits, dict):
            for name in [
                name for name, amount in limits.items() if "/" in name and str(amount) == "0"
            ]:
                del limits[name]
        for inner in value.values():
            _drop_zero(inner)
    elif isinstance(value, list):
        for inner in value:
            _drop_zero(inner)
