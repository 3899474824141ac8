"""A saturation run from its options to the result on disk: its target, its folder, its steps."""

import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from scaletest.load import busy_check, pace
from scaletest.load.level_load import LevelLoad, LoadOrder
from scaletest.load.requests import without_secrets
from scaletest.model.attempt import Attempt, round_times
from scaletest.model.errors import AgentLost, ScaletestError, Unreachable
from scaletest.model.labels import Labels
from scaletest.observe.node.used_time import cpu_used_s, own_processes_cpu_s
from scaletest.render.numbers import format_seconds
from scaletest.runs.environment import read_environment
from scaletest.runs.folder import RESULT
from scaletest.runs.places import new_path
from scaletest.runs.progress import Progress
from scaletest.runs.stopping import StopRequest, stop_on_signals
from scaletest.saturation.folder import SaturationFolder
from scaletest.saturation.judging.evaluation import SaturationResult, conclude
from scaletest.saturation.judging.forecast import BACK_OFF_S, time_left
from scaletest.saturation.judging.step import AssessedStep, assess_step, level_text, step_timing
from scaletest.saturation.judging.step_sequence import OPERATING_STEPS, SaturationSequence
from scaletest.saturation.judging.trial import Probe
from scaletest.saturation.measure.machine_use import WatchedMachine
from scaletest.saturation.measure.service_target import find_service
from scaletest.saturation.measure.target import Target, check_first_call, find_queue, find_url
from scaletest.saturation.options import SaturationOptions
from scaletest.saturation.plan import LoadKind, Phase, SaturationPlan, SaturationStep

# A step ends early when it is beyond doubt that the service does not follow: when this many are
# behind at least, and what is due in so many seconds and usual latencies.
LEAST_BEHIND = 100.0
BEHIND_S, BEHIND_LATENCIES = 1.0, 5.0
# Requests in flight have so much longer than their time-out to end.
EXTRA_PATIENCE_S = 0.1


def saturate(
    plan: SaturationPlan, options: SaturationOptions, progress: Progress
) -> tuple[SaturationFolder, int]:
    """Run a saturation; return its folder, and its exit code."""
    target = find_target(options, plan)
    stop = StopRequest()
    with ExitStack() as holding:
        path = new_path(os.environ, options.run_dir)
        folder = begin_folder(path, plan, options.labels, holding)
        holding.enter_context(progress.of_run(folder, plan.target))
        # a second signal must still put back what was changed in a cluster
        unwind = bool(options.service or options.agent_jobs)
        with stop_on_signals(stop, unwind=unwind) as stack:
            for line in target.lines:
                progress.message(line)
            _, code = measure_target(
                plan,
                target,
                folder,
                progress=progress,
                stop=stop,
                stack=stack,
                about=target.lines,
                watch_machine=not options.agent_jobs,
            )
        return folder, code


def find_target(options: SaturationOptions, plan: SaturationPlan) -> Target:
    """Look at what the options name; nothing is changed yet."""
    if options.queue:
        return find_queue(options, plan)
    if options.service:
        return find_service(options, plan)
    return find_url(options, plan)


def begin_folder(
    path: Path, plan: SaturationPlan, labels: Labels, stack: ExitStack
) -> SaturationFolder:
    """Make a run's folder, held by us until the stack is unwound; without a step it goes then."""
    folder = SaturationFolder.create(path)
    stack.callback(folder.forget_empty)
    stack.enter_context(folder.locked())
    folder.begin(plan, read_environment(without_secrets(sys.argv)), labels)
    return folder


def measure_target(
    plan: SaturationPlan,
    target: Target,
    folder: SaturationFolder,
    *,
    progress: Progress,
    stop: StopRequest,
    stack: ExitStack,
    about: Sequence[str],
    watch_machine: bool,
) -> tuple[SaturationResult, int]:
    """Load the target, up to the result on disk; return that, and its exit code.

    stack: takes down what was set up. about: lines that are kept with the result. watch_machine:
    look at what this machine, and a service on it, do meanwhile.
    """
    busy: busy_check.BusyCheck | None = None
    if target.is_here:
        # what keeps this machine busy beside the tester and the service
        servers = target.servers()
        busy = busy_check.of_this_machine(lambda: own_processes_cpu_s() + cpu_used_s(servers))
    target.hold(stack)
    load = stack.enter_context(closing(target.start(stack)))
    if watch_machine:
        load = WatchedMachine(load, target.servers, target.port)
    noticed = busy.warnings() if busy else []
    progress.warn(noticed)
    check_first_call(load)
    runner = Runner(plan, load, folder.store, progress, stop)
    result = runner.run()
    warned = replace(result, warnings=(*noticed, *result.warnings))
    document: dict[str, object] = {**warned.to_dict(), "noticed": noticed}
    if target.replicas:
        document["extra"] = {"lines": about, "replicas": target.replicas}
    elif about:
        document["extra"] = {"lines": about}
    folder.write(RESULT, document)
    return result, runner.lost.exit_code if runner.lost else result.verdict.kind.exit_code


