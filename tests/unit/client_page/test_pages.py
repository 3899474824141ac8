"""The client's pages without a network: bodies that scripts read, refusals, escaping, and no answer
500.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from scaletest.client_page import api, legacy_api, page
from scaletest.client_page.app import make_app
from scaletest.load import OpenLoop, Statistics, Steering, pace
from scaletest.model import NodeSample, Outcome, Reason, Record, Reply
from scaletest.model.errors import Unreachable
from scaletest.pages.security import HttpCounts
from scaletest.pages.site import printable_line
from scaletest.report import load
from tests.conftest import eventually
from tests.unit.fakes import FakeClient, replied
from tests.unit.web_site import Site

GOLDEN = Path(__file__).parents[1] / "golden" / "client-http.txt"
PATHS = [path for module in (legacy_api, api, page) for path, _, _ in module.ROUTES]
HOSTILE = "<script>alert('x')</script>\"&\x1b[31m\u202egpj.exe\u200f"


def test_every_answer_for_scripts_matches_its_golden_file(site: Site) -> None:
    site.fill()
    site.steering.set_parallel(4)
    asked = [
        *(
            f"{path}?type={form}"
            for path in ("/fails", "/reqs-per-sec", "/reqs-per-seq")
            for form in ("plain", "json")
        ),
        "/stats?type=plain",
        "/nodes",
        "/pods",
        "/parallel?type=plain",
        "/parallel?type=plain&value=3",
        "/parallel?type=json&value=4",
        "/parallel?type=plain&value=1000",
        "/parallel?type=plain&value=abc",
        "/parallel?type=json&value=abc",
        '/parallel?type=json&value="%5C',
        "/parallel?type=plain&value=-1",
        "/parallel?type=plain&value=1.5",
        "/parallel?type=plain&value=",
        "/fails?type=plain",
        "/parallelism?type=plain&value=2",
        "/fails?type=plain",
        "/reqs-per-sec?type=plain",
        "/stats?type=plain",
        "/reset?type=plain",
        "/reset?type=json",
        "/nothing?type=plain",
        "/nothing?type=json",
        "/healthz",
        "/readyz",
    ]
    lines = []
    for path in asked:
        eventually(lambda: site.loop.in_flight >= site.loop.parallel)
        answer = site.http.get(path)
        lines.append(f">>> GET {path}\n<<< {answer.status_code} {answer.mimetype}\n{answer.text}")
    text = "\n".join(lines) + "\n"
    if os.environ.get("REGENERATE"):
        GOLDEN.write_text(text, "utf-8")
    assert text == GOLDEN.read_text("utf-8")


def test_the_spread_says_that_it_has_none_and_names_no_device_with_a_dot(site: Site) -> None:
    # given a client whose requests nobody has answered, it has the titles of the original
    for path, title in (
        ("/nodes", "Backend / worker node statistics"),
        ("/pods", "Per-node backend / worker pod statistics"),
    ):
        text = site.http.get(path).text
        assert text == f"{title}\n{'=' * len(title)}\n\nNo statistics for nodes\n"
    # when a worker without a device answers
    site.statistics.add(Record("q", 0, replied("c-1", node="node-a", pod="pod-1"), 0.6))
    assert "\nDevice | Completed requests:\n-------+" in site.http.get("/nodes").text
    assert f"\n     . | {'#' * 60} 100.0% (1)\n" in site.http.get("/nodes").text


def test_failures_without_a_node_are_told_from_those_of_workloads(site: Site) -> None:
    lost = {"outcome": Outcome.FAILED, "reason": Reason.LOST, "error": "its worker died"}
    site.statistics.add(Record("q", 0, replied("c-1", node="node-a"), 0.6))
    site.statistics.add(Record("q", 0, replied("f-1", **{**lost, "node": ""}), 0.6))
    assert "No such replies => fails happened in communication" in site.http.get("/nodes").text


def test_every_json_answer_is_valid_and_carries_its_version(site: Site) -> None:
    site.fill()
    site.clock.now += 2
    for path in ("/stats", "/nodes", "/pods"):
        assert json.loads(site.http.get(f"{path}?type=json").text)["schema_version"] == 1
    stats = site.http.get("/api/v1/stats").get_json()
    assert (stats["schema_version"], stats["succeeded"], stats["times"]["run"]["p999_s"]) == (
        1,
        40,
        None,
    )
    series = site.http.get("/api/v1/series").get_json()
    assert sum(point["succeeded"] for point in series["points"]) == 40
    later = site.http.get(f"/api/v1/series?since={series['seq'] - 1}").get_json()
    assert later["points"] == series["points"][-1:]
    assert site.http.get(f"/api/v1/series?since={series['seq']}").get_json()["points"] == []


def test_records_are_lines_that_go_on_where_the_last_ones_ended(site: Site) -> None:
    site.fill()
    answer = site.http.get("/api/v1/records?since=41")
    assert answer.headers["Scaletest-First-Seq"] == "42"
    rows = [json.loads(line) for line in answer.text.splitlines()]
    assert [row.pop("seq") for row in rows] == [42, 43]
    assert Record.from_json(json.dumps(rows[0])).reply.error == "/bin/x returned error code 1"


def test_samples_are_lines_that_go_on_at_a_position() -> None:
    asked = []

    def after(position: str) -> tuple[str, list[NodeSample]]:
        asked.append(position)
        if position == "9-9":
            raise Unreachable("Redis cannot be reached")
        return "7-1", [NodeSample("n", "w", 7.0, 1.0, {"cpu": {"user": 1.5}})] if position else []

    http = Site(samples=after).http
    first, second = (http.get(f"/api/v1/samples{query}") for query in ("", "?since=5-0"))
    assert (
        first.headers["Scaletest-Samples-Position"]
        == second.headers["Scaletest-Samples-Position"]
        == "7-1"
    )
    assert (first.text, NodeSample.from_dict(second.get_json(force=True)).value("cpu", "user")) == (
        "",
        1.5,
    )
    assert asked == ["", "5-0"]
    assert http.get("/api/v1/samples?since=9-9").status_code == 503
    for wrong in ("5", "$", "-", "5-٣", "1" * 30 + "-0"):
        assert http.get("/api/v1/samples", query_string={"since": wrong}).status_code == 400
    assert Site(samples=None).http.get("/api/v1/samples").status_code == 404


def test_metrics_can_be_read_by_prometheus_and_survive_a_reset(site: Site) -> None:
    site.fill()
    for _ in range(2):
        families = {
            family.name: family
            for family in text_string_to_metric_families(site.http.get("/metrics").text)
        }
        ended = {
            sample.labels["outcome"]: sample.value
            for sample in families["scaletest_client_requests"].samples
        }
        assert (ended["succeeded"], ended["failed"]) == (40, 3)
        run = {
            sample.labels.get("le"): sample.value
            for sample in families["scaletest_client_run_seconds"].samples
        }
        assert (run["+Inf"], run["0.25"], run["0.1"]) == (40, 15, 0)
        assert site.http.get("/reset").status_code == 200


def test_refusals_have_a_reason_and_are_counted(site: Site) -> None:
    before = site.counts.rejected
    wrong = [
        (site.http.get("/nothing"), 404),
        (site.http.get("/stats/"), 404),
        (site.http.get("/parallel?value=x"), 400),
        (site.http.get("/api/v1/series?since=-1"), 400),
        (site.http.get("/api/v1/records?since=x"), 400),
        (site.http.get("/stats?x=" + "a" * 3000), 414),
        (site.http.post("/parallel", data="value=3"), 400),
        (site.http.get("/stats", data="x"), 400),
        (site.http.post("/stats"), 405),
        (site.http.put("/parallel?value=3"), 405),
        (site.http.delete("/reset"), 405),
        (site.http.options("/reset"), 405),
        (site.http.head("/reset"), 405),
    ]
    for answer, status in wrong:
        assert answer.status_code == status
        assert answer.text or status == 405
    assert site.counts.rejected - before == len(wrong)
    assert site.statistics.snapshot().generation == 0
    assert site.steering.parallel == 0


def test_downloads_do_not_take_all_threads(site: Site) -> None:
    site.fill()
    open_ones = [site.http.get("/api/v1/records") for _ in range(api.MOST_DOWNLOADS)]
    refused = site.http.get("/api/v1/records")
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
    assert json.loads(refused.text)["result"] == "ERROR"
    open_ones[0].close()
    with site.http.get("/api/v1/records") as answer:
        assert answer.status_code == 200
    open_ones[1].close()


def test_replies_with_impossible_clocks_and_broken_text_are_shown(site: Site) -> None:
    fields = {
        "outcome": Outcome.FAILED,
        "ended_s": 1e12,
        "error": "\ud800x",
        "node": "\udcff",
        "device": "/dev/\udcff",
    }
    reply = Reply.from_json(json.dumps(replied("c-1", **fields).to_dict()))
    site.statistics.add(Record("q", 0, reply, 1.0))
    for path in PATHS:
        for form in ("", "?type=plain", "?type=json", "?type=html"):
            with site.http.get(f"{path}{form}") as answer:
                # closed load has no rate
                assert answer.status_code == {"/rate": 409}.get(path, 200)
                assert answer.data.decode()


def test_foreign_text_is_escaped_on_every_page(site: Site) -> None:
    fields = {"node": HOSTILE, "pod": HOSTILE, "device": HOSTILE, "error": HOSTILE}
    site.statistics.add(Record("q", 0, replied("c-1", **fields), 1.0))
    site.statistics.add(Record("q", 0, replied("c-2", Outcome.FAILED, **fields), 1.0))
    for path in (
        "/",
        "/live",
        "/nodes?type=html",
        "/pods?type=html",
        "/stats",
        f"/{quote(HOSTILE)}",
    ):
        text = site.http.get(path).text
        assert "<script>alert" not in text
        assert not {"\u202e", "\u200f"} & set(text)
    assert "&lt;script&gt;alert(&#39;x&#39;)" in site.http.get("/").text
    refused = site.http.get(f"/parallel?value={quote(HOSTILE)}")
    assert (refused.status_code, "<script>alert" in refused.text) == (400, False)
    # terminals do not get control characters
    assert "\x1b" not in site.http.get("/nodes").text


def test_every_page_has_the_policy_and_names_no_other_host(site: Site) -> None:
    site.fill()
    for path in [*PATHS, "/nothing", "/static/page.css", "/static/page.js"]:
        answer = site.http.get(path)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        if answer.mimetype == "text/html":
            assert not re.search(r"""(?:href|src|action)=["']?(?:[a-z]+:)?//""", answer.text)
            assert "unsafe-inline" not in policy
            assert not re.search(r"""\son[a-z]+=|<script>|\sstyle=|<style""", answer.text)
        answer.close()


