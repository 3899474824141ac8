"""The table of a lifecycle as CSV."""

import csv
import io

import pytest

from scaletest.lifecycle.report.report import lifecycle_report
from scaletest.lifecycle.run_type import LifecycleRun
from scaletest.report import formats
from tests.unit.lifecycles import of, workload


def test_defect_01_every_heading_stands_over_its_own_values() -> None:
    lifecycle = of(workload("j-1", evicted=7.5), workload("j-2", submitted=10.0))
    rows = list(
        csv.DictReader(
            io.StringIO(
                formats.render(
                    lifecycle_report(
                        LifecycleRun("", "/runs/l", lifecycle, title="l", project="p")
                    ),
                    "csv",
                )
            )
        )
    )
    assert all(None not in row and None not in row.values() for row in rows)
    first = rows[0]
    assert first["Job Name"] == "j-1"
    assert first["Workload Submitted"] == "2026-09-21T14:13:20.000000+00:00"
    assert float(first["Last Pod Creation"]) == 1.0
    assert float(first["First Eviction"]) == pytest.approx(5.5)
    assert float(first["Total Ready"]) == 6.0
    assert rows[1]["First Eviction"] == ""
    assert len(set(first)) == len(first)
