"""scaletest saturate --tune: measure settings of the Deployment behind a Service, rank them, put
everything back.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scaletest.cli import options, saturate_options
from scaletest.cli.output import echo
from scaletest.cli.stopping import stopping
from scaletest.model.errors import ScaletestError, Unreachable, UsageError

if TYPE_CHECKING:
    from scaletest.analysis.saturation.evaluation import SaturationResult
    from scaletest.analysis.saturation.tuning import TriedSetting
    from scaletest.cluster.service import AutoscalerHold
    from scaletest.cluster.tuning import Tuning, Usage
    from scaletest.model.saturation import SaturationPlan

GIB = 2.0**30
SAMPLE_S = 2.0


class _Stop:
    """Hands a signal to whatever is measured now. lacking: the exit code of a database that lacks
    steps, else 0.
    """

    def __init__(self) -> None:
        self.why = ""
        self.lacking = 0
        self.runner: Any = None

    def __call__(self, why: str) -> None:
        self.why = self.why or why
        if self.runner is not None:
            self.runner.stop(why)


class _Sampler:
    """Asks what pods use, every few seconds while a setting is measured."""

    def __init__(self, tuning: Tuning) -> None:
        self.rows: list[Usage] = []
        self._tuning = tuning
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)

    def __enter__(self) -> _Sampler:
        self._thread.start()
        return self

    def __exit__(self, *gone: object) -> None:
        self._over.set()
        self._thread.join()

    def _live(self) -> None:
        while not self._over.wait(SAMPLE_S):
            try:
                self.rows += self._tuning.usage()
            except ScaletestError:
                continue  # a look that fails is one sample less

    def mean(self, name: str) -> float | None:
        """Over pods and time."""
        values = [value for one in self.rows if (value := getattr(one, name)) is not None]
        return sum(values) / len(values) if values else None


def tune(plan: SaturationPlan, given: dict[str, Any]) -> int:
    """Measure every setting; a table, the best first. Exit code 0 when at least one was
    measured.
    """
    from scaletest.analysis.saturation.tuning import ranked, settings
    from scaletest.cli.saturate_service import enter, scalers
    from scaletest.cli.saturate_sql import Database
    from scaletest.cluster.connection import connect
    from scaletest.cluster.service import Service
    from scaletest.cluster.tuning import Tuning, changed
    from scaletest.cluster.tuning_backup import refuse

    wanted = settings(given["tune"])
    cluster = connect(given["namespace"], given["context"])
    deployment = Service(cluster, given["service"]).deployment()
    if deployment is None:
        raise UsageError("no single Deployment stands behind this Service", hint="--tune needs one")
    refuse(deployment.name, deployment.annotations)
    held, told = scalers(cluster, deployment, given)
    where = {"env": given["concurrency_env"], "argument": given["concurrency_arg"]}
    tuning = Tuning(cluster, deployment, given["container"], **where)
    for one in wanted:
        _check_amounts(one)
        changed(
            {}, one, where["env"], where["argument"]
        )  # whether it can be done at all, before anything is
    probed = Database(given, plan, "", _say)
    probed.open()
    probed.close()
    stop, tried = _Stop(), list[Any]()
    for line in told:
        _say(line)
    with stopping(stop, unwind=True) as stack:
        enter(stack, held)
        stack.callback(_restore, tuning, held)
        for one in wanted:
            if not stop.why:
                tried.append(_try(one, tuning, held, plan, given, stop))
    rows = ranked(tried)
    _show(rows, given["output"])
    return stop.lacking or (0 if any(one.per_s is not None for one in rows) and not stop.why else 4)


def restore(given: dict[str, Any]) -> int:
    """Put back what a run that was killed left changed. Exit code 0 when all is as it was."""
    from scaletest.cluster.connection import connect
    from scaletest.cluster.service import AutoscalerHold, Service
    from scaletest.cluster.tuning_backup import BackupAnnotation

    if not given["service"]:
        raise UsageError(
            "--restore is for the Deployment behind a Service", hint="give --service svc/NAME"
        )
    cluster = connect(given["namespace"], given["context"])
    deployment = Service(cluster, given["service"]).deployment()
    if deployment is None:
        raise UsageError(
            "no single Deployment stands behind this Service", hint="look at what it selects"
        )
    note = BackupAnnotation(cluster, deployment.name)
    held = AutoscalerHold(cluster, deployment)
    before, names = note.left(), held.adopt()
    if before is not None:
        if names:
            held.hold(before.replicas)  # at the number of a setting they would take it back at once
        note.restore(before)
        _say(f"deployment {deployment.name} has its original settings again: {before}")
    failed = held.release()
    for line in failed or [f"{name} scales it again" for name in names]:
        _say(line)
    if before is None and not names:
        _say(
            f"deployment {deployment.name} and what scales it are as they were: there is nothing to"
            " put back"
        )
    return Unreachable.exit_code if failed else 0


def _say(line: str) -> None:
    echo(line, err=True)


def _check_amounts(setting: dict[str, str]) -> None:
    from scaletest.cluster.capacity import quantity

    for name in ("cpu", "memory"):
        amount = quantity(setting.get(name, "1"))
        if not amount.is_finite() or amount <= 0:
            raise UsageError(
                f"--tune {name}={setting[name][:40]} is no amount",
                hint="write it as in 500m or 2Gi",
            )


def _try(
    setting: dict[str, str],
    tuning: Tuning,
    held: AutoscalerHold | None,
    plan: SaturationPlan,
    given: dict[str, Any],
    stop: _Stop,
) -> TriedSetting:
    from scaletest.analysis.saturation.tuning import TriedSetting
    from scaletest.cluster.capacity import quantity

    name = ", ".join(f"{key} {value}" for key, value in setting.items())
    echo(f"setting {name}", err=True)
    cpu, memory = tuning.resources()
    cpu, memory = (
        float(quantity(setting.get("cpu", str(cpu)))),
        float(quantity(setting.get("memory", str(memory)))),
    )
    replicas = int(setting.get("replicas", tuning.replicas))
    base = TriedSetting(setting, None, None, replicas, cpu, memory / GIB)
    try:
        if held is not None:
            held.hold(replicas)  # at its old number an autoscaler would take the new pods away
        tuning.apply(setting)
        tuning.wait(given["ready_timeout"], lambda: bool(stop.why))
        if stop.why:
            return replace(base, trouble=f"interrupted by {stop.why}")
        with _Sampler(tuning) as sampler:
            result = _measure(plan, given, stop, name)
    except ScaletestError as error:
        return replace(base, trouble=error.message)
    used = sampler.mean("memory")
    return replace(
        base,
        per_s=result.point.value if result.point else None,
        latency_s=result.operating.latency.mean if result.operating else None,
        used_cpu=sampler.mean("cpu"),
        used_memory=used / GIB if used is not None else None,
        trouble="" if result.point else result.verdict.reason,
    )


def _measure(
    plan: SaturationPlan, given: dict[str, Any], stop: _Stop, name: str
) -> SaturationResult:
    from rich.console import Console

    from scaletest.archive.environment import environment
    from scaletest.cli.saturate_sql import Database
    from scaletest.cli.saturate_target import target
    from scaletest.report.progress import PlainProgress
    from scaletest.runs.folder import RESULT, RunFolder
    from scaletest.runs.places import new_path
    from scaletest.saturation.folder import SaturationFolder
    from scaletest.saturation.runner import Runner

    # autoscalers are held already
    found = target({**given, "pause_autoscalers": True}, plan)
    folder = SaturationFolder(RunFolder.create(new_path(os.environ)))
    with ExitStack() as stack:
        stack.callback(folder.forget_empty)
        stack.enter_context(folder.files.locked())
        folder.files.begin(plan, environment(saturate_options.public(sys.argv)))
        load = found.make(stack)
        stack.callback(load.close)
        database = Database({**given, "run_dir": ""}, plan, folder.name, _say)
        stack.callback(database.close)
        stop.runner = Runner(
            plan, load, [folder, database], PlainProgress(Console(stderr=True, highlight=False))
        )
        if stop.why:
            stop.runner.stop(stop.why)
        found.probe(load)
        result: SaturationResult = stop.runner.run()
        folder.files.write(
            RESULT,
            {
                **result.to_dict(),
                "extra": {"lines": [f"setting: {name}"], "replicas": found.replicas},
            },
        )
        stop.lacking = database.finish(folder) or stop.lacking
    return result


def _restore(tuning: Tuning, held: AutoscalerHold | None) -> None:
    if held is not None:
        with suppress(ScaletestError):  # said when they are released
            held.hold(tuning.replicas)  # at the number of a setting they would take it back at once
    for line in tuning.put_back():
        echo(line, err=True)


def _show(settings: list[TriedSetting], form: str) -> None:
    if form != "table":
        options.show(
            {
                "schema_version": 1,
                "kind": "tuning",
                "settings": [tried.to_dict() for tried in settings],
            },
            form,
        )
        return
    from scaletest.render.contents import Table
    from scaletest.render.numbers import NOTHING, percent, seconds, significant
    from scaletest.render.text_table import aligned

    def share(used: float | None, asked: float) -> str:
        return percent(used / asked, 0) if used is not None and asked else NOTHING

    titles = (
        "setting",
        "saturated at",
        "latency at 70%",
        "CPU used",
        "memory used",
        "per core",
        "",
    )
    rows = [
        (
            " ".join(f"{key}={value}" for key, value in tried.setting.items()),
            f"{significant(tried.per_s)}/s" if tried.per_s else NOTHING,
            seconds(tried.latency_s),
            share(tried.used_cpu, tried.cpu),
            share(tried.used_memory, tried.memory),
            f"{significant(tried.worth)}/s" if tried.worth else NOTHING,
            ", ".join([*tried.marks, *filter(None, [tried.trouble])]),
        )
        for tried in settings
    ]
    for line in aligned(Table(titles, rows, texts=(6,))):
        echo(line)
