"""Turns and shared copies: few read at a time, and nobody waits for a reader that hangs."""

import threading

import pytest

from scaletest.model.errors import Unreachable
from scaletest.pages.turns import ReadingTurns, SharedCopy


def test_a_turn_that_does_not_come_is_an_error_and_others_go_on() -> None:
    turns = ReadingTurns(2, 0.0)
    refused = pytest.raises(Unreachable, match="too many requests wait")
    with turns.take(), turns.take(), refused, turns.take():
        pass
    with turns.take(), turns.take():
        pass


def test_a_turn_comes_back_when_its_holder_fails() -> None:
    turns = ReadingTurns(1, 0.0)
    for _ in range(3):
        with pytest.raises(KeyError), turns.take():
            raise KeyError


class Counted:
    """Counts its readings; an odd one fails when told so."""

    def __init__(self) -> None:
        self.count, self.now, self.fails = 0, 100.0, False

    def __call__(self) -> int:
        self.count += 1
        if self.fails:
            raise Unreachable(f"away {self.count}", hint="start it")
        return self.count


def shared(read: Counted, wait_s: float = 0.0) -> SharedCopy[int]:
    return SharedCopy(read, 1.0, wait_s=wait_s, clock=lambda: read.now)


def test_a_copy_is_shared_until_it_is_too_old() -> None:
    read = Counted()
    copy = shared(read)
    assert [copy.get(), copy.get()] == [1, 1]
    read.now += 0.999
    assert copy.get() == 1
    read.now += 0.001
    assert copy.get() == 2


def test_an_outage_is_not_kept() -> None:
    read = Counted()
    read.fails = True
    copy = shared(read)
    with pytest.raises(Unreachable, match="away 1"):
        copy.get()
    read.fails = False
    assert copy.get() == 2


def test_who_comes_while_somebody_reads_gets_that_copy() -> None:
    read, entered, free = Counted(), threading.Event(), threading.Event()

    def slow() -> int:
        entered.set()
        assert free.wait(120)
        return read()

    copy = SharedCopy(slow, 1.0, wait_s=120.0, clock=lambda: read.now)
    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(copy.get())) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert entered.wait(120)
    free.set()
    for thread in threads:
        thread.join()
    assert answers == [1] * 8


def test_who_will_not_wait_is_refused_while_the_reader_hangs() -> None:
    entered, free = threading.Event(), threading.Event()

    def hangs() -> int:
        entered.set()
        assert free.wait(120)
        return 1

    copy = SharedCopy(hangs, 1.0, wait_s=0.0)
    reader = threading.Thread(target=copy.get)
    reader.start()
    assert entered.wait(120)
    with pytest.raises(Unreachable, match="Redis is slow"):
        copy.get()
    free.set()
    reader.join()
    assert copy.get() == 1