@contextmanager
def opened(follows: Iterator[float], **options: str) -> Iterator[tuple[FlaskClient, Steering]]:
    """The pages of an open load, of which nothing is answered."""
    client: Any = FakeClient()
    statistics = Statistics("q")
    loop = OpenLoop(client, "q", statistics.add, follows, maximum=5)
    steering = Steering(loop, statistics, load="steps 1/s:60s", maximum=5)
    yield make_app(steering, HttpCounts(), **options).test_client(), steering
    loop.close()


def test_the_rate_of_an_open_load_is_read_and_set() -> None:
    with opened(pace.constant(0.001)) as (http, steering):
        assert http.get("/rate?type=plain").text == "0.001000\n"
        answers = [
            http.get(f"/rate?type=json&value={value}").get_json()
            for value in ("20/s", "600/min", "2.5", "0")
        ]
        assert [answer["result"] for answer in answers] == [20, 10, 2.5, 0]
        assert answers[0]["info"] == "requests per second are started"
        assert steering.rate == 0
        stats = http.get("/api/v1/stats").get_json()
        assert (stats["rate_per_s"], stats["resume_with"]) == (0, 2.5)
        assert "paused" in http.get("/").text
        assert http.post("/rate?value=7&type=plain").text == "7.000000\n"
        for wrong in ("", "x", "-1", "20/h", "1e9", "nan", "20 s", HOSTILE):
            answer = http.get("/rate", query_string={"value": wrong})
            assert answer.status_code == 400
            assert "<script>alert" not in answer.text
        assert http.get("/parallel?value=3").status_code == 409
        assert (steering.rate, http.head("/rate?value=9").status_code) == (7, 405)
        # a page of another site changes nothing
        refused = http.get("/rate?value=9", headers={"Sec-Fetch-Site": "cross-site"})
        assert (refused.status_code, steering.rate) == (403, 7)


