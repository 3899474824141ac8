"""Warn about --device-metrics-url before a run; workers write such errors to their log only."""

from __future__ import annotations

from scaletest.system.devices.exporter import problem


def doubts(url: str) -> list[str]:
    """A warning when the exporter names no device; none without a URL. One quick request."""
    if not url:
        return []

    text = problem(url)
    return (
        [f"{text}; start an exporter of this node's devices, or correct --device-metrics-url"]
        if text
        else []
    )
