"""The pages of queues with a real Redis, real workers and a UI as a process of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from scaletest.broker import Client, Queues, connect
from scaletest.model import Request
from tests.conftest import eventually, wait_for
from tests.integration.test_ui_runs import Site, page

Start = Callable[..., Any]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with ExitStack() as stack:
        yield Site(tmp_path, stack)


def text_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_a_worker_with_its_device_and_request_is_shown(
    client: Client, url: str, start: Start, site: Site, tmp_path: Path
) -> None:
    # given a worker that holds a slot of a device, and runs the first of two requests
    device = tmp_path / "device"
    device.write_text("")
    base = site.ui("--redis-url", url, log="ui")
    start("--name", "w-1", "--device-glob", str(device), "--", "sleep", "600")
    requests = [Request(client.new_id(), "q") for _ in range(2)]
    client.submit(requests)
    eventually(lambda: Queues(connect(url)).state("q").running == 1)
    row = f"w-1 busy q {requests[0].id}"
    eventually(lambda: row in text_of(page(base)))
    overview = page(base)
    assert str(device) in overview
    assert re.search(r"\d m?s ago", text_of(overview))
    assert f"{device} " in text_of(overview.partition("devices-title")[2])
    # expect its queue to have a page
    assert "w-1 busy" in text_of(page(f"{base}/queues/q"))


def test_failures_are_shown_when_their_client_has_the_replies(
    client: Client, url: str, start: Start, site: Site
) -> None:
    base = site.ui("--redis-url", url, log="ui")
    start("--name", "w-1", "--", "sh", "-c", 'echo "no device at 0x$$" >&2; exit 3')
    requests = [Request(client.new_id(), "q") for _ in range(5)]
    client.submit(requests)
    wait_for(client, 5)
    shown = eventually(
        lambda: text if "5 failures" in (text := text_of(page(f"{base}/queues/q"))) else ""
    )
    # expect equal failures in one row
    assert re.search(r"no device at 0x\d+ 5 ", shown)


def test_the_pages_change_nothing_in_redis(
    client: Client, url: str, redis: Any, site: Site
) -> None:
    client.submit_one(Request(client.new_id(), "q"))
    base = site.ui("--redis-url", url, log="ui")
    before = {name: redis.dump(name) for name in sorted(redis.keys("*"))}
    for path in ("/", "/queues/q", "/queues/none"):
        assert page(base + path)
    after = {name: redis.dump(name) for name in sorted(redis.keys("*"))}
    # a client's heartbeat goes on by itself
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed <= {b"scaletest:clients", b"scaletest:pulse", b"scaletest:standstill"} | {
        b"scaletest:intervals"
    }
