"""The client's pages without a network: bodies that scripts read, refusals, escaping, links, and no
500 ever.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from scaletest.load import ClosedLoop, OpenLoop, Statistics, Steering, pace
from scaletest.model import NodeSample, Outcome, Reason, Record, Reply
from scaletest.model.errors import InvalidValue, Unreachable
from scaletest.web import api, legacy_api, page
from scaletest.web.app import make_app
from scaletest.web.security import HttpCounts
from tests.conftest import eventually
from tests.unit.fakes import FakeClient, replied

GOLDEN = Path(__file__).parent / "golden" / "client-http.txt"
PATHS = [path for module in (legacy_api, api, page) for path, _, _ in module.ROUTES]
HOSTILE = "<script>alert('x')</script>\"&\x1b[31m"


class Clock:
    """Time that only the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _samples(position: str) -> tuple[str, list[NodeSample]]:
    return "7-1", [NodeSample("n", "w", 7.0, 1.0, {"cpu": {"user": 1.5}}, {})]


class Site:
    """An application over a load that does nothing by itself."""

    def __init__(self, **options: Any) -> None:
        self.clock = Clock()
        client: Any = FakeClient()
        self.statistics = Statistics("q", clock=self.clock, wall=lambda: 1_700_000_000.0)
        self.loop = ClosedLoop(client, "q", self.statistics.add, observer=None)
        self.steering = Steering(self.loop, self.statistics, load="closed", maximum=16)
        self.counts = HttpCounts()
        self.app = make_app(self.steering, self.counts, **{"samples": _samples, **options})
        self.http: FlaskClient = self.app.test_client()

    def fill(self) -> None:
        """Two nodes, three pods, successes and failures, in four seconds."""
        self.statistics.late(0.0)
        for number in range(40):
            self.clock.now += 0.1
            place = {"node": f"node-{'ab'[number % 3 == 0]}", "pod": f"pod-{number % 3}"}
            run_s = 0.105 + number / 100
            reply = replied(
                f"c-{number}", **place, device=f"/dev/dri/renderD{128 + number % 2}", run_s=run_s
            )
            self.statistics.add(Record("q", 0, reply, run_s + 0.0125))
        for number in range(3):
            failed = {
                "outcome": Outcome.FAILED,
                "reason": Reason.EXIT,
                "exit_code": 1 + number // 2,
            }
            reply = replied(
                f"f-{number}", **failed, error=f"/bin/x returned error code {1 + number // 2}"
            )
            self.statistics.add(Record("q", 0, reply, 0.6))


@pytest.fixture
def site() -> Iterator[Site]:
    made = Site()
    yield made
    made.loop.close()


def test_every_answer_that_scripts_read(site: Site) -> None:
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


