"""The pages Runs, Compare and Live of the UI, without a network."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from scaletest.model.labels import Labels
from scaletest.model.run_progress import RunProgress
from scaletest.runs.folder import PROGRESS, RESULT
from scaletest.ui import reading, reports
from scaletest.ui import runs as runs_page
from scaletest.ui.app import make_app
from scaletest.ui.sources import Sources
from scaletest.validation.folder import ValidationFolder
from tests.conftest import eventually
from tests.unit import made_runs as runs
from tests.unit.report_page import Page

HOSTILE = '"><script>alert(1)</script><img src=x onerror=a()>'


class Archive:
    """A folder of runs, and the pages that show it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.client: FlaskClient = make_app(Sources(root)).test_client()

    def add(self, name: str, labels: Labels | None = None, **result: Any) -> ValidationFolder:
        folder = runs.stored(self.root / name, runs.LIMITED, runs.limited_steps())
        folder.write(RESULT, {"elapsed_s": 25.4, **result})
        if labels:
            folder.set_labels(labels)
        return folder

    def page(self, address: str, status: int = 200) -> Page:
        response = self.client.get(address)
        assert response.status_code == status, response.text
        page = Page(response.text)
        assert not [tag for tag, attributes in page.tags if "style" in attributes]
        names = [name for _, attributes in page.tags for name in attributes]
        assert not [name for name in names if name.startswith("on")]
        return page


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive(tmp_path / "runs")


def links(page: Page) -> list[str]:
    return [str(attributes["href"]) for tag, attributes in page.tags if tag == "a"]


def test_runs_are_listed_with_verdict_note_and_curve(archive: Archive) -> None:
    rates = {1: 3.0, 2: 5.5, 4: 7.25}
    steps = [{"workers": workers, "throughput_per_s": rate} for workers, rate in rates.items()]
    finding = "2.4x: file lock the.lock"
    archive.add("one", Labels("nightly", "after\nthe update"), steps=steps, finding=finding)
    archive.add("two", verdict={"kind": "FAIL"})
    page = archive.page("/runs")
    assert "2 runs" in page.text and "nightly" in page.text and "after the update" in page.text
    assert "requests per second at each number of workers: 3, 5.5, 7.25" in page.text
    assert finding in page.text
    # the curve of the first run beside the one that it would be at best; the other has none
    drawn = [attributes.get("class") for tag, attributes in page.tags if tag == "path"]
    assert drawn.count("c-ideal") == drawn.count("c-spark") == 1
    assert {"/runs/one", "/runs/two"} <= set(links(page))


def test_a_list_is_chosen_sorted_and_cut_into_pages(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_page, "AT_ONCE", 2)
    for name, verdict in (("a", "PASS"), ("b", "FAIL"), ("c", "PASS")):
        archive.add(name, verdict={"kind": verdict})
    first = archive.page("/runs?sort=verdict&type=validation")
    assert "1 to 2 of 3 runs" in first.text
    (following,) = [link for link in links(first) if "page=2" in link]
    assert following == "/runs?type=validation&sort=verdict&page=2"
    names = [link for link in links(archive.page(following)) if link.startswith("/runs/")]
    assert names == ["/runs/a"]
    failed = archive.page("/runs?verdict=FAIL")
    assert [link for link in links(failed) if link.startswith("/runs/")] == ["/runs/b"]
    assert "None of the 3 runs fits" in archive.page("/runs?name=nothing").text
    # what is no page, type or order counts as not asked for
    assert "1 to 2 of 3 runs" in archive.page("/runs?page=-1&sort=x&type=y&verdict=z").text
    # a page beyond the last shows the last
    assert "3 to 3 of 3 runs" in archive.page("/runs?page=99999999999999999999").text


def test_an_empty_archive_says_how_a_run_is_made(archive: Archive) -> None:
    assert "scaletest validate" in archive.page("/runs").text
    assert "scaletest validate" in archive.page("/compare").text
    assert "No run is in progress" in archive.page("/live").text


def test_a_run_is_its_report_with_a_way_back(archive: Archive) -> None:
    archive.add("one")
    response = archive.client.get("/runs/one")
    policy = response.headers["Content-Security-Policy"]
    assert "script" not in policy and "default-src 'none'" in policy and "frame-ancestors" in policy
    found = links(Page(response.text))
    assert {"/compare?run=one", "/runs/one.csv", "/runs/one.png"} <= set(found)
    # the navigation is that of the other pages
    assert found[:6] == links(archive.page("/runs"))[1:7]
    # links of the file lead to its own headings only
    file = archive.client.get("/runs/one.html")
    assert all(link.startswith("#section-") for link in links(Page(file.text)))
    assert "attachment" in file.headers["Content-Disposition"]


@pytest.mark.parametrize(
    ("form", "beginning"),
    [("md", "### "), ("json", "{"), ("csv", "workers"), ("junit", "<testsuites")],
)
def test_a_run_is_downloaded_in_other_forms(archive: Archive, form: str, beginning: str) -> None:
    archive.add("one")
    response = archive.client.get(f"/runs/one.{form}")
    assert response.status_code == 200 and response.text.startswith(beginning)
    suffix = "junit.xml" if form == "junit" else form
    assert response.headers["Content-Disposition"].endswith(f"one.{suffix}")


