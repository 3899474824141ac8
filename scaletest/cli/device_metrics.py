"""What a user of --device-metrics-url hears before anything is measured: workers tell it in their
log only.
"""

from __future__ import annotations


def doubts(url: str) -> list[str]:
    """A warning when the exporter tells of no device now; none without a URL. It is asked once, and
    must be quick.
    """
    if not url:
        return []
    from scaletest.system.devices.exporter import problem

    text = problem(url)
    return (
        [f"{text}; start an exporter of this node's devices, or correct --device-metrics-url"]
        if text
        else []
    )
