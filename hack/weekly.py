"""Tests of code that changes rarely: CI leaves them out, ./hack/test --weekly [PART] runs them.

A test belongs to a part by the marker weekly(part="..."). The last pass of each part is a line in
RESULTS, with a hash of the files that the part guards: unlike the id of a commit, it stays valid
when history is rewritten. CI compares the hashes, and names the parts that should be run again.
"""

import argparse
import datetime
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from hack.kubernetes.process import ROOT

RESULTS = "docs/results/weekly.jsonl"
PLANE = ("crds", "kubernetes", "etcd", "kwok")
REAL_NODE = ("coredns",)
REAL_PROGRAMS = ("openssl", "buildah", "debootstrap", "node")
SHOWN_FILES = 3


@dataclass(frozen=True, slots=True)
class WeeklyPart:
    """A part of the weekly tests.

    guards: files and folders that it tests. tools: of hack/tools. programs: as in hack/lib.sh.
    """

    guards: tuple[str, ...]
    tools: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


PARTS = {
    "bare": WeeklyPart(
        (
            ".ci",
            "hack/bare",
            "hack/demo",
            "hack/lib.sh",
            "hack/test",
            "pyproject.toml",
            "tests/conftest.py",
            "tests/integration/hack/test_bare.py",
            "tests/unit/conftest.py",
        ),
        programs=("debootstrap", "ip"),
    ),
    "causes": WeeklyPart(
        (
            "scaletest/causes/attribution.py",
            "scaletest/causes/causes.py",
            "scaletest/causes/evidence.py",
            "scaletest/observe/sampler.py",
            "scaletest/observe/sampling.py",
            "scaletest/observe/control_groups.py",
            "tests/cluster/real/test_causes.py",
        ),
        (*PLANE, *REAL_NODE, "helm4"),
        REAL_PROGRAMS,
    ),
    "example": WeeklyPart(
        (
            "docs/examples",
            "pyproject.toml",
            "scaletest/plugins.py",
            "tests/integration/workers/test_example.py",
            "workers/scaletest_workers/python_child.py",
            "workers/scaletest_workers/workloads/registry.py",
        ),
    ),
    "guides": WeeklyPart(
        (
            "README.md",
            "docs/how-to",
            "docs/tutorial.md",
            "hack/demo",
            "hack/guides.py",
            "hack/newcomer",
            "hack/newcomer.py",
            "pyproject.toml",
            "tests/cluster/real/test_guides.py",
            "tests/integration/hack/test_guides.py",
        ),
        (*PLANE, *REAL_NODE, "helm4"),
        (*REAL_PROGRAMS, "curl", "ffmpeg", "iperf3"),
    ),
    "helm3": WeeklyPart(
        (
            "charts/scaletest",
            "hack/tools/helm3",
            "tests/cluster/charts.py",
            "tests/cluster/real/test_release.py",
            "tests/cluster/test_chart.py",
            "tests/cluster/test_install.py",
            "tests/cluster/test_original_media.py",
        ),
        (*PLANE, *REAL_NODE, "helm3"),
        REAL_PROGRAMS,
    ),
    "images": WeeklyPart(
        (
            ".dockerignore",
            "dockerfiles",
            "hack/images",
            "hack/stand-ins",
            "tests/cluster/test_images.py",
        ),
        programs=("buildah", "debootstrap", "podman", "runc"),
    ),
    "release": WeeklyPart(
        (
            "charts/scaletest/Chart.yaml",
            "dockerfiles",
            "hack/bare",
            "hack/images",
            "hack/installed.py",
            "hack/release",
            "pyproject.toml",
            "tests/integration/hack/test_release_parts.py",
        ),
        ("crane", "helm3"),
        ("buildah", "podman", "debootstrap", "ip"),
    ),
    "policies": WeeklyPart(
        (
            "charts/scaletest/charts/redis/templates",
            "charts/scaletest/templates/networkpolicy.yaml",
            "hack/kubernetes/policies.py",
            "tests/cluster/real/test_policies.py",
        ),
        (*PLANE, *REAL_NODE, "helm4"),
        REAL_PROGRAMS,
    ),
    "prometheus-adapter": WeeklyPart(
        (
            "charts/scaletest/examples/hpa-custom.yaml",
            "charts/scaletest/examples/hpa-prometheus-adapter.yaml",
            "charts/scaletest/prometheus-adapter.yaml",
            "charts/scaletest/templates/autoscaling.yaml",
            "hack/kubernetes/adapter.py",
            "hack/kubernetes/extension.py",
            "hack/tools/prometheus-adapter",
            "scaletest/exporter",
            "tests/cluster/test_adapter.py",
        ),
        (*PLANE, "helm4", "keda", "prometheus-adapter"),
        ("openssl", "promtool"),
    ),
    "schemas": WeeklyPart(
        (
            "charts/scaletest",
            "hack/tools/crds",
            "hack/tools/kubeconform",
            "tests/cluster/test_schemas.py",
        ),
        ("crds", "helm4", "kubeconform"),
    ),
}


