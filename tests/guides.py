"""The pages that people read, and a terminal that types what stands in them.

Every shell block has the language sh and is run as it stands, unless a comment before it says how:

    <!-- run: weekly -->              by ./hack/test --weekly guides, because it takes long
    <!-- run: cluster -->             on the real node of the cluster tier
    <!-- run: newcomer -->            by hack/newcomer, in a fresh clone
    <!-- run: until listening on -->  until it prints these words; then it gets Ctrl-C
    <!-- run: weekly until ... -->    both
    <!-- not run: REASON -->          nowhere

A block of another language whose first line is a comment with a file's name is that file.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, takewhile
from pathlib import Path

from tests.conftest import eventually

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
    r"run: (?P<tier>weekly|cluster|newcomer)?(?: ?until (?P<words>.+))?|not run: (?P<reason>.+)"
)
FILE = re.compile(r"(?:#|//) (?:.*/)?([\w-]+\.\w+)\n")
# Of a block that only stops when somebody presses Ctrl-C.
INTERRUPTED = (0, 130, -signal.SIGINT)
BLOCK_S = 420.0
# A verdict is whatever the machine allows; that requests failed is told by the output.
PRELUDE = """\
set -euo pipefail
scaletest() {
  local code=0
  command scaletest "$@" || code=$?
  case $1:$code in validate:[34] | saturate:[34] | bench:[34] | compare:3) code=0 ;; esac
  return "$code"
}
[ ! -e "$STATE" ] || . "$STATE"
"""
EPILOGUE = '\nexport -p >"$STATE"\n'
FAILED_REQUESTS = "are tolerated"


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page: tier is one of TIERS, or "" where a reason says why it is not run."""

    page: Path
    line: int
    language: str
    text: str
    tier: str = "integration"
    words: str = ""
    reason: str = ""

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file(self) -> str:
        """The name of the file that it is, or ""."""
        named = FILE.match(self.text)
        return named[1] if named else ""


def blocks(page: Path) -> list[Block]:
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
        page, line, block.language, content, tier, mark["words"] or "", mark["reason"] or ""
    )


def shell_blocks(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.language == "sh"]


def command_lines(block: Block, program: str) -> Iterator[list[str]]:
    """The arguments of every call of a program in a block, also behind a pipe or before `&`."""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.shlex(line, posix=True, punctuation_chars=True)
        words.whitespace_split = True
        for is_operator, call in groupby(words, lambda word: set(word) <= set("|&;()")):
            called = list(call)
            if not is_operator and called[0] == program:
                yield list(takewhile(lambda word: not set(word) <= set("<>"), called[1:]))


class Terminal:
    """A folder of its own in which blocks are typed, one after another.

    What a block exports is there in the next one, and what it starts with & runs until the end.
    """

    def __init__(
        self, folder: Path, environment: Mapping[str, str], replaced: Mapping[str, str]
    ) -> None:
        self.folder = folder
        self._replaced = replaced
        self._groups: list[int] = []
        programs = str(Path(sys.executable).parent)
        home = folder / "home"
        home.mkdir()
        (folder / "charts").symlink_to(ROOT / "charts")
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SCALETEST_", "XDG_"))
        }
        self._environment = {
            **kept,
            "HOME": str(home),
            "STATE": str(home / "state"),
            "PATH": f"{programs}:{os.environ['PATH']}",
            **environment,
        }

    def run(self, block: Block) -> None:
        """Type a block; AssertionError with its output when it fails."""
        if block.language != "sh":
            if block.file:
                (self.folder / block.file).write_text(block.text, "utf-8")
            return
        text = block.text
        for words, here in self._replaced.items():
            text = text.replace(words, here)
        output = self.folder / "home" / f"output-{block.line}"
        with output.open("wb") as stream:
            process = subprocess.Popen(
                ["bash", "-c", PRELUDE + text + EPILOGUE],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._groups.append(process.pid)
        code = self._ended(process, block, output)
        printed = output.read_text("utf-8", "replace")
        expected = INTERRUPTED if block.words else (0,)
        assert code in expected, f"{block.place} ended with {code}\n{text}\n{printed}"
        assert FAILED_REQUESTS not in printed, f"{block.place}\n{text}\n{printed}"

    def _ended(self, process: subprocess.Popen[bytes], block: Block, output: Path) -> int:
        """Wait for the end of a block, or for its words and then for the end of Ctrl-C."""
        if block.words:
            eventually(
                lambda: (
                    process.poll() is not None
                    or block.words in output.read_text("utf-8", "replace")
                )
            )
            assert block.words in output.read_text("utf-8", "replace"), block.place
            os.killpg(process.pid, signal.SIGINT)
        return process.wait(BLOCK_S)

    def close(self) -> None:
        """End what still runs."""
        for group in self._groups:
            try:
                os.killpg(group, signal.SIGTERM)
            except ProcessLookupError:
                continue
            eventually(lambda group=group: not _lives(group), 60)


def _lives(group: int) -> bool:
    """Whether a process group has a member that is no zombie of somebody else's."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
