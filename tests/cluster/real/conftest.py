"""A real node for the tests of this folder, and no longer: what runs on it costs also when nobody
asks for anything.
"""

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from hack.kubernetes import ControlPlane, NotBuilt, Pool, tool
from hack.kubernetes.images import archives
from scaletest.benchmarks.documents.custom_resources import make_definitions
from tests.cluster.conftest import KINDS, established, served
from tests.conftest import eventually, missing

REAL_IMAGES = ("scaletest", "redis", "pause")


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[Path]]:
    """Images as archives, built once for all lanes of a run."""

    def built(*names: str) -> list[Path]:
        if "PYTEST_XDIST_WORKER" not in os.environ:
            return archives(names)
        listed = tmp_path_factory.getbasetemp().parent / f"images-{'-'.join(names)}.json"
        with listed.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not listed.exists():
                listed.write_text(json.dumps([str(path) for path in archives(names)]), "utf-8")
        return [Path(path) for path in json.loads(listed.read_text("utf-8"))]

    return built


@pytest.fixture(scope="package")
def real(
    tmp_path_factory: pytest.TempPathFactory, images: Callable[..., list[Path]]
) -> Iterator[ControlPlane]:
    """A cluster with one real node that has REAL_IMAGES, a fake one that nobody wants, and the
    definitions of KEDA, Prometheus and ours.
    """
    plane = ControlPlane(tmp_path_factory.mktemp("real"))
    try:
        crds = Path(tool("crds", "crds.yaml")).read_text("utf-8")
        with ThreadPoolExecutor(1) as builder:
            built = builder.submit(images, *REAL_IMAGES)
            plane.up([Pool("plain", 1, 0)], real=True)
            plane.node.load(built.result())
        plane.kubectl(
            "apply",
            "--server-side",
            "-f",
            "-",
            stdin=f"{crds}\n---\n{yaml.safe_dump_all(make_definitions())}",
        )
        established(plane)
        eventually(lambda: served(plane, KINDS))
        yield plane
    except NotBuilt as error:
        missing(str(error))
    finally:
        plane.down()