def test_a_change_of_the_rate_needs_the_token() -> None:
    with opened(pace.constant(0.001), token="secret") as (http, steering):
        assert http.get("/rate?type=plain").status_code == 200
        assert http.get("/rate?value=3").status_code == 401
        assert http.get("/rate?value=3", headers={"Scaletest-Token": "secret"}).status_code == 200
        assert steering.rate == 3


def test_what_was_asked_for_is_in_the_series(site: Site) -> None:
    for parallel, length_s in ((4, 5), (8, 5), (0, 2)):
        site.steering.set_parallel(parallel)
        site.clock.now += length_s
    series = site.http.get("/api/v1/series").get_json()
    assert [point["asked"] for point in series["points"]] == [4] * 5 + [8] * 6 + [0]
    text = site.http.get("/").text
    assert '<button name="value" value="8" data-button="pause"' in text
    # after a reset charts begin anew
    site.steering.reset()
    site.clock.now += 2
    series = site.http.get("/api/v1/series").get_json()
    assert [point["asked"] for point in series["points"]] == [0, 0]


def test_tables_that_tell_nothing_are_hidden(site: Site) -> None:
    # given one node without devices, whose name is its workers' pod, as on a laptop
    for number in range(6):
        fields = {"node": "vm", "pod": "vm", "worker": f"vm-{number % 2}"}
        site.statistics.add(Record("q", 0, replied(f"c-{number}", **fields), 1.0))
    tables = load.place_tables(site.statistics.snapshot())
    assert [list(table.titles) for table in tables.values()] == [
        ["Worker", "Succeeded", "Share", "Failed", "Mean run", "Longest run"],
        [],
        [],
    ]
    assert [tuple(row[:2]) for row in tables["worker"].rows] == [("vm-0", "3"), ("vm-1", "3")]
    text = site.http.get("/").text
    assert re.findall(r'data-shown="(\w+)" hidden', text) == ["node", "device"]
    # with a second node, a device and a pod, expect them
    fields = {"node": "b", "pod": "pod-1", "worker": "w", "device": "/dev/dri/renderD128"}
    site.statistics.add(Record("q", 0, replied("c-9", **fields), 1.0))
    tables = load.place_tables(site.statistics.snapshot())
    assert [list(table.titles)[:3] for table in tables.values()] == [
        ["Worker", "Pod", "Node"],
        ["Node", "Succeeded", "Share"],
        ["Device", "Node", "Succeeded"],
    ]


