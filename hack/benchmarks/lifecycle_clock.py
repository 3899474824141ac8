"""Do our stamps say when things were seen? Against an independent recorder, at 5 objects/s: within 50 ms at p99."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from hack.benchmarks.lifecycle_runs import arguments, plane, run, tell

MOST_MS, SHARE = 50.0, 0.99
RECORDER = Path(__file__).with_name("lifecycle_recorder.py")


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
    apart = differences(out, witnessed)
    p99 = apart[int(SHARE * (len(apart) - 1))]
    ok = found["exit_code"] == 0 and p99 <= MOST_MS and len(apart) >= 4 * given.jobs * 0.99
    tell("lifecycle.clock", ok, limit_ms=MOST_MS, p99_ms=p99, p50_ms=apart[len(apart) // 2], max_ms=apart[-1],
         stamps=len(apart), witnessed=len(witnessed))  # fmt: skip
    return 0 if ok else 1


def differences(out: Path, witnessed: dict[tuple[str, str], float]) -> list[float]:
    """Between our stamp and the recorder's, for every pod and milestone that both have; ms, ascending."""
    found = []
    for line in (out / "records.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["record"] == "pod":
            for name, stamp in row["stamps"].items():
                if "watch_s" in stamp and (row["uid"], name) in witnessed:
                    found.append(abs(stamp["watch_s"] - witnessed[row["uid"], name]) * 1e3)
    return sorted(found)


if __name__ == "__main__":
    sys.exit(main())