class NoHistory(Exception):
    """Raised where a folder is not a checkout of git."""


def hash_content(part: WeeklyPart, root: Path = ROOT) -> str:
    """Hash the names and contents of the guarded files, as they are in the index.

    Raises NoHistory.
    """
    return hashlib.sha256(
        _git(root, "ls-files", "--stage", "--", *part.guards).encode()
    ).hexdigest()[:16]


def uncommitted(part: WeeklyPart, root: Path = ROOT) -> list[str]:
    """List guarded files that differ from the commit, and those that git does not know.

    Raises NoHistory.
    """
    return [
        line[3:] for line in _git(root, "status", "--porcelain", "--", *part.guards).splitlines()
    ]


def read_passes(root: Path = ROOT) -> dict[str, dict[str, Any]]:
    """Read the last pass of each part that has one."""
    path = root / RESULTS
    if not path.exists():
        return {}
    last = map(json.loads, path.read_text("utf-8").splitlines())
    return {part_pass["part"]: part_pass for part_pass in last}


def store_pass(new_pass: dict[str, Any], root: Path = ROOT) -> None:
    """Store a pass in place of the part's last one."""
    all_passes = read_passes(root) | {new_pass["part"]: new_pass}
    lines = [json.dumps(all_passes[name]) + "\n" for name in sorted(all_passes)]
    (root / RESULTS).write_text("".join(lines), "utf-8")


def warn_of_changes(name: str, part: WeeklyPart, root: Path = ROOT) -> str:
    """Write a warning when guarded files changed since the last pass; else ""."""
    advice = f"./hack/test --weekly {name}"
    last = read_passes(root).get(name)
    if last is None:
        return f"weekly {name}: it has never passed; {advice}"
    since = f"since it passed on {last['date']} with commit {last['commit']}"
    try:
        dirty = uncommitted(part, root)
        if not dirty and hash_content(part, root) == last["content"]:
            return ""
    except NoHistory as error:
        return f"weekly {name}: it is unknown what changed {since}: {error}"
    try:
        files = _git(root, "diff", "--name-only", last["commit"], "--", *part.guards).splitlines()
    except NoHistory:  # a shallow clone, or a rewritten history
        return (
            f"weekly {name}: files that it guards changed {since}, which is not in this history;"
            f" {advice}"
        )
    return f"weekly {name}: {_shown({*files, *dirty})} changed {since}; {advice}"


def _shown(files: Collection[str]) -> str:
    """Name some of these files, and the number of the others."""
    more = f" and {len(files) - SHOWN_FILES} more" if len(files) > SHOWN_FILES else ""
    return ", ".join(sorted(files)[:SHOWN_FILES]) + more or "files that it guards"


