"""A new run's plan: `model` says what it is; its id is drawn here."""

from __future__ import annotations

import secrets

from scaletest.model.lifecycle_plan import LifecyclePlan

__all__ = ["LifecyclePlan", "new_run"]


def new_run() -> str:
    """An id for a run: six hex digits."""
    return secrets.token_hex(3)