def test_every_json_is_json_and_carries_its_version(site: Site) -> None:
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
        return "7-1", [
            NodeSample("n", "w", 7.0, 1.0, {"cpu": {"user": 1.5}}, {})
        ] if position else []

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
            found.name: found
            for found in text_string_to_metric_families(site.http.get("/metrics").text)
        }
        ended = {
            one.labels["outcome"]: one.value
            for one in families["scaletest_client_requests"].samples
        }
        assert (ended["succeeded"], ended["failed"]) == (40, 3)
        run = {
            one.labels.get("le"): one.value
            for one in families["scaletest_client_run_seconds"].samples
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


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://elsewhere.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "none", "Sec-Purpose": "prefetch;prerender"},
    ],
)
def test_another_sites_page_changes_nothing(site: Site, headers: dict[str, str]) -> None:
    for path in ("/parallel?value=3", "/parallelism?value=3", "/reset"):
        for method in (site.http.get, site.http.post):
            assert method(path, headers=headers).status_code == 403
    assert (site.steering.parallel, site.statistics.snapshot().generation) == (0, 0)
    # reading is no change, and our own page may do it
    assert site.http.get("/parallel?type=plain", headers=headers).text == "0"
    own = {"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}
    assert site.http.post("/parallel?value=3&type=plain", headers=own).text == "3"


FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@pytest.mark.parametrize("referer", [None, "http://elsewhere.example/", "http://[", "localhost"])
def test_a_browser_that_says_nothing_of_the_site_must_come_from_our_page(
    site: Site, referer: str | None
) -> None:
    """Over plain HTTP to another machine there is no Sec-Fetch-Site, and with a GET for an image no
    Origin either.
    """
    headers = {"User-Agent": FIREFOX} | ({"Referer": referer} if referer else {})
    for path in ("/parallel?value=3", "/parallelism?value=3", "/reset"):
        assert site.http.get(path, headers=headers).status_code == 403
    assert (site.steering.parallel, site.statistics.snapshot().generation) == (0, 0)
    own = {"User-Agent": FIREFOX, "Referer": "http://localhost/"}
    assert site.http.get("/parallel?value=3&type=plain", headers=own).text == "3"
    origin = {"User-Agent": FIREFOX, "Origin": "http://localhost"}
    assert site.http.post("/parallel?value=4&type=plain", headers=origin).text == "4"
    assert (
        site.http.get("/parallel?value=5&type=plain", headers={"User-Agent": "curl/8.14.1"}).text
        == "5"
    )


@pytest.mark.parametrize(
    ("host", "inner"),
    [
        ("localhost:9996", True),
        ("127.0.0.1:9996", True),
        ("[::1]:9996", True),
        ("10.96.0.7", True),
        ("scaletest-client:9996", True),
        ("client.validation.svc:9996", True),
        ("client.validation.svc.cluster.local.", True),
        ("tester.example.com", True),
        ("TESTER.example.com:443", True),
        ("rebinding.example", False),
        ("client.validation", False),
        ("127.0.0.1.example:9996", False),
        ("localhost.example", False),
        ("x.svc.example", False),
        ("a.example, localhost", False),
        ("[::1", False),
    ],
)
def test_under_a_name_that_a_stranger_may_own_nothing_is_read_or_changed(
    host: str, inner: bool
) -> None:
    site = Site(hosts=["tester.example.com"])
    rebound = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
    for path in ("/parallel?value=3", "/reset"):
        answer = site.http.post(path, headers=rebound)
        assert answer.status_code == (200 if inner else 403)
        assert inner or "--allow-host" in answer.text
    for path in (
        "/",
        "/stats",
        "/api/v1/records",
        "/metrics",
        "/static/client.css",
        "/healthz",
        "/nothing",
    ):
        assert (site.http.get(path, headers={"Host": host}).status_code == 403) != inner
    assert site.steering.parallel == (3 if inner else 0)
    site.loop.close()


def test_with_a_token_the_name_does_not_matter() -> None:
    site = Site(token="s3cret")
    host = {"Host": "tester.example.com"}
    for path in ("/parallel?value=3&type=plain", "/parallel?type=plain"):
        assert site.http.get(path, headers={**host, "Authorization": "Bearer s3cret"}).text == "3"
        # a browser is asked for it
        refused = site.http.get(path, headers=host)
        assert (refused.status_code, refused.headers["WWW-Authenticate"].split()[0]) == (
            401,
            "Basic",
        )
    site.loop.close()


def test_a_host_name_that_is_none_is_refused() -> None:
    for wrong in ("", "a b", "a:1", "*", "http://a"):
        with pytest.raises(InvalidValue):
            Site(hosts=[wrong])


def test_downloads_do_not_take_all_threads(site: Site) -> None:
    site.fill()
    open_ones = [site.http.get("/api/v1/records") for _ in range(api.DOWNLOADS)]
    refused = site.http.get("/api/v1/records")
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "5")
    assert json.loads(refused.text)["result"] == "ERROR"
    open_ones[0].close()
    with site.http.get("/api/v1/records") as answer:
        assert answer.status_code == 200
    open_ones[1].close()


