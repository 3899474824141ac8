"""The pages that people read, and a terminal in which tests type what stands there.

Every shell block has the language sh and is run as it stands, unless a comment before it says how:

    <!-- run: weekly -->              by ./hack/test --weekly guides, because it takes long
    <!-- run: cluster -->             on the real node of the cluster tier
    <!-- run: newcomer -->            by hack/newcomer, in a fresh clone
    <!-- run: until listening on -->  until it prints these words; then it gets Ctrl-C
    <!-- run: weekly until ... -->    both
    <!-- not run: REASON -->          nowhere

A block of another language whose first line is a comment with a file's name is that file.
"""

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, takewhile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "docs" / "tutorial.md",
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
]
TIERS = ("integration", "weekly", "cluster", "newcomer")
BLOCK = re.compile(
    r"^(?P<indent> *)(?:<!-- (?P<comment>(?:not )?run: [^\n]+) -->\n+ *)?```(?P<language>\w*)\n"
    r"(?P<text>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
MARK = re.compile(
    r"run: (?P<tier>weekly|cluster|newcomer)?(?: ?until (?P<until>.+))?|not run: (?P<reason>.+)"
)
FILE = re.compile(r"(?:#|//) (?:.*/)?([\w-]+\.\w+)\n")
# Of a block that only stops when somebody presses Ctrl-C.
INTERRUPTED = (0, 130, -signal.SIGINT)
BLOCK_S, LOOK_S = 420.0, 0.1
PRELUDE = """\
set -eu -o pipefail
# A verdict is what the machine allows; that requests failed is told by the output.
scaletest() {
  local code=0
  command scaletest "$@" || code=$?
  case ${1:-}:$code in validate:[34] | saturate:[34] | bench:[34] | compare:3) code=0 ;; esac
  return "$code"
}
# What was started with & in the block before may not listen yet.
curl() { command curl -fsS --retry 20 --retry-connrefused --retry-delay 1 "$@"; }
if [ -e "$STATE" ]; then . "$STATE"; fi
"""
EPILOGUE = '\n{ export -p; printf "cd %q\\n" "$PWD"; } >"$STATE"\n'


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page: tier is one of TIERS, or "" where a reason says why it is not run."""

    page: Path
    line: int
    language: str
    text: str
    tier: str = "integration"
    until: str = ""
    reason: str = ""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file(self) -> str:
        """The name of the file that it is, or ""."""
        named = FILE.match(self.text)
        return named[1] if named else ""


def read_blocks(page: Path) -> list[Block]:
    """All blocks of a page. ValueError where a comment says nothing that is known."""
    text = page.read_text("utf-8")
    return [_block(page, text, match) for match in BLOCK.finditer(text)]


def _block(page: Path, text: str, match: re.Match[str]) -> Block:
    line = text.count("\n", 0, match.start("language")) + 1
    content = re.sub(rf"^{match['indent']}", "", match["text"], flags=re.MULTILINE)
    mark = MARK.fullmatch(match["comment"] or "run: ")
    if not mark:
        raise ValueError(f"{page}:{line}: {match['comment']}")
    tier = "" if mark["reason"] else mark["tier"] or "integration"
    block = Block(page, line, match["language"], content, tier)
    return Block(
        page, line, block.language, content, tier, mark["until"] or "", mark["reason"] or ""
    )


def shell_blocks(page: Path) -> list[Block]:
    return [block for block in read_blocks(page) if block.language == "sh"]


def command_lines(block: Block, program: str) -> Iterator[list[str]]:
    """Return the arguments of all calls of a program in a block, also behind a pipe."""
    for line in block.text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        for is_operator, call in groupby(lexer, lambda word: set(word) <= set("|&;()")):
            called = list(call)
            if not is_operator and called[0] == program:
                yield list(takewhile(lambda word: not set(word) <= set("<>"), called[1:]))


class Terminal:
    """A folder and a home of its own in which blocks are typed, one after another.

    The next block has what one exports, and is where that one went. What it starts with & runs
    until the end.
    """

    def __init__(
        self, folder: Path, environment: Mapping[str, str], replaced: Mapping[str, str]
    ) -> None:
        """Type in this folder. replaced: words of the blocks, and what stands for them here."""
        self.folder = folder
        self._replaced = replaced
        self._processes: list[subprocess.Popen[bytes]] = []
        self._outputs = folder / "outputs"
        self._outputs.mkdir()
        self.home = folder / "home"
        self.home.mkdir()
        environment_here = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SCALETEST_", "XDG_", "PIP_USER", "VIRTUAL_ENV"))
        }
        self._environment = {
            **environment_here,
            "HOME": str(self.home),
            "STATE": str(self._outputs / "state"),
            **environment,
        }

    def typed(self, text: str) -> str:
        """Put what stands here for the words of a page."""
        for original, here in self._replaced.items():
            text = text.replace(original, here)
        return text

    def run(self, text: str, until: str = "") -> tuple[int, str]:
        """Type a block, and return its exit code and what it printed.

        until: words after which it gets Ctrl-C.
        """
        output = self._outputs / f"{len(self._processes)}"
        with output.open("wb") as stream:
            process = subprocess.Popen(
                ["bash", "-c", PRELUDE + self.typed(text) + EPILOGUE],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._processes.append(process)
        if until:
            self._interrupt(process, output, until)
        try:
            code = process.wait(BLOCK_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
        return code, output.read_text("utf-8", "replace")

    def _interrupt(self, process: subprocess.Popen[bytes], output: Path, until: str) -> None:
        """Press Ctrl-C once these words are there; nothing when it ends before."""
        deadline = time.monotonic() + BLOCK_S
        while process.poll() is None and time.monotonic() < deadline:
            if until in output.read_text("utf-8", "replace"):
                os.killpg(process.pid, signal.SIGINT)
                return
            time.sleep(LOOK_S)

    def close(self) -> None:
        """End what still runs: nobody needs what it has."""
        for process in self._processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            process.wait()
