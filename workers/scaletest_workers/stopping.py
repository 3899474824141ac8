"""How a worker stops, and how a request that runs is ended before its time.

The first signal begins the stop: the worker takes no more, and the running request may end within
the grace period. The second signal, or the end of that period, forces it: the workload is ended and
its request goes back. RQ's stop command ends one workload without stopping the worker.
"""

import os
import signal
import threading
import time

from rq import SimpleWorker

from scaletest.processes.wake import Wake

# A second signal within this time is a copy of the first: a pool and the terminal both pass on the
# same Ctrl-C.
SAME_SIGNAL_S = 0.5


class StopState:
    """How far one worker's stop has come.

    What RQ sets itself, the wish to stop and the job of its stop command, stays in RQ's worker.
    """

    def __init__(self, worker: SimpleWorker, grace_s: float) -> None:
        self._worker = worker
        self._grace_s = grace_s
        self.draining = Wake()  # awake once no more requests are taken
        self.interrupt = Wake()  # awake while the workload must end
        # whether that is for the stop of the worker, so that its request goes back
        self.forced = False
        self._began_s = 0.0
        self._grace: threading.Timer | None = None

    @property
    def requested(self) -> bool:
        """Whether this worker was told to stop."""
        return self._worker._stop_requested

    def request(self) -> None:
        """Note that this worker was told to stop."""
        self._worker._stop_requested = True

    def begin(self) -> None:
        """Begin the grace period, which ends with a signal to this process."""
        self._began_s = time.monotonic()  # first, since a copy of the signal may come in between
        self.request()
        self.draining.set()
        self._grace = threading.Timer(self._grace_s, os.kill, (os.getpid(), signal.SIGTERM))
        self._grace.daemon = True
        self._grace.start()

    def force(self) -> bool:
        """End the workload at the second signal; False when it is a copy of the first."""
        if not self.requested:  # RQ replaces its handler before it calls the one of the first
            self.request()
            return False
        if time.monotonic() - self._began_s < min(SAME_SIGNAL_S, self._grace_s):
            return False
        self.forced = True
        self.interrupt.set()
        return True

    def end(self) -> None:
        """End the grace period."""
        if self._grace is not None:
            self._grace.cancel()

    @property
    def stopped_job(self) -> str | None:
        """The job that RQ's stop command names, until it has ended."""
        return self._worker._stopped_job_id

    def stop_job(self, request: str) -> None:
        """Note that RQ's stop command names this request, which runs."""
        self._worker._stopped_job_id = request

    def was_commanded(self, request: str) -> bool:
        """Return whether RQ's command interrupted this request, not the end of this worker.

        The command is forgotten then.
        """
        commanded = self.stopped_job == request and not self.forced
        self.forget_job()
        return commanded

    def forget_job(self) -> None:
        """Forget RQ's command to stop what has ended by now; it must not end what runs next."""
        self._worker._stopped_job_id = None
        self.interrupt.clear()
        if self.forced:  # looked at afterwards, since the signal may come in between
            self.interrupt.set()
