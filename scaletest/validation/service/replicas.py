"""How the replicas of a service are set, and how their old number is put back."""

import logging
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from scaletest.cluster.cadvisor import LimitPeriods
from scaletest.cluster.pods import PodState
from scaletest.model.checks import cut_text
from scaletest.model.errors import UsageError, WaitTimeout
from scaletest.processes.children import end_group
from scaletest.validation.service.visit import ReplicaPod

logger = logging.getLogger("scaletest.validation")
# Stands for the number in a command.
NUMBER = "{n}"
# The command that lists replicas may take this long.
LIST_LIMIT_S = 10.0
# A command that takes too long gets this long to end, with what it started.
GRACE_S = 3.0
# Runs the rest of its arguments when the pipe closes without a line: when this process is killed.
PUT_BACK_SCRIPT = 'read -r line || exec "$@"'


@dataclass(frozen=True, slots=True)
class PodLook:
    """A pod at one time."""

    state: PodState
    limit: LimitPeriods


def compare_looks(
    before: Mapping[str, PodLook], after: Mapping[str, PodLook]
) -> dict[str, ReplicaPod]:
    """Return how the pods fared between two looks, by name."""
    pods = {}
    for name, look in before.items():
        later = after.get(name, look)
        is_ready = name in after and look.state.ready and later.state.ready
        periods = later.limit.periods - look.limit.periods
        throttled = later.limit.throttled - look.limit.throttled
        pods[name] = ReplicaPod(
            node=look.state.node,
            restarts=max(0, later.state.restarts - look.state.restarts),
            # one that was not ready for a moment is so since another time
            stayed_ready=is_ready and later.state.since == look.state.since,
            throttled=throttled / periods if periods > 0 else None,
        )
    return pods


class Replicas(Protocol):
    """The replicas of a service."""

    def scale(self, count: int) -> None:
        """Have so many that are ready. Raises ScaletestError with the reason where that fails."""

    def addresses(self) -> Mapping[str, str]:
        """Return the address of each by its name, as http://HOST:PORT; none if that is unknown."""

    def pods(self) -> Mapping[str, PodLook]:
        """Return how each fares now, by name; none where replicas are no pods."""

    def close(self) -> None:
        """Put back the number that there was before."""


class CommandReplicas:
    """Sets them by a command that ends when they are ready."""

    def __init__(self, command: str, before: int, ready_s: float, listing: str = "") -> None:
        """command: with {n} for the number. before: to put back. ready_s: for the command to end.

        listing: prints the addresses of replicas, a line each. UsageError for what is no command.
        """
        if NUMBER not in command:
            raise UsageError(
                f"<set_replicas> has no {NUMBER}: {cut_text(command, 80)}",
                hint=f"write {NUMBER} where the number of replicas belongs",
            )
        try:
            self._words, self._listing = shlex.split(command), shlex.split(listing)
        except ValueError as error:
            raise UsageError(
                f"<set_replicas> or <list_replicas> cannot be read: {error}"
            ) from error
        self._before, self._ready_s = before, ready_s
        program = self._line(before)[0]
        if not shutil.which(program):
            raise UsageError(
                f"<set_replicas> cannot be run: there is no program {cut_text(program, 80)}",
                hint="check its path; for shell syntax, give sh -c '...'",
            )
        self._watcher: subprocess.Popen[bytes] | None = None

    def scale(self, count: int) -> None:
        """Run the command for this number."""
        if self._watcher is None:
            # it puts the number back when we are killed, and needs nothing of us for it
            self._watcher = subprocess.Popen(
                ["/bin/sh", "-c", PUT_BACK_SCRIPT, "scaletest-replicas", *self._line(self._before)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._run(count)

    def addresses(self) -> Mapping[str, str]:
        """Run the command that lists them."""
        if not self._listing:
            return {}
        try:
            done = subprocess.run(
                self._listing, capture_output=True, timeout=LIST_LIMIT_S, check=True, text=True
            )
            urls = [line if "://" in line else f"http://{line}" for line in done.stdout.split()]
            return {urlsplit(url).netloc: url.rstrip("/") for url in urls}
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise UsageError(
                f"the replicas could not be listed: {error}",
                hint="<list_replicas> is a command that prints one address per line",
            ) from error

    def pods(self) -> Mapping[str, PodLook]:
        """Return none."""
        return {}

    def close(self) -> None:
        """Put back the number, if it was changed. Does nothing the second time."""
        watcher, self._watcher = self._watcher, None
        if watcher is None:
            return
        try:
            self._run(self._before)
        except (UsageError, WaitTimeout) as error:
            logger.error(
                "the number of replicas could not be put back: %s; run: %s",
                error.message,
                shlex.join(self._line(self._before)),
            )
        finally:
            watcher.communicate(b"done\n")

    def _line(self, count: int) -> Sequence[str]:
        """Return the words of the command for this number."""
        return [word.replace(NUMBER, str(count)) for word in self._words]

    def _run(self, count: int) -> None:
        line = self._line(count)
        shown = cut_text(shlex.join(line), 120)
        # a file and no pipe: what the command leaves running may keep its output open
        with tempfile.TemporaryFile() as output:
            try:
                process = subprocess.Popen(
                    line,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise UsageError(f"{shown} cannot be run: {error.strerror}") from error
            try:
                process.wait(self._ready_s)
            except subprocess.TimeoutExpired as error:
                raise WaitTimeout(
                    f"{shown} did not end within {self._ready_s:.0f} s",
                    hint="give a longer <ready_timeout>, or look why the replicas are not ready",
                ) from error
            finally:
                if process.returncode is None:
                    end_group(process, GRACE_S)
            output.seek(0)
            lines = output.read().decode(errors="replace").strip().splitlines()
        if process.returncode:
            said = f": {cut_text(lines[-1], 200)}" if lines else ""
            raise UsageError(
                f"{shown} failed with exit code {process.returncode}{said}",
                hint="run it yourself; it shall end with 0 when the replicas are ready",
            )
