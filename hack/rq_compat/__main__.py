"""Runs RQ's tests of the installed version, and compares the failures with the documented list.

A test that fails must be listed in hack/rq_compat/README.md with its reason; a listed test must
still fail. Only tests of features that scaletest's worker supports are run. Some of them import
psutil, which the extra `dev` installs for them.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from scaletest.broker import EmbeddedServer

ROOT = Path(__file__).parents[2]
PAGE = Path(__file__).with_name("README.md")
FILES = [
    "worker",
    "callbacks",
    "results",
    "registry",
    "retry",
    "repeat",
    "timeouts",
    "executions",
    "intermediate_queue",
    "dependencies",
    "job",
    "group",
    "webhooks",
    "rate_limit",
    "commands",
    "worker_registration",
    "job_lifecycle",
    "job_dependency",
    "queue",
    "queue_unique",
]
LEAST = 0.95
# These start RQ's own forking worker, not scaletest's, and on the default port, where another Redis
# of this machine may listen.
NOT_OURS = "not TestWorkerSubprocess"


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="scaletest-rq-") as name,
        EmbeddedServer(tcp=True) as server,
    ):
        folder = Path(name)
        fetch(folder, metadata.version("rq"))
        failed, passed = run(folder, server)
    documented = set(re.findall(r"^\| `(test_[^`]+)` \|", PAGE.read_text("utf-8"), re.MULTILINE))
    share = passed / (passed + len(failed))
    print(
        f"RQ {metadata.version('rq')}: {passed} of {passed + len(failed)} selected tests pass,"
        f" {share:.1%}"
    )
    for test in sorted(failed - documented):
        print(f"fails and is not in {PAGE.name}: {test}")
    for test in sorted(documented - failed):
        print(f"passes but is in {PAGE.name}: {test}")
    return 0 if share >= LEAST and failed == documented else 1


def fetch(folder: Path, version: str) -> None:
    """Fetch RQ's tests from its source distribution."""
    line = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ]
    subprocess.run(
        [*line, "--no-binary", ":all:", "--dest", str(folder), f"rq=={version}"], check=True
    )
    # tarfile warns without a filter on newer Pythons, and has none on 3.11.2
    subprocess.run(["tar", "-xzf", f"rq-{version}.tar.gz"], cwd=folder, check=True)
    shutil.move(folder / f"rq-{version}" / "tests", folder / "tests")
    shutil.rmtree(folder / f"rq-{version}")


def run(folder: Path, server: EmbeddedServer) -> tuple[set[str], int]:
    """Run the tests; returns the names of failed ones, and how many passed."""
    tests = [f"tests/test_{name}.py" for name in FILES]
    line = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "hack.rq_compat.plugin",
        "-p",
        "no:cacheprovider",
        "-q",
        "-rfE",
    ]
    port = server.url.split(":")[2].split("/")[0]
    environment = {**os.environ, "RQ_TESTS_PORT": port, "PYTHONPATH": f"{folder}:{ROOT}"}
    line += ["--timeout", "30", "-W", "ignore", "-k", NOT_OURS, *tests]
    shown = subprocess.run(
        line, cwd=folder, env=environment, capture_output=True, text=True, check=False
    ).stdout
    failed = set(re.findall(r"^(?:FAILED|ERROR) (\S+)", shown, re.MULTILINE))
    counts = re.search(r"(\d+) passed", shown)
    if counts is None:
        sys.exit(f"RQ's tests did not run:\n{shown[-3000:]}")
    return {test.removeprefix("tests/") for test in failed}, int(counts[1])


if __name__ == "__main__":
    sys.exit(main())
