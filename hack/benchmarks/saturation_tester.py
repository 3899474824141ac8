"""Bar: a tester that is limited to 20 % of a CPU ends INVALID, and names itself as the bottleneck.

Signals limit it, 20 ms on and 80 ms off, like a CPU limit of 200m of a pod.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from hack.benchmarks.saturation import line, report, service

ON_S, OFF_S = 0.020, 0.080


def main() -> int:
    with service("--slots", "200") as url, tempfile.TemporaryDirectory() as folder:
        command = line(
            "--url",
            url,
            "--mode",
            "sweep",
            "--start",
            "500",
            "--step-time",
            "5",
            "--run-dir",
            f"{folder}/run",
        )
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        while process.poll() is None:
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(OFF_S)
            os.kill(process.pid, signal.SIGCONT)
            time.sleep(ON_S)
        assert process.stdout is not None
        outcome = json.loads(process.stdout.read())
    verdict = outcome["verdict"]
    met = verdict["kind"] == "INVALID" and verdict["reason"].startswith("the tester was ")
    return report("a tester held to 20 % CPU is INVALID", met, verdict=verdict)


if __name__ == "__main__":
    sys.exit(main())