def count_tests(report: Path) -> tuple[int, int]:
    """Count passed and skipped tests in a JUnit report of a run without failures."""
    suites = ElementTree.parse(report).getroot().iter("testsuite")
    totals = [(int(suite.attrib["tests"]), int(suite.attrib["skipped"])) for suite in suites]
    skipped = sum(skips for _, skips in totals)
    return sum(tests for tests, _ in totals) - skipped, skipped


def pytest_of(name: str, report: Path, options: Sequence[str]) -> int:
    """Run a part's tests and return pytest's exit code."""
    line = [sys.executable, "-m", "pytest", "-m", f'weekly(part="{name}")', f"--junitxml={report}"]
    return subprocess.run(
        [*line, "-o", "testpaths=tests", *options], cwd=ROOT, check=False
    ).returncode


def run(name: str, options: Sequence[str], root: Path = ROOT) -> bool:
    """Run a part's tests, and store the pass when all of them passed. False when one failed."""
    part = PARTS[name]
    before = _state(part, root)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        if pytest_of(name, report, options):
            return False
        passed, skipped = count_tests(report)
    obstacle = _obstacle(before, skipped, options)
    if not obstacle and _state(part, root) != before:
        obstacle = "files that it guards changed meanwhile"
    if obstacle:
        print(f"weekly {name}: passed, but not recorded: {obstacle}")
        return True
    new_pass = {
        "part": name,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": _git(root, "rev-parse", "--short=12", "HEAD").strip(),
        "content": before[0],
        "tests": passed,
        "seconds": round(time.monotonic() - began),
    }
    store_pass(new_pass, root)
    print(f"weekly {name}: {passed} passed in {new_pass['seconds']} s, recorded in {RESULTS}")
    return True


State = tuple[str, list[str]]


def _state(part: WeeklyPart, root: Path) -> State:
    """Return the hash of the guarded files and those not committed; ("", []) without git."""
    try:
        return hash_content(part, root), uncommitted(part, root)
    except NoHistory:
        return "", []


def _obstacle(before: State, skipped: int, options: Sequence[str]) -> str:
    """Explain why a run without failures does not count as a pass of the whole part at a commit."""
    if options:
        return "options of pytest may have left tests out"
    if skipped:
        return f"{skipped} tests were skipped"
    if not before[0]:
        return "this folder is not a checkout of git"
    if before[1]:
        return f"not committed: {_shown(before[1])}"
    return ""


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise NoHistory("git is not installed") from error
    if done.returncode:
        raise NoHistory(done.stderr.strip())
    return done.stdout


def _needs(names: Sequence[str], attribute: str) -> list[str]:
    """Collect the tools or programs of these parts, each once, in the order of the parts."""
    needs: dict[str, None] = {}
    for name in names:
        needs |= dict.fromkeys(getattr(PARTS[name], attribute))
    return list(needs)


def _part(name: str) -> str:
    if name not in PARTS:
        raise argparse.ArgumentTypeError(f"unknown part {name}; the parts are: {', '.join(PARTS)}")
    return name


def main() -> None:
    parser = argparse.ArgumentParser(prog="hack.weekly", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    for action in ("programs", "tools", "run"):
        actions.add_parser(action).add_argument(
            "parts", nargs="*", type=_part, default=list(PARTS), metavar="PART"
        )
    actions.choices["run"].add_argument(
        "--options", nargs=argparse.REMAINDER, default=[], help="of pytest"
    )
    actions.add_parser("changed")
    options = parser.parse_args()
    if options.action == "changed":
        for name, part in PARTS.items():
            line = warn_of_changes(name, part)
            if line:
                print(line)
    elif options.action == "run":
        failed = [name for name in options.parts if not run(name, options.options)]
        sys.exit(f"failed: {', '.join(failed)}" if failed else 0)
    else:
        print(*_needs(options.parts, options.action))


if __name__ == "__main__":
    main()
