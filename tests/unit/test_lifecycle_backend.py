"""Times from the Run:ai database."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaletest.lifecycle.sampling import read
from scaletest.model.errors import UsageError


def test_backend_times_are_read(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("jobName,time_created\nj-1,1790000000123\n")
    assert read(path) == {"j-1": 1790000000.123}
    path.write_text("name,when\nj-1,3\n")
    with pytest.raises(UsageError, match="backend times"):
        read(path)
