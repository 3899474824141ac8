"""README, tutorial and guides: their shell blocks are typed as they stand, page by page."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from hack.guides import INTERRUPTED, PAGES, ROOT, Block, Terminal, command_lines, read_blocks
from scaletest.broker import EmbeddedServer
from scaletest.broker.embedded import free_port
from scaletest.model.errors import NoServer
from tests.conftest import missing, need

# What a page says, and an option's variable that changes the default to the address beside it.
PORTS = {
    "127.0.0.1:9995": "SCALETEST_UI_LISTEN",
    "127.0.0.1:9996": "SCALETEST_CLIENT_LISTEN",
    "127.0.0.1:9998": "SCALETEST_EXPORTER_LISTEN",
    "127.0.0.1:9400": "",
    "127.0.0.1:8080": "",
}
REDIS = "redis://127.0.0.1:6379/0"
# What a page types counts more than these. Tried is that its commands work, not what they measure.
SHORT = {
    "SCALETEST_VALIDATE_MAX_STEP": "1s",
    "SCALETEST_SATURATE_STEP_TIME": "1s",
    "SCALETEST_SATURATE_WARM": "1s",
    "SCALETEST_SATURATE_MAXIMUM": "50",
}
FAILED_REQUESTS = "are tolerated"
PROGRAMS = ("curl", "ffmpeg", "fio", "iperf3")


def of_tier(*tiers: str) -> list[Path]:
    """Pages with a block of the first of these tiers."""
    return [page for page in PAGES if any(typed(block, tiers[:1]) for block in read_blocks(page))]


def typed(block: Block, tiers: Sequence[str]) -> bool:
    return block.language == "sh" and block.tier in tiers


def names(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """A terminal on a machine whose Redis and ports are those of the guides."""
    server = EmbeddedServer(tcp=True)
    try:
        server.start()
    except NoServer as error:
        missing(error.message)
    replaced: dict[str, str] = {REDIS: server.url}
    environment: dict[str, str] = dict(SHORT)
    for address, variable in PORTS.items():
        host, port = address.split(":")
        here = free_port()
        # a program's port may stand alone, as in `http.server 8080`
        replaced |= {address: f"{host}:{here}", f" {port} ": f" {here} "}
        environment |= {variable: f"{host}:{here}"} if variable else {}
    environment["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    terminal = Terminal(tmp_path, environment, replaced)
    (tmp_path / "charts").symlink_to(ROOT / "charts")
    yield terminal
    terminal.close()
    server.stop()


def type_in(terminal: Terminal, page: Path, tiers: Sequence[str]) -> None:
    """Type the blocks of these tiers, in the order of the page, and keep its files."""
    for block in read_blocks(page):
        if block.file:
            (terminal.folder / block.file).write_text(block.text, "utf-8")
        if typed(block, tiers):
            for program in PROGRAMS:
                if list(command_lines(block, program)):
                    need(program)
            code, output = terminal.run(block.text, block.until)
            message = f"{block.place} ended with {code}\n{terminal.typed(block.text)}\n{output}"
            assert code in (INTERRUPTED if block.until else (0,)), message
            assert block.until in output, message
            assert FAILED_REQUESTS not in output, message


@pytest.mark.parametrize("page", of_tier("integration"), ids=names)
def test_the_commands_of_a_page_work_as_they_stand(terminal: Terminal, page: Path) -> None:
    type_in(terminal, page, ("integration",))


# They take minutes.
@pytest.mark.weekly(part="guides")
@pytest.mark.parametrize("page", of_tier("weekly"), ids=names)
def test_the_commands_of_a_page_that_take_long_work_as_they_stand(
    terminal: Terminal, page: Path
) -> None:
    type_in(terminal, page, ("integration", "weekly"))


# It makes two environments, and leaves the shell's home as it was.
@pytest.mark.weekly(part="guides")
def test_a_newcomer_gets_from_cloning_to_uninstalling() -> None:
    walked = subprocess.run(
        [sys.executable, "-m", "hack.newcomer"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert walked.returncode == 0, walked.stdout + walked.stderr
    assert "nothing is left" in walked.stdout