def test_health_follows_the_loop(site: Site) -> None:
    assert (site.http.get("/healthz").status_code, site.http.get("/readyz").status_code) == (
        200,
        200,
    )
    site.steering._ready = lambda: False
    assert (site.http.get("/healthz").status_code, site.http.get("/readyz").status_code) == (
        200,
        503,
    )
    site.loop.close()
    assert site.http.get("/healthz").status_code == 503


SHARED = Site()
SHARED.fill()
TEXTS = st.text(max_size=30)


@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(
    path=st.sampled_from(PATHS) | TEXTS.map(lambda text: "/" + quote(text, safe="")),
    method=st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"]),
    query=st.dictionaries(
        st.sampled_from(["type", "value", "since"]) | TEXTS,
        st.sampled_from(
            ["plain", "json", "html", "page", "0", "7", "99999999999999999999", "-1", "1e3"]
        )
        | TEXTS,
        max_size=4,
    ),
    headers=st.dictionaries(
        st.sampled_from(
            [
                "X-Forwarded-Prefix",
                "Sec-Fetch-Site",
                "Origin",
                "Referer",
                "Authorization",
                "Host",
                "Accept",
                "Range",
            ]
        ),
        st.text(
            st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"),
            max_size=30,
        ),
        max_size=4,
    ),
    body=st.none() | st.binary(max_size=20),
)
def test_no_request_to_the_pages_gives_a_500(
    path: str, method: str, query: dict[str, str], headers: dict[str, str], body: bytes | None
) -> None:
    with SHARED.http.open(
        path, method=method, query_string=query, headers=headers, data=body
    ) as answer:
        assert answer.status_code < 500 or (path, answer.status_code) in (
            ("/healthz", 503),
            ("/readyz", 503),
        )
        if answer.mimetype == "application/json" and method != "HEAD":
            json.loads(answer.text)


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_no_text_of_a_reply_breaks_a_page(text: str) -> None:
    site = SHARED
    fields = {"node": text, "pod": text, "device": text, "error": text}
    site.statistics.add(Record("q", 0, replied("c-1", Outcome.FAILED, **fields), 1.0))
    for path in ("/", "/nodes", "/metrics", "/api/v1/stats", "/api/v1/records"):
        with site.http.get(path) as answer:
            assert answer.status_code == 200


@pytest.mark.parametrize(
    "text", ["x" * 501, "\u200b" * 500, "\U000e0001" * 500, "a\r\nb", "a\u2028b"]
)
def test_a_foreign_text_is_one_short_line(text: str) -> None:
    shown = printable_line(text)
    assert len(shown) <= 500 and shown.isprintable()
    assert shown == "a b" or len(text) > 10


def test_failures_that_differ_in_a_pointer_are_one_row_and_counted_at_each_node(
    site: Site,
) -> None:
    for number in range(143):
        error = f"[AVHWDeviceContext @ {0x55D0C3A1B2C0 + number:#x}] Failed"
        place = {"node": f"node-{number % 3}", "device": "/dev/dri/renderD128"}
        reply = replied(f"v-{number}", outcome=Outcome.FAILED, error=error, **place)
        site.statistics.add(Record("q", 0, reply, 0.6))
    page = site.http.get("/live").text
    failures = page[
        page.index('<h2 id="error-title">') : page.index("</section>", page.index("error-title"))
    ]
    assert failures.count("AVHWDeviceContext") == 1
    assert "<td>143</td>" in failures
    assert "node-0 (48), node-1 (48) and node-2 (47)" in failures
    (group,) = site.http.get("/api/v1/stats").json["failures"]
    assert (group["count"], group["pattern"]) == (143, "[AVHWDeviceContext @ <address>] Failed")
    # and the text that scripts read has them by node, as ever
    assert "- 48: [AVHWDeviceContext @ 0x55d0c3a1b2c0] Failed" in site.http.get("/nodes").text
