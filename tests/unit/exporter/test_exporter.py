"""How many workers a queue needs, and the exporter's pages from made-up views: text, JSON, probes,
old names, log lines, buckets.
"""

import math
import struct
import threading
import time
from html import unescape
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from scaletest.broker.snapshot import QueueSnapshot, Snapshot, WorkerState
from scaletest.exporter import intel, metrics
from scaletest.exporter.app import make_app
from scaletest.exporter.metrics import BOUNDS
from scaletest.exporter.service import BackgroundThread, LogLines
from scaletest.exporter.view import ExporterView, QueueView, ViewReader
from scaletest.model import NodeSample, histogram
from scaletest.model.desired_workers import QueueDemand, Targets, desired_workers, wanted_workers
from scaletest.model.errors import InvalidValue, Unreachable
from scaletest.model.queue_counts import read
from scaletest.model.time_slots import RecentWindow, TimeSlot, unpack_slots, window_until
from scaletest.pages.turns import READS, THREADS
from tests.conftest import eventually
from tests.unit.queue_pages import ended_counts

NODE = NodeSample(
    'n"1',
    "a",
    1e9,
    1.0,
    {
        "cpu": {"cores": 4.0, "user": 1.5, "system": 0.5},
        "memory": {"available": 5e9},
        "pressure": {"cpu_some": 0.25, "memory_some": 0.0, "io_some": 0.5},
        "container": {"throttled_periods": 0.75},
        "device:/dev/dri/renderD128": {"busy": 0.5, "memory_used": 1e6, "energy_j": 123.5},
        "device:nvidia0": {},
    },
)


def queue(name: str = "q", **fields: Any) -> QueueSnapshot:
    values: dict[str, Any] = {
        "at_s": 1e9,
        "maximum": 0,
        "note": "",
        "waiting": 3,
        "running": 2,
        "paused": False,
        "oldest_waiting_s": 1.5,
        "counters": {
            "submitted": 20,
            "succeeded": 9,
            "failed": 2,
            "timed_out": 1,
            "client_gone": 3,
            "undelivered": 1,
            "rejected": 4,
            "requeued": 5,
        },
        "ended": ended_counts({100: 9}, {700: 9}),
        "slots": (),
        "workers": (
            WorkerState("a", True, False),
            WorkerState("b", False, False),
            WorkerState("c", False, True),
        ),
    }
    return QueueSnapshot(name=name, **{**values, **fields})


def view(*queues: QueueSnapshot, at_s: float = 1e9) -> ExporterView:
    window = RecentWindow(2.0, 9, 1.0, 4.0, 1.5, 5.0, "node-1", "pod-1")
    return ExporterView(
        at_s, 0.001, 1, tuple(QueueView(row, window, 5, 6, (NODE,)) for row in queues or (queue(),))
    )


def client_of(exported: ExporterView | None, **options: Any) -> Any:
    def read() -> ExporterView:
        if exported is None:
            raise Unreachable("Redis is away", hint="start it")
        return exported

    return make_app(read, lambda: True, **options).test_client()


def samples(text: str, openmetrics: bool = False) -> dict[tuple[str, ...], float]:
    families = (parse_openmetrics if openmetrics else parse)(text)
    rows = [sample for family in families for sample in family.samples]
    return {
        (row.name, *(f"{k}={v}" for k, v in sorted(row.labels.items()))): row.value for row in rows
    }


