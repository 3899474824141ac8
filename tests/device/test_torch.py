"""Workers that share a real GPU."""

import json
from pathlib import Path

import pytest

from tests.conftest import call
from tests.unit.valid import checked


def test_workers_share_a_gpu(tmp_path: Path) -> None:
    torch = pytest.importorskip(
        "torch", reason="torch is not installed (pip install 'scaletest[torch]')"
    )
    if not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    workload = (
        "torch",
        "--device",
        "cuda",
        "--model",
        "alexnet",
        "--batch",
        "64",
        "--batches",
        "5",
    )
    line = (
        *("validate", "--local", "--preset", "nvidia", "--per-device", "1,2,4,8"),
        *("--seconds", "0.1", "--precision", "0.05"),
    )
    done = call(*line, "--run-dir", str(tmp_path / "run"), "--format", "json", "--", *workload)
    result = checked(json.loads(done.stdout))
    assert result["sharing"]["best"] in (1, 2, 4, 8)
    assert all(step["work"]["samples"]["per_s"] > 0 for step in result["steps"])
