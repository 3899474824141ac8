"""Sources of the images: pins that fit the project, Dockerfiles for any builder, and page assets
that are built in where there is npm.
"""

import json
import re
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import hatch_build
from scaletest.benchmarks.kinds.registry import KINDS

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
DOCKERFILES = sorted(
    [*(ROOT / "dockerfiles").glob("*Dockerfile"), *(ROOT / "hack/stand-ins").glob("*Dockerfile")]
)


def containers_of(document: Any) -> Iterator[dict[str, Any]]:
    """All containers in a document of Kubernetes, wherever they stand."""
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        if key == "containers":
            yield from value
        elif isinstance(value, dict | list):
            yield from containers_of(value)


def test_the_first_process_of_every_container_of_the_chart_is_an_init() -> None:
    assert 'ENTRYPOINT ["tini", "--", "scaletest"]' in text("Dockerfile")
    rendered = sorted((ROOT / "tests/cluster/golden/chart").glob("*.yaml"))
    ours = [
        container
        for path in rendered
        for document in yaml.safe_load_all(path.read_text())
        for container in containers_of(document or {})
        if container["image"].startswith("scaletest")
    ]
    assert len(ours) > len(rendered)
    # a command would take its place
    assert not any("command" in container for container in ours)


def pins(name: str) -> dict[str, tuple[str, int]]:
    """Version and number of hashes by package."""
    blocks = re.findall(
        r"^(\S+)==(\S+) \\\n((?: {4}--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text(name), re.M
    )
    assert len(blocks) == text(name).count("=="), "something is not pinned with hashes"
    return {
        canonicalize_name(package): (version, hashes.count("--hash"))
        for package, version, hashes in blocks
    }


def text(name: str) -> str:
    return (ROOT / "dockerfiles" / name).read_text()


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("requirements.txt", PROJECT["project"]["dependencies"]),
        ("requirements.txt", PROJECT["project"]["optional-dependencies"]["operator"]),
        ("requirements.txt", PROJECT["project"]["optional-dependencies"]["nvidia"]),
        ("requirements-build.txt", PROJECT["build-system"]["requires"]),
    ],
)
def test_pins_fit_what_the_project_asks_for(name: str, wanted: list[str]) -> None:
    pinned = pins(name)
    for requirement in map(Requirement, wanted):
        version, _ = pinned[canonicalize_name(requirement.name)]
        assert version in requirement.specifier, (
            f"{requirement}, but {name} has {version}: hack/images lock"
        )


def test_pins_name_no_place() -> None:
    for name in ("requirements.txt", "requirements-build.txt"):
        assert "://" not in text(name) and "--" not in re.sub("--hash=", "", text(name))


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_dockerfiles_mount_settings_and_name_no_registry(path: Path) -> None:
    source = path.read_text().replace("\\\n", " ")
    for line in re.findall(r"^RUN .*$", source, re.M):
        for program, setting in (("apt-get", "apt.conf"), ("/pip install", "pip.conf")):
            fetches = program in line and "--no-deps" not in line
            assert not fetches or f"id={setting}" in line, line
    for base in re.findall(r"^ARG \w+=(\S+)$", source, re.M):
        assert re.fullmatch(r"[a-z]+(:[\w.-]+|==[\d.*]+)?", base), "short names only"


def test_the_context_holds_only_what_is_built() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in lines
    for path in (line[1:] for line in lines if line.startswith("!")):
        assert list(ROOT.glob(path)), f"{path} is gone"


def test_every_image_of_ours_is_a_stage_of_its_own_with_all_labels() -> None:
    stages = re.split(r"^FROM \S+ AS ", text("Dockerfile").replace("\\\n", " "), flags=re.M)[1:]
    stages_by_name = dict(stage.split(maxsplit=1) for stage in stages)
    named = re.search(r"images: (.*) redis pause;", (ROOT / "hack" / "images").read_text())
    ours = set(named[1].split())
    assert ours >= {"scaletest", "media", *(kind.image for kind in KINDS.values())}
    for name in ours:
        # without the `title`, all say the same
        labels = re.findall(r"org\.opencontainers\.image\.(\w+)=", stages_by_name[name])
        assert labels == ["title", "description", "licenses", "version", "revision"], name
        assert (
            f"image.title={'scaletest' if name == 'scaletest' else f'scaletest-{name}'} "
            in stages_by_name[name]
        )


def npm(folder: Path, script: str) -> None:
    """A stand-in for npm."""
    program = folder / "npm"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def target(tmp_path: Path, monkeypatch: Any) -> Path:
    folder = tmp_path / "vendor"
    monkeypatch.setattr(hatch_build, "TARGET", folder)
    monkeypatch.setattr(hatch_build.fetch, "__defaults__", (folder,))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return folder


def test_with_npm_the_files_the_licence_and_the_version_are_there(
    target: Path, tmp_path: Path
) -> None:
    npm(
        tmp_path,
        'test "$1" = ci && mkdir -p node_modules/uplot/dist && cd node_modules/uplot && '
        "echo js >dist/uPlot.iife.min.js && echo css >dist/uPlot.min.css && echo MIT >LICENSE && "
        """echo '{"name": "uplot", "version": "1.2.3", "license": "MIT"}' >package.json""",
    )
    assert hatch_build.ensure("require") == "page assets: uplot 1.2.3"
    assert {path.name for path in target.iterdir()} == {
        "LICENSE",
        "VERSIONS",
        "uPlot.iife.min.js",
        "uPlot.min.css",
    }
    assert (target / "VERSIONS").read_text() == "uplot 1.2.3 MIT\n"


def test_without_npm_or_network_the_build_goes_on_unless_told_otherwise(
    target: Path, tmp_path: Path
) -> None:
    # given what an earlier build left
    target.mkdir()
    (target / "uPlot.iife.min.js").touch()
    npm(tmp_path, "echo no network >&2; exit 1")
    assert "none, pages will show charts drawn by the server" in hatch_build.ensure("")
    assert not target.exists()
    with pytest.raises(hatch_build.NoAssets, match="no network"):
        hatch_build.ensure("require")
    assert hatch_build.ensure("skip") == "page assets: left out"


def test_existing_page_assets_are_kept_on_request(target: Path) -> None:
    assert hatch_build.ensure("keep") == "page assets: left out"
    target.mkdir()
    (target / "VERSIONS").write_text("uplot 1.2.3 MIT\n")
    assert hatch_build.ensure("keep") == "page assets: uplot 1.2.3 MIT"
    assert (target / "VERSIONS").exists()


def test_the_lock_pins_one_version_with_its_hash() -> None:
    lock = json.loads((hatch_build.LOCK / "package-lock.json").read_text())
    wanted = json.loads((hatch_build.LOCK / "package.json").read_text())["dependencies"]
    package = lock["packages"]["node_modules/uplot"]
    assert wanted == {"uplot": package["version"]}
    assert package["integrity"].startswith("sha512-")


def test_no_asset_of_ours_names_another_host() -> None:
    static = Path(__file__).parents[3] / "scaletest" / "web" / "static"
    for path in static.glob("*.*"):
        text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, path
