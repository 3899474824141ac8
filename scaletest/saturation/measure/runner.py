"""A saturation run: its target, its folder, and every step that the course asks for, from the probe
to the operating point.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from scaletest.load import busy_check, pace
from scaletest.load.level_load import LevelLoad, LoadOrder, LoadResult
from scaletest.model.attempt import Attempt, rounded
from scaletest.model.errors import AgentLost, ScaletestError, Unreachable
from scaletest.model.labels import Labels
from scaletest.model.masking import HIDDEN, masked
from scaletest.observe.node.used_time import own_used_s, used_s
from scaletest.render.numbers import seconds
from scaletest.runs.environment import environment
from scaletest.runs.folder import RESULT
from scaletest.runs.places import new_path
from scaletest.runs.progress import Progress
from scaletest.runs.stopping import StopRequest, stopping
from scaletest.saturation.folder import SaturationFolder
from scaletest.saturation.judging.evaluation import SaturationResult, conclude
from scaletest.saturation.judging.search import Probe
from scaletest.saturation.judging.sequence import (
    BACK_OFF_S,
    OPERATING_STEPS,
    SaturationSequence,
    forecast,
)
from scaletest.saturation.judging.step import Assessed, assess, level_text, timing
from scaletest.saturation.measure.loads import Watched
from scaletest.saturation.measure.target import Target, find_target
from scaletest.saturation.options import SaturationOptions
from scaletest.saturation.plan import LoadKind, Phase, SaturationPlan, SaturationStep

_SECRETS = ("--header", "-H")
LEAST_BEHIND = 100.0
# Beyond doubt: this many seconds' worth of requests behind, and as many usual latencies.
BEHIND_S, BEHIND_USUAL = 1.0, 5.0


class Runner:
    """Measures a plan with a load. A request to stop ends it after what is in flight; what was
    measured is judged all the same.

    So it is when a load agent or Redis is lost, as INVALID: `lost` is why. store: keeps a step and
    its samples.
    """

    def __init__(
        self,
        plan: SaturationPlan,
        load: LevelLoad,
        store: Callable[[SaturationStep, Sequence[Attempt]], None],
        progress: Progress,
        stop: StopRequest | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._plan, self._load, self._store, self._progress = plan, load, store, progress
        self._clock, self._sleep = clock, sleep
        # every run of a plan has the same arrivals, so that two runs differ by the service alone
        self._chance = random.Random(0)
        self._stop = stop or StopRequest()
        self.lost: ScaletestError | None = None

    def run(self) -> SaturationResult:
        """The whole run; what is left of it when it was stopped."""
        course, began = SaturationSequence(self._plan), self._clock()
        while course.next is not None and not self._stop.asked():
            probe = course.next
            self._tell(len(course.steps))
            try:
                step, samples = self._measure(probe, course)
            except (AgentLost, Unreachable) as error:
                self.lost = (
                    error  # a step without one of its agents is no step; those before it are
                )
                break
            if self._stop.asked():
                break  # a step that was cut short must not be taken for a whole one
            self._store(step, samples)
            course.tell(assess(self._plan, step, samples))
            assessed = course.steps[-1]  # as it is with all that was sent at its level
            self._progress.step(line(self._plan, assessed))
            self._progress.step_ended()
            if assessed.saturated and course.next is not None:
                self._sleep(BACK_OFF_S)
            if probe.phase is Phase.WARM and assessed.success == 0:
                break
        return conclude(
            course,
            interrupted=self._stop.reason,
            lost=self.lost.message if self.lost else "",
            elapsed_s=self._clock() - began,
        )

    def _tell(self, done: int) -> None:
        """Tell where the run is. How many steps a search takes is known afterwards."""
        plan = self._plan
        expected = forecast(plan)
        steps = expected.steps + (plan.warm_s > 0) + 1
        left = max(0, steps - done)
        left_s = None
        if expected.usual_s is not None and left > 0:
            left_s = left * expected.usual_s / steps
        self._progress.at(done, max(steps, done + 1), left_s=left_s, is_estimate=True)

    def _measure(
        self, probe: Probe, course: SaturationSequence
    ) -> tuple[SaturationStep, Sequence[Attempt]]:
        plan, warm = self._plan, probe.phase is Phase.WARM
        kinds = {Phase.OPERATE: LoadKind.OPEN, Phase.WARM: LoadKind.CLOSED}
        kind = kinds.get(probe.phase, LoadKind(plan.load))
        operating = OPERATING_STEPS * plan.step_s
        wanted = {Phase.WARM: plan.warm_s, Phase.OPERATE: operating}.get(probe.phase, plan.step_s)
        long, warmup = (wanted, 0.0) if warm else timing(wanted, course.usual_s)
        order = self._order(probe, kind, long, 0 if warm else plan.count, course.usual_s)
        began = datetime.now(UTC).isoformat(timespec="milliseconds")
        name = (
            f"{probe.phase}, {probe.level:.4g}"
            f" {'requests/s' if kind == LoadKind.OPEN else 'in flight'}"
        )

        def tell(ended: int, failed: int) -> None:
            self._progress.note(f"{name}: {ended} ended, {failed} failed")

        measured: LoadResult = self._load.measure(order, self._stop.asked, tell)
        step = SaturationStep(
            len(course.steps),
            probe.phase,
            kind,
            probe.level,
            measured.seconds,
            len(measured.samples),
            warmup,
            measured.cpu,
            measured.beat_s,
            measured.throttled_s,
            measured.unsent,
            began,
            around=measured.around,
            throttled_periods=measured.throttled_periods,
            pods=measured.pods,
        )
        # judged as they are stored: whoever reads the run decides the same
        return step, list(map(rounded, measured.samples))

    def _order(
        self, probe: Probe, kind: LoadKind, long: float, count: int, usual_s: float
    ) -> LoadOrder:
        patience = self._plan.timeout_s + 0.1
        if kind == LoadKind.CLOSED:
            return LoadOrder(
                long, parallel=max(1, round(probe.level)), count=count, patience_s=patience
            )
        if count:
            long = count / probe.level
        behind = max(LEAST_BEHIND, probe.level * (BEHIND_S + BEHIND_USUAL * usual_s))
        return LoadOrder(
            float("inf") if count else long,
            pace=pace.exact_poisson(probe.level, long, self._chance),
            count=count,
            most_behind=behind,
            patience_s=patience,
        )


def line(plan: SaturationPlan, assessed: Assessed) -> str:
    """A step in one line."""
    step = assessed.step
    p95 = assessed.latency.p95 or assessed.latency.p50
    latency = f", p{100 * p95.p:.0f} {seconds(p95.value)}" if p95 else ""
    wrong = assessed.tester or assessed.saturated or assessed.undecided
    state = f": {wrong}" if wrong else ""
    rate = f"{assessed.goodput.value:.4g}/s"
    return f"{step.phase} {level_text(step)}: {rate} succeed{latency}{state}"


def saturate(
    plan: SaturationPlan, options: SaturationOptions, progress: Progress
) -> tuple[SaturationFolder, int]:
    """Run a saturation; where it lies, and its exit code."""
    with ExitStack() as before:
        target = find_target(options, plan)
        path, stop = new_path(os.environ, options.run_dir), StopRequest()
        folder = begun(path, plan, options.labels, before)
        before.enter_context(progress.of_run(folder, plan.target))
        unwind = bool(options.cluster.service or options.agents.agent_jobs)
        with stopping(stop, unwind=unwind) as stack:
            for each in target.shown:
                progress.message(each)
            causes = not options.agents.agent_jobs
            _, code = measure(
                plan, target, folder, progress, stop, stack, target.shown, causes=causes
            )
        return folder, code


def begun(path: Path, plan: SaturationPlan, labels: Labels, stack: ExitStack) -> SaturationFolder:
    """A new run's folder, held by us until the stack is unwound; without a step it goes then."""
    folder = SaturationFolder.create(path)
    stack.callback(folder.forget_empty)
    stack.enter_context(folder.locked())
    folder.begin(plan, environment(public(sys.argv)), labels)
    return folder


