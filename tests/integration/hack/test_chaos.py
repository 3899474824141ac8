"""A short soak of `hack/chaos`: everything is killed, frozen, cut and silenced for a while; nothing
may be lost.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_request_is_lost_or_answered_twice_under_random_faults() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hack.chaos", "--requests", "8000", "--longest", "800"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr[-3000:]
    report = json.loads(done.stdout)
    assert report["verdict"] == "PASS", report["reason"]
    assert (report["attack"]["redis_kills"], report["attack"]["redis_shutdowns"]) == (2, 1)
    assert report["attack"]["kills"] > 5
    assert report["attack"]["silences"] > 5
    assert report["attack"]["client_silences"] > 1
    assert bool(report["attack"]["clock_steps"]) != bool(report["clock_not_set"])
