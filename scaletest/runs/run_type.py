"""What a run type tells the rest of the product about itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from scaletest.model.verdict import Verdict
from scaletest.runs.folder import AnyPlan, Layout, RunFolder


class JudgedRun(Protocol):
    """A stored run, judged anew."""

    @property
    def environment(self) -> Mapping[str, Any]:
        """Where and with what it was made."""

    @property
    def verdict(self) -> Verdict:
        """The verdict."""


class RunType(Protocol):
    """One run type. Its files, its plan and its judge; nothing else in the product lists types."""

    @property
    def name(self) -> str:
        """As plan.json names it."""

    @property
    def layout(self) -> Layout:
        """Its files."""

    def plan(self, document: dict[str, Any]) -> AnyPlan:
        """Read and check a plan; InvalidValue names the field."""

    def check(self, folder: RunFolder) -> None:
        """UsageError or InvalidValue unless the whole run can be read, in bounded memory."""