def test_a_report_is_made_again_when_the_run_has_changed(archive: Archive) -> None:
    folder = archive.add("one")
    assert "seen" not in archive.client.get("/runs/one").text
    folder.set_labels(Labels(note="seen"))
    assert "seen" in archive.client.get("/runs/one").text


@pytest.mark.parametrize(
    "name",
    ["..", "../one", "%2e%2e", "..%2fone", ".hidden", "none", "one.exe", "one%00", "x" * 900],
)
def test_nothing_but_runs_of_the_archive_is_served(archive: Archive, name: str) -> None:
    archive.add("one")
    (archive.root.parent / "plan.json").write_text("{}")
    for place in ("runs", "live"):
        assert archive.client.get(f"/{place}/{name}").status_code == 404


def test_a_run_is_found_by_the_name_that_people_gave_it(archive: Archive) -> None:
    for folder, name in (("one", "nightly"), ("two", "nightly"), ("three", "other")):
        archive.add(folder, Labels(name))
    # of several runs of a name, and for LAST, the newest; these began at one time
    for address, text in (
        ("/runs/nightly", "run two "),
        ("/runs/LAST", "run two "),
        ("/runs/other", "run three "),
        ("/live/other", "run three "),
        ("/compare?run=other&run=nightly", "compare other with nightly"),
    ):
        assert text in Page(archive.client.get(address).text).text
    disposition = archive.client.get("/runs/nightly.csv").headers["Content-Disposition"]
    assert disposition.endswith("two.csv")


def test_a_damaged_run_says_why(archive: Archive) -> None:
    folder = archive.add("one")
    (folder.path / "records.jsonl").write_text("nonsense\n")
    for address in ("/runs/one", "/runs/one.md"):
        assert "one cannot be read" in archive.page(address, 422).text
    (folder.path / "plan.json").write_text("{")
    assert "cannot be read: plan.json of run one is not valid JSON" in archive.page("/runs").text


def test_runs_are_compared_the_oldest_as_the_base(archive: Archive) -> None:
    archive.add("one")
    archive.add("two")
    page = Page(archive.client.get("/compare?run=two&run=one").text)
    assert "compare one with two" in page.text and "What changed" in page.text
    assert {"/runs/one", "/runs/two", "/compare"} <= set(links(page))


def test_the_trend_of_a_name_is_a_page(archive: Archive) -> None:
    for name in ("one", "two"):
        archive.add(name, Labels("nightly"))
    archive.page("/runs")  # waits until all are read
    # the names that several runs have can be chosen
    form = archive.page("/trend")
    assert "/trend?name=nightly" in links(form)
    page = Page(archive.client.get("/trend?name=nightly").text)
    assert "trend of throughput(4) in nightly" in page.text and "equivalent" in page.text
    other = "/trend?name=nightly&measure=ratio%284%29"
    assert other in links(page)
    assert "trend of ratio(4) in nightly" in Page(archive.client.get(other).text).text
    assert "a trend needs two" in archive.page("/trend?name=weekly", 400).text
    assert "none of the runs measured x" in archive.page("/trend?name=n&measure=x", 400).text


def test_the_choice_has_the_newest_runs_and_the_ones_that_were_asked_for(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "MOST_CHOICES", 1)
    for name in ("one", "two", "three"):
        archive.add(name)

    def options() -> list[dict[str, str | None]]:
        tags = archive.page("/compare?run=one").tags
        return [attributes for tag, attributes in tags if tag == "option"]

    # a busy machine reads them one after the other
    eventually(lambda: {option["value"] for option in options()} == {"", "one", "two"})
    assert [option["value"] for option in options() if "selected" in option] == ["one"]


def test_what_cannot_be_compared_is_told_beside_the_choice(archive: Archive) -> None:
    archive.add("one")
    archive.add("two")
    other = archive.root / "other"
    other.mkdir()
    (other / "plan.json").write_text('{"kind": "saturation"}')
    assert "Choose a second run" in archive.page("/compare?run=one").text
    assert "there is no run 'none'" in archive.page("/compare?run=one&run=none", 400).text
    page = archive.page("/compare?run=one&run=other", 400)
    assert "compare runs of one type" in page.text or "saturation" in page.text
    chosen = [a["value"] for tag, a in page.tags if tag == "option" and "selected" in a]
    assert chosen == ["one", "other"]
    many = "&".join(f"run=r{number}" for number in range(30))
    assert "30 runs are too many" in archive.page(f"/compare?{many}", 400).text


def test_hostile_names_and_notes_are_text(archive: Archive) -> None:
    name = HOSTILE.replace("/", "\u2215")
    folder = archive.add(name, note=HOSTILE, verdict={"kind": HOSTILE}, steps=[HOSTILE])
    (folder.path / "labels.json").write_text(
        json.dumps({"name": HOSTILE, "note": HOSTILE + "\x1b[31m"})
    )
    progress = RunProgress(name, "validation", HOSTILE, phase=HOSTILE, log=(HOSTILE,))
    folder.write(PROGRESS, progress.to_dict())
    for address in ("/runs", "/compare", "/live", f"/live/{name}", f"/runs/{name}"):
        response = archive.client.get(address)
        names = {tag for tag, _ in Page(response.text).tags}
        assert "img" not in names and response.text.count("<script") <= 1
        assert "\x1b" not in response.text