@pytest.mark.parametrize("openmetrics", [False, True])
def test_every_metric_of_the_table_is_exposed(openmetrics: bool) -> None:
    kind = "application/openmetrics-text; version=1.0.0" if openmetrics else "*/*"
    answer = client_of(view()).get("/metrics", headers={"Accept": kind})
    assert ("openmetrics" in answer.content_type) == openmetrics
    exposed = samples(answer.text, openmetrics)
    names = {row[0] for row in exposed}
    for metric in metrics.QUEUE_METRICS:
        assert (metric.name + "_bucket" if metric.counts else metric.name) in names
    for name, _, _ in metrics.GLOBAL_METRICS:
        assert name in names
    assert exposed["scaletest_queue_desired_workers", "queue=q"] == 6
    assert exposed["scaletest_workers", "queue=q", "state=suspect"] == 1
    assert exposed["scaletest_requests_total", "outcome=client_gone", "queue=q"] == 3
    assert exposed["scaletest_requests_abandoned_total", "queue=q"] == 4
    assert exposed["scaletest_queue_wait_seconds_count", "queue=q"] == 9
    assert exposed["scaletest_node_cpu_busy_ratio", 'node=n"1', "queue=q"] == 0.5
    device = ("device=/dev/dri/renderD128", 'node=n"1', "queue=q")
    assert exposed["scaletest_device_energy_joules_total", *device] == 123.5
    assert not [row for row in exposed if "device=nvidia0" in row]


def test_without_redis_no_metric_of_queues_is_exposed() -> None:
    client = client_of(None)
    assert samples(client.get("/metrics").text) == {("scaletest_up",): 0.0}
    for path in ("/readyz", "/api/v1/queues", "/api/v1/queues/q"):
        answer = client.get(path)
        assert answer.status_code == 503
        assert "Redis is away" in answer.text
    assert client.get("/healthz").status_code == 200


def test_a_dead_background_thread_is_unhealthy() -> None:
    assert make_app(view, lambda: False).test_client().get("/healthz").status_code == 500


def test_the_api_answers_and_unknown_paths_are_404() -> None:
    client = client_of(view(queue(), queue("other", waiting=0, oldest_waiting_s=None)))
    assert [row["name"] for row in client.get("/api/v1/queues").json["queues"]] == ["q", "other"]
    row = client.get("/api/v1/queues/q").json
    assert (row["waiting"], row["demand"], row["desired_workers"], row["oldest_waiting_s"]) == (
        3,
        5,
        6,
        1.5,
    )
    assert client.get("/api/v1/queues/other").json["oldest_waiting_s"] == 0.0
    answer = client.get("/api/v1/queues/typo")
    assert answer.status_code == 404
    assert "declared: q, other" in answer.json["info"]
    assert client.get("/nothing").status_code == 404
    wrong = client.post("/metrics")
    assert wrong.status_code == 405
    assert "GET" in wrong.headers["Allow"]


@pytest.mark.parametrize("path", ["team/media", "team%2Fmedia"])
def test_a_queue_whose_name_has_a_slash_is_found(path: str) -> None:
    row = client_of(view(queue(), queue("team/media", waiting=7))).get(f"/api/v1/queues/{path}")
    assert (row.status_code, row.json["name"], row.json["waiting"]) == (200, "team/media", 7)


def test_an_unreadable_queue_is_named_and_the_others_are_exposed() -> None:
    last_view = view(queue("good"))
    client = client_of(
        ExporterView(
            last_view.at_s, last_view.read_s, 1, last_view.queues, (("<bad>", "no number"),)
        )
    )
    assert samples(client.get("/metrics").text)[("scaletest_queues_unreadable",)] == 1
    assert client.get("/api/v1/queues").json["unreadable"] == ["<bad>"]
    assert client.get("/api/v1/queues/good").status_code == 200
    assert client.get("/api/v1/queues/<bad>").status_code == 503


def test_probes_are_answered_while_redis_hangs_and_everybody_asks() -> None:
    # given as many scrapes as may wait for Redis, all of them stuck
    entered, free = threading.Semaphore(0), threading.Event()

    def read() -> ExporterView:
        entered.release()
        assert free.wait(120)
        return view()

    app = make_app(read, lambda: True)
    scrapers = [
        threading.Thread(target=app.test_client().get, args=("/metrics",)) for _ in range(READS)
    ]
    for scraper in scrapers:
        scraper.start()
        assert entered.acquire(timeout=120)
    # expect the next to be refused, so that threads are left for who asks whether we live
    assert app.test_client().get("/readyz").status_code == 503
    assert app.test_client().get("/healthz").status_code == 200
    assert samples(app.test_client().get("/metrics").text) == {("scaletest_up",): 0}
    assert THREADS > READS
    free.set()
    for scraper in scrapers:
        scraper.join()
    assert app.test_client().get("/readyz").status_code == 200


