"""The example package, installed with pip beside the built wheel: what it adds just appears."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "docs" / "examples"


@pytest.fixture(params=["copied", pytest.param("built", marks=pytest.mark.weekly(part="example"))])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """Environment variables in which `scaletest` has the example.

    copied: the files of both with the entry points that pip would write. built: a new environment
    with the wheels of both, which sees no source of this tree, only the libraries of the tests'.
    """
    variables = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data")}
    if request.param == "built":
        return variables | {"PATH": f"{_installed(tmp_path, variables)}:{variables['PATH']}"}
    place = tmp_path / "packages"
    shutil.copytree(EXAMPLE / "scaletest_example", place / "scaletest_example")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    metadata = place / "scaletest_example-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: scaletest-example\nVersion: 1.0\n"
    )
    lines = []
    for group, names in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in names.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines) + "\n")
    path = Path(sys.executable).parent
    return variables | {"PYTHONPATH": str(place), "PATH": f"{path}:{variables['PATH']}"}


def _installed(folder: Path, variables: dict[str, str]) -> Path:
    """The folder of programs of a new environment with the wheels of both."""
    wheels = folder / "wheels"
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(wheels)]
    subprocess.run([*build, str(ROOT), str(EXAMPLE)], env=variables, check=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "clean")], check=True)
    programs = folder / "clean" / "bin"
    # libraries only: a path file in a folder that a path file names is not read, so that the tree
    # of the tests is not there
    (packages,) = (folder / "clean").glob("lib/python*/site-packages")
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = [str(programs / "pip"), "install", "--quiet", "--no-index", "--no-deps"]
    # "ignore": the tests' own installation is among the libraries
    install += ["--ignore-installed", *map(str, wheels.glob("*.whl"))]
    subprocess.run(install, check=True)
    where = [str(programs / "python"), "-P", "-c", "import scaletest; print(scaletest.__file__)"]
    imported = subprocess.run(where, capture_output=True, text=True, check=True, cwd=folder).stdout
    assert Path(imported).is_relative_to(packages)
    return programs


def test_its_workload_and_kind_appear_everywhere(
    environment: dict[str, str], tmp_path: Path
) -> None:
    def call(*arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            ["scaletest", *arguments],
            capture_output=True,
            text=True,
            timeout=280,
            env=environment,
            cwd=tmp_path,
            check=False,
        )
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        return done.stdout

    # worker
    options = ("--workload", "checksums", "--", "--mebibytes", "2")
    result = json.loads(call("worker", "--once", "--format", "json", *options))
    assert (result["outcome"], result["figures"]["bytes"]) == ("succeeded", 2 * 2**20)
    # validation, and its report
    run = str(tmp_path / "run")
    fixed = ("--limit", "1", "--seconds", "0.01", "--step-time", "1", "--max-step", "1")
    (step,) = json.loads(
        _validated(environment, tmp_path, *fixed, "--run-dir", run, "--format", "json", *options)
    )["steps"]
    assert step["work"]["bytes"]["per_s"] == pytest.approx(step["throughput_per_s"] * 2 * 2**20)
    assert "scaletest_example.checksums:Checksums --mebibytes 2" in call("report", run)
    # benchmarks: the kinds, a run, the list of runs, and its report
    assert "Compression    Throughput and ratio of zlib. (scaletest-example 1.0)" in call(
        "bench", "explain"
    )
    assert "throughput" in call("bench", "explain", "Compression")
    call("bench", "run", "Compression", "--set", "mebibytes=2", "--set", "level=1")
    assert "Compression" in call("runs", "list")
    assert "throughput" in call("report", "LAST")


def _validated(environment: dict[str, str], folder: Path, *options: str) -> str:
    """What a validation prints, whatever its verdict."""
    line = ["scaletest", "validate", "--local", *options]
    done = subprocess.run(
        line, capture_output=True, text=True, timeout=280, env=environment, cwd=folder, check=False
    )
    assert done.returncode in (0, 3, 4), done.stderr
    return done.stdout


def test_its_own_tests_pass(environment: dict[str, str], tmp_path: Path) -> None:
    tests = shutil.copytree(EXAMPLE / "tests", tmp_path / "tests")
    line = ["python", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)]
    done = subprocess.run(
        line, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stdout
