"""Find the tests of what a branch changes: ./hack/test --changed [BASE].

From each changed file it walks the imports upwards, to the files of tests that import it, directly
or through other modules. The nearest come first, and it stops where their tests would take longer
than a minute or so: what everything imports is what ./hack/test is for.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PACKAGES = ("scaletest", "scaletest_workers", "hack", "tests")
TIERS = ("unit", "integration", "browser")
# What a test takes on average, in seconds of a lane, and how many of those are spent.
SECONDS = {"unit": 0.05, "integration": 2.5, "browser": 1.5}
BUDGET_S = 100.0


def changed_files(base: str) -> list[str]:
    """List the files that differ from where this branch left base, also those not committed."""
    shared = _git("merge-base", base, "HEAD").strip()
    tracked = _git("diff", "--name-only", shared).splitlines()
    return [*tracked, *_git("ls-files", "--others", "--exclude-standard").splitlines()]


def default_base() -> str:
    """Return the branch that others work on; on that branch itself, its state before."""
    for name in ("origin/HEAD", "origin/main", "main"):
        done = subprocess.run(
            ["git", "rev-parse", "--verify", "--quiet", name], cwd=ROOT, capture_output=True
        )
        if done.returncode == 0 and done.stdout.decode() != _git("rev-parse", "HEAD"):
            return name
    return "HEAD" if _git("status", "--porcelain") else "HEAD~1"


def distances(graph: grimp.ImportGraph, path: str) -> dict[str, int]:
    """Return the files of tests that a changed file reaches, with the number of imports between.

    Fixtures import much for few tests, so a way through a conftest does not count.
    """
    if _is_tests(path):
        return {path: 0}
    found = {test: 1 for test in _test_files() if _names(test, path)}
    front = _modules(graph, path)
    seen = set(front)
    for distance in range(1, 10):
        importers = {
            name for module in front for name in graph.find_modules_that_directly_import(module)
        }
        front = {name for name in importers - seen if not name.endswith(".conftest")}
        seen |= front
        for name in front:
            test = f"{name.replace('.', '/')}.py"
            if _is_tests(test):
                found.setdefault(test, distance)
    return found


def select(paths: Iterable[str]) -> tuple[list[str], int]:
    """Return the nearest files of tests within the budget, and how many others are reached."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    reached: dict[str, int] = {}
    for path in paths:
        for test, distance in distances(graph, path).items():
            reached[test] = min(distance, reached.get(test, distance))
    costs = {test: _seconds(test) for test in reached}
    selected, left_s = [], BUDGET_S
    for test in sorted(reached, key=lambda test: (reached[test], costs[test], test)):
        # what was changed itself, always
        if costs[test] <= left_s or reached[test] == 0:
            selected.append(test)
            left_s -= costs[test]
    return selected, len(reached) - len(selected)


def _modules(graph: grimp.ImportGraph, path: str) -> set[str]:
    """Return the modules of a changed file: its own; of a template, those of its package."""
    name = path.removeprefix("workers/").removesuffix(".py").removesuffix("/__init__")
    name = name.replace("/", ".")
    if name in graph.modules or path.endswith(".py"):
        # a module that is gone has no importers any more
        return {name} & graph.modules
    for folder in Path(path).parents:
        package = str(folder).replace("/", ".")
        if package in graph.modules:
            # all of scaletest is no answer
            return {package, *graph.find_children(package)} if "." in package else set()
    return set()


def _names(test: str, path: str) -> bool:
    """Whether a test names a file, or a command that is imported by its name when it is called."""
    name = Path(path).name if not path.endswith(".py") else Path(path).stem
    if path.startswith("scaletest/cli/") or "/commands/" in path or not path.endswith(".py"):
        return re.search(rf'["/]{re.escape(name)}"', (ROOT / test).read_text("utf-8")) is not None
    return False


def _test_files() -> list[str]:
    folders = [ROOT / "tests" / tier for tier in TIERS]
    return [str(path.relative_to(ROOT)) for folder in folders for path in folder.rglob("test_*.py")]


def _is_tests(path: str) -> bool:
    parts = Path(path).parts
    return (
        parts[0] == "tests"
        and parts[1] in TIERS
        and Path(path).match("test_*.py")
        and (ROOT / path).exists()
    )


def _seconds(test: str) -> float:
    functions = len(re.findall(r"^def test_", (ROOT / test).read_text("utf-8"), re.MULTILINE))
    return functions * SECONDS[Path(test).parts[1]]


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"error: git {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(prog="./hack/test --changed", description=__doc__)
    parser.add_argument("base", nargs="?", help="branch or commit to compare with")
    base = parser.parse_args().base or default_base()
    paths = changed_files(base)
    selected, others = select(paths)
    further = f", and leave out {others} that are further away" if others else ""
    print(
        f"{len(paths)} files differ from {base}: run {len(selected)} files of tests{further}",
        file=sys.stderr,
    )
    print(*selected, sep="\n")


if __name__ == "__main__":
    main()
