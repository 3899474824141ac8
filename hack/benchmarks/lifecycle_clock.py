"""Do our stamps say when things were seen? Against an independent recorder, at 5 objects/s: within 50 ms at p99.

Every pod is seen four times, by us and by the recorder: created, scheduled, ready (the stage pod-start), and finished
(pod-end). The bar is met only when both saw all of it, and the run ended well.
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
    given = arguments(__doc__, jobs=300, nodes=100)
    with plane(given.nodes) as made:
        line = [sys.executable, str(RECORDER), str(made.kubeconfig), "default"]
        with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as recorder:
            assert recorder.stdin and recorder.stdout
            assert recorder.stdout.readline() == "ready\n"
            out = given.out / "lifecycle.clock"
            found = run(made, out, "-n", str(given.jobs), "-p", "5", "--interval", "1")
            recorder.stdin.close()
            witnessed = {(uid, name): at_s for uid, name, at_s in map(json.loads, recorder.stdout)}
    ours, expected = stamps(out), given.jobs * len(MILESTONES)
    apart = sorted(abs(ours[key] - witnessed[key]) * 1e3 for key in ours.keys() & witnessed.keys())
    p99, p50 = percentile(apart, SHARE), percentile(apart, 0.5)
    whole = len(apart) == len(ours) == len(witnessed) == expected
    ok = found["exit_code"] == 0 and whole and p99 is not None and p99 <= MOST_MS
    tell("lifecycle.clock", ok, limit_ms=MOST_MS, p99_ms=p99, p50_ms=p50, max_ms=percentile(apart, 1.0),
         expected=expected, matched=len(apart), only_ours=len(ours) - len(apart),
         only_witnessed=len(witnessed) - len(apart), exit_code=found["exit_code"],
         verdict=found["verdict"]["reason"])  # fmt: skip
    return 0 if ok else 1


def stamps(out: Path) -> Stamps:
    """Our arrivals, of the milestones that the recorder knows."""
    found: Stamps = {}
    for line in (out / "records.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["record"] == "pod":
            known = {name: row["stamps"].get(name, {}).get("watch_s") for name in MILESTONES}
            found |= {(row["uid"], name): at_s for name, at_s in known.items() if at_s is not None}
    return found


def percentile(values: list[float], share: float) -> float | None:
    """By nearest rank; None of nothing."""
    return values[max(0, math.ceil(share * len(values)) - 1)] if values else None


if __name__ == "__main__":
    sys.exit(main())
