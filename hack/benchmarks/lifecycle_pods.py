"""Bar: 20,000 pods without devices take less than 500 MB and at most one API call a second.

The control plane keeps 1,000 finished pods and collects the others during the run; all must be
measured.
"""

from __future__ import annotations

import sys
from itertools import pairwise

from hack.benchmarks.lifecycle_runs import arguments, plane, run, tell

MOST_MB = 500.0
MOST_FINISHED = 1000


def main() -> int:
    options = arguments(__doc__, pods=20_000, nodes=400)
    out = options.out / "lifecycle.pods"
    with plane(options.nodes, collected=min(MOST_FINISHED, options.pods // 10)) as cluster:
        outcome = run(
            cluster,
            out,
            "-t",
            "pod",
            "-n",
            str(options.pods),
            "-g",
            "0",
            "-p",
            "40",
            "--timeout",
            "3000",
        )
        left = len(cluster.kubectl("get", "pods", "--no-headers", "-o", "name").splitlines())
    books, sampling = outcome["books"], outcome["sampling"]
    rates = sampling_rates(sampling["course"])
    ok = (
        outcome["exit_code"] == 0
        and books["balanced"]
        and books["measured"] == options.pods
        and left < options.pods
        and sampling["peak_memory_mb"] < MOST_MB
        and max(rates, default=0.0) <= 1.0
    )
    tell(
        "lifecycle.pods",
        ok,
        books=books,
        left_in_cluster=left,
        peak_memory_mb=sampling["peak_memory_mb"],
        limit_mb=MOST_MB,
        sightings=sampling["sightings"],
        sampler_requests=sampling["requests"],
        most_requests_per_s=max(rates, default=0.0),
        pods_per_s=outcome["throughput"]["per_s"],
        folder=str(out),
    )
    return 0 if ok else 1


def sampling_rates(course: list[list[float]]) -> list[float]:
    """Compute the sampler's API calls a second between its samples; the first list is left out."""
    return [(b[1] - a[1]) / max(b[0] - a[0], 1.0) for a, b in pairwise(course)]


if __name__ == "__main__":
    sys.exit(main())
