"""Bar: time stamps are within 50 ms at p99 of an independent recorder's, at 5 objects/s.

Both observe every pod four times: created, scheduled, ready (the stage pod-start), and finished
(pod-end). The bar is met only when both observed everything, and the run succeeded.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

from hack.benchmarks.lifecycle_recorder import MILESTONES
from hack.benchmarks.lifecycle_runs import arguments, plane, run, tell

MOST_MS, SHARE = 50.0, 0.99
RECORDER = Path(__file__).with_name("lifecycle_recorder.py")
Stamps = dict[tuple[str, str], float]


def main() -> int:
    options = arguments(__doc__, jobs=300, nodes=100)
    with plane(options.nodes) as cluster:
        line = [sys.executable, str(RECORDER), str(cluster.kubeconfig), "default"]
        with subprocess.Popen(
            line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as recorder:
            assert recorder.stdin and recorder.stdout
            assert recorder.stdout.readline() == "ready\n"
            out = options.out / "lifecycle.clock"
            paced = ("-g", "1", "-p", "5", "--interval", "1")
            outcome = run(cluster, out, "-n", str(options.jobs), *paced)
            recorder.stdin.close()
            witnessed = {(uid, name): at_s for uid, name, at_s in map(json.loads, recorder.stdout)}
    ours, expected = stamps(out), options.jobs * len(MILESTONES)
    apart = sorted(abs(ours[key] - witnessed[key]) * 1e3 for key in ours.keys() & witnessed.keys())
    p99, p50 = percentile(apart, SHARE), percentile(apart, 0.5)
    whole = len(apart) == len(ours) == len(witnessed) == expected
    ok = outcome["exit_code"] == 0 and whole and p99 is not None and p99 <= MOST_MS
    tell(
        "lifecycle.clock",
        ok,
        limit_ms=MOST_MS,
        p99_ms=p99,
        p50_ms=p50,
        max_ms=percentile(apart, 1.0),
        expected=expected,
        matched=len(apart),
        only_ours=len(ours) - len(apart),
        only_witnessed=len(witnessed) - len(apart),
        exit_code=outcome["exit_code"],
        verdict=outcome["verdict"]["reason"],
    )
    return 0 if ok else 1


def stamps(out: Path) -> Stamps:
    """Read the run's own stamps of the milestones that the recorder knows."""
    arrivals: Stamps = {}
    for line in (out / "records.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["record"] == "pod":
            known = {name: record["stamps"].get(name, {}).get("watch_s") for name in MILESTONES}
            arrivals |= {
                (record["uid"], name): at_s for name, at_s in known.items() if at_s is not None
            }
    return arrivals


def percentile(values: list[float], share: float) -> float | None:
    """Compute a percentile by nearest rank; None without values."""
    return values[max(0, math.ceil(share * len(values)) - 1)] if values else None


if __name__ == "__main__":
    sys.exit(main())
