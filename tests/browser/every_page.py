"""Every page that this project serves or writes, over made-up queues, runs and loads."""

from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

from flask import Flask

from scaletest.benchmarks.report import benchmark_report
from scaletest.capacity.report import make_comparison_report
from scaletest.lifecycle.report.report import lifecycle_report
from scaletest.lifecycle.run_type import LifecycleRun
from scaletest.model.errors import Unreachable
from scaletest.model.labels import Labels
from scaletest.model.run_progress import RunProgress
from scaletest.pages.security import HEADERS
from scaletest.pages.server import Server
from scaletest.render.contents import Report
from scaletest.report import formats
from scaletest.runs.folder import PROGRESS, RESULT
from scaletest.saturation.report.report import saturation_report
from scaletest.ui import runs as runs_page
from scaletest.ui.start import Starter
from scaletest.validation.report.report import validation_report
from tests.browser.test_client_page import Site
from tests.conftest import eventually
from tests.unit import made_runs as runs
from tests.unit.benchmarks.test_report import READ, a_run, only
from tests.unit.capacity.simulations import compared
from tests.unit.lifecycle.test_charts import made
from tests.unit.lifecycles import of
from tests.unit.queue_pages import MadeReader, site, under_load
from tests.unit.saturation.test_report import example_run

LONG = "a-name-that-is-rather-long-for-narrow-screens.and-more-of-it_" + "x" * 30
SERVED = {
    "ui": (
        *("/", "/queues/media", "/queues/lonely", "/queues/none"),
        *("/runs", "/runs?name=none", "/runs/one"),
        *("/compare", "/compare?run=one&run=two", "/compare?run=one&run=none"),
        *("/live", f"/live/{LONG}", "/live/one", "/live/none"),
    ),
    "ui-without-redis": ("/", "/live", "/runs"),
    "ui-while-redis-is-away": ("/",),
    "ui-that-starts": ("/start",),
    "client": ("/", "/stats?type=html", "/none"),
}
WRITTEN = (
    *(f"validation-{case}" for case in ("limited", "failures", "peak")),
    *("saturation", "lifecycle", "benchmark", "sweep", "rules"),
)
PAGES = [(place, path) for place, paths in SERVED.items() for path in paths]
PAGES += [("written", f"/{name}.html") for name in WRITTEN]


def addresses(stack: ExitStack, folder: Path) -> dict[str, str]:
    """Serve and write all pages until the stack ends; where each group of PAGES begins."""
    reader = under_load()
    away = Unreachable("Redis at redis://h is away", hint="start it")
    archive = _archive(stack, folder)
    applications = {
        "ui": site(reader, archive),
        "ui-without-redis": site(None),
        "ui-while-redis-is-away": site(MadeReader(error=away), archive),
        "ui-that-starts": site(
            None, archive, starter=stack.enter_context(closing(Starter("token")))
        ),
    }
    runs_page.read_all_runs(applications["ui"])
    urls = {name: _served(stack, app) for name, app in applications.items()}
    (folder / "written").mkdir()
    for name in WRITTEN:
        page = folder / "written" / f"{name}.html"
        page.write_text(formats.render(_report(name, folder), "html"), "utf-8")
    return {**urls, "client": _client(stack), "written": (folder / "written").as_uri()}


def _served(stack: ExitStack, app: Flask) -> str:
    return stack.enter_context(closing(Server(app, "127.0.0.1:0", headers=HEADERS))).url


def _client(stack: ExitStack) -> str:
    client = stack.enter_context(closing(Site()))
    client.steering.set_parallel(8)
    eventually(lambda: len(client.statistics.snapshot().points) > 2)
    eventually(lambda: client.statistics.snapshot().failed > 2)
    client.steering.set_parallel(4)
    return client.server.url


def _archive(stack: ExitStack, folder: Path) -> Path:
    """Two runs that have ended, and two that are measured."""
    root = folder / "archive"
    rates = {1: 3.0, 2: 5.0, 4: 6.0}
    steps = [{"workers": workers, "throughput_per_s": rate} for workers, rate in rates.items()]
    for name, verdict in (("one", "PASS"), ("two", "FAIL"), (LONG, ""), ("four", "")):
        plan = replace(runs.LIMITED, queue="validate-0a1b2c3d")
        run = runs.stored(root / name, plan, runs.limited_steps())
        labels = Labels(f"{name}-again", "before the fix")
        run.set_labels(labels)
        if verdict:
            found = {"finding": "2.0x: file lock encoder.lock", "verdict": {"kind": verdict}}
            run.write(RESULT, {"elapsed_s": 25.4, "steps": steps, **found})
            continue
        log = ("x" * 300, "4 workers: 9 requests/s")
        fields = {
            "done": 2,
            "steps": 8,
            "left_least_s": 30.0,
            "left_most_s": 40.0,
            "elapsed_s": 60.0,
            "log": log,
        }
        progress = RunProgress(run.name, "validation", "sleep 1", **fields)
        run.replace(PROGRESS, [progress.to_json()])
        stack.enter_context(run.locked())
    return root


def _report(name: str, folder: Path) -> Report:
    if name.startswith("validation-"):
        return validation_report(runs.make(name.partition("-")[2], folder / name))
    if name == "saturation":
        return saturation_report(example_run())
    if name == "lifecycle":
        return lifecycle_report(
            LifecycleRun("", "/runs/l", of(*made(60, 2), until="ready"), title="60 Jobs")
        )
    if name == "rules":
        return make_comparison_report(compared("waiting-fast", "desired:window=300"))
    return benchmark_report(only(READ) if name == "benchmark" else a_run())
