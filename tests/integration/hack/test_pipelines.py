"""The guide for pipelines: what a runner would run of it is run, once without a baseline and again
with one.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from hack.guides import FILE, ROOT

PAGE = ROOT / "docs" / "how-to" / "pipelines.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
SCRIPTS = {FILE.match(text)[1]: text for language, text in BLOCKS if language == "sh"}  # type: ignore[index]
GITHUB, GITLAB = (yaml.safe_load(text) for language, text in BLOCKS if language == "yaml")


def commands(pipeline: Mapping[str, Any]) -> list[str]:
    """What a runner gives to a shell, without the installation."""
    job = pipeline.get("jobs", pipeline)["scaling"]
    lines = job.get("script") or [step["run"] for step in job["steps"] if "run" in step]
    return [line for line in lines if not line.startswith("pip install")]


@pytest.mark.parametrize("pipeline", [GITHUB, GITLAB], ids=["github", "gitlab"])
def test_a_pipeline_compares_with_its_baseline(pipeline: Mapping[str, Any], tmp_path: Path) -> None:
    for name, text in SCRIPTS.items():
        (tmp_path / name).write_text(text)
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexec sleep 0.1\n")
    program.chmod(0o755)
    summary = tmp_path / "step-summary.md"
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "GITHUB_STEP_SUMMARY": str(summary),
        "CI_COMMIT_BRANCH": "main",
        "CI_DEFAULT_BRANCH": "main",
        "SCALETEST_VALIDATE_MAX_STEP": "1s",
    }

    def run_pipeline() -> list[int]:
        codes = []
        for line in commands(pipeline):
            shell = ["sh", "-e", "-c", line]
            done = subprocess.run(
                shell, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode in (0, 3), done.stderr
            codes.append(done.returncode)
        return codes

    # a busy machine may refute the doubling, but every file is there, and a baseline is kept
    codes = run_pipeline()
    assert len(codes) >= 2 and codes[1:] == [0] * (len(codes) - 1)
    assert ET.parse(tmp_path / "junit.xml").getroot().tag == "testsuites"
    assert "<html" in (tmp_path / "report.html").read_text()
    assert not (tmp_path / "compare.md").exists()
    # the next run is compared with it, and then takes its place
    run_pipeline()
    assert "compare baseline with" in (tmp_path / "summary.md").read_text()
    shown = subprocess.run(
        ["scaletest", "runs", "list", "--name", "baseline", "--format", "json"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.count('"run":') == 1
    if pipeline is GITHUB:
        assert "compare baseline with" in summary.read_text()
