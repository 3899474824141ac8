"""Double the replicas of a service, up and down, load it, and measure."""

import os
import random
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace

from scaletest.load.http import HttpWork
from scaletest.load.http_call import explain_outcome
from scaletest.load.level_load import LoadOrder, send_one
from scaletest.load.requests import split_base, without_secrets
from scaletest.model.attempt import OK
from scaletest.model.errors import ScaletestError, WaitTimeout
from scaletest.model.labels import Labels
from scaletest.model.run_progress import expect_alike
from scaletest.render.numbers import format_seconds, format_significant, plural
from scaletest.runs.environment import read_environment
from scaletest.runs.folder import RESULT, STEPS
from scaletest.runs.places import new_path
from scaletest.runs.progress import Progress
from scaletest.runs.stopping import StopRequest, stop_on_signals
from scaletest.validation.judging.growth import SEED
from scaletest.validation.service.causes import UNEVEN_SHARE, fullest_share, is_client_disturbed
from scaletest.validation.service.course import VisitCourse
from scaletest.validation.service.judging import evaluate_service
from scaletest.validation.service.metrics import metrics_between, watch_metrics
from scaletest.validation.service.plan import ServicePlan
from scaletest.validation.service.replicas import Replicas, compare_looks
from scaletest.validation.service.run_type import ServiceFolder
from scaletest.validation.service.visit import TOOL, ServiceVisit, measure_visit

# Between two attempts of a service that does not answer yet.
LOOK_S = 0.5
# Twice as many in flight shall bring one replica this factor more, or they are enough.
LEAST_GAIN = 1.1
# Measured of each number in flight that is tried, and of a load on the replicas' own addresses.
SHORT_STEP_S = 3.0
# The load ends by itself; this only bounds it.
LONGEST_LOAD_S = 86_400.0
# Requests in flight have so much longer than their time-out to end.
EXTRA_PATIENCE_S = 0.1

# Outcomes that no waiting changes.
FINAL_OUTCOMES = frozenset(("400", "401", "403", "404", "405", "411", "413", "415", "422", "TLS"))
NO_ADDRESSES: Mapping[str, str] = {}


