"""Options of scaletest bench run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class BenchRunOptions:
    """The benchmarks to run, where, and what must hold.

    subject: a file, a kind, or None to go on with `resume`.

    sets: KEY=VALUE each.
    """

    subject: str | None
    sets: tuple[str, ...]
    repetitions: int | None
    random_order: bool
    seed: int | None
    warm_up: int | None
    stop_on_failure: bool
    thresholds: tuple[str, ...]
    paused: bool
    resume: str
    queue: str
    namespace: str
    redis_url: str
    scratch: Path | None
    no_causes: bool
    run_dir: Path | None
    output: str
