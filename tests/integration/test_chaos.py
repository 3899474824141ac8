"""A short soak of `hack/chaos`: everything is killed, frozen, cut and silenced for a while; nothing may be lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(900)
def test_nothing_is_lost_in_chaos() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "hack.chaos", "--requests", "8000", "--longest", "800"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout, result.stderr[-3000:]
    found = json.loads(result.stdout)
    assert found["verdict"] == "PASS", found["reason"]
    assert (found["attack"]["redis_kills"], found["attack"]["redis_shutdowns"]) == (2, 1)
    assert found["attack"]["kills"] > 5
    assert found["attack"]["silences"] > 5
    assert found["attack"]["client_silences"] > 1
    assert bool(found["attack"]["clock_steps"]) != bool(found["clock_not_set"])
