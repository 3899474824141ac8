"""scaletest saturate --tune: measure settings of the Deployment behind a Service, rank them, put
everything back.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace

from rich.console import Console

from scaletest.analysis.saturation.evaluation import SaturationResult
from scaletest.analysis.saturation.tuning import TriedSetting, ranked, settings
from scaletest.archive.environment import environment
from scaletest.cli import options as shared
from scaletest.cli.output import echo
from scaletest.cli.saturate_options import SaturateOptions, ServiceOptions
from scaletest.cli.saturate_run import public, target
from scaletest.cli.saturate_service import enter, scalers
from scaletest.cli.saturate_sql import Database
from scaletest.cli.stopping import stopping
from scaletest.cluster.capacity import quantity
from scaletest.cluster.connection import connect
from scaletest.cluster.service import AutoscalerHold, Service
from scaletest.cluster.tuning import Tuning, Usage, changed
from scaletest.cluster.tuning_backup import BackupAnnotation, refuse
from scaletest.model.errors import ScaletestError, Unreachable, UsageError
from scaletest.model.saturation import SaturationPlan
from scaletest.render.contents import Table
from scaletest.render.numbers import NOTHING, percent, seconds, significant
from scaletest.render.text_table import aligned
from scaletest.report.progress import PlainProgress
from scaletest.runs.folder import RESULT, RunFolder
from scaletest.runs.places import new_path
from scaletest.saturation.folder import SaturationFolder
from scaletest.saturation.runner import Runner

GIB = 2.0**30
SAMPLE_S = 2.0


class _Stop:
    """Hands a signal to whatever is measured now. lacking: the exit code of a database that lacks
    steps, else 0.
    """

    def __init__(self) -> None:
        self.why = ""
        self.lacking = 0
        self.runner: Runner | None = None

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
        readings = [getattr(row, name) for row in self.rows]
        known = [reading for reading in readings if reading is not None]
        return sum(known) / len(known) if known else None


def tune(plan: SaturationPlan, options: SaturateOptions) -> int:
    """Measure every setting; a table, the best first. Exit code 0 when at least one was
    measured.
    """
    wanted = settings(options.tuning.tune)
    cluster = connect(options.cluster.namespace, options.cluster.context)
    deployment = Service(cluster, options.cluster.service).deployment()
    if deployment is None:
        raise UsageError("no single Deployment stands behind this Service", hint="--tune needs one")
    refuse(deployment.name, deployment.annotations)
    hold, notes = scalers(cluster, deployment, options.cluster.pause_autoscalers)
    variable, argument = options.tuning.concurrency_env, options.tuning.concurrency_arg
    tuning = Tuning(cluster, deployment, options.tuning.container, env=variable, argument=argument)
    for setting in wanted:
        _check_amounts(setting)
        # whether it can be done at all, before anything is
        changed({}, setting, variable, argument)
    database = Database(options.sql, plan, "", _say)
    database.open()
    database.close()
    stop, tried = _Stop(), list[TriedSetting]()
    for line in notes:
        _say(line)
    with stopping(stop, unwind=True) as stack:
        enter(stack, hold)
        stack.callback(_restore, tuning, hold)
        for setting in wanted:
            if not stop.why:
                tried.append(_try(setting, tuning, hold, plan, options, stop))
    rows = ranked(tried)
    _show(rows, options.output)
    measured = any(row.per_s is not None for row in rows)
    return stop.lacking or (0 if measured and not stop.why else 4)


def restore(options: ServiceOptions) -> int:
    """Put back what a run that was killed left changed. Exit code 0 when all is as it was."""
    if not options.service:
        raise UsageError(
            "--restore is for the Deployment behind a Service", hint="give --service svc/NAME"
        )
    cluster = connect(options.namespace, options.context)
    deployment = Service(cluster, options.service).deployment()
    if deployment is None:
        raise UsageError(
            "no single Deployment stands behind this Service", hint="look at what it selects"
        )
    note = BackupAnnotation(cluster, deployment.name)
    hold = AutoscalerHold(cluster, deployment)
    before, names = note.left(), hold.adopt()
    if before is not None:
        if names:
            hold.hold(before.replicas)  # at the number of a setting they would take it back at once
        note.restore(before)
        _say(f"deployment {deployment.name} has its original settings again: {before}")
    failed = hold.release()
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
    hold: AutoscalerHold | None,
    plan: SaturationPlan,
    options: SaturateOptions,
    stop: _Stop,
) -> TriedSetting:
    name = ", ".join(f"{key} {value}" for key, value in setting.items())
    echo(f"setting {name}", err=True)
    before_cpu, before_memory = tuning.resources()
    cpu = float(quantity(setting.get("cpu", str(before_cpu))))
    memory = float(quantity(setting.get("memory", str(before_memory))))
    replicas = int(setting.get("replicas", tuning.replicas))
    base = TriedSetting(setting, None, None, replicas, cpu, memory / GIB)
    try:
        if hold is not None:
            hold.hold(replicas)  # at its old number an autoscaler would take the new pods away
        tuning.apply(setting)
        tuning.wait(options.ready_timeout, lambda: bool(stop.why))
        if stop.why:
            return replace(base, trouble=f"interrupted by {stop.why}")
        with _Sampler(tuning) as sampler:
            result = _measure(plan, options, stop, name)
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
    plan: SaturationPlan, options: SaturateOptions, stop: _Stop, name: str
) -> SaturationResult:

    # autoscalers are held already
    service = replace(options.cluster, pause_autoscalers=True)
    loaded = target(replace(options, cluster=service), plan)
    folder = SaturationFolder(RunFolder.create(new_path(os.environ)))
    with ExitStack() as stack:
        stack.callback(folder.forget_empty)
        stack.enter_context(folder.files.locked())
        folder.files.begin(plan, environment(public(sys.argv)))
        load = loaded.make(stack)
        stack.callback(load.close)
        database = Database(options.sql, plan, folder.name, _say)
        stack.callback(database.close)
        stop.runner = Runner(
            plan, load, [folder, database], PlainProgress(Console(stderr=True, highlight=False))
        )
        if stop.why:
            stop.runner.stop(stop.why)
        loaded.probe(load)
        result: SaturationResult = stop.runner.run()
        folder.files.write(
            RESULT,
            {
                **result.to_dict(),
                "extra": {"lines": [f"setting: {name}"], "replicas": loaded.replicas},
            },
        )
        stop.lacking = database.finish(folder) or stop.lacking
    return result


def _restore(tuning: Tuning, hold: AutoscalerHold | None) -> None:
    if hold is not None:
        with suppress(ScaletestError):  # said when they are released
            hold.hold(tuning.replicas)  # at the number of a setting they would take it back at once
    for line in tuning.put_back():
        echo(line, err=True)


def _show(tried: list[TriedSetting], form: str) -> None:
    if form != "table":
        settings_shown = [setting.to_dict() for setting in tried]
        shared.show({"schema_version": 1, "kind": "tuning", "settings": settings_shown}, form)
        return
    titles = (
        "setting",
        "saturated at",
        "latency at 70%",
        "CPU used",
        "memory used",
        "per core",
        "",
    )
    rows = []
    for setting in tried:
        cells = [_setting_text(setting.setting), _rate(setting.per_s), seconds(setting.latency_s)]
        cells += [_share(setting.used_cpu, setting.cpu)]
        cells += [_share(setting.used_memory, setting.memory), _rate(setting.worth)]
        notes = ", ".join([*setting.marks, *filter(None, [setting.trouble])])
        rows.append((*cells, notes))
    for line in aligned(Table(titles, rows, texts=(6,))):
        echo(line)


def _setting_text(setting: Mapping[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in setting.items())


def _rate(per_s: float | None) -> str:
    return f"{significant(per_s)}/s" if per_s else NOTHING


def _share(used: float | None, asked: float) -> str:
    return percent(used / asked, 0) if used is not None and asked else NOTHING
