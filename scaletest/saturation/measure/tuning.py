"""Tuning: measure settings of the Deployment behind a Service, and put everything back."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from dataclasses import replace

from scaletest.cluster.changes import Changes, refuse_changed
from scaletest.cluster.connection import connect_cluster
from scaletest.cluster.pod_requests import parse_quantity
from scaletest.cluster.service import Service
from scaletest.cluster.tuning import Tuning, Usage
from scaletest.model.errors import ScaletestError, UsageError
from scaletest.model.labels import Labels
from scaletest.processes.periodic import Periodic
from scaletest.runs.places import new_path
from scaletest.runs.progress import Progress
from scaletest.runs.stopping import StopRequest, stop_on_signals
from scaletest.saturation.judging.tuning import TriedSetting, parse_settings
from scaletest.saturation.measure.runner import begin_folder, choose_target, measure
from scaletest.saturation.measure.service_target import find_autoscalers
from scaletest.saturation.options import SaturationOptions
from scaletest.saturation.plan import SaturationPlan

GIB = 2.0**30
SAMPLE_S = 2.0


class _Sampler:
    """Asks what pods use, every few seconds while a setting is measured."""

    def __init__(self, tuning: Tuning) -> None:
        self.rows: list[Usage] = []
        self._tuning = tuning
        self._thread = Periodic("tuning", self._look, SAMPLE_S)

    def __enter__(self) -> _Sampler:
        self._thread.start()
        return self

    def __exit__(self, *gone: object) -> None:
        self._thread.close()

    def _look(self) -> None:
        with suppress(ScaletestError):  # a look that fails is one sample less
            self.rows += self._tuning.usage()

    def mean(self, name: str) -> float | None:
        """Return the mean over pods and time; None when nothing is known."""
        readings = [getattr(row, name) for row in self.rows]
        known = [reading for reading in readings if reading is not None]
        return sum(known) / len(known) if known else None


class _Trial:
    """Tries settings, one after the other."""

    def __init__(
        self,
        plan: SaturationPlan,
        options: SaturationOptions,
        tuning: Tuning,
        progress: Progress,
    ) -> None:
        self._plan, self._tuning, self._progress = plan, tuning, progress
        self._ready_timeout_s = options.agents.ready_timeout
        # autoscalers are held already
        service = replace(options.cluster, pause_autoscalers=True)
        self._target = choose_target(replace(options, cluster=service))
        self.stop = StopRequest()

    def measure(self, setting: dict[str, str], labels: Labels) -> TriedSetting:
        """Apply a setting, and measure it; `trouble` says why there are no figures.

        labels: what the run is called.
        """
        tuning = self._tuning
        name = ", ".join(f"{key} {value}" for key, value in setting.items())
        self._progress.message(f"setting {name}")
        before_cpu, before_memory = tuning.resources()
        cpu = float(parse_quantity(setting.get("cpu", str(before_cpu))))
        memory = float(parse_quantity(setting.get("memory", str(before_memory))))
        replicas = int(setting.get("replicas", tuning.replicas))
        base = TriedSetting(setting, None, None, replicas, cpu, memory / GIB)
        try:
            tuning.apply(setting)
            tuning.wait(self._ready_timeout_s, self.stop.asked)
            if self.stop.asked():
                return replace(base, trouble=f"interrupted by {self.stop.reason}")
            with _Sampler(tuning) as sampler, ExitStack() as stack:
                target = replace(self._target.find(self._plan), hold=lambda stack: None)
                folder = begin_folder(new_path(os.environ), self._plan, labels, stack)
                stack.enter_context(self._progress.of_run(folder, self._plan.target))
                result, _ = measure(
                    self._plan,
                    target,
                    folder,
                    self._progress,
                    self.stop,
                    stack,
                    [f"setting: {name}"],
                    causes=False,
                )
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


def tune(
    plan: SaturationPlan, options: SaturationOptions, progress: Progress
) -> tuple[list[TriedSetting], int]:
    """Measure every setting; return them, and the exit code, 0 when at least one was measured."""
    combinations = parse_settings(options.tune)
    labels_of_runs = [options.labels.numbered(number) for number in range(1, len(combinations) + 1)]
    cluster = connect_cluster(options.agents.namespace, options.agents.context)
    deployment = Service(cluster, options.cluster.service).deployment()
    if deployment is None:
        raise UsageError("no single Deployment stands behind this Service", hint="<tune> needs one")
    refuse_changed(deployment)
    autoscalers, scaler_line = find_autoscalers(
        cluster, deployment, options.cluster.pause_autoscalers
    )
    changes = Changes(cluster, deployment)
    tuning = Tuning(cluster, deployment, autoscalers, changes)
    for setting in combinations:
        for name in ("cpu", "memory"):
            amount = parse_quantity(setting.get(name, "1"))
            if not amount.is_finite() or amount <= 0:
                raise UsageError(
                    f"<tune> {name}={setting[name][:40]} is no amount",
                    hint="write it as in 500m or 2Gi",
                )
    progress.message(scaler_line)
    trial = _Trial(plan, options, tuning, progress)
    with stop_on_signals(trial.stop, unwind=True) as stack:
        stack.callback(changes.close)
        tried = [
            trial.measure(setting, labels)
            for setting, labels in zip(combinations, labels_of_runs, strict=True)
            if not trial.stop.asked()
        ]
    is_measured = any(row.per_s is not None for row in tried)
    return tried, 0 if is_measured and not trial.stop.asked() else 4
