"""States of pods."""

from scaletest.cluster.pods import first_failing, pod_state


def test_the_pod_that_restarts_is_looked_at_first() -> None:
    waits = {
        "name": "worker",
        "restartCount": 3,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "m"}},
    }
    rows = [
        {"metadata": {"name": "new"}, "status": {"phase": "Pending"}},
        {"metadata": {"name": "bad"}, "status": {"phase": "Running", "containerStatuses": [waits]}},
    ]
    failing = first_failing([pod_state(row) for row in rows])
    assert (failing.name, failing.container, failing.restarts) == ("bad", "worker", 3)
    assert "CrashLoopBackOff m" in str(failing)
