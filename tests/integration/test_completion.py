"""Completion as the three shells do it, with names that are found out while one types."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from scaletest.broker import Queues
from scaletest.cli import index
from scaletest.cli.main import COMPLETE
from tests.conftest import call, need, program
from tests.unit.runs import make
from tests.unit.test_cli_options import COMMANDS

# A shell waits a moment for Redis. Here the machine may be slow, and all others are as they are.
PATIENT = f"""\
#!{sys.executable}
import sys
from scaletest.cli import complete, main
complete.PATIENCE_S = 60.0
sys.exit(main.main())
"""
IMPATIENT = program()
# (line up to the cursor, what is offered, what is not)
LINES = [
    ("val", "validate", "saturate"),
    ("bench ru", "run", "compare"),
    ("validate --lim", "--limit", "--local"),
    ("validate --device-policy ba", "balanced", "packed"),
    ("validate --preset n", "nvidia", "intel"),
    ("validate --threshold run.p99", "run.p99.9", "ratio"),
    ("bench run F", "Fio", "IPerf"),
    ("bench run Fio --threshold readB", "readBandwidth", "writeIops"),
    ("bench explain IP", "IPerf", "Fio"),
    ("report nig", "nightly", "LAST"),
    ("queue purge me", "media", "sleep"),
    ("worker --queue sl", "sleep", "media"),
    ("config set validate.thr", "validate.threshold", "validate.limit"),
    ("report LAST -o pic", "picture.html", "other.txt"),
]


@pytest.fixture
def environment(url: str, tmp_path: Path, queues: Queues) -> dict[str, str]:
    """A run called nightly, two queues, two files, and a shell that finds the program, which has
    time enough.
    """
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "scaletest").write_text(PATIENT)
    (programs / "scaletest").chmod(0o755)
    for name in ("media", "sleep"):
        queues.add(name)
    runs = tmp_path / "data" / "scaletest" / "runs"
    make("pass", runs)
    (runs / "pass").rename(runs / "nightly")
    for name in ("picture.html", "other.txt"):
        (tmp_path / name).touch()
    return {
        **{name: text for name, text in os.environ.items() if not name.startswith("SCALETEST")},
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "SCALETEST_REDIS_URL": url,
        "SCALETEST_CONFIG": "",
        "TERM": "dumb",
    }


@pytest.mark.parametrize(("line", "offered", "other"), LINES)
def test_bash_completes(
    line: str, offered: str, other: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = """
