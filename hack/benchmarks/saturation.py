"""Functions for the bars of the saturation search: a service, a run, one JSON line a bar."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from scaletest.analysis.estimate import Estimate, t95
from scaletest.model.saturation import Attempt, SaturationStep
from scaletest.saturation.folder import SaturationFolder

BATCHES = 20


@contextmanager
def service(*arguments: str) -> Iterator[str]:
    """Start `hack.service` in a process of its own, on loopback; yields its URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hack.service", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/"
    finally:
        process.kill()
        process.communicate()


def line(*arguments: str) -> list[str]:
    """Build the command line of a run whose result is JSON."""
    return [
        sys.executable,
        "-m",
        "scaletest",
        "saturate",
        "--format",
        "json",
        "--progress",
        "plain",
        *arguments,
    ]


def saturate(*arguments: str) -> dict[str, Any]:
    """Run a saturation; returns its result, with the last step's `mean_latency_s` and interval."""
    with tempfile.TemporaryDirectory() as folder:
        command = line("--run-dir", f"{folder}/run", *arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)
        if done.returncode not in (0, 3, 4):
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
        stored = SaturationFolder(Path(folder) / "run").load()
    last = stored.steps[-1]
    return {
        **json.loads(done.stdout),
        "mean_latency_s": mean_latency(last, stored.samples[last.number]),
    }


def mean_latency(step: SaturationStep, samples: Sequence[Attempt]) -> Estimate | None:
    """Compute the mean latency in s of successes after the warm-up, with its 95 % interval.

    None with fewer than 200. The interval is that of the means of 20 batches by time, which are
    independent; latencies of neighbours are not.
    """
    good = sorted(
        (sample.due_s, sample.latency_s) for sample in samples if sample.ok and sample.final
    )
    values = [latency for due, latency in good if step.warmup_s <= due < step.seconds]
    if len(values) < 10 * BATCHES:
        return None
    cuts = [len(values) * index // BATCHES for index in range(BATCHES + 1)]
    means = [statistics.fmean(values[low:high]) for low, high in pairwise(cuts)]
    mean, half = (
        statistics.fmean(values),
        t95(BATCHES - 1) * statistics.stdev(means) / math.sqrt(BATCHES),
    )
    return Estimate(mean, mean - half, mean + half)


def report(bar: str, met: bool, **figures: Any) -> int:
    """Print the bar's line; exit code 0 when it is met, else 3."""
    print(
        json.dumps({"schema_version": 1, "kind": "bar", "bar": bar, "met": met, **figures}),
        flush=True,
    )
    return 0 if met else 3
