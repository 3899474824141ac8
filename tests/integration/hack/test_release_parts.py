"""What is released, built and used as those who install it will."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.weekly(part="release")
@pytest.mark.timeout(1800)
def test_every_part_of_a_release_passes() -> None:
    parts = ("build", "check", "uvx", "workflows", "chart", "images", "bare", "lowest")
    subprocess.run([ROOT / "hack/release", *parts], cwd=ROOT, check=True)