class Runner:
    """Measures a plan with a load.

    A request to stop ends it after what is in flight, and the loss of a load agent or of Redis at
    once, as INVALID: `lost` is why. What was measured before is judged all the same.
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
        """store: keeps a step and its samples."""
        self._plan, self._load, self._store, self._progress = plan, load, store, progress
        self._clock, self._sleep = clock, sleep
        # every run of a plan has the same arrivals, so that two runs differ by the service alone
        self._chance = random.Random(0)
        self._stop = stop or StopRequest()
        self.lost: ScaletestError | None = None

    def run(self) -> SaturationResult:
        """Measure the whole run, or what is left of it when it is stopped, and judge it."""
        plan = self._plan
        sequence = SaturationSequence(plan)
        began = search_began = self._clock()
        while sequence.next is not None and not self._stop.asked():
            probe = sequence.next
            # how many steps a search takes is known afterwards
            left = time_left(sequence, self._clock() - search_began)
            self._progress.at(len(sequence.steps), 0, left=left)
            try:
                step, samples = self._measure_level(probe, sequence)
            except (AgentLost, Unreachable) as error:
                # a step without one of its agents does not count; those before it are
                self.lost = error
                break
            if self._stop.asked():
                break  # a step that was cut short must not be taken for a whole one
            self._store(step, samples)
            sequence.add_step(assess_step(plan, step, samples))
            assessed = sequence.steps[-1]  # as it is with all that was sent at its level
            self._progress.step(progress_line(assessed))
            self._progress.step_ended()
            if assessed.saturated and sequence.next is not None:
                self._sleep(BACK_OFF_S)
            if probe.phase is Phase.WARM:
                search_began = self._clock()
                if assessed.success == 0:
                    break
        return conclude(
            sequence,
            interrupted=self._stop.reason,
            lost=self.lost.message if self.lost else "",
            elapsed_s=self._clock() - began,
        )

    def _measure_level(
        self, probe: Probe, sequence: SaturationSequence
    ) -> tuple[SaturationStep, Sequence[Attempt]]:
        """Measure one level; return the step and its samples."""
        plan = self._plan
        # the probe keeps one request in flight, and the operating point is always a rate
        kind, count = LoadKind(plan.load), plan.count
        seconds_wanted = plan.step_s
        if probe.phase is Phase.OPERATE:
            kind = LoadKind.OPEN
            seconds_wanted = OPERATING_STEPS * plan.step_s
        duration_s, warmup_s = step_timing(seconds_wanted, sequence.usual_s)
        if probe.phase is Phase.WARM:
            kind = LoadKind.CLOSED
            count = 0
            duration_s = plan.warm_s
            warmup_s = 0.0
        order = LoadOrder(duration_s, count=count, patience_s=plan.timeout_s + EXTRA_PATIENCE_S)
        if kind is LoadKind.CLOSED:
            unit = "in flight"
            order = replace(order, parallel=max(1, round(probe.level)))
        else:
            unit = "requests/s"
            paced_s = count / probe.level if count else duration_s
            behind_s = BEHIND_S + BEHIND_LATENCIES * sequence.usual_s
            order = replace(
                order,
                seconds=float("inf") if count else duration_s,
                pace=pace.exact_poisson(probe.level, paced_s, self._chance),
                most_behind=max(LEAST_BEHIND, probe.level * behind_s),
            )

        def note_progress(ended: int, failed: int) -> None:
            self._progress.note(
                f"{probe.phase}, {probe.level:.4g} {unit}: {ended} ended, {failed} failed"
            )

        began = datetime.now(UTC).isoformat(timespec="milliseconds")
        result = self._load.measure(order, self._stop.asked, note_progress)
        step = SaturationStep(
            number=len(sequence.steps),
            phase=probe.phase,
            load=kind,
            level=probe.level,
            seconds=result.seconds,
            requests=len(result.samples),
            warmup_s=warmup_s,
            cpu=result.cpu,
            beat_s=result.beat_s,
            began=began,
            around=result.around,
            throttled_periods=result.throttled_periods,
            pods=result.pods,
        )
        # judged as they are stored: a later reading of the run decides the same
        return step, list(map(round_times, result.samples))


def progress_line(assessed: AssessedStep) -> str:
    """Describe a step in one line."""
    step = assessed.step
    p95 = assessed.latency.p95 or assessed.latency.p50
    latency = f", p{100 * p95.p:.0f} {format_seconds(p95.value)}" if p95 else ""
    problem = assessed.tester or assessed.saturated or assessed.undecided
    state = f": {problem}" if problem else ""
    rate = f"{assessed.goodput.value:.4g}/s"
    return f"{step.phase} {level_text(step)}: {rate} succeed{latency}{state}"