@example("q", "application/openmetrics-text;version=abc")
@example("q", "text/plain;version=abc")
@given(st.text(max_size=40), st.text(max_size=60))
def test_no_path_or_accept_header_gives_a_500(path: str, accept: str) -> None:
    safe = "".join(c for c in accept if c.isprintable() and ord(c) < 256)
    client = client_of(view())
    assert client.get("/api/v1/queues/" + path.replace("?", "")).status_code in (200, 308, 404)
    assert client.get("/metrics", headers={"Accept": safe}).status_code == 200


def test_unknown_values_are_missing_in_metrics_and_null_in_json() -> None:
    row = view(queue(oldest_waiting_s=None)).queues[0]
    unknown = ExporterView(1.0, 0.1, 0, (QueueView(row.queue, RecentWindow(), 5, 5),))
    names = {name[0] for name in samples(client_of(unknown).get("/metrics").text)}
    assert not names & {
        "scaletest_queue_oldest_waiting_seconds",
        "scaletest_queue_run_mean_seconds",
    }
    shown = client_of(unknown).get("/api/v1/queues/q").json
    assert (shown["oldest_waiting_s"], shown["mean_run_s"]) == (None, None)


def test_labels_are_escaped() -> None:
    hostile = 'a"b\\c<script>'
    client = client_of(view(queue(hostile)))
    assert samples(client.get("/metrics").text)["scaletest_queue_waiting", f"queue={hostile}"] == 3


def test_metrics_of_the_predecessor_keep_their_names_and_meaning() -> None:
    exposed = samples(client_of(view(), intel_names=True).get("/metrics").text)
    assert {
        name: value
        for (name, *rest), value in exposed.items()
        if name.startswith("hpa_") and rest in (["name=q"], [])
    } == {
        "hpa_client_connections_total": 24.0,
        "hpa_worker_connections_total": 17.0,
        "hpa_queue_all": 5.0,
        "hpa_queue_waiting": 3.0,
        "hpa_queue_running": 2.0,
        "hpa_queue_success_total": 9.0,
        "hpa_queue_failure_total": 3.0,
        "hpa_queue_disconnect_total": 3.0,
        "hpa_queue_maxrun_seconds": 1.5,
        "hpa_queue_maxwait_seconds": 4.0,
        "hpa_queue_maxtotal_seconds": 5.0,
    }
    assert len(intel.QUEUE_ALIASES) + len(intel.TOTAL_ALIASES) == 11
    assert sum("_max" in alias.name for alias in intel.QUEUE_ALIASES) == 3


@pytest.mark.parametrize(
    ("interval_s", "label", "longest_wait_s"),
    [
        (10, "interval=10s", 0.5),
        (20, "interval=20s", 8.0),
        (30, "interval=30s", 9.0),
    ],
)
def test_old_maxima_are_of_the_interval_that_their_label_names(
    interval_s: int, label: str, longest_wait_s: float
) -> None:
    # given a request that waited long in the slot before the present one, and one that waited
    # longer before that
    slots = tuple(
        TimeSlot(100_000_000 - age, ended=1, max_wait_s=wait)
        for age, wait in ((2, 9.0), (1, 8.0), (0, 0.5))
    )
    page = (
        client_of(view(queue(slots=slots)), intel_names=True, log_interval_s=interval_s)
        .get("/metrics")
        .text
    )
    rows = {
        row: value for row, value in samples(page).items() if row[0].startswith("hpa_queue_max")
    }
    assert {row[1:] for row in rows} == {(label, "name=q")}
    assert rows["hpa_queue_maxwait_seconds", label, "name=q"] == longest_wait_s
    assert ("hpa_queue_all", "name=q") in samples(page)


