"""Requests from Python: run one and wait, submit many as futures, or map a queue over items.

The calling threads submit, one at a time, since the broker's client numbers its calls. One thread
reads the replies of all requests and hands each to whoever waits for it.
"""

import logging
import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from numbers import Real
from queue import Empty, SimpleQueue
from typing import Literal, NamedTuple, Self, overload

from scaletest import broker
from scaletest.api.words import as_text, python_names
from scaletest.broker.jobs import Retry, make_schedule, wait_for_stored_reply
from scaletest.broker.redis_errors import explain_redis_errors
from scaletest.broker.retrying import LONGEST_DELAY_S, longer_delay
from scaletest.model import Reply, Request, checks
from scaletest.model.errors import (
    InvalidValue,
    QueueFull,
    ScaletestError,
    UndeclaredQueue,
    Unreachable,
    UsageError,
    WaitTimeout,
)
from scaletest.model.record import Schedule

logger = logging.getLogger("scaletest.client")

REDIS_URL = "redis://127.0.0.1:6379/0"
# For one read; also the time until a request that Redis lost is noticed.
READ_TIMEOUT_S = 2.0

# What a workload takes; numbers and paths are passed as their text.
Argument = str | int | float | os.PathLike[str]
# What `map` makes a request of: its only argument, or all of them.
Item = Argument | Sequence[Argument]
# A reply, or why there will be none.
Answer = Reply | ScaletestError


class _Pending(NamedTuple):
    """A request without a reply, and what takes its answer."""

    request: Request
    deliver: Callable[[Answer], None]


