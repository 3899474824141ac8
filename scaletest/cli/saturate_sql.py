"""scaletest saturate --sql: a database beside the run's folder. The folder is the truth: a run
outlives its database.

Unreachable at the start, it is refused before anything is loaded or changed. Later its failure is
said once, nothing more is sent to it, and at the end what it lacks is written from the folder. When
even that fails, the exit code says so, and `scaletest runs sql` does it later.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from scaletest.archive.sql import SqlSink
from scaletest.model.attempt import Attempt
from scaletest.model.errors import ScaletestError, Unreachable
from scaletest.model.saturation import SaturationPlan, SaturationStep
from scaletest.model.secrets import masked
from scaletest.render.numbers import plural
from scaletest.saturation.folder import SaturationFolder


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
        *,
        named: bool = False,
    ) -> None:
        """where: of --sql. run: the name of its folder, which the user chose if it is `named`."""
        self._where, self._client, self._run, self._say = where, plan.client_name, run, say
        self._named = named
        self._sink: SqlSink | None = None
        self._lacking = False

    def open(self) -> None:
        """Connect. Unreachable or UsageError when it cannot be used."""
        if self._where and self._sink is None:
            self._sink = SqlSink(self._where, self._run, self._client)

    def close(self) -> None:
        """End the connection."""
        if self._sink is not None:
            self._sink.close()
            self._sink = None

    def store(self, step: SaturationStep, samples: Sequence[Attempt]) -> None:
        """A step, unless an earlier one failed already: it never raises for what is wrong with a
        database.
        """
        if not self._where or self._lacking:
            return
        try:
            self.open()
            assert self._sink is not None
            self._sink.store(step, samples)
        except ScaletestError as error:
            self._lacking = True
            self._say(f"warning: {error.message}; the run goes on, and its folder has everything")

    def finish(self, folder: SaturationFolder) -> int:
        """Write what is lacking. 0, or the exit code of a run whose database still lacks steps."""
        if not self._lacking:
            return 0

        self.close()
        try:
            count = filled(folder, self._where)
        except ScaletestError as error:
            run = folder.path if self._named else folder.name
            self._say(
                f"error: steps of this run are missing in the database of --sql: {error.message}"
            )
            line = shlex.join(["scaletest", "runs", "sql", str(run), public(self._where)])
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