@given(
    st.dictionaries(st.integers(0, histogram.LAST_BUCKET), st.integers(0, 10**9)),
    st.integers(0, 1500),
)
def test_a_histogram_adds_up_and_never_goes_down(counts: dict[int, int], more: int) -> None:
    before, sum_before = histogram.cumulative_counts(counts, BOUNDS), histogram.total_s(counts)
    index = min(more, histogram.LAST_BUCKET)
    more = {**counts, index: counts.get(index, 0) + 1}
    after, sum_after = histogram.cumulative_counts(more, BOUNDS), histogram.total_s(more)
    assert [row[0] for row in before] == [*(row for row, _ in after)]
    assert before[-1] == ("+Inf", float(sum(counts.values())))
    assert all(b[1] <= a[1] <= b[1] + 1 for b, a in zip(before, after, strict=True))
    assert all(low[1] <= high[1] for low, high in pairwise(after))
    assert sum_after >= sum_before
    assert math.isfinite(sum_after)


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_duration_lies_in_the_right_bucket(bound: float) -> None:
    for seconds, is_below in ((bound * 0.97, True), (bound * 1.03, False)):
        rows = dict(histogram.cumulative_counts({histogram.bucket_of(seconds): 1}, BOUNDS))
        label = next(name for name in rows if name != "+Inf" and float(name) == bound)
        assert bool(rows[label]) is is_below


def test_wanted_workers_stay_for_a_window_also_after_a_restart(
    monkeypatch: Any,
) -> None:
    # given a queue with two workers, at a reader that has just started
    now = [100.0]
    calm = queue(
        waiting=0,
        running=0,
        workers=(WorkerState("a", False, False), WorkerState("b", False, False)),
    )
    queues = [calm]
    monkeypatch.setattr(
        "scaletest.exporter.view.read_snapshot",
        lambda redis: Snapshot(1e9 + now[0], 0, (queues[-1],)),
    )
    reader = ViewReader("redis://nowhere", Targets(window_s=60.0), clock=lambda: now[0])

    def look(at: float) -> tuple[int, int]:
        now[0] = at
        row = reader.read().queues[0]
        return row.wanted, row.desired

    # expect the workers that are there, until a window has passed
    assert look(100) == (0, 2)
    assert look(159) == (0, 2)
    assert look(160) == (0, 0)
    # when 90 requests of 1 s wait for a moment, expect three workers for a window after it
    queues.append(queue(waiting=90, running=0, slots=(TimeSlot(1, ended=1, run_sum_s=1.0),)))
    assert look(170) == (3, 3)
    queues.append(calm)
    assert look(229) == (0, 3)
    assert look(231) == (0, 0)


def log_at(lines: LogLines, caplog: Any, at_s: float, *queues: QueueSnapshot) -> list[str]:
    """The lines that a view at this time of Redis' clock gives."""
    caplog.clear()
    with caplog.at_level("INFO", "scaletest.exporter"):
        lines(view(*queues, at_s=1e9 + at_s))
    return list(caplog.messages)


def test_a_log_line_tells_the_period_and_where_the_longest_run_was(caplog: Any) -> None:
    lines = LogLines(10)
    slot = TimeSlot(10**8, 0, 4, 0.0, 0.5, 2.0, 2.25, place="n\r1\np")
    before = queue(slots=(slot,))
    after = queue(slots=(slot,), counters={"succeeded": 13, "failed": 2, "undelivered": 2})
    assert log_at(lines, caplog, 0.0, before) == log_at(lines, caplog, 9.0, before) == []
    assert log_at(lines, caplog, 10.0, after) == [
        "queue q: 4 succeeded, 0 failed, 0 timed out, 0 rejected, 0 requeued, 0 abandoned in 10 s;"
        " 3 waiting, 2 running, workers 3, wanted 6; longest: wait 0.5 s, run 2 s"
        " (pod p on n\\r1), total 2.25 s"
    ]


