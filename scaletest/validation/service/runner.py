"""Double the replicas of a service, up and down, load it, and measure."""

import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing

from scaletest.load.http import HttpLoad
from scaletest.load.http_call import CAUSES, HttpCall
from scaletest.load.level_load import LevelLoad, LoadOrder
from scaletest.load.prompts import Prompts
from scaletest.load.requests import without_secrets
from scaletest.model.attempt import Attempt
from scaletest.model.errors import ScaletestError, UsageError, WaitTimeout
from scaletest.model.labels import Labels
from scaletest.model.run_progress import expect_alike
from scaletest.observe.control_groups import raise_open_files
from scaletest.render.numbers import format_seconds, format_significant, plural
from scaletest.runs.environment import read_environment
from scaletest.runs.folder import RESULT, STEPS
from scaletest.runs.places import new_path
from scaletest.runs.progress import Progress
from scaletest.runs.stopping import StopRequest, stop_on_signals
from scaletest.validation.judging.growth import SEED
from scaletest.validation.service.course import VisitCourse
from scaletest.validation.service.folder import ServiceFolder
from scaletest.validation.service.judging import ServiceEvaluation, evaluate_service
from scaletest.validation.service.metrics import MetricsWatch, ReadReplicas
from scaletest.validation.service.plan import ServicePlan
from scaletest.validation.service.replicas import Replicas
from scaletest.validation.service.visit import TOOL, ServiceVisit, measure_visit

LOOK_S = 0.5
# The load ends by itself; this only bounds it.
LONGEST_S = 86_400.0

# Outcomes that no waiting changes.
FINAL = frozenset(("400", "401", "403", "404", "405", "411", "413", "415", "422", "TLS"))

MakeLoad = Callable[[Callable[[Attempt], None]], LevelLoad]


def load_service(
    call: HttpCall, bodies: Sequence[bytes | None], prompts: Prompts | None
) -> MakeLoad:
    """Return what makes a load with connections of its own, which tells each attempt."""
    sockets = call.connections + 64
    if raise_open_files(sockets) < sockets:
        raise UsageError(
            f"this process may not open {call.connections} connections",
            hint="raise ulimit -n, or give a smaller <in_flight>",
        )
    return lambda seen: HttpLoad(call, bodies, prompts=prompts, seen=seen)


