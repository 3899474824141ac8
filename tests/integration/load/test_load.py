"""Loads on real servers: what is sent over HTTP, what comes back, and what each trouble is called;
the closed loop on a queue, with its worker played by the test.
"""

import math
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from scaletest.broker import Client, Queues, connect
from scaletest.broker.fast_lane import TakenRequest
from scaletest.load import ClosedLoop
from scaletest.load.http import HttpLoad
from scaletest.load.http_call import CAUSES, HttpCall
from scaletest.load.level_load import LoadOrder
from scaletest.load.pace import constant
from scaletest.model import Record
from scaletest.model.attempt import OK
from tests.conftest import eventually
from tests.integration.lanes import done, lane_of
from tests.integration.services import running


def loaded(call: HttpCall, order: LoadOrder) -> Any:
    """What a load brings."""
    load = HttpLoad(call, [b"{}"])
    try:
        return load.measure(order, lambda: False, lambda ended, failed: None)
    finally:
        load.close()


def test_the_requested_number_of_requests_is_sent_over_reused_connections() -> None:
    with running("--slots", "4") as url:
        measured = loaded(
            HttpCall(url, "POST", server_header="Server-Time"),
            LoadOrder(1.0, parallel=4, count=100),
        )
        assert [sample.outcome for sample in measured.samples] == [OK] * 100
        assert sorted(sample.request for sample in measured.samples) == list(range(100))
        assert {sample.server_s for sample in measured.samples} == {0.01}
        paced = loaded(HttpCall(url), LoadOrder(float("inf"), pace=constant(500), count=50))
        assert len(paced.samples) == 50
        assert [
            sample.due_s for sample in sorted(paced.samples, key=lambda attempt: attempt.due_s)
        ] == pytest.approx([n / 500 for n in range(50)])


def test_requests_wait_for_a_free_connection_and_their_latency_includes_it() -> None:
    # given one connection, a service of 50 ms, and five requests due at once
    with running("--slots", "5", "--seconds", "0.05") as url:
        measured = loaded(
            HttpCall(url, connections=1), LoadOrder(float("inf"), pace=iter([0.0] * 5), count=5)
        )
    times = sorted(sample.latency_s for sample in measured.samples)
    assert len(times) == 5 and times[-1] >= 0.25
    # noticed before the first was sent: to wait for a connection is no lateness of the tester
    assert max(sample.noticed_s for sample in measured.samples) <= min(
        sample.sent_s for sample in measured.samples
    )


@pytest.mark.parametrize(
    ("status", "outcome"), [("503", "503"), ("502", "502"), ("404", "404"), ("301", "301")]
)
def test_every_http_status_is_an_outcome_of_its_own(status: str, outcome: str) -> None:
    with running("--fail", status) as url:
        measured = loaded(HttpCall(url), LoadOrder(1.0, parallel=1, count=2))
    # and nothing is sent again
    assert [(sample.request, sample.outcome) for sample in measured.samples] == [
        (0, outcome),
        (1, outcome),
    ]


def test_refused_reset_and_timed_out_connections_are_outcomes_of_their_own() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as quiet,
        socket.create_server(("127.0.0.1", 0)) as rude,
    ):

        def hang_up() -> None:
            # until the socket is shut down
            with suppress(OSError):
                while True:
                    other, _ = rude.accept()
                    other.recv(100)
                    other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    other.close()

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        with socket.create_server(("127.0.0.1", 0)) as gone:
            port = gone.getsockname()[1]
        once = LoadOrder(1.0, parallel=1, count=1)
        cases = {
            "refused": port,
            "timed out": quiet.getsockname()[1],
            "reset": rude.getsockname()[1],
        }
        for outcome, at in cases.items():
            measured = loaded(
                HttpCall(
                    f"http://127.0.0.1:{at}/", timeout_s=0.5 if outcome == "timed out" else 60
                ),
                once,
            )
            assert [sample.outcome for sample in measured.samples] == [outcome]
            assert outcome in CAUSES
        rude.shutdown(socket.SHUT_RDWR)
        thread.join()


