"""The images that hack/images builds, run by podman as a kubelet runs restricted pods: with a
numeric user, without capabilities and new privileges, on a read-only root.

Redis is the stand-in for the chart's image. It has only a loopback, which workers share; tests
reach it by a socket.
"""

import json
import os
import re
import secrets
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import scaletest
from scaletest.broker import Client, Queues
from tests.conftest import eventually, missing, need, submit, wait_for

# What wants an image that no other test uses, or one from scratch.
built_weekly = pytest.mark.weekly(part="images")
# images are built, and podman is slow where much else runs
pytestmark = pytest.mark.timeout(900)
ROOT = Path(__file__).parents[2]
SCALETEST, MEDIA = f"scaletest:{scaletest.__version__}", f"scaletest-media:{scaletest.__version__}"
# The figures that docs/how-to/images.md promises, in MB.
LARGEST = {SCALETEST: 280, MEDIA: 780}
RESTRICTED = [
    *(
        "--read-only",
        "--read-only-tmpfs=false",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
    ),
    *("--tmpfs=/tmp:mode=1777", "--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096"),
]


def build(*arguments: str, **environment: str) -> None:
    line = [str(ROOT / "hack/images"), *arguments]
    done = subprocess.run(
        line, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


class Podman:
    """podman, with the options that this machine needs."""

    def __init__(self) -> None:
        self._line = ["podman"]
        if not Path("/run/systemd/system").exists():
            self._line.append("--cgroup-manager=cgroupfs")
        if not Path("/sys/fs/cgroup/cgroup.controllers").exists():
            self._line.append("--runtime=runc")  # crun knows no mixture of cgroup versions

    def __call__(self, *arguments: str, expect: int = 0) -> str:
        """Run it; what it wrote to standard output."""
        done = subprocess.run(
            [*self._line, *arguments], capture_output=True, text=True, timeout=100, check=False
        )
        assert done.returncode == expect, done.stderr + done.stdout
        return done.stdout

    def run(self, *arguments: str, expect: int = 0) -> str:
        """A restricted container without network, to its end."""
        return self("run", "--rm", "--network=none", *RESTRICTED, *arguments, expect=expect)

    def shell(self, image: str, script: str, *options: str) -> str:
        """A script in a container, as root, to see everything."""
        return self.run(
            "--user=0", "--cap-add=DAC_OVERRIDE", *options, "--entrypoint=sh", image, "-ec", script
        )


@pytest.fixture(scope="session")
def podman() -> Podman:
    """podman, and the images that are used in other tests too in its storage."""
    need("buildah", "podman")
    try:
        build("scaletest", "redis", "pause", "--pause", "localhost/pause:test")
    except AssertionError as error:
        if os.geteuid():  # not every machine lets its users
            why = [line.strip() for line in str(error).splitlines() if "error: " in line]
            missing(f"images, which root can build; {', '.join(why[:1])}")
        raise
    return Podman()


@pytest.fixture(scope="session")
def media(podman: Podman) -> str:
    """The name of the media image, which no other test uses: with its drivers it takes minutes."""
    build("media")
    return MEDIA


Start = Callable[..., str]


@pytest.fixture
def background(podman: Podman) -> Iterator[Start]:
    """Start restricted containers, by arguments of `podman run`; they are gone after the test.
    Gives names.
    """
    names: list[str] = []

    def start(*arguments: str) -> str:
        name = f"scaletest-{secrets.token_hex(6)}"
        names.append(name)
        podman("run", "--detach", f"--name={name}", *RESTRICTED, *arguments)
        return name

    yield start
    for name in reversed(names):
        podman("rm", "--force", "--time=0", name)


@pytest.fixture
def server_container(background: Start, tmp_path: Path) -> str:
    """The chart's Redis, started as the chart starts it. Name of its container."""
    folder = tmp_path / "redis"
    folder.mkdir()
    folder.chmod(0o777)  # another user's
    lines = [
        "port 6379",
        "dir /data",
        "appendonly yes",
        "unixsocket /data/socket",
        "unixsocketperm 777",
    ]
    config = tmp_path / "config"
    config.mkdir()
    (config / "server.conf").write_text("\n".join(lines) + "\n")
    volumes = [f"--volume={folder}:/data", f"--volume={config}:/etc/redis:ro"]
    return background(
        "--network=none",
        "--user=999:999",
        *volumes,
        redis_image(),
        "valkey-server",
        "/etc/redis/server.conf",
    )


@pytest.fixture
def url(server_container: str, tmp_path: Path) -> str:
    """Where tests reach it."""
    socket = tmp_path / "redis/socket"
    eventually(socket.exists)
    return f"unix://{socket}"


@pytest.fixture
def work(background: Start, server_container: str, queues: Queues) -> Start:
    """Start a worker on queue q, by options of `podman run`; `line` are its arguments."""

    def start(*options: str, image: str = SCALETEST, line: tuple[str, ...] = ()) -> str:
        redis = "--env=SCALETEST_REDIS_URL=redis://127.0.0.1:6379/0"
        name = background(
            f"--network=container:{server_container}",
            redis,
            *options,
            image,
            "worker",
            "--queue=q",
            *line,
        )
        eventually(lambda: queues.worker_names("q"))
        return name

    return start


def redis_image() -> str:
    values = (ROOT / "charts/scaletest/charts/redis/values.yaml").read_text()
    image = re.search(r'repository: (\S+)\n.*\n  tag: "(\S+)"', values)
    assert image
    return ":".join(image.groups())


def ask(client: Client, *arguments: str) -> Any:
    name = submit(client, *arguments)
    return wait_for(client, 1)[name]


def test_the_command_line_works_and_nobody_is_root(podman: Podman) -> None:
    assert podman.run(SCALETEST, "--version").split()[-1] == scaletest.__version__
    assert "scaletest validate" in podman.run(SCALETEST, "validate", "--help")
    assert (
        podman.run("--entrypoint=id", SCALETEST)
        == "uid=10001(scaletest) gid=10001(scaletest) groups=10001(scaletest)\n"
    )
    assert numeric_user(podman, SCALETEST) == "10001:10001"


def numeric_user(podman: Podman, image: str) -> str:
    """Its user as a kubelet compares it."""
    return str(json.loads(podman("image", "inspect", image))[0]["Config"]["User"])


def test_the_image_runs_as_any_numeric_user(podman: Podman) -> None:
    version = podman.run("--user=4711:4711", SCALETEST, "--version").strip()
    assert version == f"scaletest, version {scaletest.__version__}"


def test_a_worker_and_a_client_and_an_exporter_of_the_image(
    podman: Podman, work: Start, background: Start, server_container: str, queues: Queues
) -> None:
    # given a worker in a restricted container, whose first process is an init
    worker = work()
    assert podman("exec", worker, "cat", "/proc/1/comm") == "tini\n"
    inside = [
        f"--network=container:{server_container}",
        "--env=SCALETEST_REDIS_URL=redis://127.0.0.1:6379/0",
    ]
    # when a client of the same image has 20 requests served
    line = ["client", "--queue=q", "--batch=20", "--listen=none", "--", "0.01"]
    podman("run", "--rm", *RESTRICTED, *inside, SCALETEST, *line)
    # expect them in the books, as the exporter of the same image tells them
    assert queues.state("q").counters["succeeded"] == 20
    background(*inside, SCALETEST, "exporter", "--listen=127.0.0.1:9995")
    script = (
        "import urllib.request as u;"
        " print(u.urlopen('http://127.0.0.1:9995/metrics').read().decode())"
    )
    metric = 'scaletest_requests_total{outcome="succeeded",queue="q"} 20.0'
    eventually(lambda: metric in exec_python(podman, worker, script))


def exec_python(podman: Podman, name: str, script: str) -> str:
    try:
        return podman("exec", name, "python3", "-c", script)
    except AssertionError:  # nobody listens yet
        return ""


@built_weekly
def test_the_media_image_transcodes(
    podman: Podman, media: str, work: Start, client: Client, tmp_path: Path
) -> None:
    # given a stream that the image made itself
    folder = tmp_path / "media"
    folder.mkdir()
    folder.chmod(0o777)
    made = "ffmpeg -f lavfi -i testsrc2=size=64x64:rate=25 -frames:v 10 /made/test.h264"
    program, *words = made.split()
    podman.run(f"--volume={folder}:/made", f"--entrypoint={program}", media, *words)
    (stream,) = folder.iterdir()
    line = ("--", "transcode", f"--input=/made/{stream.name}", "--output-codec=h265", "--frames=10")
    work(f"--volume={folder}:/made:ro", image=media, line=line)
    reply = ask(client)
    assert reply.ok, reply
    assert reply.figures["frames"] == 10


def test_a_worker_in_a_container_drains_on_sigterm(
    podman: Podman, work: Start, client: Client, queues: Queues
) -> None:
    # given one running and one waiting request
    worker = work()
    running, waiting = submit(client, "2"), submit(client, "0")
    eventually(lambda: queues.state("q").running == 1)
    # when the container gets what a kubelet sends
    podman("kill", "--signal=TERM", worker)
    # expect the running one finished, the other untouched, and a clean end
    assert podman("wait", worker).strip() == "0"
    assert wait_for(client, 1)[running].ok
    assert (queues.state("q").waiting, queues.state("q").balance) == (1, 0)
    assert waiting != running


def test_nothing_of_a_workload_is_left_behind(podman: Podman, work: Start, client: Client) -> None:
    # given a workload that leaves one grandchild that runs on and one that ends when it is long
    # over, both outside its group (setsid runs in the foreground: a shell that ended before it
    # would take the grandchild with its group)
    leave = "setsid /bin/sh -c 'sleep 1 & sleep 3600 &'; exit 0"
    worker = work(line=("--", "/bin/sh", "-c", leave))
    # when a request ends
    assert ask(client).ok
    # expect neither a process of it, nor a dead one that nobody reaped
    processes = "cat /proc/[0-9]*/stat | cut -d' ' -f2,3"

    def states() -> list[str]:
        return podman("exec", worker, "sh", "-c", processes).split("\n")

    eventually(
        lambda: not [state for state in states() if state.endswith(" Z") or "(sleep)" in state]
    )


@pytest.mark.parametrize("image", [SCALETEST, pytest.param(MEDIA, marks=built_weekly)])
def test_the_image_has_no_build_tools_and_no_writable_files(
    podman: Podman, image: str, request: pytest.FixtureRequest
) -> None:
    if image == MEDIA:
        request.getfixturevalue("media")
    tools = "pip pip3 gcc cc g++ clang make npm node git curl wget buildah"
    present = podman.shell(image, f"for tool in {tools}; do command -v $tool || true; done").split()
    assert present == []
    assert (
        podman.shell(
            image, "python3 -c 'import importlib.util as u; print(u.find_spec(\"pip\"))'"
        ).strip()
        == "None"
    )
    # expect no set-user-id and no set-group-id program, and nothing that its user could change
    assert podman.shell(image, "find / -xdev -type f -perm /6000").split() == []
    open_places = (
        "find / -xdev ! -type l \\( -perm -o+w -o -user 10001 -o -group 10001 \\) ! -path '/proc/*'"
        " ! -path '/dev/*'"
    )
    assert set(podman.shell(image, open_places).split()) <= {
        "/tmp",
        "/var/tmp",
        "/run/lock",
        "/var/lock",
    }
    # expect the Python files compiled, because nobody can write what Python compiles
    uncompiled = (
        "cd /opt/scaletest/lib/python3*/site-packages/scaletest && ls __pycache__/__init__.*.pyc"
    )
    assert podman.shell(image, uncompiled)


def test_the_images_have_the_sizes_of_the_documentation(podman: Podman) -> None:
    check_size(podman, SCALETEST)


@built_weekly
def test_the_media_image_has_the_size_and_the_user_of_the_documentation(
    podman: Podman, media: str
) -> None:
    check_size(podman, media)
    assert numeric_user(podman, media) == "10001:10001"


def check_size(podman: Podman, image: str) -> None:
    assert int(podman("image", "inspect", "--format={{.Size}}", image)) < LARGEST[image] * 1e6
    assert f"under {LARGEST[image]} MB" in (ROOT / "docs/how-to/images.md").read_text()


@built_weekly
def test_no_layer_keeps_settings_of_the_building_machine(podman: Podman, tmp_path: Path) -> None:
    # given settings of apt and pip that are marked and change nothing
    mark, tag = f"mark-{secrets.token_hex(8)}", f"mark-{secrets.token_hex(4)}"
    apt = tmp_path / "apt.conf"
    apt.write_text(f'Acquire::http::Proxy::{mark}.example "DIRECT";\n')
    marked = {"APT_CONFIG": str(apt), "PIP_TRUSTED_HOST": f"{mark}.example"}
    image = f"scaletest:{tag}"
    try:
        # when an image is built with them from scratch
        build("--no-cache", "--tag", tag, "--archive", str(tmp_path), "scaletest", **marked)
        layers = list(files_of_layers(tmp_path / "scaletest.tar"))
    finally:
        podman("image", "rm", "--force", image)
    # expect the mark nowhere, and no file where settings lie
    assert len(layers) > 3000
    assert [name for name, content in layers if mark.encode() in content] == []
    names = r"pip\.conf|\.?npmrc|\.pip/.+|\.config/.+|hosts|hostname|resolv\.conf|auth\.conf.*/.+"
    places = rf"run/.+|(etc|root)/(.*/)?({names})"
    assert [name for name, content in layers if re.fullmatch(places, name) and content] == []


def files_of_layers(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of every layer, and the image's configuration with its history."""
    with tarfile.open(archive) as whole:
        for member in whole.getmembers():
            content = whole.extractfile(member) if member.isfile() else None
            if content and member.name.endswith(".tar"):
                with tarfile.open(fileobj=content) as layer:
                    for file in layer:
                        inner = layer.extractfile(file) if file.isfile() else None
                        yield file.name, inner.read() if inner else b""
            elif content:
                yield member.name, content.read()


def test_the_stand_ins_do_what_the_chart_and_a_kubelet_want(
    podman: Podman, background: Start, server_container: str
) -> None:
    pause = background("--network=none", "localhost/pause:test")
    # expect the program of the chart's probe to work, and both to end when they are told to
    eventually(lambda: "PONG" in probe(podman, server_container))
    # expect the server that its name tells of
    version = redis_image().rpartition(":")[2]
    assert f"Valkey server v={version}." in podman(
        "exec", server_container, "valkey-server", "--version"
    )
    for name in (server_container, pause):
        podman("kill", "--signal=TERM", name)
        assert podman("wait", name).strip() == "0"


def probe(podman: Podman, name: str) -> str:
    try:
        return podman(
            "exec", name, "sh", "-c", "valkey-cli ping | grep -Eq 'PONG|NOAUTH' && echo PONG"
        )
    except AssertionError:  # it starts
        return ""


def test_archives_carry_the_names_that_a_kubelet_asks_for(podman: Podman, tmp_path: Path) -> None:
    build("redis", "pause", "--pause", "registry.example.org/pause:9", "--archive", str(tmp_path))
    podman("image", "rm", "registry.example.org/pause:9")
    names = {"redis": f"docker.io/{redis_image()}", "pause": "registry.example.org/pause:9"}
    for file, name in names.items():
        with tarfile.open(tmp_path / f"{file}.tar") as archive:
            manifest = archive.extractfile("manifest.json")
            assert manifest
            assert name in json.load(manifest)[0]["RepoTags"]
