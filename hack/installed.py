"""Do the main job with an installed scaletest, whose Python runs this file.

Nothing of a checkout is used, so it also runs where there is none. It measures a program, keeps
reports, opens the pages and the metrics, and has a worker serve a client.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import scaletest
from scaletest.broker import EmbeddedServer

PROGRAM = Path(sys.executable).with_name("scaletest")
PASS, INVALID, INTERRUPTED = 0, 4, 130
DEADLINE_S = 60


def run(*arguments: str, codes: tuple[int, ...] = (0,)) -> str:
    """Run a command, print it, and return its output; exit when its code is none of these."""
    print("$ scaletest", *arguments, flush=True)
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
    if done.returncode not in codes:
        sys.exit(f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


@contextmanager
def serving(*arguments: str) -> Iterator[None]:
    """Have a command run meanwhile, and see that it ends well."""
    print("$ scaletest", *arguments, "&", flush=True)
    process = subprocess.Popen([PROGRAM, *arguments], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait(DEADLINE_S)
    if code not in (0, INTERRUPTED):
        sys.exit(f"exit code {code}")


def get(url: str) -> str:
    """Return what answers at this address, as soon as it does."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
                return str(answer.read().decode())
        except OSError as error:
            if time.monotonic() > deadline:
                sys.exit(f"{url}: {error}")
            time.sleep(0.1)


def free_address() -> str:
    """Return a local address whose port nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def main() -> None:
    """Do what a first hour does; exit with what went wrong."""
    version = run("--version").split()[-1]
    if version != scaletest.__version__:
        sys.exit(f"scaletest --version says {version}, the package {scaletest.__version__}")
    if Path(scaletest.__file__).is_relative_to(Path(__file__).resolve().parents[1]):
        sys.exit("this is the checkout, not an installed scaletest")
    print(run("quick", "--", "sleep", "0.2"), end="")

    # other programs on the machine may spoil the measurement; that it says so is as good
    command = ("validate", "--local", "--limit", "2", "--max-step", "4", "--", "sleep", "0.1")
    run(*command, codes=(PASS, INVALID))
    with tempfile.TemporaryDirectory() as folder:
        for suffix, words in (("html", "<svg"), ("md", "# "), ("json", '"verdict"')):
            report = Path(folder) / f"report.{suffix}"
            run("report", "LAST", "-o", str(report))
            if words not in report.read_text("utf-8"):
                sys.exit(f"the report {suffix} has no {words}")
    address = free_address()
    with serving("ui", "--listen", address):
        if "sleep 0.1" not in get(f"http://{address}/runs"):
            sys.exit("the page of runs does not show the run")

    with EmbeddedServer() as server:
        os.environ["SCALETEST_REDIS_URL"] = server.url
        run("queue", "add", "naps")
        with serving("worker", "--queue", "naps"):
            run("client", "--queue", "naps", "--batch", "20", "--listen", "none", "--", "0")
        address = free_address()
        with serving("exporter", "--listen", address):
            (queue,) = json.loads(get(f"http://{address}/api/v1/queues"))["queues"]
            if (queue["name"], queue["succeeded"]) != ("naps", 20):
                sys.exit(f"not 20 succeeded: {queue}")
            get(f"http://{address}/metrics")
    print(f"scaletest {version} does its main job")


if __name__ == "__main__":
    main()
