"""Make workloads from a template: YAML that is parsed first, and then filled in value by value.

Placeholders are those of `documents.templates`, as in `"{{ workers }}"`. Any field may stand in a
template: what is not filled in passes through. Without placeholders a user's YAML works as well: it
gets its name, and our labels, and what options ask for. Templates of the Run:ai scale test tool
keep its placeholders, as in JOB_NAME_PLACEHOLDER.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import Any

from scaletest.cluster.pod_requests import parse_quantity
from scaletest.documents import reader
from scaletest.documents.templates import change_texts, fill_templates
from scaletest.lifecycle.kinds import DEFAULT_RESOURCE, RUNAI_GROUP, WORKLOAD_LABEL
from scaletest.lifecycle.plan import RUN_LABEL, LifecyclePlan
from scaletest.model.checks import cut_text
from scaletest.model.errors import InvalidValue

# Where a volume is mounted, as the Run:ai scale test tool does.
MOUNT_PATH = "/path-new"
VOLUME = "scaletest-pvc"
# The placeholders of the Run:ai scale test tool, and ours.
RUNAI_PLACEHOLDERS = {
    "JOB_NAME_PLACEHOLDER": "{{ name }}",
    "PROJECT_PLACEHOLDER": "{{ project }}",
    "NUM_WORKERS_PLACEHOLDER": "{{ workers }}",
    # Run:ai takes a number of GPUs as text
    "NUM_GPUS": "{{ gpus | string | toyaml }}",
}
_RUNAI = re.compile(r"[A-Z][A-Z0-9_]*_PLACEHOLDER|\bNUM_GPUS\b")


def text_of(name: str, file: Path | None) -> str:
    """Read the template in a file, else that of the kind of this name.

    UsageError when the file cannot be read.
    """
    return reader.text_of(
        file or Path(__file__).parents[1] / "templates" / f"{name}.yaml",
        f"the template {file or name}",
        "give <template> FILE",
    )


class Workloads:
    """Makes the objects of a plan's workloads."""

    def __init__(self, plan: LifecyclePlan) -> None:
        self._plan = plan
        self._values = {
            "image": plan.image,
            "seconds": plan.seconds,
            "resource": plan.resource,
            "gpus": plan.gpus,
            "workers": plan.workers,
            "project": plan.project,
            "namespace": plan.namespace,
            "run": plan.run,
        }
        parsed = reader.read(
            plan.template, "the template", "give the workload alone; create what it needs before"
        )
        if not isinstance(parsed, dict) or not parsed.get("apiVersion") or not parsed.get("kind"):
            raise InvalidValue(
                "the template is not a Kubernetes object",
                hint="it needs apiVersion, kind and metadata",
            )
        # elsewhere NUM_GPUS is a usual name of a variable
        if "_PLACEHOLDER" in plan.template:
            parsed = change_texts(parsed, _replace_runai_placeholders, _replace_runai_placeholders)
        self._parsed = parsed
        self.of_runai = str(self._parsed["apiVersion"]).startswith(RUNAI_GROUP)
        sample = self.make("j-000000")
        self.api_version = str(sample["apiVersion"])
        self.kind = str(sample["kind"])

    def make(self, name: str) -> dict[str, Any]:
        """Make an object of that name. Raises InvalidValue for a placeholder that nothing fills."""
        body: dict[str, Any] = fill_templates(self._parsed, {**self._values, "name": name})
        labels = {RUN_LABEL: self._plan.run, WORKLOAD_LABEL: name}
        _add_labels(body, labels)
        body["metadata"]["name"] = name
        body["metadata"].pop("generateName", None)
        if body["kind"] == "Pod":
            self._add_volume(body["spec"])
        # pod templates, however deep, of which a JobSet has several
        for table in _walk_tables(body.get("spec")):
            template = table.get("template")
            if isinstance(template, dict) and (template.get("spec") or {}).get("containers"):
                _add_labels(template, labels)
                self._add_volume(template["spec"])
        if self._plan.pvc and self.of_runai:
            claim = {"ephemeral": True, "size": "1Mi", "path": MOUNT_PATH, "readWriteOnce": True}
            body["spec"]["pvcs"] = {"items": {"pvc": {"value": claim}}}
        for table in _walk_tables(body):
            claims, limits = table.get("volumeClaimTemplate"), table.get("limits")
            if isinstance(claims, dict):
                _add_labels(claims, labels)  # by which the sampler finds the claims
            if isinstance(limits, dict):
                # a resource of 0 would ask for a kind that may not exist
                table["limits"] = {
                    resource: amount
                    for resource, amount in limits.items()
                    if "/" not in resource or str(amount) != "0"
                }
        return body

    def devices(self) -> dict[str, Decimal]:
        """Return the most that a container asks for of each resource with a slash in its name.

        A part of a device, which only Run:ai knows, needs a whole one.
        """
        devices: dict[str, Decimal] = {}
        for table in _walk_tables(self.make("j-000000")):
            limits = table.get("limits")
            requests = dict(limits) if isinstance(limits, dict) else {}
            if self.of_runai and isinstance(table.get("gpu"), dict):
                requests[DEFAULT_RESOURCE] = table["gpu"].get("value", 0)
            for name, text in requests.items():
                amount = parse_quantity(text).to_integral_value(ROUND_CEILING)
                if "/" in name and amount.is_finite() and amount > devices.get(name, 0):
                    devices[name] = amount
        return devices

    def _add_volume(self, spec: dict[str, Any]) -> None:
        """Add a volume to a pod, if the plan asks for volumes."""
        if self._plan.pvc:
            claim = {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Mi"}},
            }
            volume = {"name": VOLUME, "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
            spec.setdefault("volumes", []).append(volume)
            mounts = spec["containers"][0].setdefault("volumeMounts", [])
            mounts.append({"name": VOLUME, "mountPath": MOUNT_PATH})


def _walk_tables(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every table within a value, and the value if it is one."""
    if isinstance(value, dict):
        yield value
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _walk_tables(inner)


def _replace_runai_placeholders(text: str) -> str:
    """Put our placeholders in place of those of the Run:ai scale test tool.

    InvalidValue for an unknown one.
    """
    for name in _RUNAI.findall(text):
        if name not in RUNAI_PLACEHOLDERS:
            raise InvalidValue(
                f"nothing fills the template's placeholder {cut_text(name, 80)}",
                hint=f"the known ones are {', '.join(RUNAI_PLACEHOLDERS)}; write the value in its"
                " place",
            )
    if text == "NUM_GPUS":
        return RUNAI_PLACEHOLDERS[text]
    # within a longer text it needs no quotes of its own
    text = re.sub(r"\bNUM_GPUS\b", "{{ gpus }}", text)
    return _RUNAI.sub(lambda match: RUNAI_PLACEHOLDERS[match[0]], text)


def _add_labels(body: dict[str, Any], labels: Mapping[str, str]) -> None:
    metadata = body.setdefault("metadata", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
