"""The users that the chart makes in Redis can do their work, leave nothing refused, and can do no
more.
"""

import hashlib
import subprocess
from pathlib import Path

import pytest
import redis as redis_py
import yaml

from scaletest.broker import EmbeddedServer
from scaletest.ui.app import make_app
from scaletest.ui.sources import Sources
from tests.conftest import call, eventually, program

VALUES = Path(__file__).parents[2] / "charts" / "scaletest" / "charts" / "redis" / "values.yaml"
USERS: dict[str, str] = yaml.safe_load(VALUES.read_text("utf-8"))["users"]


@pytest.fixture
def urls(url: str, redis: redis_py.Redis) -> dict[str, str]:
    """A URL for each user, on a server that has them."""
    urls = {}
    for name, rules in USERS.items():
        hashed = hashlib.sha256(name.encode()).hexdigest()
        redis.execute_command("ACL", "SETUSER", name, "reset", "on", f"#{hashed}", *rules.split())
        urls[name] = url.replace("unix://", f"unix://{name}:{name}@")
    redis.execute_command("ACL", "LOG", "RESET")
    yield urls
    redis.execute_command("ACL", "DELUSER", *USERS)


def test_a_release_works_with_its_own_users(
    urls: dict[str, str], redis: redis_py.Redis, tmp_path: Path
) -> None:
    # given a queue that a worker's pod declares, a worker, an exporter and the pages
    assert call("queue", "--redis-url", urls["worker"], "add", "sleep").returncode == 0
    assert call("queue", "--redis-url", urls["client"], "add", "sleep").returncode == 0
    worker = subprocess.Popen(program("worker", "--queue", "sleep", "--redis-url", urls["worker"]))
    exporter = subprocess.Popen(
        program("exporter", "--listen", "127.0.0.1:0", "--redis-url", urls["exporter"])
    )
    pages = make_app(Sources(tmp_path, urls["ui"])).test_client()
    try:
        probe = ["queue", "--redis-url", urls["worker"], "show", "sleep", "--format", "json"]
        eventually(
            lambda: "worker_names" in (text := call(*probe).stdout) and '"workers": 1' in text
        )
        # when a client has it run requests
        options = ["--batch", "20", "--listen", "none", "--redis-url", urls["client"]]
        done = call("client", "--queue", "sleep", *options, "--", "0.01")
        assert done.returncode == 0, done.stderr
        eventually(lambda: redis.exists("scaletest:pulse"))
        for path in ("/readyz", "/", "/runs", "/live", "/queues/sleep", "/compare"):
            assert pages.get(path).status_code == 200, path
    finally:
        for process in (worker, exporter):
            process.terminate()
        codes = [process.wait(120) for process in (worker, exporter)]
    # expect that Redis refused none of them anything
    assert codes == [0, 0]
    refused = [(row["username"], row["object"]) for row in redis.acl_log()]
    assert refused == []


@pytest.mark.parametrize("name", USERS)
@pytest.mark.parametrize("command", ["FLUSHALL", "CONFIG GET *", "ACL LIST", "KEYS *", "GET other"])
def test_no_user_can_do_more_than_its_role_needs(
    urls: dict[str, str], name: str, command: str, server: EmbeddedServer
) -> None:
    with (
        redis_py.Redis.from_url(urls[name]) as client,
        pytest.raises(redis_py.exceptions.NoPermissionError),
    ):
        client.execute_command(*command.split())


def test_the_user_of_the_pages_changes_nothing(urls: dict[str, str], redis: redis_py.Redis) -> None:
    # given every command that writes, alone and in a script
    writing = redis.execute_command("ACL", "CAT", "write")
    assert len(writing) > 50 and b"del" in writing
    refused = pytest.raises(redis_py.exceptions.ResponseError, match=r"permission|can't run")
    with redis_py.Redis.from_url(urls["ui"]) as client:
        assert client.llen("rq:queue:sleep") == 0
        for name in writing:
            assert b"permission" in redis.execute_command(
                "ACL", "DRYRUN", "ui", *call_of(redis, name)
            )
        with refused:
            client.execute_command("RPUSH", "rq:queue:sleep", "x")
        with refused:
            client.eval("return redis.call('DEL', KEYS[1])", 1, "rq:queue:sleep")


def call_of(redis: redis_py.Redis, name: bytes) -> list[bytes]:
    """A command with as many parts as it needs at least."""
    parts = name.split(b"|")
    (described,) = redis.execute_command("COMMAND", "INFO", name).values()
    return [*parts, *[b"1"] * (abs(described["arity"]) - len(parts))]


def test_the_user_of_keda_can_read_the_lengths_of_queues(urls: dict[str, str]) -> None:
    with redis_py.Redis.from_url(urls["keda"]) as client:
        script = "return redis.call('type', KEYS[1]).ok .. redis.call('llen', KEYS[1])"
        assert client.eval(script, 1, "rq:queue:sleep") == b"none0"
        assert client.zcard("scaletest:leases:sleep") == 0