def test_a_slow_worker_is_named_in_one_log_line(caplog: Any) -> None:
    # given a slow request that ended in the slot of the second line, when its line is 2 s late
    lines = LogLines(10)
    slots = [TimeSlot(10**8 + at, ended=1, max_run_s=1.0, place=f"n\np{at}") for at in range(4)]
    slots[1] = TimeSlot(10**8 + 1, ended=1, max_run_s=7.0, place="n\nslow")
    told = [
        message
        for at_s in (3.0, 10.1, 22.0, 30.1, 40.0)
        for message in log_at(lines, caplog, at_s, queue(slots=tuple(slots)))
    ]
    assert [message.split("(pod ")[1].split()[0] for message in told] == ["p0", "slow", "p2", "p3"]


def test_log_lines_keep_their_beat_however_late_a_view_is(caplog: Any) -> None:
    # given views every 5 s, each a little late, an outage, and another server that is an hour
    # behind
    lines = LogLines(10)
    logged: list[float] = []
    for at in (3.0, 5.01, 10.02, 15.0, 20.01, 51.0, 59.9, 60.0, -3600.0, -3590.0):
        logged += [at] * len(log_at(lines, caplog, at))
    assert logged == [10.02, 20.01, 51.0, 60.0, -3600.0, -3590.0]


