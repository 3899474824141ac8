"""Every known defect of the Run:ai scale test tool has a test.

Tests named test_defect_NN show that scaletest does not have that defect of the Run:ai scale test
tool:

    01 times.csv misaligned             06 PVC events and evictions mix   11 whole seconds,
    averages, no failures 02 no -t crashes                    07 foreign pods abort             12
    submission holds a process's start 03 no -n crashes                    08 a gang by one pod
    13 deleted between samples: vanished 04 remainders lost                  09 series in different
    orders     14 second run overwrites; no resume 05 PVC bind always 0                10 Run:ai
    command line            15 text replacement

10 and 13 need a control plane: tests/cluster/test_lifecycle.py.
"""

from __future__ import annotations

import re
from pathlib import Path


def test_every_defect_has_a_test() -> None:
    tests = Path(__file__).parents[1]
    files = [*(tests / "unit").glob("test_lifecycle_*.py"), tests / "cluster" / "test_lifecycle.py"]
    text = "\n".join(file.read_text() for file in files)
    assert {int(number) for number in re.findall(r"^def test_defect_(\d\d)_", text, re.M)} == set(
        range(1, 16)
    )
