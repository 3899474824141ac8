"""Samples of nodes in a run: what is read beside it is kept, bounded, and nothing of it stops the
run.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scaletest.model import NodeSample
from scaletest.validation.folder import ValidationFolder
from scaletest.validation.measure import samples
from scaletest.validation.measure.runner import ValidationRunner
from scaletest.validation.measure.samples import Collector, SampleStore
from scaletest.validation.plan import Plan
from tests.unit.validation.test_runner import SECONDS, Nobody, Site, shared

PLAN = Plan(limit=2, seconds=SECONDS, queue="q")


def sample(at_s: float, node: str = "n") -> NodeSample:
    return NodeSample(node, "w", at_s, 1.0, {"cpu": {"user": 1.5}})


def run(folder: ValidationFolder, read: samples.ReadSamples) -> ValidationRunner:
    """A run on a virtual clock."""
    site = Site(shared(0.0))
    stored = folder.load() if (folder.path / "plan.json").exists() else None
    if stored is None:
        folder.begin(PLAN, {})
    site.runner = ValidationRunner(
        PLAN, folder, Nobody(), clock=site.clock, stored=stored, wake=site
    )
    site.runner.run(site, site, samples=read)
    return site.runner


@given(
    st.lists(st.lists(st.sampled_from("abc"), max_size=30), max_size=30),
    st.integers(4, 40),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_stored_samples_are_bounded_and_thinned_evenly_over_nodes(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[str]], most: int
) -> None:
    folder = ValidationFolder.create(tmp_path_factory.mktemp("runs") / "run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(samples, "MOST_SAMPLES", most)
        store = SampleStore(folder)
        numbers = itertools.count()
        for part in parts:
            store.add([sample(float(next(numbers)), node) for node in part])
            assert len(store.rows) <= most
    times = [row.at_s for row in store.rows]
    assert times == sorted(times) and len(set(times)) == len(times)
    if sum(map(len, parts)) <= most:
        assert len(times) == sum(map(len, parts))
    # of every node the same part
    sent = [sum(node == name for part in parts for node in part) for name in "abc"]
    left = [sum(row.node == name for row in store.rows) for name in "abc"]
    assert left in [
        [count // every for count in sent]
        for every in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
    ]
    assert list(folder.rows("samples.jsonl")) == store.rows


def test_a_run_keeps_what_is_read_and_goes_on_with_what_was_kept(tmp_path: Path) -> None:
    folder = ValidationFolder.create(tmp_path / "run")
    numbers = itertools.count()
    runner = run(folder, lambda: [sample(float(next(numbers)))])
    first = folder.load().samples
    assert len(first) >= 3 and first == runner._samples.rows
    again = run(folder, lambda: [sample(1e9)])
    assert folder.load().samples[: len(first)] == first
    assert again._samples.rows == folder.load().samples != first


def test_a_run_without_samples_leaves_no_file(tmp_path: Path) -> None:
    folder = ValidationFolder.create(tmp_path / "run")
    run(folder, list)
    assert not (folder.path / "samples.jsonl").exists()


def test_no_sample_is_stored_after_the_run_ended() -> None:
    stored: list[NodeSample] = []
    collector = Collector(lambda: [sample(1.0)], stored.extend)
    collector.close()
    assert len(stored) == 1
    collector.collect()
    collector.close()
    assert len(stored) == 1


def test_a_passing_read_error_gives_one_warning_and_is_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers = iter([OSError("away"), OSError("away"), None])
    stored: list[NodeSample] = []

    def read() -> Sequence[NodeSample]:
        if (error := next(answers, None)) is not None:
            raise error
        return [sample(1.0)]

    collector = Collector(read, stored.extend)
    for _ in range(3):
        collector.collect()
    assert (
        len(stored) == 1
        and caplog.text.count("samples of the nodes are missing: OSError: away") == 1
    )


def test_a_full_disk_does_not_end_the_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = ValidationFolder.create(tmp_path / "run")
    (folder.path / "samples.jsonl").mkdir()
    collector = Collector(lambda: [sample(1.0)], SampleStore(folder).add)
    collector.close()
    assert "cannot be written" in caplog.text
