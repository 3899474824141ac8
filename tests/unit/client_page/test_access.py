"""Who may read and change what through the client's pages: other sites, tokens, foreign names."""

import base64
import re
import socket

import pytest

from scaletest.model.errors import InvalidValue
from tests.unit.web_site import Site


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
def test_requests_from_another_site_change_nothing(site: Site, headers: dict[str, str]) -> None:
    for path in ("/parallel?value=3", "/parallelism?value=3", "/reset"):
        for method in (site.http.get, site.http.post):
            assert method(path, headers=headers).status_code == 403
    assert (site.steering.parallel, site.statistics.snapshot().generation) == (0, 0)
    # reading is no change, and our own page may do it
    assert site.http.get("/parallel?type=plain", headers=headers).text == "0\n"
    own = {"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}
    assert site.http.post("/parallel?value=3&type=plain", headers=own).text == "3\n"


FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@pytest.mark.parametrize("referer", [None, "http://elsewhere.example/", "http://[", "localhost"])
def test_a_browser_without_fetch_metadata_must_come_from_our_page(
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
    assert site.http.get("/parallel?value=3&type=plain", headers=own).text == "3\n"
    origin = {"User-Agent": FIREFOX, "Origin": "http://localhost"}
    assert site.http.post("/parallel?value=4&type=plain", headers=origin).text == "4\n"
    assert (
        site.http.get("/parallel?value=5&type=plain", headers={"User-Agent": "curl/8.14.1"}).text
        == "5\n"
    )


@pytest.mark.parametrize(
    ("host", "inner"),
    [
        ("localhost:9996", True),
        ("127.0.0.1:9996", True),
        ("[::1]:9996", True),
        ("10.96.0.7", True),
        (f"{socket.gethostname()}:9996", True),
        ("scaletest-client:9996", False),
        ("neighbour.local", False),
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
def test_requests_under_an_unknown_host_name_are_refused(host: str, inner: bool) -> None:
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
        assert site.http.get(path, headers={**host, "Authorization": "Bearer s3cret"}).text == "3\n"
        # a browser is asked for it
        refused = site.http.get(path, headers=host)
        assert (refused.status_code, refused.headers["WWW-Authenticate"].split()[0]) == (
            401,
            "Basic",
        )
    site.loop.close()


def test_an_invalid_host_name_is_refused() -> None:
    for wrong in ("", "a b", "a:1", "*", "http://a"):
        with pytest.raises(InvalidValue):
            Site(hosts=[wrong])


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


@pytest.mark.parametrize(
    ("prefix", "root"),
    [
        ("/tester", "/tester"),
        ("/a/b/", "/a/b"),
        ("//evil.example", ""),
        ('/x"y', ""),
        ("/a/../b?c", ""),
        ("javascript:x", ""),
    ],
)
def test_links_follow_a_valid_forwarded_prefix(site: Site, prefix: str, root: str) -> None:
    text = site.http.get("/", headers={"X-Forwarded-Prefix": prefix}).text
    assert set(
        re.findall(r'(?:href|src|action)="([^"#]*?)/(?:static|stats|parallel|reset|api)', text)
    ) == {root}
    back = site.http.get("/reset?type=page", headers={"X-Forwarded-Prefix": prefix})
    assert (back.status_code, back.headers["Location"]) == (303, f"{root}/")


def test_the_navigation_leads_to_the_pages_of_queues_and_runs_where_they_are_known() -> None:
    site = Site(ui_url="http://127.0.0.1:9995/lab/", prefix="/tester")
    text = site.http.get("/stats?type=html").text
    assert 'href="http://127.0.0.1:9995/lab/runs">Runs<' in text
    assert 'href="/tester/stats?type=html" aria-current="page"' in text
    site.loop.close()


def test_paths_are_served_with_and_without_the_configured_prefix() -> None:
    site = Site(prefix="/tester/")
    assert site.http.get("/tester/nodes").text == site.http.get("/nodes").text
    assert site.http.get("/tester").status_code == 200
    assert site.http.get("/tester/fails?type=plain").text == "0\n"
    assert site.http.get("/testers/fails").status_code == 404
    assert 'action="/tester/parallel"' in site.http.get("/").text
    site.loop.close()