eval "$(scaletest completion bash)"
read -ra COMP_WORDS <<< "$1"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$1 COMP_POINT=${#1} COMPREPLY=()
compopt() { COMPREPLY+=($(compgen -f -- "${COMP_WORDS[-1]}")); }
_scaletest_completion scaletest "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
    done = subprocess.run(
        [need("bash"), "--norc", "-c", script, "bash", f"scaletest {line}"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
        check=True,
    )
    assert done.stderr == ""
    assert offered in done.stdout.split() and other not in done.stdout.split()


@pytest.mark.parametrize(("line", "offered", "other"), LINES)
def test_fish_completes(
    line: str, offered: str, other: str, environment: dict[str, str], tmp_path: Path
) -> None:
    script = "scaletest completion fish | source; complete -C $argv[1]"
    done = subprocess.run(
        [need("fish"), "--no-config", "-c", script, f"scaletest {line}"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
        check=True,
    )
    names = [item.partition("\t")[0] for item in done.stdout.splitlines()]
    assert offered in names and other not in names


@pytest.mark.parametrize(("line", "offered", "other"), LINES)
def test_zsh_completes(
    line: str, offered: str, other: str, environment: dict[str, str], tmp_path: Path
) -> None:
    # zsh completes in its line editor alone, so a terminal is typed at
    path = need("zsh")
    (tmp_path / ".zshrc").write_text(
        "PS1='> '\nautoload -Uz compinit && compinit -u\nzstyle ':completion:*' list-prompt ''\n"
        "unsetopt AUTO_MENU\nsetopt LIST_AMBIGUOUS\nLISTMAX=10000\n"
        'eval "$(scaletest completion zsh)"\nprint READY\n'
    )
    written = typed([path, "-i"], f"scaletest {line}\t\t", offered, environment, tmp_path)
    assert offered in written
    assert other not in written.rpartition("READY")[2]


def typed(
    program: list[str], keys: str, wanted: str, environment: dict[str, str], folder: Path
) -> str:
    """What a program writes on a terminal on which these keys are typed when it is ready, until it
    has written what is wanted behind them.
    """
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execve(program[0], program, environment)
    written, is_typed = "", False
    deadline = time.monotonic() + 280
    try:
        while time.monotonic() < deadline:
            if select.select([terminal], [], [], 1.0)[0]:
                written += os.read(terminal, 65536).decode(errors="replace")
            if not is_typed and "READY" in written:
                os.write(terminal, keys.encode())
                is_typed = True
            # the line is echoed with what was completed
            if is_typed and wanted in written.rpartition("READY")[2]:
                return written
        return written
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(terminal)


def completed(
    line: str, environment: dict[str, str], program: Sequence[str] = IMPATIENT
) -> subprocess.CompletedProcess[str]:
    call_words = ["scaletest", *line.split()]
    variables = {
        COMPLETE: "bash_complete",
        "COMP_WORDS": " ".join(call_words),
        "COMP_CWORD": str(len(call_words) - 1),
    }
    return subprocess.run(
        program,
        env={**environment, **variables},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def test_without_redis_nothing_is_offered_and_nothing_is_said(environment: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        addresses = ["127.0.0.1:1", f"127.0.0.1:{silent.getsockname()[1]}", "nosuch.invalid:1"]
        for url in [*(f"redis://{address}" for address in addresses), "nonsense"]:
            done = completed("queue purge s", {**environment, "SCALETEST_REDIS_URL": url})
            assert (done.stdout.strip(), done.stderr) == ("", "")


@pytest.mark.parametrize("text", ["validat: 1\n", "{", "- 1\n"])
def test_a_broken_settings_file_says_nothing_to_a_shell(
    text: str, environment: dict[str, str], tmp_path: Path
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text(text)
    done = completed("validate --lim", {**environment, "SCALETEST_CONFIG": str(settings)})
    assert (done.stdout.strip(), done.stderr) == ("plain,--limit", "")


def test_the_redis_of_the_settings_file_is_asked(
    environment: dict[str, str], url: str, tmp_path: Path
) -> None:
    settings = tmp_path / "settings.yaml"
    settings.write_text(f"redis_url: {url}\n")
    del environment["SCALETEST_REDIS_URL"]
    settings_named = {**environment, "SCALETEST_CONFIG": str(settings)}
    done = completed("queue purge s", settings_named, [str(tmp_path / "programs" / "scaletest")])
    assert done.stdout.strip() == "plain,sleep"


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_stand_in_completes_as_its_command_does(name: str) -> None:
    stand_in: click.Command = index.stand_in("x", {"help": "", "commands": index.entries()})
    for word in name.split():
        assert isinstance(stand_in, click.Group)
        stand_in = stand_in.commands[word]
    command = COMMANDS[name]
    for incomplete in ("-", "--"):
        offered = [
            [
                (item.value, item.help or "")
                for item in each.shell_complete(
                    click.Context(each, help_option_names=["-h", "--help"]), incomplete
                )
            ]
            for each in (command, stand_in)
        ]
        assert offered[0] == offered[1]
    assert [each.name for each in stand_in.params] == [
        each.name for each in command.params if not getattr(each, "hidden", False)
    ]


def test_the_script_is_the_one_of_click() -> None:
    for name in ("bash", "zsh", "fish"):
        done = call("completion", name)
        assert done.returncode == 0 and f"{COMPLETE}={name}_complete" in done.stdout
    refused = call("completion", "tcsh")
    assert refused.returncode == 2 and "there are bash, zsh, fish" in refused.stderr