def test_text_cannot_turn_the_direction_of_reading(site: Site) -> None:
    turned = "\u202egpj.exe\x1b\u200f"
    fields = {
        "outcome": Outcome.FAILED,
        "error": f"one\n{turned}",
        "node": turned,
        "pod": turned,
        "device": turned,
    }
    site.statistics.add(Record("q", 0, replied("c-1", **fields), 1.0))
    for path in ("/", "/live", "/nodes", "/pods", "/nodes?type=html"):
        text = site.http.get(path).text
        assert not {"\u202e", "\u200f", "\x1b"} & set(text)
        assert "\\u202egpj.exe" in text
    assert "one \\u202e" in site.http.get("/live").text


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
                assert answer.status_code == 200
                assert answer.data.decode()


def test_the_token_guards_what_changes_and_nothing_else() -> None:
    site = Site(token="s3cret")
    basic = base64.b64encode(b"any:s3cret").decode()
    for path in ("/parallel?value=3", "/parallelism?value=3", "/reset"):
        refused = site.http.get(path)
        assert refused.status_code == 401
        assert refused.headers["WWW-Authenticate"].startswith("Basic realm=")
        assert site.http.get(path, headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert site.http.get(path, headers={"Authorization": "Bearer s3cret"}).status_code == 200
        assert site.http.get(path, headers={"Authorization": f"Basic {basic}"}).status_code == 200
    assert (
        site.http.get("/").status_code == site.http.get("/parallel?type=plain").status_code == 200
    )
    assert "s3cret" not in site.http.get("/").text
    site.loop.close()


def test_no_foreign_text_is_markup(site: Site) -> None:
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
    assert "&lt;script&gt;alert(&#39;x&#39;)" in site.http.get("/").text
    refused = site.http.get(f"/parallel?value={quote(HOSTILE)}")
    assert (refused.status_code, "<script>alert" in refused.text) == (400, False)
    # terminals do not get control characters
    assert "\x1b" not in site.http.get("/nodes").text


def test_every_page_has_the_policy_and_names_no_other_host(site: Site) -> None:
    site.fill()
    for path in [*PATHS, "/nothing", "/static/page.css", "/static/page.js"]:
        answer = site.http.get(path)
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        if answer.mimetype == "text/html":
            assert not re.search(r"""(?:href|src|action)=["']?(?:[a-z]+:)?//""", answer.text)
            assert not re.search(r"""\son[a-z]+=|\sstyle=|<style|<script>""", answer.text)
        answer.close()


@pytest.mark.parametrize(
    ("given", "root"),
    [
        ("/tester", "/tester"),
        ("/a/b/", "/a/b"),
        ("//evil.example", ""),
        ('/x"y', ""),
        ("/a/../b?c", ""),
        ("javascript:x", ""),
    ],
)
def test_links_follow_a_forwarded_prefix_that_is_one(site: Site, given: str, root: str) -> None:
    text = site.http.get("/", headers={"X-Forwarded-Prefix": given}).text
    assert set(
        re.findall(r'(?:href|src|action)="([^"#]*?)/(?:static|stats|parallel|reset|api)', text)
    ) == {root}
    back = site.http.get("/reset?type=page", headers={"X-Forwarded-Prefix": given})
    assert (back.status_code, back.headers["Location"]) == (303, f"{root}/")


def test_a_prefix_of_ones_own_is_answered_with_and_without() -> None:
    site = Site(prefix="/tester/")
    assert site.http.get("/tester/nodes").text == site.http.get("/nodes").text
    assert site.http.get("/tester").status_code == 200
    assert site.http.get("/tester/fails?type=plain").text == "0"
    assert site.http.get("/testers/fails").status_code == 404
    assert 'action="/tester/parallel"' in site.http.get("/").text
    site.loop.close()


def test_an_open_load_says_that_it_cannot_be_steered() -> None:
    client: Any = FakeClient()
    statistics = Statistics("q")
    loop = OpenLoop(client, "q", statistics.add, pace.constant(0.001), maximum=5)
    http = make_app(
        Steering(loop, statistics, load="1 requests/s", maximum=5), HttpCounts()
    ).test_client()
    assert http.get("/parallel?value=3").status_code == 409
    assert http.get("/").status_code == 200
    loop.close()


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
    path=st.sampled_from(PATHS) | TEXTS.map(lambda text: "/" + quote(text)),
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
def test_nothing_that_is_asked_makes_a_500(
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