class Client:
    """Submits requests to queues, and gives their replies. For any number of threads.

    redis_url: by default the variable SCALETEST_REDIS_URL, else the Redis of this machine.
    patience: for how many seconds Redis may be away; None: for any time.

    One thread reads the replies of all requests, however many are in flight. While Redis is away
    submitting waits; what a restarted Redis forgot is submitted again, and each request gets one
    reply. Use the client as a context: its end waits for what is in flight, or cancels it after an
    exception. A client belongs to the process that made it: after a fork the child makes its own.

    Example:
        with scaletest.Client("redis://127.0.0.1:6379/0") as client:
            client.declare("media")
            reply = client.run("media", "in.mp4", time_limit=60)
            print(reply.outcome, reply.run_s, reply.figures)

    Raises:
        InvalidValue: the URL cannot be read, or `patience` is no number of seconds.
        Unreachable: Redis cannot be reached, or rejects the login.
        UsageError: a method was called after `close`, or in another process.
    """

    def __init__(self, redis_url: str | None = None, *, patience: float | None = None) -> None:
        self._url = redis_url or os.environ.get("SCALETEST_REDIS_URL") or REDIS_URL
        if patience is not None:
            patience = checks.seconds(patience, "patience")
        with python_names(), explain_redis_errors(self._url):
            self._redis = broker.connect(self._url)
            self._broker = broker.Client(self._redis, patience_s=patience)
        self._process = os.getpid()
        self._pending: dict[str, _Pending] = {}
        self._calling = threading.Lock()
        # queue and ids of requests that an iterator of `map` left behind in the middle of a call
        self._left_behind: SimpleQueue[tuple[str, list[str]]] = SimpleQueue()
        self._closing = threading.Event()
        self._answered = threading.Condition()
        self._reader = threading.Thread(
            target=self._read_replies, name="scaletest-replies", daemon=True
        )
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and self._is_ours:
                with self._answered:
                    self._answered.wait_for(lambda: not self._pending)
        finally:
            self.close()

    def declare(self, queue: str, *, maximum: int = 0, note: str = "") -> None:
        """Declare a queue, or change it.

        maximum: of waiting requests; 0 for no limit.
        note: what the queue is for.

        Example:
            client.declare("media", maximum=1000)

        Raises:
            InvalidValue: the name or the maximum breaks its rule.
            Unreachable: Redis cannot be reached.
        """
        with self._hold_broker():
            broker.Queues(self._redis).add(queue, maximum, note)

    def run(
        self,
        queue: str,
        *arguments: Argument,
        time_limit: float = 0.0,
        timeout: float | None = None,
    ) -> Reply:
        """Submit one request and wait for its reply, whatever its outcome.

        arguments: for the workload, as on the command line; numbers and paths are passed as text.
        time_limit: seconds that the workload may run; 0: no limit but the worker's.
        timeout: seconds to wait for the reply, then the request is cancelled; None: for ever.

        Example:
            reply = client.run("media", "in.mp4", time_limit=60)
            if not reply.ok:
                print(reply.outcome, reply.error)

        Raises:
            InvalidValue: an argument, `time_limit` or `timeout` breaks its rule.
            QueueFull: the queue holds its maximum already.
            UndeclaredQueue: the queue is not declared, or Redis forgot it.
            Unreachable: Redis was away for longer than the client's patience.
            UsageError: a callback of a future called it.
            WaitTimeout: no reply came within `timeout`.
        """
        self._refuse_callback()
        if timeout is not None:
            timeout = checks.seconds(timeout, "timeout")
        future = self.submit(queue, *arguments, time_limit=time_limit)
        try:
            return future.result(timeout)
        except FutureTimeout:
            if not future.cancel():
                return future.result()
            raise WaitTimeout(
                f"no reply came within {timeout:g} s; the request was cancelled",
                hint="see whether a worker serves the queue: scaletest queue show",
            ) from None
        except BaseException:
            future.cancel()  # such as at Ctrl-C; one that has ended stays as it is
            raise

    @overload
    def submit(
        self,
        queue: str,
        *arguments: Argument,
        time_limit: float = 0.0,
        retry: Retry | None = None,
        delay: float = 0.0,
        keep: Literal[False] = False,
    ) -> Future[Reply]: ...

    @overload
    def submit(
        self,
        queue: str,
        *arguments: Argument,
        time_limit: float = 0.0,
        retry: Retry | None = None,
        delay: float = 0.0,
        keep: Literal[True],
        result_ttl: int = 500,
    ) -> str: ...

    def submit(
        self,
        queue: str,
        *arguments: Argument,
        time_limit: float = 0.0,
        retry: Retry | None = None,
        delay: float = 0.0,
        keep: bool = False,
        result_ttl: int = 500,
    ) -> Future[Reply] | str:
        """Submit one request; a future of its reply, or with `keep` its id.

        arguments, time_limit: as for `run`.
        retry: run it again when it fails, as in rq.Retry(3, interval=[1, 5, 30]); the reply is that
        of the last attempt, and says how many there were.
        delay: seconds before it may run. A delay, as an interval of `retry`, needs a worker with
        --with-scheduler, which looks once a second.
        keep: run it also when this program has ended, and leave an ordinary RQ result, which
        `result` and RQ find by its id.
        result_ttl: for how many seconds that result is kept.

        To cancel the future takes the request out of its queue, or ends it where it runs already;
        its reply is dropped, and it is not retried. Callbacks of the future are called by the
        thread that reads replies, so they must be short, and must not wait for another reply.

        Example:
            futures = [client.submit("media", name) for name in names]
            for future in concurrent.futures.as_completed(futures):
                print(future.result().run_s)

        Raises:
            InvalidValue: an argument, the time limit, `retry`, `delay` or `result_ttl` breaks its
                rule.
            QueueFull: the queue holds its maximum already.
            UndeclaredQueue: the queue is not declared; the future has it when Redis forgot the
                queue and nobody declared it again within a minute.
            Unreachable: Redis was away for longer than the client's patience.
        """
        schedule = make_schedule(retry, delay)
        request = self._make_request(queue, arguments, time_limit, schedule)
        if keep:
            checks.count(result_ttl, "result_ttl", minimum=1)
            with self._hold_broker():
                self._broker.submit_one(request, reply=False, result_ttl_s=result_ttl)
            return request.id
        future: Future[Reply] = Future()
        if not self._submit([request], partial(_settle_future, future)):
            with python_names(), explain_redis_errors(self._url):
                raise QueueFull(queue, broker.Queues(self._redis).state(queue).maximum)
        future.add_done_callback(partial(self._cancel_with, request))
        return future

    def result(self, request_id: str, *, timeout: float = 0.0) -> Reply:
        """Look up the reply to a request that was submitted with `keep`, by any client.

        timeout: seconds to wait for it.

        Example:
            request_id = client.submit("media", "in.mp4", keep=True)
            print(client.result(request_id, timeout=60).outcome)

        Raises:
            InvalidValue: no such request is known, or its result has expired.
            Unreachable: Redis cannot be reached.
            WaitTimeout: it still waits or runs.
        """
        self._check_usable()
        timeout = checks.seconds(timeout, "timeout")
        with python_names(), explain_redis_errors(self._url):
            return wait_for_stored_reply(self._redis, checks.request_id(request_id), timeout)

    def map(
        self,
        queue: str,
        items: Iterable[Item],
        *,
        in_flight: int = 64,
        time_limit: float = 0.0,
        retry: Retry | None = None,
        delay: float = 0.0,
    ) -> Iterator[Reply]:
        """Submit a request for each item, and yield the replies in the order in which they come.

        items: each a sequence of arguments, or a single argument; they are taken as replies come,
        and the `arguments` of a reply say to which item it belongs.
        in_flight: how many requests may be without a reply. A full queue slows it down.
        time_limit: as for `run`. retry, delay: as for `submit`.

        Nothing is submitted before the first reply is asked for. When the iterator is closed, what
        is in flight is cancelled.

        Example:
            for reply in client.map("media", ["a.mp4", "b.mp4"], in_flight=8):
                print(reply.arguments, reply.outcome)

        Raises:
            InvalidValue: an item or another argument breaks its rule.
            UndeclaredQueue: the queue is not declared, also a minute after Redis forgot it.
            Unreachable: Redis was away for longer than the client's patience.
            UsageError: a callback of a future waits for a reply of it.
        """
        checks.count(in_flight, "in_flight", minimum=1)
        if isinstance(items, str | bytes):
            raise InvalidValue(
                f"the items are the text {checks.cut_text(repr(items), limit=60)}: each character"
                " would be an"
                " item",
                hint="give a list of items, e.g. [text]",
            )
        schedule = make_schedule(retry, delay)
        requests = (
            self._make_request(queue, _arguments_of(item), time_limit, schedule) for item in items
        )
        return self._submit_and_yield(queue, requests, in_flight)

    def close(self) -> None:
        """Cancel what is in flight, and disconnect. Futures without a reply get an error.

        It never waits for a Redis that is away.

        Example:
            client.close()

        Raises: nothing
        """
        if self._closing.is_set() or not self._is_ours:
            return
        self._closing.set()
        self._broker.leave()
        # without it the reader ends a little later
        with suppress(Exception):
            self._broker.wake()
        if threading.current_thread() is not self._reader:  # in the callback of a future it is
            self._reader.join()
        with self._calling:  # whoever comes later learns that it is closed
            pending = list(self._pending.values())
        for queue in {request.queue for request, _ in pending}:
            # in one call for each queue, however many requests there are
            waiting = {
                request.id: deliver for request, deliver in pending if request.queue == queue
            }
            for name in self._cancel(queue, list(waiting)):
                waiting[name](UsageError("the client was closed before the reply came"))
        self._broker.close()
        self._redis.close()

    def _submit_and_yield(
        self, queue: str, requests: Iterator[Request], in_flight: int
    ) -> Generator[Reply, None, None]:
        """Submit requests of a queue as replies come; yield the replies."""
        answers: SimpleQueue[Answer] = SimpleQueue()
        unanswered: set[str] = set()
        refused: list[Request] = []
        backoff_s = 0.0
        try:
            while True:
                batch = list(islice(chain(refused, requests), in_flight - len(unanswered)))
                # before they are submitted: an interrupt may come between Redis and our knowing
                unanswered.update(request.id for request in batch)
                refused = batch[self._submit(batch, answers.put) :]
                unanswered.difference_update(request.id for request in refused)
                # after a full queue it waits, longer each time
                backoff_s = longer_delay(backoff_s) if refused else 0.0
                if not unanswered and not refused:
                    return
                self._refuse_callback()
                # take the replies that are there
                replies: list[Reply] = []
                with suppress(Empty):
                    answer = answers.get(timeout=backoff_s or None)
                    while isinstance(answer, Reply):
                        replies.append(answer)
                        answer = answers.get_nowait()
                    if not replies:
                        raise answer
                    answers.put(answer)  # an error is raised when the replies before it are out
                for reply in replies:
                    unanswered.discard(reply.id)
                    yield reply
        finally:
            # Garbage collection ends an iterator that nobody holds, in any thread and also in the
            # middle of a call of this client, whose lock is held then: the reader cancels for it.
            if self._calling.locked() or threading.current_thread() is self._reader:
                self._left_behind.put((queue, list(unanswered)))
            else:
                self._cancel(queue, list(unanswered))

    def _make_request(
        self, queue: str, arguments: Sequence[Argument], time_limit: float, schedule: Schedule
    ) -> Request:
        texts = tuple(map(as_text, arguments))
        return Request(self._broker.new_id(), queue, texts, time_limit, schedule)

    def _submit(self, requests: Sequence[Request], deliver: Callable[[Answer], None]) -> int:
        """Submit requests of one queue, and return how many were accepted.

        deliver: takes the answer to each, in the thread that reads replies.
        """
        if not requests:
            return 0
        with self._hold_broker():
            # a reply may come before the call returns
            self._pending |= {request.id: _Pending(request, deliver) for request in requests}
            try:
                accepted = self._broker.submit(requests)
            except Exception:
                self._forget([request.id for request in requests])
                raise
            self._forget([request.id for request in requests[accepted:]])
        return accepted

    @contextmanager
    def _hold_broker(self) -> Iterator[None]:
        """Hold the broker's client for one call, with errors worded for Python."""
        self._check_usable()
        with self._calling, python_names(), explain_redis_errors(self._url):
            self._check_usable()  # another thread may have closed the client meanwhile
            yield

    @property
    def _is_ours(self) -> bool:
        """Whether this process made the client: a forked one has no reader, and locks for ever."""
        return self._process == os.getpid()

    def _check_usable(self) -> None:
        """Raise UsageError where the client cannot be used."""
        if not self._is_ours:
            raise UsageError(
                "this client was created in another process",
                hint="make a scaletest.Client in this process, after the fork",
            )
        if self._closing.is_set():
            raise UsageError("the client is closed", hint="make a new scaletest.Client")

    def _refuse_callback(self) -> None:
        """Raise UsageError in a callback of a future: the thread that reads replies calls it."""
        if threading.current_thread() is self._reader:
            raise UsageError(
                "a callback of a future cannot wait for a reply: nobody would read it meanwhile",
                hint="submit it and return, or wait in another thread",
            )

    def _read_replies(self) -> None:
        """Hand over replies until the client is closed; the reader's thread."""
        has_failed = False
        while not self._closing.is_set():
            try:
                with python_names(), explain_redis_errors(self._url):
                    for reply in self._broker.replies(READ_TIMEOUT_S):
                        self._deliver_answer(reply.id, reply)
                    while not self._left_behind.empty():
                        self._cancel(*self._left_behind.get())
                    if has_failed or self._broker.shaken:  # submit again what Redis forgot
                        with self._calling:
                            pending = {name: pair[0] for name, pair in list(self._pending.items())}
                            self._broker.recover(pending, force=has_failed)
                has_failed = False
            except Exception as error:
                has_failed = True
                if not self._closing.is_set():
                    self._report_failure(error)
                    self._closing.wait(LONGEST_DELAY_S)

    def _report_failure(self, error: Exception) -> None:
        """Give an error of the reader to those who wait; log one that only a bug explains."""
        if not isinstance(error, ScaletestError):
            logger.error("an error interrupted the reading of replies", exc_info=error)
            return
        for name, (request, _) in list(self._pending.items()):
            if not isinstance(error, UndeclaredQueue) or request.queue == error.queue:
                self._deliver_answer(name, error)

    def _deliver_answer(self, request_id: str, answer: Answer) -> None:
        """Hand over the answer to a request, unless it was cancelled."""
        pending = self._pending.get(request_id)
        if pending and self._forget([request_id]):
            if isinstance(answer, Reply):
                answer = replace(answer, arguments=pending.request.arguments)
            try:
                pending.deliver(answer)
            except BaseException:  # SystemExit of a callback; a future logs others itself
                logger.exception("the callback of a future wanted to end its thread")

    def _forget(self, ids: Iterable[str]) -> list[str]:
        """Wait for no answer to these requests any more, and return those that had none."""
        forgotten = [name for name in ids if self._pending.pop(name, None)]
        if not self._pending:
            with self._answered:
                self._answered.notify_all()
        return forgotten

    def _cancel_with(self, request: Request, future: Future[Reply]) -> None:
        """Cancel a request when its future is done by being cancelled."""
        if future.cancelled() and self._cancel(request.queue, [request.id], stop=True):
            future.set_running_or_notify_cancel()

    def _cancel(self, queue: str, ids: Sequence[str], *, stop: bool = False) -> list[str]:
        """Take requests out of their queue, or drop their replies; return those without an answer.

        stop: end those that run already. Where Redis is away it is left to the workers, which drop
        what waits when its client is gone.
        """
        if not self._is_ours:
            return []
        unanswered = self._forget(ids)
        if unanswered:
            with suppress(Unreachable), self._calling, explain_redis_errors(self._url):
                self._broker.cancel(queue, unanswered, stop=stop)
        return unanswered


def _settle_future(future: Future[Reply], answer: Answer) -> None:
    """Give a future its answer, unless it was cancelled."""
    if not future.set_running_or_notify_cancel():
        return
    if isinstance(answer, ScaletestError):
        future.set_exception(answer)
    else:
        future.set_result(answer)


def _arguments_of(item: Item) -> Sequence[Argument]:
    """Return all arguments of an item; InvalidValue for what is no argument and no sequence."""
    if isinstance(item, str | Real | os.PathLike):
        return (item,)
    if isinstance(item, bytes | bytearray) or not isinstance(item, Sequence):
        raise InvalidValue(
            f"the item {checks.cut_text(repr(item), limit=60)} is of type {type(item).__name__}",
            hint="give a text, a number, a path, or a list of these",
        )
    return item
