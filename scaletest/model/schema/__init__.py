"""JSON Schemas (draft 2020-12) of all documents that are written or read, one file each.

They are made from the dataclasses of the model where a document is one. Nothing here reads files or
checks results at run time. To add a field, add it to the class, or to the document's file where no
class makes it; a test fails until both agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from scaletest.model.schema import comparison, environment, lifecycle, plan, record, result
from scaletest.model.schema.parts import Schema

DOCUMENTS: Mapping[str, Callable[[], Schema]] = {
    "plan-file": plan.file,
    "plan": plan.stored,
    "result": result.result,
    "record": record.record,
    "measurement": record.measurement,
    "node-sample": record.node_sample,
    "environment": environment.environment,
    "comparison": comparison.comparison,
    "lifecycle": lifecycle.plan,
    "lifecycle-result": lifecycle.result,
    "lifecycle-submission": lifecycle.submission,
    "lifecycle-record": lifecycle.record,
    "lifecycle-comparison": lifecycle.comparison,
}

__all__ = ["DOCUMENTS", "Schema"]
