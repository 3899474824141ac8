"""The folder of a saturation run, with samples as its records, and a database beside it.

The folder is the truth: a run outlives its database. Unreachable at the start, it is refused before
anything is loaded or changed. Later its failure is said once, nothing more is sent to it, and at
the end what it lacks is written from the folder. When even that fails, the exit code says so, and
`scaletest runs sql` does it later.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from scaletest.archive.sql import SqlSink
from scaletest.model.errors import ScaletestError, Unreachable, UsageError
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
from scaletest.runs.folder import ENVIRONMENT, RECORDS, RESULT, STEPS, TypedFolder


@dataclass(frozen=True, slots=True)
class StoredSaturation:
    """samples: of complete steps, by the step's number. result: {} when there is none."""

    plan: SaturationPlan
    environment: dict[str, Any]
    steps: list[SaturationStep]
    samples: dict[int, list[Attempt]]
    result: dict[str, Any]


class SaturationFolder(TypedFolder[SaturationPlan]):
    """The steps and samples of one saturation run on disk."""

    run_type = KIND
    plan_type = SaturationPlan
    readers: ClassVar = {STEPS: SaturationStep.from_json, RECORDS: from_json}

    def store(self, step: SaturationStep, samples: Sequence[Attempt]) -> None:
        """Append a complete step and its samples, on disk in this order."""
        try:
            self.append(RECORDS, (to_json(sample, step.number) for sample in samples))
            self.append(STEPS, [step.to_json()])
        except UsageError as error:
            raise UsageError(
                error.message,
                hint=f"make room; the steps before are kept: scaletest report {self.path}",
            ) from error

    def forget_empty(self) -> None:
        """Delete a run of which nothing is known: its first call failed, or no agent came."""
        if not (self.path / STEPS).exists() and not (self.path / RESULT).exists():
            with suppress(UsageError):
                self.remove()

    def load(self) -> StoredSaturation:
        """Read everything; UsageError when this is no saturation run, or cannot be read."""
        with self.readable():
            plan, steps = self.plan(), self.steps()
            complete = {step.number for step in steps}
            samples: dict[int, list[Attempt]] = defaultdict(list)
            for number, sample in self.rows(RECORDS):
                if number in complete:
                    samples[number].append(sample)
            return StoredSaturation(
                plan, self.read(ENVIRONMENT), steps, dict(samples), self.read(RESULT)
            )


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
    if not stored.steps:
        raise UsageError(
            f"run {folder.name} has no samples: none of its steps is complete",
            hint="name another run (scaletest runs list), or measure again: scaletest saturate",
        )
    with closing(SqlSink(where, folder.name, stored.plan.client_name)) as sink:
        return sink.fill(stored.steps, stored.samples)


def public(where: str) -> str:
    """The database without passwords."""
    return masked(where) if "://" in where else where
