"""Double the replicas of a service, up and down, load it, and measure."""

import os
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from typing import Protocol

from scaletest.load.http import HttpLoad
from scaletest.load.http_call import CAUSES, HttpCall
from scaletest.load.level_load import LevelLoad, LoadOrder
from scaletest.load.prompts import Prompts
from scaletest.load.requests import split_base, without_secrets
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
from scaletest.validation.service.causes import FULLEST, fullest
from scaletest.validation.service.course import VisitCourse
from scaletest.validation.service.folder import ServiceFolder
from scaletest.validation.service.judging import ServiceEvaluation, evaluate_service
from scaletest.validation.service.metrics import MetricsWatch
from scaletest.validation.service.plan import ServicePlan
from scaletest.validation.service.replicas import Replicas
from scaletest.validation.service.visit import (
    TOOL,
    ServiceVisit,
    compare_looks,
    measure_visit,
)

LOOK_S = 0.5
# Twice as many in flight shall bring one replica this factor more, or they are enough.
GROWS = 1.1
# Measured of each number in flight that is tried, and of a load on the replicas' own addresses.
SHORT_S = 3.0
# The load ends by itself; this only bounds it.
LONGEST_S = 86_400.0

# Outcomes that no waiting changes.
NO_ADDRESSES: Mapping[str, str] = {}
FINAL = frozenset(("400", "401", "403", "404", "405", "411", "413", "415", "422", "TLS"))


class MakeLoad(Protocol):
    """Makes a load with connections of its own, which tells `seen` each attempt."""

    def __call__(
        self, seen: Callable[[Attempt], None], direct: Mapping[str, str] = ..., /
    ) -> LevelLoad:
        """Return it. direct: addresses of replicas, to which requests go in turn instead."""


def load_service(
    call: HttpCall, bodies: Sequence[bytes | None], prompts: Prompts | None
) -> MakeLoad:
    """Return what makes loads of this call."""
    sockets = call.connections + 64
    if raise_open_files(sockets) < sockets:
        raise UsageError(
            f"this process may not open {call.connections} connections",
            hint="raise ulimit -n, or give a smaller <in_flight>",
        )
    path = split_base(call.url)[1]

    def make(seen: Callable[[Attempt], None], direct: Mapping[str, str] = NO_ADDRESSES) -> HttpLoad:
        urls = {name: address + path for name, address in direct.items()}
        return HttpLoad(replace(call, direct=urls), bodies, prompts=prompts, seen=seen)

    return make


def validate_service(
    plan: ServicePlan,
    replicas: Replicas,
    make_load: MakeLoad,
    progress: Progress,
    *,
    run_dir: str,
    labels: Labels,
    ready_s: float,
    call: HttpCall | None = None,
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
                call=call,
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
        call: HttpCall | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._plan, self._replicas, self._make_load = plan, replicas, make_load
        self._progress, self._stop, self._ready_s = progress, stop, ready_s
        self._call = call
        self._in_flight = plan.in_flight
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
        at = plural(count, "replica")
        self._progress.phase(f"{at}: getting ready")
        asked_at = self._clock()
        self._replicas.scale(count)
        self._await_answer(count)
        scale_s = self._clock() - asked_at
        addresses = self._replicas.addresses()
        if self._in_flight is None:
            self._in_flight = self._find_in_flight()
        way = "down" if repeat % 2 else "up"
        if self._plan.repeats > 1:
            way = f"{way} {repeat // 2 + 1}"
        place = ServiceVisit(
            count=count,
            repeat=repeat,
            tool=TOOL,
            file=f"{at} {way}",
            in_flight=float((self._in_flight or 1) * count),
            scale_s=scale_s,
        )
        before = self._replicas.pods()
        visit = self._measure(place, self._plan.step_s, addresses)
        if visit is None:
            return None
        visit = replace(visit, pods=compare_looks(before, self._replicas.pods()))
        if repeat == 0 and fullest(visit) >= FULLEST and addresses:
            # the control: if each replica gets its part, does the throughput follow?
            control = replace(place, file=f"{at}, on their own addresses")
            direct = self._measure(control, SHORT_S, direct=addresses)
            if direct and direct.successes:
                visit = replace(visit, direct_per_s=direct.requests_per_s, direct=direct.replicas)
        return visit

    def _find_in_flight(self) -> int | None:
        """Return the number in flight from which on one replica does no more; None when stopped."""
        tried, held, most, before = 1, 1, self._plan.most_in_flight, 0.0
        while True:
            name = f"{tried} in flight for one replica"
            place = ServiceVisit(1, 0, TOOL, name, in_flight=float(tried))
            visit = self._measure(place, min(SHORT_S, self._plan.step_s))
            if visit is None:
                return None
            rate, failed = visit.requests_per_s or 0.0, sum(visit.outcomes.values())
            shown = format_significant(rate, 4)
            self._progress.message(f"{name}: {shown} requests/s, {failed} failed")
            if tried > 1 and visit.failed_share > self._plan.tolerate_failures:
                return held  # it refuses more
            if rate < GROWS * before or tried == most:
                return tried
            tried, held, before = min(2 * tried, most), tried, rate

    def _measure(
        self,
        place: ServiceVisit,
        step_s: float,
        addresses: Mapping[str, str] = NO_ADDRESSES,
        direct: Mapping[str, str] = NO_ADDRESSES,
    ) -> ServiceVisit | None:
        """Load the replicas until they are warm and measured; None when the run was stopped.

        addresses: where their metrics are read. direct: where requests go instead of the service.
        """
        course = VisitCourse(step_s, self._plan.warm_limit_s)
        # new connections, so that those of fewer replicas do not pin the load to them
        with closing(self._make_load(course.add, direct)) as load, ExitStack() as stack:
            watch = MetricsWatch(addresses, self._call) if addresses and self._call else None
            if watch:
                stack.callback(watch.close)
            began = self._clock()

            def stopping() -> bool:
                return self._stop.asked() or course.look(self._clock() - began)

            def tell(ended: int, failed: int) -> None:
                doing = "warming up" if course.from_s is None else "measuring"
                self._progress.note(f"{place.file}: {doing}, {ended} ended, {failed} failed")

            self._progress.phase(f"{place.file}: under load")
            order = LoadOrder(
                LONGEST_S,
                parallel=int(place.in_flight or 1),
                patience_s=self._plan.timeout_s + 0.1,
            )
            result = load.measure(order, stopping, tell)
        if not course.is_over:
            return None
        begin_s, end_s = course.from_s or 0.0, course.until_s
        metrics = watch.between(began + begin_s, began + end_s) if watch else {}
        if watch and watch.refusal:
            self._call = None  # it would be the same at each further step
            self._progress.message(f"no metrics of the replicas: {watch.refusal}")
        middle_s = began - self._began + (begin_s + end_s) / 2
        return measure_visit(course, result, replace(place, middle_s=middle_s), metrics)

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
