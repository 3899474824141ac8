"""scaletest.Client without a Redis: who gets which answer, when, and what ends it."""

import asyncio
import concurrent.futures
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import scaletest
from scaletest import broker
from scaletest.api import words
from scaletest.model import Reply, Request
from tests.conftest import eventually
from tests.unit.fakes import FakeClient, replied


def echo(request: Request) -> Reply:
    """A reply that holds the request's only argument."""
    return replied(request.id, figures={"argument": request.arguments[0]})


class FakeBroker(FakeClient):
    """A broker's client that notes calls of several threads at once, and fails where it is told."""

    def __init__(self, answer: Callable[[Request], Reply] | None = None, **options: Any) -> None:
        super().__init__(answer, **options)
        self.error: Exception | None = None
        self.recovered: list[dict[str, Request]] = []
        self.at_once = 0
        self._turn = threading.Lock()

    def submit(self, requests: Sequence[Request]) -> int:
        self.at_once += not self._turn.acquire(blocking=False)
        time.sleep(0)  # another thread may come in here
        accepted = super().submit(requests)
        if self._turn.locked():
            self._turn.release()
        return accepted

    def replies(self, timeout_s: float) -> list[Reply]:
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        return super().replies(timeout_s)

    def recover(self, pending: Any, *, force: bool = False) -> int:
        self.recovered.append(pending)
        return 0


