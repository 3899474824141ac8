"""A newcomer's first commands, in an empty home: each was told by the README or an earlier output.

Cloning and reading the README are what everybody does with a project. One command is a mistake,
and the next one is what the program answers to it.
"""

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.guides import ROOT, Terminal
from scaletest.broker import EmbeddedServer

USAGE = 2


@dataclass(frozen=True, slots=True)
class NewcomerStep:
    """What a newcomer types, and the exit code that is right; is_told: somebody said so before."""

    title: str
    text: str
    code: int = 0
    is_told: bool = True


STEPS = (
    NewcomerStep("clone", "git clone URL scaletest && cd scaletest"),
    NewcomerStep("read the README", "cat README.md", is_told=False),
    NewcomerStep("see the demo", "./hack/demo"),
    NewcomerStep(
        "install",
        "python3 -m venv ~/scaletest && ~/scaletest/bin/pip install -q .\n"
        "export PATH=~/scaletest/bin:$PATH",
    ),
    NewcomerStep("ask for help", "scaletest --help"),
    NewcomerStep("look quickly", "scaletest quick -- sleep 0.2"),
    NewcomerStep(
        "measure a program of one's own",
        "scaletest validate --limit 4 --max-step 8 -- python3 -c 'sum(range(8_000_000))'",
    ),
    NewcomerStep("keep a report", "scaletest report LAST -o report.html"),
    NewcomerStep(
        "forget the dashes",
        "scaletest validate --limit 2 --max-step 4 python3 -c 'sum(range(8_000_000))'",
        code=USAGE,
        is_told=False,
    ),
    NewcomerStep(
        "put them in, as the answer says",
        "scaletest validate --limit 2 --max-step 4 -- python3 -c 'sum(range(8_000_000))'",
        is_told=False,
    ),
    NewcomerStep(
        "have workers and submit",
        "export SCALETEST_REDIS_URL=redis://127.0.0.1:6379/0\n"
        "scaletest queue add sleep\n"
        "scaletest worker --queue sleep &\n"
        "scaletest queue submit sleep --time-limit 60s -- 0.5\n"
        "scaletest queue show sleep",
    ),
    NewcomerStep("uninstall", "cd .. && rm -rf scaletest ~/scaletest ~/.local/share/scaletest"),
)


class Surprised(Exception):
    """What the newcomer could not know, or what went wrong."""


def untold_lines(step: NewcomerStep, read: str) -> list[str]:
    """Return the lines of a step that stand neither in the README nor in an output before."""
    if not step.is_told:
        return []
    known = " ".join(read.split())
    return [line for line in step.text.splitlines() if " ".join(line.split()) not in known]


def walk(terminal: Terminal, readme: str, steps: Sequence[NewcomerStep] = STEPS) -> None:
    """Type all steps and print the transcript; Surprised where one cannot be known, or fails."""
    read = readme
    for number, step in enumerate(steps, 1):
        if lines := untold_lines(step, read):
            raise Surprised(f"nobody told the newcomer to type: {lines[0]}")
        print(f"\n=== {number}. {step.title}")
        print("\n".join(f"$ {line}" for line in step.text.splitlines()))
        code, output = terminal.run(step.text)
        print(output, end="", flush=True)
        if code != step.code:
            raise Surprised(f"{step.title} ended with {code}, not with {step.code}")
        read += output


def main() -> None:
    """Walk in a folder that is gone afterwards, and see that nothing stays."""
    with (
        tempfile.TemporaryDirectory(prefix="newcomer-") as name,
        EmbeddedServer(tcp=True) as server,
    ):
        folder = Path(name)
        own = str(Path(sys.executable).parent)
        path = [entry for entry in os.environ["PATH"].split(":") if entry != own]
        environment = {"PATH": ":".join(path)}
        replaced = {"clone URL": f"clone -q {ROOT}", "redis://127.0.0.1:6379/0": server.url}
        terminal = Terminal(folder, environment, replaced)
        try:
            walk(terminal, (ROOT / "README.md").read_text("utf-8"))
        except Surprised as error:
            raise SystemExit(f"error: {error}") from None
        finally:
            terminal.close()
        if left := [str(path) for path in folder.rglob("*scaletest*")]:
            raise SystemExit(f"error: the uninstallation left {', '.join(left)}")
    print("\nnothing is left")


if __name__ == "__main__":
    main()
