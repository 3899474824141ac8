"""Who may start and stop runs through the pages: only their user, from the page itself."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from scaletest.cli.main import run
from scaletest.ui import start as start_pages
from scaletest.ui.app import make_app
from scaletest.ui.sources import Sources
from scaletest.ui.start import Starter
from scaletest.validation.plan import Plan
from tests.conftest import eventually
from tests.unit import made_runs as runs

TOKEN = "a-token-of-this-test"
HERE = "127.0.0.1:9995"
OWN = {"Host": HERE, "Origin": f"http://{HERE}"}
FORM = {"command": "sleep 0.1", "limit": "2"}
# The plan of a run that can be run again here.
LOCAL = replace(runs.LIMITED, queue="validate-0a1b2c3d")
# In place of `scaletest validate`: it makes a run folder, writes what it was told, and waits.
PROGRAM = """
import json, os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1 + sys.argv.index("--run-dir")])
if "wrong" in sys.argv:
    sys.exit("error: there is no program 'wrong'")
folder.mkdir(parents=True)
(folder / "plan.json.new").write_text(json.dumps([os.getpid(), *sys.argv[1:]]))
(folder / "plan.json.new").rename(folder / "plan.json")
time.sleep(600)
"""


class Pages:
    """Pages that may start runs, and a browser that opened the printed address."""

    def __init__(self, root: Path) -> None:
        self.root, self.starter = root, Starter(TOKEN)
        self.browser: FlaskClient = make_app(Sources(root), starter=self.starter).test_client()

    def post(self, path: str = "/start", headers: Any = OWN, **form: str) -> TestResponse:
        return self.browser.post(path, headers=headers, data={"token": TOKEN, **(form or FORM)})

    @property
    def started(self) -> list[Path]:
        return sorted(self.root.glob("*/plan.json"))


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pages]:
    def stand_in(*line: str) -> list[str]:
        assert line[:4] == ("scaletest", "validate", "--local", "--run-dir")
        return [sys.executable, "-c", PROGRAM, *line[1:]]

    monkeypatch.setattr(start_pages, "python_module", stand_in)
    pages = Pages(tmp_path / "runs")
    yield pages
    pages.starter.close()


@pytest.mark.parametrize(
    "headers",
    [
        # a form of another site, or of another server of this machine
        {"Host": HERE, "Origin": "http://elsewhere.example"},
        {"Host": HERE, "Origin": "http://127.0.0.1:8000"},
        {"Host": HERE, "Origin": f"https://{HERE}"},
        {"Host": HERE, "Origin": "null"},
        {"Host": HERE},
        {**OWN, "Sec-Fetch-Site": "cross-site"},
        {**OWN, "Sec-Fetch-Site": "same-site"},
        {**OWN, "Sec-Fetch-Site": "none"},
        # a name that a stranger pointed at this address, and others that are not this machine's own
        *(
            {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
            for host in (
                "rebinding.example:9995",
                "localhost.example:9995",
                "127.0.0.1.example",
                "10.96.0.7:9995",
                "ui.validation.svc",
                "[::1",
                "",
            )
        ),
    ],
)
def test_nobody_but_the_page_itself_starts_anything(pages: Pages, headers: dict[str, str]) -> None:
    # the token comes along, as if they knew it all the same
    for path in ("/start", "/start/stop"):
        assert pages.post(path, headers).status_code == 403
    assert pages.started == [] and pages.starter.running == ""


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], "\xff"])
def test_without_the_token_nothing_is_started(pages: Pages, token: str) -> None:
    # a browser sends cookies to the servers of others on this machine, too: they are worth nothing
    pages.browser.set_cookie("scaletest-start", TOKEN, domain="127.0.0.1", path="/start")
    for path in ("/start", "/start/stop"):
        headers = {**OWN, "Authorization": f"Bearer {TOKEN}"}
        answer = pages.post(f"{path}?token={TOKEN}", headers, **FORM, token=token)
        assert answer.status_code == 403 and "printed first" in answer.text
    assert pages.started == []


def test_only_a_post_starts(pages: Pages) -> None:
    for method in ("GET", "HEAD", "PUT", "OPTIONS"):
        pages.browser.open("/start", method=method, headers=OWN, query_string=FORM)
        pages.browser.open("/start/stop", method=method, headers=OWN, query_string=FORM)
    # and its values are those of the form, not of an address that somebody may be led to
    answer = pages.browser.post("/start", headers=OWN, query_string=FORM, data={"token": TOKEN})
    assert answer.status_code == 400
    assert pages.started == []


def test_no_page_holds_the_token(pages: Pages) -> None:
    name = pages.post().headers["Location"]
    for path in ("/start", "/runs", "/live", name):
        answer = pages.browser.get(path, headers={"Host": HERE})
        assert answer.status_code == 200
        assert TOKEN not in answer.text and "Set-Cookie" not in answer.headers


def test_a_run_is_started_without_a_shell_shown_and_stopped(pages: Pages) -> None:
    answer = pages.post(command="sh -c 'echo $HOME; true' ; rm -rf *", limit="8")
    name = pages.starter.running
    assert (answer.status_code, answer.headers["Location"]) == (303, f"/live/{name}")
    (plan,) = pages.started
    assert plan.parent.name == name
    words = ["--limit", "8", "--", "sh", "-c", "echo $HOME; true", ";", "rm", "-rf", "*"]
    assert plan.read_text().endswith(str(words)[1:].replace("'", '"'))
    # one at a time: a second one would disturb the first
    refused = pages.post()
    assert refused.status_code == 400 and f"run {name} is in progress" in refused.text
    # stop ends the one that is named
    pages.post("/start/stop", run="another")
    assert pages.starter.running == name
    assert pages.post("/start/stop", run=name).headers["Location"] == f"/live/{name}"
    eventually(lambda: not pages.starter.running)
    # nobody else gets the id of the group that the guard would end
    os.kill(json.loads(plan.read_text())[0], 0)
    assert pages.post().status_code == 303


def test_the_plan_of_a_stored_run_is_run_again(pages: Pages) -> None:
    folder = runs.stored(pages.root / "old", LOCAL, runs.limited_steps())
    assert "/start?run=old" in pages.browser.get("/runs/old", headers={"Host": HERE}).text
    form = pages.browser.get("/start?run=old", headers={"Host": HERE}).text
    assert "ffmpeg -i in.mkv" in form and 'value="old"' in form
    assert pages.post(run="old").status_code == 303
    (plan,) = [path for path in pages.started if path.parent.name != "old"]
    assert plan.read_text().endswith(f'"-f", "{folder.path}/plan.json"]')
    for name in ("none", "../old", "/etc"):
        assert pages.post(run=name).status_code == 400


def test_the_plan_of_a_deployment_is_not_run_here(pages: Pages) -> None:
    # given a run whose plan has no command: here it would measure a sleep
    runs.stored(pages.root / "far", Plan(limit=2, queue="media"), runs.limited_steps())
    assert "Run again" not in pages.browser.get("/runs/far", headers={"Host": HERE}).text
    for answer in (
        pages.browser.get("/start?run=far", headers={"Host": HERE}),
        pages.post(run="far"),
    ):
        assert "run far is not a validation of local workers" in answer.text
        assert 'value="far"' not in answer.text
    assert len(pages.started) == 1


@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"command": "", "limit": "2"}, "There is no command"),
        ({"command": "echo 'a", "limit": "2"}, "No closing quotation"),
        ({"command": "wrong <b>", "limit": "2"}, "There is no program &#39;wrong&#39;"),
    ],
)
def test_what_cannot_be_started_says_why(pages: Pages, form: dict[str, str], why: str) -> None:
    answer = pages.post(**form)
    assert answer.status_code == 400
    assert why.lower() in answer.text.lower() and "<b>" not in answer.text
    assert pages.starter.running == ""


def test_a_run_does_not_outlive_the_pages(pages: Pages) -> None:
    pages.post()
    assert pages.starter.running
    pages.starter.close()
    assert pages.starter.running == ""


def test_pages_that_only_read_have_no_such_page(tmp_path: Path) -> None:
    client = make_app(Sources(tmp_path)).test_client()
    assert client.get("/start").status_code == client.post("/start").status_code == 404
    assert "/start" not in client.get("/runs").text


@pytest.mark.parametrize("listen", ["0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0"])
def test_starting_is_refused_where_others_can_reach_it(
    listen: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["ui", "--allow-start", "--listen", listen]) == 2
    assert "can be reached from elsewhere" in capsys.readouterr().err
