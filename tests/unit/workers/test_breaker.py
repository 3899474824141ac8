"""The breaker: pure, so every case is cheap."""

from hypothesis import given
from hypothesis import strategies as st

from scaletest.model import Outcome, Reason
from scaletest_workers.breaker import FAILURES_TO_SUSPECT, LONGEST_DELAY_S, Breaker
from scaletest_workers.workloads.base import SUCCEEDED, Result

BAD = Result(Outcome.FAILED, Reason.EXIT)


def test_a_run_of_quick_failures_makes_suspect_and_success_clears() -> None:
    breaker = Breaker()
    changes = [breaker.note(BAD, 0.01) for _ in range(FAILURES_TO_SUSPECT)]
    assert changes == [False] * (FAILURES_TO_SUSPECT - 1) + [True]
    assert breaker.suspect
    assert breaker.note(SUCCEEDED, 0.01)
    assert (breaker.suspect, breaker.delay_s) == (False, 0.0)


def test_slow_failures_and_the_requests_own_faults_do_not_count() -> None:
    breaker = Breaker()
    for _ in range(50):
        breaker.note(BAD, 10.0)
        breaker.note(Result(Outcome.TIMED_OUT), 0.01)
        breaker.note(Result(Outcome.FAILED, Reason.POISON), 0.0)
    assert not breaker.suspect


@given(st.integers(0, 5000))
def test_delays_grow_and_end(count: int) -> None:
    breaker = Breaker()
    delays = []
    for _ in range(count):
        breaker.note(BAD, 0.0)
        delays.append(breaker.delay_s)
    assert delays == sorted(delays)
    assert all(0 <= delay <= LONGEST_DELAY_S for delay in delays)