def validate_service(
    plan: ServicePlan,
    replicas: Replicas,
    make_load: MakeLoad,
    progress: Progress,
    *,
    run_dir: str,
    labels: Labels,
    ready_s: float,
    read_replicas: ReadReplicas | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[ServiceFolder, ServiceEvaluation]:
    """Run a new validation of a service; return its folder and result."""
    folder = ServiceFolder.create(new_path(os.environ, run_dir))
    stop = StopRequest()
    with ExitStack() as before:
        before.callback(folder.forget_empty)
        before.enter_context(folder.locked())
        folder.begin(plan, read_environment(without_secrets(sys.argv)), labels)
        with progress.of_run(folder, plan.workload), stop_on_signals(stop, unwind=True) as stack:
            stack.callback(replicas.close)
            runner = ServiceRunner(
                plan,
                replicas,
                make_load,
                progress,
                stop,
                ready_s=ready_s,
                read_replicas=read_replicas,
                clock=clock,
            )
            reason = ""
            try:
                runner.run(lambda visit: folder.append(STEPS, [visit.to_json()]))
            except ScaletestError as error:
                reason = error.message
                raise
            finally:
                # what was measured before an error can be shown all the same
                if runner.visits or not reason:
                    reason = stop.reason or reason
                    result = evaluate_service(plan, runner.visits, random.Random(SEED), reason)
                    folder.write(RESULT, result.to_dict())
    return folder, result


class ServiceRunner:
    """Measures the steps of a plan, one visit after the other."""

    def __init__(
        self,
        plan: ServicePlan,
        replicas: Replicas,
        make_load: MakeLoad,
        progress: Progress,
        stop: StopRequest,
        *,
        ready_s: float,
        read_replicas: ReadReplicas | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._plan, self._replicas, self._make_load = plan, replicas, make_load
        self._progress, self._stop, self._ready_s = progress, stop, ready_s
        self._read_replicas = read_replicas
        self._clock, self._sleep = clock, sleep
        self._began = clock()
        self.visits: list[ServiceVisit] = []

    def run(self, store: Callable[[ServiceVisit], object]) -> None:
        """Measure all visits, or those until the run is stopped or a number of replicas fails."""
        turns, lengths_s = self._plan.turns, list[float]()
        for number, (count, repeat) in enumerate(turns):
            if self._stop.asked():
                return
            left = expect_alike(lengths_s, len(turns) - number)
            self._progress.at(number, len(turns), left=left)
            began_s = self._clock()
            visit = self._visit(count, repeat)
            lengths_s.append(self._clock() - began_s)
            if visit is None:
                return
            self.visits.append(visit)
            store(visit)
            rate = format_significant(visit.requests_per_s or 0.0, 4)
            self._progress.step(
                f"{visit.file}: {rate} requests/s, warm after {format_seconds(visit.warm_s)}"
            )
            self._progress.step_ended()
            if not visit.successes:
                return  # with more replicas it would only fail faster

    def _visit(self, count: int, repeat: int) -> ServiceVisit | None:
        """Measure one step on one way; None when the run was stopped meanwhile."""
        plan, at = self._plan, plural(count, "replica")
        self._progress.phase(f"{at}: getting ready")
        asked_at = self._clock()
        self._replicas.scale(count)
        self._await_answer(count)
        scale_s = self._clock() - asked_at
        course = VisitCourse(plan.step_s, plan.warm_limit_s)
        # new connections, so that those of fewer replicas do not pin the load to them
        with closing(self._make_load(course.add)) as load, ExitStack() as stack:
            watch = MetricsWatch(self._read_replicas) if self._read_replicas else None
            if watch:
                stack.callback(watch.close)
            began = self._clock()

            def stopping() -> bool:
                return self._stop.asked() or course.look(self._clock() - began)

            def tell(ended: int, failed: int) -> None:
                doing = "warming up" if course.from_s is None else "measuring"
                self._progress.note(f"{at}: {doing}, {ended} ended, {failed} failed")

            self._progress.phase(f"{at}: under load")
            order = LoadOrder(
                LONGEST_S, parallel=plan.in_flight * count, patience_s=plan.timeout_s + 0.1
            )
            result = load.measure(order, stopping, tell)
        if not course.is_over:
            return None
        middle_s = began - self._began + ((course.from_s or 0.0) + course.until_s) / 2
        way = "down" if repeat % 2 else "up"
        if plan.repeats > 1:
            way = f"{way} {repeat // 2 + 1}"
        place = ServiceVisit(
            count=count,
            repeat=repeat,
            tool=TOOL,
            file=f"{at} {way}",
            in_flight=float(plan.in_flight * count),
            scale_s=scale_s,
            middle_s=middle_s,
        )
        from_at, until_at = began + (course.from_s or 0.0), began + course.until_s
        metrics = watch.between(from_at, until_at) if watch else {}
        return measure_visit(course, result, place, metrics)

    def _await_answer(self, count: int) -> None:
        """Wait until the service answers a request. WaitTimeout with the reason."""
        began, outcome = self._clock(), ""
        while not self._stop.asked():
            with closing(self._make_load(lambda attempt: None)) as load:
                order = LoadOrder(
                    self._plan.timeout_s, parallel=1, count=1, patience_s=self._plan.timeout_s
                )
                samples = load.measure(order, self._stop.asked, lambda ended, failed: None).samples
            if samples and samples[0].ok:
                return
            outcome = samples[0].outcome if samples else outcome
            if self._clock() - began > self._ready_s or outcome in FINAL:
                break
            self._sleep(LOOK_S)
        else:
            return
        cause, hint = CAUSES.get(outcome, ("the service does not serve it", "read its log"))
        shown = f"HTTP {outcome}" if outcome.isdigit() else outcome or "no answer"
        raise WaitTimeout(
            f"with {plural(count, 'replica')} no request succeeded within"
            f" {self._clock() - began:.0f} s ({shown}): {cause}",
            hint=hint,
        )