BLOCK, BLOCKS = b"x" * 2**20, 64


def endless_answer(listening: socket.socket) -> None:
    """Answers a request with BLOCKS blocks."""
    peer, _ = listening.accept()
    with peer:
        while b"\r\n\r\n" not in peer.recv(65536):
            pass
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(BLOCK) * BLOCKS))
        for _ in range(BLOCKS):
            peer.sendall(BLOCK)


def peak_of(work: Callable[[], Any]) -> tuple[Any, int]:
    """The result, and the bytes that Python held at most while it was made."""
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_large_answers_are_measured_and_not_stored() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=endless_answer, args=(listening,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        measured, peak = peak_of(lambda: loaded(HttpCall(url), LoadOrder(1.0, parallel=1, count=1)))
        thread.join()
    assert [(sample.outcome, sample.size) for sample in measured.samples] == [
        (OK, len(BLOCK) * BLOCKS)
    ]
    assert peak < len(BLOCK) * BLOCKS / 4


def test_a_request_that_cannot_be_made_ends_the_load() -> None:
    # given a method that the library refuses: without an error the step would have no sample, and
    # say that all is well
    with running() as url:
        for order in (
            LoadOrder(1.0, parallel=1, count=1),
            LoadOrder(30.0, parallel=2),
            LoadOrder(30.0, pace=constant(100)),
        ):
            with pytest.raises(ValueError, match="GE T"):
                loaded(HttpCall(url, "GE T"), order)


@pytest.fixture
def served(url: str, queues: Queues) -> Iterator[dict[str, Any]]:
    """A worker in a thread that answers at once, `most` requests in all, which may be changed."""
    state: dict[str, Any] = {"stop": False, "most": math.inf}
    served = 0

    def serve() -> None:
        nonlocal served
        lane = lane_of(connect(url))
        finished = None
        while not state["stop"]:
            taken = lane.cycle(finished, take=served < state["most"], block_s=0.05)
            finished = done(taken) if isinstance(taken, TakenRequest) else None
            served += finished is not None
            time.sleep(0 if served < state["most"] else 0.01)
        lane.cycle(finished, take=False)
        lane.close()

    thread = threading.Thread(target=serve)
    thread.start()
    yield state
    state["stop"] = True
    thread.join()


def test_records_carry_their_step_and_the_total_is_kept(
    client: Client, served: dict[str, Any]
) -> None:
    # given a worker that has served 50 when the step changes
    served["most"] = 50
    records: list[Record] = []
    loop = ClosedLoop(client, "q", records.append, total=200)
    loop.set_parallel(4, step=1)
    eventually(lambda: len(records) == 50 and loop.in_flight == 4)
    loop.set_parallel(8, step=2)
    served["most"] = math.inf
    assert loop.wait_idle(60)
    loop.close()
    # expect that each carries the step in which it was submitted
    assert [record.step for record in records] == [1] * 54 + [2] * 146


def test_the_load_survives_a_reader_that_fails(
    client: Client, served: dict[str, Any], monkeypatch: Any
) -> None:
    # given a reader that breaks for a reason that nobody thought of, with replies in hand
    real, broken = client.replies, [3]

    def replies(timeout_s: float) -> Any:
        samples = real(timeout_s)
        if samples and broken[0]:
            broken[0] -= 1
            raise RuntimeError("nobody thought of this")
        return samples

    monkeypatch.setattr(client, "replies", replies)
    records: list[Record] = []
    loop = ClosedLoop(client, "q", records.append, total=100)
    loop.set_parallel(4)
    # expect every request to be answered all the same: what was read and dropped is asked for again
    assert loop.wait_idle(60)
    loop.close()
    assert len({record.reply.id for record in records}) == 100