def test_a_name_that_is_not_utf_8_is_shown_to_everybody(archive: Archive) -> None:
    archive.add(os.fsdecode(b"bad\xff"))
    archive.add("good")
    for address in ("/runs", "/compare", "/live", "/compare?run=good&run=bad%ff"):
        assert r"bad\udcff" in archive.page(address, 400 if "run=" in address else 200).text


# -- live


def tell(folder: ValidationFolder, **fields: Any) -> None:
    progress = RunProgress(folder.name, "validation", "sleep 1", **fields)
    folder.replace(PROGRESS, [progress.to_json()])


def test_the_run_in_progress_is_shown_directly(archive: Archive) -> None:
    archive.add("old")
    folder = archive.add("one")
    tell(
        folder,
        done=2,
        steps=8,
        left_least_s=30.0,
        left_most_s=40.0,
        elapsed_s=60.0,
        line="7 done",
        log=("first", "last"),
    )
    with folder.locked():
        assert archive.client.get("/live").headers["Location"] == "/live/one"
        page = archive.page("/live/one")
        (bar,) = [attributes for tag, attributes in page.tags if tag == "progress"]
        assert bar["value"] == "0.600"
        assert "step 3 of 8, 30 to 40 s left" in page.text and "7 done" in page.text
        assert "Log: last" in page.text
        assert "last\nfirst\n" in page.text
        assert "RUNNING" in page.text and "How far it scales" in page.text
        parts = [a["data-live"] for _, a in page.tags if "data-live" in a]
        assert parts == ["state", "log", "report"]
    # when its process was killed, expect that it does not run for ever
    killed = archive.page("/live/one")
    assert "is gone, and nothing measures it now" in killed.text
    assert "/runs/one" in links(killed)
    tell(folder, ended=True)
    ended = archive.page("/live/one")
    assert "The run has ended" in ended.text and "/runs/one" in links(ended)
    assert not [tag for tag, _ in ended.tags if tag == "progress"]
    assert "No run is in progress" in archive.page("/live").text


def test_a_run_that_has_ended_is_not_shown_as_measured_while_its_command_holds_it(
    archive: Archive,
) -> None:
    folder = archive.add("one", verdict={"kind": "FAIL"})
    with folder.locked():
        tell(folder, done=2, steps=8)
        assert "it is still being measured" in archive.page("/live/one").text
        tell(folder, done=8, steps=8, ended=True)
        text = archive.page("/live/one").text
    assert "The run has ended" in text
    assert "it is still being measured" not in text and "RUNNING" not in text


def test_before_the_first_step_no_figure_is_shown_beside_what_is_measured(archive: Archive) -> None:
    folder = archive.add("one")
    (folder.path / "steps.jsonl").unlink()
    folder.set_labels(Labels("nightly"))
    tell(folder, steps=8, line="44 done, 18 failed")
    with folder.locked():
        text = archive.page("/live/one").text
    assert "44 done, 18 failed" in text and "requests done" not in text
    assert "comes with the first step" in text
    assert "called nightly" in text


def test_several_runs_in_progress_are_listed(archive: Archive) -> None:
    folders = [archive.add("one"), archive.add("two")]
    for folder in folders:
        tell(folder)
    with folders[0].locked(), folders[1].locked():
        assert {"/live/one", "/live/two"} <= set(links(archive.page("/live")))


def test_a_run_beside_the_archive_is_shown_by_its_command(tmp_path: Path) -> None:
    folder = Archive(tmp_path / "elsewhere").add("one")
    client = make_app(Sources(tmp_path / "runs", run=folder)).test_client()
    with folder.locked():
        assert client.get("/live").headers["Location"] == "/live/one"
        assert "RUNNING" in client.get("/live/one").text
    assert client.get("/runs/one").status_code == 200


@pytest.mark.parametrize("content", ["{", '{"run": 1}', "x" * 200_000, ""])
def test_progress_that_cannot_be_read_is_left_out(archive: Archive, content: str) -> None:
    folder = archive.add("one")
    (folder.path / PROGRESS).write_text(content)
    with folder.locked():
        assert "being measured" in archive.page("/live/one").text


def test_a_report_so_far_is_made_no_more_often_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    now, used, made = [0.0], [0.0], list[int]()

    def slow() -> int:
        made.append(len(made))
        now[0] += 300.0
        used[0] += 3.0
        return made[-1]

    monkeypatch.setattr(reading.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(reading.time, "thread_time", lambda: used[0])
    pages = reading.PageCache()

    def page(stamp: int) -> int:
        return pages.page("run", ((stamp, 0, 0),), slow, rest_factor=10.0)

    assert [page(1), page(1), page(2)] == [0, 0, 0]
    # ten times the processor's time that it took, however long it waited for a processor
    now[0] += 31.0
    assert [page(2), page(2)] == [1, 1]
