"""Sources of the images: pins that fit the project, and Dockerfiles for any builder."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

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
        r"^(\S+)==(\S+)(?: ; [^\\\n]+)? \\\n((?: {4}--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)",
        text(name),
        re.M,
    )
    assert len(blocks) == len(re.findall(r"^\S+==", text(name), re.M)), (
        "something is not pinned with hashes"
    )
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


def test_no_asset_of_ours_names_another_host() -> None:
    static = Path(__file__).parents[3] / "scaletest" / "pages" / "static"
    paths = list(static.glob("*.*"))
    assert paths
    for path in paths:
        text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text, path