def validate_service(
    plan: ServicePlan,
    replicas: Replicas,
    work: HttpWork,
    progress: Progress,
    *,
    run_dir: str,
    labels: Labels,
    ready_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> ServiceFolder:
    """Run a new validation of a service; return its folder.

    work: its requests. ready_s: how long replicas may take until one answers.
    """
    folder = ServiceFolder.create(new_path(os.environ, run_dir))
    stop = StopRequest()
    with ExitStack() as holding:
        holding.callback(folder.forget_empty)
        holding.enter_context(folder.locked())
        folder.begin(plan, read_environment(without_secrets(sys.argv)), labels)
        with progress.of_run(folder, plan.workload), stop_on_signals(stop, unwind=True) as stack:
            stack.callback(replicas.close)
            runner = ServiceRunner(
                plan, replicas, work, progress, stop, ready_s=ready_s, clock=clock
            )
            failure = ""
            try:
                runner.run(lambda visit: folder.append(STEPS, [visit.to_json()]))
            except ScaletestError as error:
                failure = error.message
                raise
            finally:
                # what was measured before an error can be shown all the same
                if runner.visits or not failure:
                    interrupted = stop.reason or failure
                    result = evaluate_service(plan, runner.visits, random.Random(SEED), interrupted)
                    folder.write(RESULT, result.to_dict())
    return folder


class ServiceRunner:
    """Measures the steps of a plan, one visit after the other."""

    def __init__(
        self,
        plan: ServicePlan,
        replicas: Replicas,
        work: HttpWork,
        progress: Progress,
        stop: StopRequest,
        *,
        ready_s: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._plan, self._replicas, self._work = plan, replicas, work
        self._progress, self._stop, self._ready_s = progress, stop, ready_s
        self._clock, self._sleep = clock, sleep
        self._in_flight = plan.in_flight  # for each replica; None until it is found
        self._began = clock()
        self.visits: list[ServiceVisit] = []

    def run(self, store: Callable[[ServiceVisit], object]) -> None:
        """Measure all visits, or those until the run is stopped or a number of replicas fails."""
        turns = self._plan.turns
        lengths_s: list[float] = []
        for number, (count, repeat) in enumerate(turns):
            if self._stop.asked():
                return
            left = expect_alike(lengths_s, len(turns) - number)
            self._progress.at(number, len(turns), left=left)
            began_s = self._clock()
            visit = self._visit(count, repeat)
            if visit is None:
                return
            lengths_s.append(self._clock() - began_s)
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
        # have so many replicas that answer
        title = plural(count, "replica")
        self._progress.phase(f"{title}: getting ready")
        asked_at = self._clock()
        self._replicas.scale(count)
        self._await_answer(title)
        scale_s = self._clock() - asked_at
        # measure them under load
        addresses = self._replicas.addresses()
        if self._in_flight is None:
            self._in_flight = self._find_in_flight()
        way = "down" if repeat % 2 else "up"
        if self._plan.repeats > 1:
            way += f" {repeat // 2 + 1}"
        place = ServiceVisit(
            count=count,
            repeat=repeat,
            tool=TOOL,
            file=f"{title} {way}",
            in_flight=float(self._in_flight * count),
            scale_s=scale_s,
        )
        before = self._replicas.pods()
        visit = self._measure(place, self._plan.step_s, addresses)
        if visit and is_client_disturbed(visit):
            # this machine was busy with something else, for a moment perhaps
            self._progress.message(f"{place.file}: the client was disturbed, measured once more")
            visit = self._measure(place, self._plan.step_s, addresses)
        if visit is None:
            return None
        visit = replace(visit, pods=compare_looks(before, self._replicas.pods()))
        if repeat == 0 and fullest_share(visit) >= UNEVEN_SHARE and addresses:
            # the control: if each replica gets its part, does the throughput follow?
            control = replace(place, file=f"{title}, on their own addresses")
            direct = self._measure(control, SHORT_STEP_S, direct=addresses)
            if direct and direct.successes:
                visit = replace(visit, direct_per_s=direct.requests_per_s, direct=direct.replicas)
        return visit

    def _find_in_flight(self) -> int:
        """Return the number in flight from which on one replica does no more."""
        in_flight = last_accepted = 1
        rate_before = 0.0
        while True:
            title = f"{in_flight} in flight for one replica"
            place = ServiceVisit(1, 0, TOOL, title, in_flight=float(in_flight))
            visit = self._measure(place, min(SHORT_STEP_S, self._plan.step_s))
            if visit is None:
                return in_flight  # the run was stopped
            rate = visit.requests_per_s or 0.0
            self._progress.message(
                f"{title}: {format_significant(rate, 4)} requests/s, {visit.errors:.0f} failed"
            )
            if in_flight > 1 and visit.failed_share > self._plan.tolerate_failures:
                return last_accepted
            if rate < LEAST_GAIN * rate_before or in_flight == self._plan.most_in_flight:
                return in_flight
            last_accepted, rate_before = in_flight, rate
            in_flight = min(2 * in_flight, self._plan.most_in_flight)

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
        in_flight = int(place.in_flight or 1)
        path = split_base(self._work.call.url)[1]
        urls = {name: address + path for name, address in direct.items()}
        call = replace(self._work.call, connections=in_flight, direct=urls)
        # new connections, so that those of fewer replicas do not pin the load to them
        load = replace(self._work, call=call).make_load(seen=course.attempts.append)
        with closing(load), watch_metrics(addresses, call) as looks:
            began = self._clock()

            def stopping() -> bool:
                return self._stop.asked() or course.look(self._clock() - began)

            def note_progress(ended: int, failed: int) -> None:
                doing = "warming up" if course.from_s is None else "measuring"
                self._progress.note(f"{place.file}: {doing}, {ended} ended, {failed} failed")

            self._progress.phase(f"{place.file}: under load")
            order = LoadOrder(
                LONGEST_LOAD_S,
                parallel=in_flight,
                patience_s=self._plan.timeout_s + EXTRA_PATIENCE_S,
            )
            result = load.measure(order, stopping, note_progress)
        if not course.is_over:
            return None
        begin_s, end_s = course.from_s or 0.0, course.until_s
        metrics = metrics_between(looks, began + begin_s, began + end_s)
        middle_s = began - self._began + (begin_s + end_s) / 2
        return measure_visit(course, result, replace(place, middle_s=middle_s), metrics)

    def _await_answer(self, title: str) -> None:
        """Wait until the service answers a request. WaitTimeout with the reason."""
        began_s = self._clock()
        while not self._stop.asked():
            with closing(self._work.make_load()) as load:
                outcome = send_one(load, self._plan.timeout_s, self._stop.asked)
            waited_s = self._clock() - began_s
            if outcome == OK:
                return
            if waited_s > self._ready_s or outcome in FINAL_OUTCOMES:
                cause, hint = explain_outcome(outcome)
                raise WaitTimeout(
                    f"with {title} no request succeeded within {waited_s:.0f} s {cause}", hint=hint
                )
            self._sleep(LOOK_S)