Make = Callable[..., tuple[scaletest.Client, FakeBroker]]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Make a client of a fake broker; `answer` is None where the test answers."""
    monkeypatch.setattr("scaletest.api.client.longer_delay", lambda _: 0.001)
    monkeypatch.setattr("scaletest.api.client.LONGEST_DELAY_S", 0.002)
    monkeypatch.setattr(broker, "connect", lambda _: SimpleNamespace(close=lambda: None))
    state = SimpleNamespace(state=lambda _: SimpleNamespace(maximum=0))
    monkeypatch.setattr(broker, "Queues", lambda _: state)
    clients: list[scaletest.Client] = []

    def client_of(
        answer: Callable[[Request], Reply] | None = None, **options: Any
    ) -> tuple[scaletest.Client, FakeBroker]:
        fake = FakeBroker(answer, **options)
        monkeypatch.setattr(broker, "Client", lambda *_, **__: fake)
        clients.append(scaletest.Client("redis://nowhere"))
        return clients[-1], fake

    yield client_of
    for client in clients:
        client.close()


def test_run_gives_the_reply_and_passes_numbers_and_paths_as_text(make: Make) -> None:
    client, fake = make(echo)
    reply = client.run("q", Path("in.mp4"), 2, 0.5, "text", time_limit=60)
    assert (reply.ok, reply.figures) == (True, {"argument": "in.mp4"})
    (request,) = fake.submitted
    assert request == Request(reply.id, "q", ("in.mp4", "2", "0.5", "text"), 60.0)


@pytest.mark.parametrize("argument", [True, None, b"bytes", ["list"], "\0"])
def test_what_is_no_argument_is_refused(make: Make, argument: Any) -> None:
    client, fake = make(echo)
    with pytest.raises(scaletest.InvalidValue, match="argument"):
        client.run("q", argument)
    with pytest.raises(scaletest.InvalidValue):
        next(client.map("q", [[argument]]))
    assert fake.submitted == []


@pytest.mark.parametrize("items", [[b"0.1"], [None], [{"a": 1}], [5, bytearray(2)], "abc", b"abc"])
def test_what_is_no_item_is_refused(make: Make, items: Any) -> None:
    """Bytes would be an argument a byte, and a text an item a character."""
    client, _ = make(echo)
    with pytest.raises(scaletest.InvalidValue, match="item") as caught:
        list(client.map("q", items))
    assert "list of" in caught.value.hint


def test_a_reply_has_the_arguments_of_its_request(make: Make) -> None:
    client, _ = make(echo)
    assert client.run("q", Path("in.mp4"), 2).arguments == ("in.mp4", "2")
    items = ["a", ("b", 0.5), [Path("c"), Fraction(1, 4)]]
    replies = list(client.map("q", items, in_flight=2))
    assert {reply.arguments for reply in replies} == {("a",), ("b", "0.5"), ("c", "1/4")}
    assert all(reply.figures["argument"] == reply.arguments[0] for reply in replies)
    # what others read of a reply does not have them
    assert not any("arguments" in reply.to_dict() for reply in replies)


def test_replies_go_to_their_futures_in_any_order(make: Make) -> None:
    client, fake = make()
    futures = [client.submit("q", number) for number in range(3)]
    for request in reversed(fake.submitted):
        fake.reply(echo(request))
    replies = [future.result(60) for future in futures]
    assert [reply.figures["argument"] for reply in replies] == ["0", "1", "2"]
    assert len(list(concurrent.futures.as_completed(futures, 60))) == 3


def test_a_cancelled_request_leaves_the_queue_and_its_late_reply_is_dropped(make: Make) -> None:
    client, fake = make()
    future = client.submit("q", "first")
    assert future.cancel()
    assert fake.cancelled == [future_id(fake, 0)]
    done, _ = concurrent.futures.wait([future], timeout=60)
    assert done == {future}
    fake.reply(echo(fake.submitted[0]))
    second = client.submit("q", "second")
    fake.reply(echo(fake.submitted[1]))
    assert second.result(60).figures == {"argument": "second"}
    assert not second.cancel()


def future_id(fake: FakeBroker, number: int) -> str:
    return fake.submitted[number].id


def test_a_request_that_waited_too_long_is_cancelled(make: Make) -> None:
    client, fake = make()
    with pytest.raises(
        scaletest.WaitTimeout, match=r"0\.01 s; the request was cancelled"
    ) as raised:
        client.run("q", timeout=0.01)
    assert "queue show" in raised.value.hint
    assert fake.cancelled == [future_id(fake, 0)]


def test_a_full_queue_refuses_a_request(make: Make) -> None:
    client, _ = make(room=0)
    with pytest.raises(scaletest.QueueFull, match="queue 'q' is full"):
        client.submit("q")


def test_futures_work_with_asyncio(make: Make) -> None:
    client, fake = make(echo)

    async def both() -> list[Reply]:
        futures = [asyncio.wrap_future(client.submit("q", number)) for number in range(2)]
        return await asyncio.gather(*futures)

    assert [reply.figures["argument"] for reply in asyncio.run(both())] == ["0", "1"]

    async def cancelled() -> None:
        fake._answer = None
        task = asyncio.ensure_future(asyncio.wrap_future(client.submit("q", 2)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(cancelled())
    assert fake.cancelled == [future_id(fake, 2)]


# -- map
# --------------------------------------------------------------------------------------------------


def test_map_keeps_so_many_in_flight_and_takes_items_as_replies_come(make: Make) -> None:
    client, fake = make()
    items = iter([("a", 1), "b", ["c"], "d"])
    replies = client.map("q", items, in_flight=2, time_limit=5)
    assert fake.submitted == []
    waiting = ThreadPoolExecutor(1)
    first = waiting.submit(next, replies)
    eventually(lambda: len(fake.submitted) == 2)
    fake.reply(echo(fake.submitted[1]))
    assert first.result(60).figures == {"argument": "b"}
    second = waiting.submit(next, replies)
    eventually(lambda: len(fake.submitted) == 3)
    assert [request.arguments for request in fake.submitted] == [("a", "1"), ("b",), ("c",)]
    assert next(items) == "d"
    fake.reply(echo(fake.submitted[0]))
    fake.reply(echo(fake.submitted[2]))
    assert {second.result(60).id, *(reply.id for reply in replies)} == {"c-1", "c-3"}
    waiting.shutdown()


def answer_first_of_three(replies: Iterator[Reply], fake: FakeBroker) -> None:
    """Take the first reply of a map that has three requests in flight."""
    with ThreadPoolExecutor(1) as waiting:
        first = waiting.submit(next, replies)
        eventually(lambda: len(fake.submitted) == 3)
        fake.reply(echo(fake.submitted[0]))
        first.result(60)


def test_map_slows_down_at_a_full_queue_and_loses_no_item(make: Make) -> None:
    client, fake = make(echo, room=3)
    replies = client.map("q", range(10), in_flight=4)
    arguments = [next(replies).figures["argument"] for _ in range(3)]
    fake.room = 100
    arguments += [reply.figures["argument"] for reply in replies]
    assert arguments == [str(number) for number in range(10)]


def test_map_waits_for_a_queue_that_is_full_of_others_requests(make: Make) -> None:
    client, fake = make(echo, room=0)
    with ThreadPoolExecutor(1) as waiting:
        counted = waiting.submit(lambda: len(list(client.map("q", range(5)))))
        eventually(lambda: fake.waits)
        fake.room = 100
        assert counted.result(60) == 5


@pytest.mark.parametrize("end", ["closed", "items"])
def test_what_map_has_in_flight_at_its_early_end_is_cancelled(make: Make, end: str) -> None:
    client, fake = make()

    def items() -> Iterator[str]:
        yield from "abc"
        if end == "items":
            raise ZeroDivisionError

    replies: Any = client.map("q", items(), in_flight=3)
    answer_first_of_three(replies, fake)
    if end == "closed":
        replies.close()
    else:
        with pytest.raises(ZeroDivisionError):
            next(replies)
    assert sorted(fake.cancelled) == ["c-2", "c-3"]
    assert client._pending == {}


def test_an_interrupt_behind_the_submission_takes_the_requests_back(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, fake = make()
    submit = fake.submit

    def interrupted(requests: Sequence[Request]) -> int:
        submit(requests)
        raise KeyboardInterrupt

    monkeypatch.setattr(fake, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(client.map("q", list("abc"), in_flight=3))
    assert sorted(fake.cancelled) == ["c-1", "c-2", "c-3"]
    assert client._pending == {}


def test_an_iterator_that_is_collected_in_the_middle_of_a_call_is_cancelled(make: Make) -> None:
    client, fake = make()
    replies: Any = client.map("q", list("abc"), in_flight=3)
    answer_first_of_three(replies, fake)
    # when garbage collection ends it in a thread that has the client for itself
    with client._hold_broker():
        replies.close()
    # expect no deadlock, and that another thread cancels
    eventually(lambda: sorted(fake.cancelled) == ["c-2", "c-3"])
    assert client._pending == {}


def test_map_checks_its_options_before_anything_is_submitted(make: Make) -> None:
    client, _ = make()
    with pytest.raises(scaletest.InvalidValue, match="in_flight"):
        client.map("q", [], in_flight=0)
    assert list(client.map("q", [])) == []


# -- threads
# --------------------------------------------------------------------------------------------------


def test_many_threads_each_get_their_own_replies(make: Make) -> None:
    client, fake = make(echo)

    def work(thread: int) -> None:
        for number in range(100):
            text = f"{thread}-{number}"
            assert client.run("q", text).figures == {"argument": text}
        texts = {f"{thread}+{number}" for number in range(100)}
        assert {reply.figures["argument"] for reply in client.map("q", texts, in_flight=7)} == texts

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert len(fake.submitted) == 8 * 200
    assert (fake.at_once, client._pending) == (0, {})


def test_requests_that_are_cancelled_while_replies_come_end_once(make: Make) -> None:
    client, fake = make()
    futures = [client.submit("q", number) for number in range(500)]
    with ThreadPoolExecutor(4) as threads:
        threads.map(fake.reply, map(echo, fake.submitted))
        results = list(threads.map(Future.cancel, reversed(futures)))
    done, _ = concurrent.futures.wait(futures, timeout=60)
    assert done == set(futures)
    assert [future.cancelled() for future in reversed(futures)] == results


def test_a_callback_may_submit(make: Make) -> None:
    client, _ = make(echo)
    chained: Future[Reply] = Future()

    def follow(future: Future[Reply]) -> None:
        client.submit("q", "second").add_done_callback(
            lambda second: chained.set_result(second.result())
        )

    client.submit("q", "first").add_done_callback(follow)
    assert chained.result(60).figures == {"argument": "second"}


# -- the end, and errors
# --------------------------------------------------------------------------------------------------


def test_the_end_of_the_context_waits_for_what_is_in_flight(make: Make) -> None:
    client, fake = make()
    with client:
        future = client.submit("q", "a")
        threading.Timer(0.05, lambda: fake.reply(echo(fake.submitted[0]))).start()
    assert future.result(0).ok
    assert (fake.cancelled, fake.closed) == ([], True)


def test_an_exception_cancels_what_is_in_flight(make: Make) -> None:
    client, fake = make()
    with pytest.raises(ZeroDivisionError), client:
        futures = [client.submit(queue) for queue in ("q", "other", "q")]
        raise ZeroDivisionError
    assert sorted(fake.cancelled) == ["c-1", "c-2", "c-3"]
    for future in futures:
        with pytest.raises(scaletest.UsageError, match="closed before the reply came"):
            future.result(0)
    assert fake.closed


def test_a_callback_may_close_the_client(make: Make) -> None:
    client, fake = make()
    first, second = client.submit("q", "a"), client.submit("q", "b")
    first.add_done_callback(lambda _: client.close())
    fake.reply(echo(fake.submitted[0]))
    with pytest.raises(scaletest.UsageError, match="closed before the reply came"):
        second.result(60)
    assert eventually(lambda: fake.closed)


def test_a_callback_that_waits_for_a_reply_is_refused(make: Make) -> None:
    """It would wait for ever: the thread that calls it is the one that reads replies."""
    client, _ = make(echo)
    errors: list[str] = []

    def wait(_: Any) -> None:
        for waiting in (lambda: client.run("q", "b"), lambda: list(client.map("q", ["cd"]))):
            with pytest.raises(scaletest.UsageError, match="callback") as caught:
                waiting()
            errors.append(caught.value.hint)

    client.submit("q", "a").add_done_callback(wait)
    assert eventually(lambda: len(errors) == 2)
    assert client.run("q", "e").ok


def test_an_interrupted_call_takes_its_request_back(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, fake = make()

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", interrupt)
    with pytest.raises(KeyboardInterrupt):
        client.run("q", "a")
    assert fake.cancelled == [future_id(fake, 0)]


def test_a_callback_that_exits_does_not_end_the_reading(make: Make) -> None:
    client, fake = make()
    with client:
        first, second = client.submit("q", "a"), client.submit("q", "b")
        first.add_done_callback(lambda _: sys.exit(1))
        fake.reply(echo(fake.submitted[0]))
        fake.reply(echo(fake.submitted[1]))
        assert second.result(60).ok


def test_a_closed_client_says_so(make: Make) -> None:
    client, _ = make(echo)
    replies = client.map("q", range(3), in_flight=1)
    next(replies)
    client.close()
    client.close()
    for call in (
        lambda: client.run("q"),
        lambda: client.submit("q", keep=True),
        lambda: next(replies),
        lambda: client.declare("q"),
        lambda: client.result("c-1"),
    ):
        with pytest.raises(scaletest.UsageError, match="is closed") as raised:
            call()
        assert raised.value.hint == "make a new scaletest.Client"


def test_a_forked_process_is_told_to_make_its_own_client(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, fake = make()
    future = client.submit("q")
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: -1)
        client._calling.acquire()  # as another thread may have at the fork
        for call in (lambda: client.run("q"), lambda: client.result("c-1")):
            with pytest.raises(scaletest.UsageError, match="created in another process"):
                call()
        with client:
            pass
        client.close()
        assert client._cancel("q", ["c-1"]) == []
        client._calling.release()
    assert (fake.cancelled, fake.closed) == ([], False)
    fake.reply(replied(future_id(fake, 0)))
    assert future.result(60).ok


def test_a_redis_that_is_away_for_too_long_fails_what_waits_and_nothing_later(make: Make) -> None:
    client, fake = make()
    future = client.submit("q")
    fake.error = scaletest.Unreachable("Redis was away for 5 s", hint="start it again")
    with pytest.raises(scaletest.Unreachable, match="away for 5 s"):
        future.result(60)
    fake._answer = echo
    assert client.run("q", "later").figures == {"argument": "later"}
    assert fake.recovered


def test_an_error_of_redis_reaches_the_caller_with_a_hint(make: Make) -> None:
    client, fake = make()
    replies = client.map("q", ["a"])
    threading.Timer(0.02, lambda: setattr(fake, "error", OSError("broken"))).start()
    with pytest.raises(scaletest.Unreachable, match="redis://nowhere cannot be reached") as raised:
        next(replies)
    assert raised.value.hint


def test_map_yields_what_came_before_an_error(make: Make) -> None:
    client, fake = make()
    replies = client.map("q", ["a", "b", "c"])
    with ThreadPoolExecutor(1) as waiting:
        first = waiting.submit(next, replies)
        eventually(lambda: len(fake.submitted) == 3)
        answers = client._pending["c-1"].deliver
        client._forget(["c-1", "c-2", "c-3"])
        answers(echo(fake.submitted[0]))
        first.result(60)
    answers(echo(fake.submitted[1]))
    answers(scaletest.Unreachable("gone"))
    assert next(replies).id == "c-2"
    with pytest.raises(scaletest.Unreachable, match="gone"):
        next(replies)


def test_a_queue_that_redis_forgot_fails_its_own_requests_only(make: Make) -> None:
    client, fake = make()
    lost, other = client.submit("lost", "a"), client.submit("q", "b")
    fake.error = scaletest.UndeclaredQueue("lost", ["q"])
    with pytest.raises(scaletest.UndeclaredQueue, match="'lost' is not declared"):
        lost.result(60)
    fake.reply(echo(fake.submitted[1]))
    assert other.result(60).figures == {"argument": "b"}


def test_an_error_of_ours_is_logged_and_the_reading_goes_on(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    client, fake = make()
    future = client.submit("q", "a")
    with caplog.at_level(logging.ERROR, "scaletest.client"):
        fake.error = ZeroDivisionError("a bug")
        eventually(lambda: fake.recovered)
    assert "interrupted the reading" in caplog.text
    assert [*fake.recovered[0]] == [future_id(fake, 0)]
    fake.reply(echo(fake.submitted[0]))
    assert future.result(60).ok


@pytest.mark.parametrize("patience", [-1.0, float("nan"), "long"])
def test_patience_is_a_number_of_seconds(patience: Any) -> None:
    with pytest.raises(scaletest.InvalidValue, match="patience"):
        scaletest.Client("redis://nowhere", patience=patience)


def test_a_bad_url_says_what_to_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCALETEST_REDIS_URL", "http://nowhere")
    with pytest.raises(scaletest.InvalidValue, match="cannot be read") as raised:
        scaletest.Client()
    assert "redis://HOST:PORT/DB" in raised.value.hint


@pytest.mark.parametrize("timeout", [-1, "3", float("nan")])
def test_a_wrong_timeout_submits_nothing(make: Make, timeout: Any) -> None:
    client, fake = make()
    with pytest.raises(scaletest.InvalidValue, match="timeout is "):
        client.run("q", "a", timeout=timeout)
    with pytest.raises(scaletest.InvalidValue, match="timeout is "):
        client.result("r", timeout=timeout)
    assert fake.submitted == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("correct <redis_url> (X)", "correct redis_url (X)"),
        ("set extraArguments: [--per-device, K]", "set extraArguments: [--per-device, K]"),
        ("or try <limit>: scaletest worker --once", "or try limit: scaletest worker --once"),
        ("with: scaletest queue add q", 'with: client.declare("q")'),
        ("with: scaletest queue add q --maximum N", 'with: client.declare("q", maximum=N)'),
        ("submitted without <keep>", "submitted without keep=True"),
    ],
)
def test_errors_name_what_python_has(text: str, expected: str) -> None:
    with pytest.raises(scaletest.Unreachable) as caught, words.python_names():
        raise scaletest.Unreachable(text, hint=text)
    assert (str(caught.value), caught.value.hint) == (expected, expected)
    assert caught.value.__notes__ == [expected]
