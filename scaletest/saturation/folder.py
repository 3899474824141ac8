"""The folder of a saturation run, with samples as its records, and a database beside it.

The folder is the truth: a run outlives its database. Unreachable at the start, it is refused before
anything is loaded or changed. Later its failure is said once, nothing more is sent to it, and at
the end what it lacks is written from the folder. When even that fails, the exit code says so, and
`scaletest runs sql` does it later.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from scaletest.archive.sql import SqlSink
from scaletest.model.errors import InvalidValue, ScaletestError, Unreachable, UsageError
from scaletest.model.saturation import (
    KIND,
    Attempt,
    SaturationPlan,
    SaturationStep,
    from_json,
    to_json,
)
from scaletest.model.texts import masked
from scaletest.render.numbers import plural
from scaletest.runs.folder import ENVIRONMENT, PLAN, RECORDS, RESULT, STEPS, RunFolder


@dataclass(frozen=True, slots=True)
class StoredSaturation:
    """samples: of complete steps, by the step's number. result: {} when there is none."""

    plan: SaturationPlan
    environment: dict[str, Any]
    steps: list[SaturationStep]
    samples: dict[int, list[Attempt]]
    result: dict[str, Any]


class SaturationFolder:
    """The steps and samples of one saturation run on disk."""

    def __init__(self, files: RunFolder) -> None:
        self.files = files
        self.path, self.name = files.path, files.name

    def store(self, step: SaturationStep, samples: Sequence[Attempt]) -> None:
        """Append a complete step and its samples, on disk in this order."""
        try:
            self.files.append(RECORDS, (to_json(sample, step.number) for sample in samples))
            self.files.append(STEPS, [step.to_json()])
        except UsageError as error:
            raise UsageError(
                error.message,
                hint=f"make room; the steps before are kept: scaletest report {self.path}",
            ) from error

    def forget_empty(self) -> None:
        """Delete a run of which nothing is known: its first call failed, or no agent came."""
        if not (self.path / STEPS).exists() and not (self.path / RESULT).exists():
            with suppress(UsageError):
                self.files.remove()

    def load(self) -> StoredSaturation:
        """Read everything; UsageError when this is no saturation run, or cannot be read."""
        if not self.files.exists or self.files.kind != KIND:
            raise UsageError(
                f"{self.path} holds no saturation run", hint="see: scaletest runs list"
            )
        with self.files.readable():
            plan, steps = self._plan(), self._steps()
            complete = {step.number for step in steps}
            samples: dict[int, list[Attempt]] = defaultdict(list)
            for number, sample in self._samples():
                if number in complete:
                    samples[number].append(sample)
            environment, result = self.files.read(ENVIRONMENT), self.files.read(RESULT)
            return StoredSaturation(plan, environment, steps, dict(samples), result)

    def check(self) -> None:
        """UsageError unless the whole run can be read. Never holds more than a sample of it."""
        with self.files.readable():
            self._plan()
            self._steps()
            for name in (ENVIRONMENT, RESULT):
                self.files.read(name)
            for _ in self._samples():
                pass

    def _plan(self) -> SaturationPlan:
        return SaturationPlan.from_dict(self.files.read(PLAN))

    def _steps(self) -> list[SaturationStep]:
        steps = [SaturationStep.from_json(line) for line in self.files.lines(STEPS)]
        if len({step.number for step in steps}) < len(steps):
            raise InvalidValue(f"{STEPS} of run {self.name} holds a step twice")
        return steps

    def _samples(self) -> Iterator[tuple[int, Attempt]]:
        yield from map(from_json, self.files.lines(RECORDS))


class Database:
    """The database of --sql, for one run; nothing at all without that option. say: takes lines
    about what goes wrong.
    """

    def __init__(
        self,
        where: str,
        plan: SaturationPlan,
        run: str,
        say: Callable[[str], None],
    ) -> None:
        """where: of --sql. run: the name of its folder."""
        self._where, self._client, self._run, self._say = where, plan.client_name, run, say
        self._sink: SqlSink | None = None
        self._lacking = False

    def open(self) -> SqlSink | None:
        """Connect. Unreachable or UsageError when it cannot be used."""
        if self._where and self._sink is None:
            self._sink = SqlSink(self._where, self._run, self._client)
        return self._sink

    def close(self) -> None:
        """End the connection."""
        if self._sink is not None:
            self._sink.close()
            self._sink = None

    def store(self, step: SaturationStep, samples: Sequence[Attempt]) -> None:
        """A step, unless an earlier one failed already: it never raises for what is wrong with a
        database.
        """
        if self._lacking:
            return
        try:
            if sink := self.open():
                sink.store(step, samples)
        except ScaletestError as error:
            self._lacking = True
            self._say(f"warning: {error.message}; the run goes on, and its folder has everything")

    def finish(self, folder: SaturationFolder, reference: str) -> int:
        """Write what is lacking. 0, or the exit code of a run whose database still lacks steps.

        reference: by which commands find the run.
        """
        if not self._lacking:
            return 0
        self.close()
        try:
            count = filled(folder, self._where)
        except ScaletestError as error:
            self._say(
                f"error: steps of this run are missing in the database of --sql: {error.message}"
            )
            line = shlex.join(["scaletest", "runs", "sql", reference, public(self._where)])
            self._say(f"  when it is there again: {line}")
            return Unreachable.exit_code
        self._say(f"the database of --sql is there again, and got {plural(count, 'step')}")
        return 0


def filled(folder: SaturationFolder, where: str) -> int:
    """Write the steps of a stored run that a database lacks; how many these were."""
    stored = folder.load()
    sink = SqlSink(where, folder.name, stored.plan.client_name)
    try:
        return sink.fill(stored.steps, stored.samples)
    finally:
        sink.close()


def public(where: str) -> str:
    """The database without passwords."""
    return masked(where) if "://" in where else where