def measure(
    plan: SaturationPlan,
    target: Target,
    folder: SaturationFolder,
    progress: Progress,
    stop: StopRequest,
    stack: ExitStack,
    about: Sequence[str],
    *,
    causes: bool,
) -> tuple[SaturationResult, int]:
    """Load the target, up to the result on disk; that, and its exit code.

    stack: takes down what was set up. about: lines that are kept with the result. causes: look at
    what this machine, and a service on it, do meanwhile.
    """
    noticed, lost = list[str](), None
    look = _look(target) if target.is_here else list
    try:
        load = target.set_up(stack)
        if causes:
            load = Watched(load, target.servers, target.port)
        runner = Runner(plan, load, folder.store, progress, stop)
        noticed = look()
        progress.warn(noticed)
        target.probe(load)
        result = runner.run()
        lost = runner.lost
    except AgentLost as error:
        result = conclude(SaturationSequence(plan), lost=error.message)  # before the first step
    warned = replace(result, warnings=(*noticed, *result.warnings))
    extra = {"lines": about, **({"replicas": target.replicas} if target.replicas else {})}
    folder.write(
        RESULT,
        {**warned.to_dict(), "noticed": noticed, **({"extra": extra} if about else {})},
    )
    return result, lost.exit_code if lost else result.verdict.kind.exit_code


def _look(target: Target) -> Callable[[], list[str]]:
    """Warnings of what keeps this machine busy beside the tester and the service."""
    servers = target.servers()
    return busy_check.of_this_machine(lambda: own_used_s() + used_s(servers)).warnings


def public(arguments: Sequence[str]) -> list[str]:
    """A command line without secrets: values of headers and of query parameters, and logins in
    addresses.
    """
    shown, hide = [], False
    for word in arguments:
        if hide or word.startswith("--header=") or (word.startswith("-H") and len(word) > 2):
            word = word.partition(":")[0] + f": {HIDDEN}"
        hide = word in _SECRETS
        shown.append(masked(word, service=True) if "://" in word else word)
    return shown
