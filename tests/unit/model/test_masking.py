"""What is secret stays out of texts, out of the environment of workloads, and out of other users'
reach.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from scaletest.broker.connection import prepare_connection
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.model.errors import InvalidValue
from scaletest.model.masking import mask_passwords, without_secrets
from scaletest.runs.folder import RunFolder
from scaletest.validation.plan import Plan

SECRET = "S3CRET"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("redis://user:S3CRET@host:1/0", "redis://user:***@host:1/0"),
        ("redis://user:S3/CR:E@T@host:1/0", "redis://user:***@host:1/0"),
        ("redis://:S3CRET@host", "redis://:***@host"),
        ("unix:///run/redis.sock?password=S3CRET", "unix:///run/redis.sock?password=***"),
        (
            "unix:///s?db=2&password=S3CRET&username=S3CRET",
            "unix:///s?db=2&password=***&username=***",
        ),
        ("unix:///s?password=S3 CR#ET&db=2", "unix:///s?password=***&db=2"),
        ("redis://host/0?Password=S3CRET", "redis://host/0?Password=***"),
        (
            "rediss://host/0?ssl_password=S3CRET&ssl_ca_certs=ca.pem",
            "rediss://host/0?ssl_password=***&ssl_ca_certs=ca.pem",
        ),
        (
            "sentinel://u:S3CRET@a:1,b:2/service?sentinel_username=S3CRET&sentinel_password=S3CRET",
            "sentinel://u:***@a:1,b:2/service?sentinel_username=***&sentinel_password=***",
        ),
        ("--redis-url=unix:///s?password=S3CRET", "--redis-url=unix:///s?password=***"),
        ("redis://host:6379/0", "redis://host:6379/0"),
        ("redis://host/0?socket_timeout=3", "redis://host/0?socket_timeout=3"),
        ("ffmpeg -i a?password=b", "ffmpeg -i a?password=b"),
    ],
)
def test_an_address_is_shown_without_its_secrets(address: str, expected: str) -> None:
    assert mask_passwords(address) == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://host/path?key=S3CRET&n=1", "http://host/path?key=***&n=***"),
        # services take keys as user names
        ("https://S3CRET:@host/v1", "https://***@host/v1"),
        ("https://S3CRET@host/v1", "https://***@host/v1"),
        ("https://S3CRET:S3/CRET@host/v1", "https://***@host/v1"),
        ("--url=https://S3CRET@host/v1", "--url=https://***@host/v1"),
        ("https://host/@name", "https://host/@name"),
    ],
)
def test_the_url_of_a_service_is_shown_without_login_and_query_values(
    address: str, expected: str
) -> None:
    assert mask_passwords(address, service=True) == expected


@pytest.mark.parametrize(
    "password",
    [
        "S3CRET/x",
        "S3CRET?x",
        "S3CRET#x",
        "x/S3CRET",
        "x?S3CRET",
        "x#S3CRET",
        "x:S3CRET/",
        "x[S3CRET",
    ],
)
def test_the_error_of_an_invalid_url_hides_its_password(password: str) -> None:
    with pytest.raises(InvalidValue, match="percent-encoded") as caught:
        prepare_connection(f"redis://user:{password}@host:6379/0")
    assert SECRET not in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    "url", ["rediss://h/0?ssl_cert_reqs=some", "sentinel://h/m/0?ssl=true&ssl_cert_reqs=some"]
)
def test_a_wrong_ssl_cert_reqs_is_a_wrong_url(url: str) -> None:
    with pytest.raises(InvalidValue, match=r"cannot be read: .*: some"):
        prepare_connection(url)


def test_workloads_get_no_secrets_of_ours() -> None:
    # given what the chart and users put into the environment of a worker
    secret = [
        "SCALETEST_REDIS_URL",
        "SCALETEST_WORKER_REDIS_URL",
        "REDIS_PASSWORD",
        "SCALETEST_CLIENT_TOKEN",
        "SCALETEST_TOKEN",
        "SCALETEST_SATURATE_HEADERS",
    ]
    public = [
        "PATH",
        "NODE_NAME",
        "POD_NAME",
        "LIBVA_DRIVER_NAME",
        "SCALETEST_WORKER_DEVICE_GLOB",
        "TOKENIZERS_PARALLELISM",
    ]
    # when a program is started, expect only the rest
    assert set(without_secrets(dict.fromkeys([*secret, *public], "x"))) == set(public)


@pytest.fixture(params=[0o000, 0o022, 0o077])
def mask(request: pytest.FixtureRequest) -> Iterator[None]:
    """A umask: what we make must not depend on it."""
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(folder: Path) -> set[tuple[str, int]]:
    """Whether folder or file, and the rights, of everything from here on."""
    return {
        ("folder" if path.is_dir() else "file", stat.S_IMODE(path.stat().st_mode))
        for path in (folder, *folder.rglob("*"))
    }


@pytest.mark.usefixtures("mask")
def test_a_run_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "runs" / "r")
    with folder.locked():
        folder.begin(Plan(limit=1, seconds=1.0), {"host": "a"})
        folder.write("result.json", {"a": 1})
        folder.append("records.jsonl", ["{}"])
    assert modes(folder.path) == {("folder", 0o700), ("file", 0o600)}


@pytest.mark.usefixtures("mask")
def test_a_lifecycle_is_for_its_owner_only(tmp_path: Path) -> None:
    store = LifecycleFolder(tmp_path / "runs" / "r")
    store.make()
    with store.locked(".lock"), store.open_submissions() as lines:
        lines.write("{}\n")
        store.put("environment.json", "{}")
    assert modes(store.path) == {("folder", 0o700), ("file", 0o600)}


def test_an_existing_folder_keeps_its_permissions(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o750)
    RunFolder.create(shared)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o750