def test_log_lines_do_not_wait_for_the_next_heartbeat(
    caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given an exporter that would look again after five minutes
    class Calm:
        def reap(self) -> None:
            """Nothing is to be given back."""

        def read(self) -> ExporterView:
            return view(at_s=time.time())

    monkeypatch.setattr("scaletest.exporter.service.LONGEST_PAUSE_S", 0.1)
    background = BackgroundThread(cast(ViewReader, Calm()), 600.0, [LogLines(1)])
    with caplog.at_level("INFO", "scaletest.exporter"):
        background.thread.start()
        # expect a line every second all the same
        eventually(lambda: len(caplog.messages) >= 2)
    background.thread.close()


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/api/v1/queues", "/nothing"])
def test_pages_are_refused_under_an_unknown_host_name(path: str) -> None:
    client = client_of(view(), hosts=frozenset({"metrics.example.com"}))
    refused = client.get(path, headers={"Host": "rebinding.example:9998"})
    assert refused.status_code == 403
    assert "--allow-host" in unescape(refused.text)
    assert "waiting" not in refused.text
    for host in (
        "10.1.2.3:9998",
        "[::1]:9998",
        "localhost",
        "exporter.ns.svc.cluster.local:9998",
    ):
        assert client.get(path, headers={"Host": host}).status_code != 403
    assert client.get(path, headers={"Host": "metrics.example.com"}).status_code != 403


TARGETS = Targets()


@pytest.mark.parametrize(
    ("demand", "workers"),
    [
        (QueueDemand(0, 0), 0),
        (QueueDemand(0, 0, 0.0, 5.0), 0),
        (QueueDemand(7, 3), 10),  # no run time known: waiting + running
        (QueueDemand(1, 0, 0.0, 0.001), 1),  # never below 1 while anything waits
        (QueueDemand(0, 1, 0.0, 0.001), 1),  # or runs
        (QueueDemand(0, 7, 0.7, 10.0), 10),  # 10 * 0.7 / 0.7
        (QueueDemand(60, 0, 0.0, 5.0), 10),  # 5 * 60 / 30
        (QueueDemand(60, 7, 0.7, 10.0), 30),  # both
        (QueueDemand(0, 1, 0.7, 10.1), 11),
    ],
)
def test_wanted_workers_follow_demand_and_targets(demand: QueueDemand, workers: int) -> None:
    assert wanted_workers(demand, TARGETS) == workers


def test_wanted_workers_are_bounded() -> None:
    assert (
        wanted_workers(QueueDemand(10**9, 0), TARGETS)
        == wanted_workers(QueueDemand(10**9, 0, 1e6, 1e6), TARGETS)
        == 1_000_000
    )


@pytest.mark.parametrize(
    "bad", [{"utilisation": 0.0}, {"utilisation": 1.1}, {"wait_s": 0.0}, {"window_s": 1e4}]
)
def test_targets_are_checked(bad: dict[str, float]) -> None:
    with pytest.raises(InvalidValue):
        Targets(**bad)


@given(
    st.integers(0, 10**6), st.integers(0, 1000), st.floats(0, 1e4), st.none() | st.floats(1e-6, 1e5)
)
def test_more_demand_never_wants_fewer_workers(
    waiting: int, running: int, rate: float, run_s: float | None
) -> None:
    less, more = (
        QueueDemand(waiting, running, rate, run_s),
        QueueDemand(waiting + 1, running, rate * 1.1, run_s),
    )
    assert wanted_workers(less, TARGETS) <= wanted_workers(more, TARGETS)
    assert wanted_workers(less, TARGETS) >= (1 if waiting + running else 0)


@given(
    st.lists(st.tuples(st.floats(0, 100), st.integers(0, 50)), min_size=1, max_size=60),
    st.floats(1, 200),
)
def test_desired_is_the_maximum_of_the_window(
    samples: list[tuple[float, int]], window_s: float
) -> None:
    history: tuple[tuple[float, int], ...] = ()
    now, values = 0.0, []
    for step, value in samples:
        now += step
        values.append((now, value))
        number, history = desired_workers(now, value, history, window_s)
        assert number == max(old for at, old in values if at > now - window_s)


def test_a_window_adds_up_its_slots() -> None:
    slots = [
        TimeSlot(90, 100, 10, 1000.0, 50.0, 50.0, 50.0, "old"),
        TimeSlot(100, 14, 2, 8.0, 1.0, 5.0, 6.0, "n\np\n"),
        TimeSlot(105, 7, 4, 4.0, 3.0, 2.0, 4.0, "m"),
    ]
    # 1064 - 60 lies in slot 100, so the window reaches back to 1000
    assert window_until(slots, 1064.0, 60.0) == RecentWindow(
        21 / 64, 6, 2.0, 3.0, 5.0, 6.0, "n", "p"
    )


def test_an_empty_window_knows_the_last_run_time() -> None:
    slots = [TimeSlot(1, ended=2, run_sum_s=3.0), TimeSlot(2, ended=2, run_sum_s=8.0)]
    assert window_until(slots, 5000.0, 60.0) == RecentWindow(mean_run_s=4.0)
    assert window_until([], 5000.0, 60.0) == RecentWindow()


@given(st.dictionaries(st.binary(max_size=4), st.binary(max_size=80)))
def test_a_ring_of_anything_is_read_without_an_error(fields: dict[bytes, bytes]) -> None:
    assert all(math.isfinite(slot.number) for slot in unpack_slots(fields))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=5, max_size=5), st.floats())
def test_wanted_workers_are_computed_for_any_number_in_a_slot(
    ended: list[int], came: float
) -> None:
    # given a slot of now with numbers that anybody may have written
    numbers = [0] * 1000
    numbers[107:700:100] = [7, *ended]
    slots = read(struct.pack(">1000q", *numbers)).slots
    window = window_until(unpack_slots({b"a7": struct.pack("<dd", 7, came)}, slots), 75.0, 60.0)
    # expect a number
    assert (
        wanted_workers(QueueDemand(1, 1, window.submitted_per_s, window.mean_run_s), Targets()) >= 1
    )
    assert math.isfinite(window.max_run_s)
