"""Tuning: measure settings of the Deployment behind a Service, and put everything back."""

import os
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from statistics import fmean

from scaletest.cluster.api_calls import connect_cluster
from scaletest.cluster.changes import Changes, refuse_changed
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
from scaletest.saturation.measure.runner import begin_folder, find_target, measure_target
from scaletest.saturation.measure.service_target import find_autoscalers
from scaletest.saturation.options import SaturationOptions
from scaletest.saturation.plan import SaturationPlan

GIB = 2.0**30
SAMPLE_S = 2.0


def _measure_setting(
    setting: dict[str, str],
    labels: Labels,
    tuning: Tuning,
    plan: SaturationPlan,
    options: SaturationOptions,
    *,
    progress: Progress,
    stop: StopRequest,
) -> TriedSetting:
    """Apply a setting, and measure it; `trouble` says why there are no figures.

    labels: what the run is called.
    """
    name = ", ".join(f"{key} {value}" for key, value in setting.items())
    progress.message(f"setting {name}")
    # what it costs: what it names, else what the Deployment has
    before_cpu, before_memory = tuning.resources()
    cpu = float(parse_quantity(setting.get("cpu", str(before_cpu))))
    memory = float(parse_quantity(setting.get("memory", str(before_memory))))
    replicas = int(setting.get("replicas", tuning.replicas))
    tried = TriedSetting(setting, None, None, replicas, cpu, memory / GIB)
    usages: list[Usage] = []

    def take_sample() -> None:
        with suppress(ScaletestError):  # a look that fails is one sample less
            usages.extend(tuning.usage())

    try:
        tuning.apply(setting)
        tuning.wait(options.ready_timeout, stop.asked)
        if stop.asked():
            return replace(tried, trouble=f"interrupted by {stop.reason}")
        with (
            closing(Periodic("tuning", take_sample, SAMPLE_S)) as sampler,
            ExitStack() as stack,
        ):
            sampler.start()
            target = find_target(options, plan)
            folder = begin_folder(new_path(os.environ), plan, labels, stack)
            stack.enter_context(progress.of_run(folder, plan.target))
            result, _ = measure_target(
                plan,
                replace(target, hold=lambda stack: None),
                folder,
                progress=progress,
                stop=stop,
                stack=stack,
                about=[f"setting: {name}"],
                watch_machine=False,
            )
    except ScaletestError as error:
        return replace(tried, trouble=error.message)
    used_bytes = _mean([usage.memory for usage in usages])
    return replace(
        tried,
        per_s=result.point.value if result.point else None,
        latency_s=result.operating.latency.mean if result.operating else None,
        used_cpu=_mean([usage.cpu for usage in usages]),
        used_memory_gib=used_bytes / GIB if used_bytes is not None else None,
        trouble="" if result.point else result.verdict.reason,
    )


def _mean(readings: Sequence[float]) -> float | None:
    """Return the mean of the readings; None when there are none."""
    return fmean(readings) if readings else None


def tune(
    plan: SaturationPlan, options: SaturationOptions, progress: Progress
) -> tuple[list[TriedSetting], int]:
    """Measure every setting; return them, and the exit code, 0 when at least one was measured."""
    combinations = parse_settings(options.tune)
    labels_of_runs = [options.labels.numbered(number) for number in range(1, len(combinations) + 1)]
    cluster = connect_cluster(options.namespace, options.context)
    deployment = Service(cluster, options.service).deployment()
    if deployment is None:
        raise UsageError("this Service has no single Deployment", hint="<tune> needs one")
    # what a tuning before this one changed and could not put back must not pass for the original
    refuse_changed(deployment)
    autoscalers, scaler_line = find_autoscalers(
        cluster, deployment, may_hold=options.pause_autoscalers
    )
    changes = Changes(cluster, deployment)
    tuning = Tuning(cluster, deployment, autoscalers, changes)
    # amounts that Kubernetes would refuse are told before anything is changed
    for setting in combinations:
        for name in ("cpu", "memory"):
            amount = parse_quantity(setting.get(name, "1"))
            if not amount.is_finite() or amount <= 0:
                raise UsageError(
                    f"<tune> {name}={setting[name][:40]} is not a quantity",
                    hint="write e.g. 500m or 2Gi",
                )
    progress.message(scaler_line)
    # its autoscalers are held already
    options = replace(options, pause_autoscalers=True)
    stop = StopRequest()
    with stop_on_signals(stop, unwind=True) as stack:
        stack.callback(changes.close)  # puts the Deployment back, whatever happens
        tried = [
            _measure_setting(setting, labels, tuning, plan, options, progress=progress, stop=stop)
            for setting, labels in zip(combinations, labels_of_runs, strict=True)
            if not stop.asked()
        ]
    is_measured = any(row.per_s is not None for row in tried)
    return tried, 0 if is_measured and not stop.asked() else 4
