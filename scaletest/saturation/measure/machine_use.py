"""Who uses the cores of this machine while a load runs, and where the time of a service on it goes.

Both are told apart by their processes: the tester is this process with what it started, the service
whoever listens on the port, with what it started. A thread looks; it may take as little of a core
as a worker's looks.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from scaletest.load.level_load import LevelLoad, LoadOrder, LoadResult, NoteProgress
from scaletest.model import Activity, State
from scaletest.model.measurement import MOST_ACTIVITIES, MachineUse
from scaletest.observe.blocking import Blocking
from scaletest.observe.node.used_time import cpu_used_s, machine_time, own_processes_cpu_s
from scaletest.observe.sampler import RequestSampler
from scaletest.observe.sampling import read_own_schedule
from scaletest.observe.sockets import Sockets
from scaletest.observe.tree import Tree

# Seconds between two looks at what is due, at most.
LONGEST_PAUSE_S = 0.5


class WatchedMachine:
    """The load, and what this machine does meanwhile."""

    def __init__(
        self, load: LevelLoad, servers: Callable[[], Sequence[int]], port: int = 0
    ) -> None:
        """Watch this machine during each step of a load.

        servers: finds the first processes of the service, none when it is elsewhere. port: on which
        they serve.
        """
        self._load, self._servers, self._port = load, servers, port

    def measure(
        self,
        order: LoadOrder,
        stopping: Callable[[], bool],
        note_progress: NoteProgress,
    ) -> LoadResult:
        """Measure one step; see `LevelLoad.measure`."""
        try:
            watch = _MachineWatch(list(self._servers())[:MOST_ACTIVITIES], self._port)
        except (OSError, ValueError):  # without /proc the use of this machine is unknown
            return self._load.measure(order, stopping, note_progress)
        try:
            result = self._load.measure(order, stopping, note_progress)
        finally:
            use = watch.close()  # ends its thread also when the load fails
        if use is not None and result.seconds > 0:
            busy_s = sum(attempt.ended_s - attempt.sent_s for attempt in result.samples)
            activities = [
                idle_between_requests(activity, busy_s / result.seconds)
                for activity in use.activities
            ]
            use = replace(use, activities=tuple(activities))
        return replace(result, around=use)

    def close(self) -> None:
        """End the load."""
        self._load.close()


class _MachineWatch:
    """Watches one step, from now on: a thread looks at the processes of a service."""

    def __init__(self, servers: Sequence[int], port: int) -> None:
        self._servers, self._port = servers, port
        # all figures are taken now and when the step ends
        self._began, self._machine_before = time.monotonic(), machine_time()
        self._tester_cpu_s, self._service_cpu_s = own_processes_cpu_s(), cpu_used_s(servers)
        self._schedule_before = read_own_schedule()
        self._has_ended = threading.Event()
        self._activities: tuple[Activity, ...] = ()
        self._thread = threading.Thread(
            target=self._sample_processes, name="scaletest-looks", daemon=True
        )
        if servers:
            self._thread.start()

    def close(self) -> MachineUse | None:
        """Return what happened since; None when that cannot be told."""
        self._has_ended.set()
        if self._servers:
            self._thread.join()
        passed_s = time.monotonic() - self._began
        try:
            machine = machine_time()
        except OSError:
            return None
        after = read_own_schedule()
        waited_s = (
            after.wait_s - self._schedule_before.wait_s if after and self._schedule_before else 0.0
        )

        def cores(seconds: float) -> float:
            return max(0.0, seconds) / passed_s

        return MachineUse(
            cores=float(machine.cores),
            busy=cores(machine.busy_s - self._machine_before.busy_s),
            tester=cores(own_processes_cpu_s() - self._tester_cpu_s),
            service=cores(cpu_used_s(self._servers) - self._service_cpu_s),
            waited=min(1.0, cores(waited_s)),
            activities=self._activities,
        )

    def _sample_processes(self) -> None:
        """Sample the service's processes, each when it is due, until the step ends."""
        sampler = RequestSampler()
        blocking = Blocking(Sockets(served=self._port), denied=sampler.tell)
        trees = [Tree(pid, blocking, serves=True) for pid in self._servers]
        watches = [sampler.begin() for _ in trees]
        for watch, tree in zip(watches, trees, strict=True):
            watch.resume(tree)
        while True:
            # the sampler says when each process is due next, so that looks cost little
            due = min(watch.due for watch in watches)
            if self._has_ended.wait(max(0.0, min(LONGEST_PAUSE_S, due - time.monotonic()))):
                break
            for watch in watches:
                if watch.due <= time.monotonic():
                    watch.look()
        activities = [watch.close(None) for watch in watches]
        self._activities = tuple(activity for activity in activities if activity is not None)
        for tree in trees:
            tree.close()


def idle_between_requests(activity: Activity, in_flight: float) -> Activity:
    """Count as idle what a service waits for locks while it has no request: its pool does.

    in_flight: mean number of requests.
    """
    seconds = defaultdict(float, activity.seconds)
    idle_s = seconds[State.LOCK] * max(0.0, 1.0 - in_flight)
    seconds[State.LOCK] -= idle_s
    seconds[State.IDLE] += idle_s
    return replace(activity, seconds=dict(seconds))
