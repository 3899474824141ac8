"""20,000 pods without devices: memory under 500 MB, requests that do not grow, and finished pods collected meanwhile.

The control plane keeps 1,000 finished pods and collects the others while the run goes on; every one must count.
"""

from __future__ import annotations

import sys
from itertools import pairwise

from hack.benchmarks.lifecycle_runs import arguments, plane, run, tell

MOST_MB = 500.0
KEPT = 1000


def main() -> int:
    given = arguments(__doc__, pods=20_000, nodes=400)
    out = given.out / "lifecycle.pods"
    with plane(given.nodes, collected=min(KEPT, given.pods // 10)) as made:
        found = run(made, out, "-t", "pod", "-n", str(given.pods), "-g", "0", "-p", "40", "--timeout", "3000")
        left = len(made.kubectl("get", "pods", "--no-headers", "-o", "name").splitlines())
    books, sampling = found["books"], found["sampling"]
    rates = sampling_rates(sampling["course"])
    ok = (
        found["exit_code"] == 0
        and books["balanced"]
        and books["measured"] == given.pods
        and left < given.pods
        and sampling["peak_memory_mb"] < MOST_MB
        and max(rates, default=0.0) <= 1.0
    )
    tell(
        "lifecycle.pods", ok, books=books, left_in_cluster=left, peak_memory_mb=sampling["peak_memory_mb"],
        limit_mb=MOST_MB, sightings=sampling["sightings"], sampler_requests=sampling["requests"],
        most_requests_per_s=max(rates, default=0.0), pods_per_s=found["throughput"]["per_s"], folder=str(out),
    )  # fmt: skip
    return 0 if ok else 1


def sampling_rates(course: list[list[float]]) -> list[float]:
    """Requests of the sampler a second, between its looks; the first list and its pages left out."""
    return [(b[1] - a[1]) / max(b[0] - a[0], 1.0) for a, b in pairwise(course)]


if __name__ == "__main__":
    sys.exit(main())
