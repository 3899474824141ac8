"""The bar of the page Runs: 2,000 stored runs in under 300 ms a page. Prints a line of JSON.

cold: the first pages after the server started, while it still reads the runs. warm: pages when all
are read; changed: when one run has changed since the page before.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from threading import Thread

from flask.testing import FlaskClient

from scaletest.model import Plan
from scaletest.model.labels import Labels
from scaletest.runs.folder import RESULT
from scaletest.ui.app import make_app
from scaletest.ui.runs import fill
from scaletest.ui.sources import Sources
from scaletest.validation.folder import ValidationFolder

RUNS, PAGES, MOST_S = 2000, 20, 0.3
ADDRESSES = (
    "/runs",
    "/runs?page=7",
    "/runs?sort=verdict&verdict=FAIL",
    "/runs?tag=arc&name=run-1*",
)


def main() -> None:
    """Make the runs, ask for pages, and print the figures; exit code 1 above the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    count = parser.parse_args().runs
    folder = Path(tempfile.mkdtemp(prefix="scaletest-ui-"))
    try:
        figures = measured(folder / "runs", count)
    finally:
        shutil.rmtree(folder)
    print(json.dumps({"bar": "ui-runs", "runs": count, **figures}))
    raise SystemExit(max(figures["cold_s"], figures["warm_s"], figures["changed_s"]) > MOST_S)


def measured(root: Path, count: int) -> dict[str, float]:
    """The slowest page of each sort, in seconds."""
    for number in range(count):
        make(root, number)
    app = make_app(Sources(root))
    client = app.test_client()
    began = time.perf_counter()
    thread = Thread(target=fill, args=(app,))
    thread.start()
    cold = [page_s(client, ADDRESSES[0])]
    while thread.is_alive():
        cold.append(page_s(client, ADDRESSES[0]))
    filled_s = time.perf_counter() - began
    warm = [page_s(client, address) for address in PAGES * ADDRESSES]
    changed = []
    for number in range(PAGES):
        ValidationFolder(root / f"run-{number}").relabel(lambda _: Labels(note="changed"))
        changed.append(page_s(client, ADDRESSES[0]))
    rounded = {
        "cold_s": max(cold),
        "filled_s": filled_s,
        "warm_s": max(warm),
        "warm_median_s": statistics.median(warm),
        "changed_s": max(changed),
    }
    return {name: round(seconds, 3) for name, seconds in rounded.items()}


def make(root: Path, number: int) -> None:
    """A stored run with a curve, tags and a note."""
    folder = ValidationFolder.create(root / f"run-{number}")
    labels = Labels(f"nightly-{number}", ("arc", f"driver-{number % 7}"), "a note of the run")
    began = f"2026-{1 + number % 12:02}-{1 + number % 28:02}T10:00:00+00:00"
    folder.begin(Plan(limit=64, seconds=0.5, queue="q"), {"began": began}, labels)
    steps = [{"throughput_per_s": 1.9**step, "text": "x" * 2000} for step in range(7)]
    kind = ("PASS", "FAIL", "INVALID")[number % 3]
    folder.write(RESULT, {"steps": steps, "verdict": {"kind": kind}, "elapsed_s": 30.0 + number})


def page_s(client: FlaskClient, address: str) -> float:
    """Seconds until the page is there."""
    began = time.perf_counter()
    response = client.get(address)
    assert response.status_code == 200
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
