"""Tests of code that changes rarely: CI leaves them out, ./hack/test --weekly [PART] runs them.

A test belongs to a part by the marker weekly(part="..."). The last pass of each part is a line in RESULTS, with the
hash of the files that the part guards: commits are made anew when history is rewritten, the content of files is not.
CI compares the hashes, and says which parts should be run again.
"""

from __future__ import annotations

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
class Part:
    """guards: files and folders for whose changes it is there; tools: of hack/tools; programs: as in hack/lib.sh."""

    guards: tuple[str, ...]
    tools: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()


PARTS = {
    "causes": Part(
        (
            "scaletest/analysis/causes.py",
            "scaletest/analysis/evidence.py",
            "scaletest/system/sampler.py",
            "scaletest/system/throttling.py",
            "tests/cluster/real/test_causes.py",
        ),
        (*PLANE, *REAL_NODE, "helm4"),
        REAL_PROGRAMS,
    ),
    "helm3": Part(
        (
            "charts/scaletest",
            "hack/tools/helm3",
            "tests/cluster/charts.py",
            "tests/cluster/real/test_release.py",
            "tests/cluster/test_chart.py",
            "tests/cluster/test_chart_odd.py",
            "tests/cluster/test_chart_redis.py",
            "tests/cluster/test_install.py",
            "tests/cluster/test_original_media.py",
        ),
        (*PLANE, *REAL_NODE, "helm3"),
        REAL_PROGRAMS,
    ),
    "images": Part(
        (".dockerignore", "dockerfiles", "hack/images", "hack/stand-ins", "tests/cluster/test_images.py"),
        programs=("buildah", "debootstrap", "podman", "runc"),
    ),
    "jobset": Part(
        (
            "hack/kubernetes/controllers.py",
            "hack/tools/jobset",
            "scaletest/lifecycle/joins.py",
            "scaletest/lifecycle/kinds.py",
            "scaletest/lifecycle/templates/jobset.yaml",
            "tests/cluster/test_lifecycle_controllers.py",
        ),
        (*PLANE, "jobset"),
        ("openssl",),
    ),
    "kueue": Part(
        (
            "charts/scaletest/templates/operator.yaml",
            "hack/kubernetes/controllers.py",
            "hack/tools/jobset",
            "hack/tools/kueue",
            "scaletest/benchmarks/gang_scheduling.py",
            "scaletest/operator",
            "tests/cluster/test_operator_queues.py",
        ),
        (*PLANE, "helm4", "jobset", "kueue"),
        ("openssl",),
    ),
    "policies": Part(
        (
            "charts/scaletest/charts/redis/templates",
            "charts/scaletest/templates/networkpolicy.yaml",
            "hack/kubernetes/policies.py",
            "tests/cluster/real/test_policies.py",
        ),
        (*PLANE, *REAL_NODE, "helm4"),
        REAL_PROGRAMS,
    ),
    "prometheus-adapter": Part(
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
    "schemas": Part(
        ("charts/scaletest", "hack/tools/crds", "hack/tools/kubeconform", "tests/cluster/test_schemas.py"),
        ("crds", "helm4", "kubeconform"),
    ),
    "training-operator": Part(
        (
            "hack/kubernetes/controllers.py",
            "hack/tools/training-operator",
            "scaletest/lifecycle/joins.py",
            "scaletest/lifecycle/kinds.py",
            "scaletest/lifecycle/templates/pytorchjob.yaml",
            "tests/cluster/test_lifecycle_controllers.py",
        ),
        (*PLANE, "training-operator"),
        ("openssl",),
    ),
}


class NoHistory(Exception):
    """This is no checkout of git."""


def content(part: Part, root: Path = ROOT) -> str:
    """A hash of the names and contents of what it guards, as they are in the index. Raises NoHistory."""
    return hashlib.sha256(_git(root, "ls-files", "--stage", "--", *part.guards).encode()).hexdigest()[:16]


def uncommitted(part: Part, root: Path = ROOT) -> list[str]:
    """What it guards and differs from the commit, files that git does not know included. Raises NoHistory."""
    return [line[3:] for line in _git(root, "status", "--porcelain", "--", *part.guards).splitlines()]


def passes(root: Path = ROOT) -> dict[str, dict[str, Any]]:
    """The last pass of each part that has one."""
    path = root / RESULTS
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
    return {row["part"]: row for row in rows}


def note(row: dict[str, Any], root: Path = ROOT) -> None:
    """Keep a pass in place of the part's last one."""
    kept = passes(root) | {row["part"]: row}
    lines = [json.dumps(kept[name]) + "\n" for name in sorted(kept)]
    (root / RESULTS).write_text("".join(lines), "utf-8")


def warning(name: str, part: Part, root: Path = ROOT) -> str:
    """What there is to say of a part, or nothing when what it guards is what it passed with."""
    advice = f"./hack/test --weekly {name}"
    last = passes(root).get(name)
    if last is None:
        return f"weekly {name}: it has never passed; {advice}"
    since = f"since it passed on {last['date']} with commit {last['commit']}"
    try:
        dirty = uncommitted(part, root)
        if not dirty and content(part, root) == last["content"]:
            return ""
    except NoHistory as error:
        return f"weekly {name}: nobody can tell what changed {since}: {error}"
    try:
        files = _git(root, "diff", "--name-only", last["commit"], "--", *part.guards).splitlines()
    except NoHistory:  # a shallow clone, or commits that were made anew
        return f"weekly {name}: files that it guards changed {since}, which is not in this history; {advice}"
    return f"weekly {name}: {_shown({*files, *dirty})} changed {since}; {advice}"


def _shown(files: Collection[str]) -> str:
    """Some of these files, and how many more."""
    more = f" and {len(files) - SHOWN_FILES} more" if len(files) > SHOWN_FILES else ""
    return ", ".join(sorted(files)[:SHOWN_FILES]) + more or "what it guards"


def counted(report: Path) -> tuple[int, int]:
    """How many tests passed and were skipped by a JUnit report of a run without failures."""
    suites = ElementTree.parse(report).getroot().iter("testsuite")
    totals = [(int(suite.attrib["tests"]), int(suite.attrib["skipped"])) for suite in suites]
    skipped = sum(row[1] for row in totals)
    return sum(row[0] for row in totals) - skipped, skipped


def pytest_of(name: str, report: Path, options: Sequence[str]) -> int:
    """Run a part's tests; the exit code of pytest."""
    line = [sys.executable, "-m", "pytest", "-m", f'weekly(part="{name}")', f"--junitxml={report}"]
    return subprocess.run([*line, "-o", "testpaths=tests/cluster", *options], cwd=ROOT, check=False).returncode


def run(name: str, options: Sequence[str], root: Path = ROOT) -> bool:
    """Run a part's tests, and note when all of them passed. False when one did not."""
    part = PARTS[name]
    before = _state(part, root)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        if pytest_of(name, report, options):
            return False
        passed, skipped = counted(report)
    obstacle = _obstacle(before, skipped, options)
    if not obstacle and _state(part, root) != before:
        obstacle = "files that it guards changed meanwhile"
    if obstacle:
        print(f"weekly {name}: passed, but not noted: {obstacle}")
        return True
    row = {
        "part": name,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": _git(root, "rev-parse", "--short=12", "HEAD").strip(),
        "content": before[0],
        "tests": passed,
        "seconds": round(time.monotonic() - began),
    }
    note(row, root)
    print(f"weekly {name}: {passed} passed in {row['seconds']} s, noted in {RESULTS}")
    return True


State = tuple[str, list[str]]


def _state(part: Part, root: Path) -> State:
    """Hash of what it guards, and what of it is not committed; ("", []) without git."""
    try:
        return content(part, root), uncommitted(part, root)
    except NoHistory:
        return "", []


def _obstacle(before: State, skipped: int, options: Sequence[str]) -> str:
    """Why a run without failures is not one of the whole part at a commit."""
    if options:
        return "options of pytest may have left tests out"
    if skipped:
        return f"{skipped} tests were skipped"
    if not before[0]:
        return "this is no checkout of git"
    if before[1]:
        return f"not committed: {_shown(before[1])}"
    return ""


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise NoHistory("there is no git") from error
    if done.returncode:
        raise NoHistory(done.stderr.strip())
    return done.stdout


def _chosen(words: Sequence[str], attribute: str) -> list[str]:
    """What the parts need of one sort, each once, in the order in which they name it."""
    return list(dict.fromkeys(need for name in words for need in getattr(PARTS[name], attribute)))


def _part(word: str) -> str:
    if word not in PARTS:
        raise argparse.ArgumentTypeError(f"there is no part {word}; there are: {', '.join(PARTS)}")
    return word


def main() -> None:
    parser = argparse.ArgumentParser(prog="hack.weekly", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    for action in ("programs", "tools", "run"):
        actions.add_parser(action).add_argument("parts", nargs="*", type=_part, default=list(PARTS), metavar="PART")
    actions.choices["run"].add_argument("--options", nargs=argparse.REMAINDER, default=[], help="of pytest")
    actions.add_parser("changed")
    given = parser.parse_args()
    if given.action == "changed":
        for line in filter(None, (warning(*item) for item in PARTS.items())):
            print(line)
    elif given.action == "run":
        failed = [name for name in given.parts if not run(name, given.options)]
        sys.exit(f"failed: {', '.join(failed)}" if failed else 0)
    else:
        print(*_chosen(given.parts, given.action))


if __name__ == "__main__":
    main()
