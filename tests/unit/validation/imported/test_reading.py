"""Result files of load tools: what each says, how many replicas it had, and what is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scaletest.model.errors import ScaletestError
from scaletest.validation.imported.reading import MOST_BYTES, parse_label, read_results
from scaletest.validation.imported.result import ToolResult
from tests.unit.validation.imported import samples


def write(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document))
    return path


def read_one(path: Path, axis: str = "replicas", count: int = 0) -> ToolResult:
    (result,) = read_results(path, axis, count)
    return result


def test_vllm(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", samples.vllm(8.325, failed=2, replicas="4"))
    result = read_one(path)
    assert (result.tool, result.model, result.count) == ("vllm", "llama", 4)
    assert result.requests_per_s == 8.325
    assert result.tokens_per_s == pytest.approx(128 * 8.325)
    assert (result.successes, result.errors, result.in_flight) == (3200, 2, 32)
    assert (result.input_tokens, result.output_tokens) == (512, 128)
    # a rate of "inf" is closed load
    assert result.offered_per_s is None
    assert result.latencies["ttft.p99"] == pytest.approx(0.08977)


def test_failures_of_an_old_vllm_are_what_did_not_complete(tmp_path: Path) -> None:
    document = samples.vllm(8.0, completed=3190)
    del document["failed"]
    assert read_one(write(tmp_path / "a.json", document), count=1).errors == 10


def test_every_line_of_sglang_is_a_run(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(samples.sglang(rate)) + "\n" for rate in (10.0, 11.0)))
    results = read_results(path, "replicas", 2)
    assert [(row.tool, row.requests_per_s, row.count) for row in results] == [
        ("sglang", 10.0, 2),
        ("sglang", 11.0, 2),
    ]
    assert results[0].latencies["latency.mean"] == pytest.approx(1.8)


def test_guidellm_gives_the_level_with_the_highest_throughput(tmp_path: Path) -> None:
    path = write(tmp_path / "2-replicas.json", samples.guidellm((8, 3.2), (64, 9.1), (128, 9.0)))
    result = read_one(path)
    assert (result.requests_per_s, result.in_flight, result.levels) == (9.1, 64, 3)
    assert (result.count, result.version, result.errors) == (2, "0.8.1", 0)
    assert result.latencies == {"ttft.mean": pytest.approx(0.08), "ttft.p99": pytest.approx(0.16)}


def test_aiperf(tmp_path: Path) -> None:
    run = read_one(write(tmp_path / "n1.json", samples.aiperf(0.82)))
    assert (run.tool, run.requests_per_s, run.in_flight, run.seed) == ("aiperf", 0.82, 10, 42)
    assert run.latencies["ttft.mean"] == pytest.approx(0.19584)


def test_inference_perf(tmp_path: Path) -> None:
    result = read_one(
        write(tmp_path / "x.json", samples.inference_perf(91.357, offered=92.19)), count=1
    )
    assert (result.requests_per_s, result.offered_per_s) == (91.357, 92.19)
    assert result.latencies["ttft.p99"] == 0.1818
    assert result.late_s == 0.0002
    # on average a client may be early by its clock
    early = write(tmp_path / "y.json", samples.inference_perf(91.0, late_s=-0.0001))
    assert read_one(early, count=1).late_s == 0.0


def test_a_report_of_llm_d_knows_its_replicas(tmp_path: Path) -> None:
    path = tmp_path / "report.yaml"
    path.write_text(yaml.safe_dump(samples.llmd(50.0, 4)))
    result = read_one(path)
    assert (result.count, result.requests_per_s, result.in_flight) == (4, 50.0, 64)
    assert (result.successes, result.errors) == (996, 4)
    # in the unit that the report names
    assert result.latencies == {"ttft.mean": pytest.approx(0.041)}
    assert read_one(path, axis="gpus").count == 4


def test_a_table_of_numbers_and_throughput(tmp_path: Path) -> None:
    path = tmp_path / "tp.csv"
    path.write_text("n,throughput,repeat\n1,11253,0\n2,17868,0\n")
    assert [(row.count, row.requests_per_s) for row in read_results(path, "gpus")] == [
        (1, 11253.0),
        (2, 17868.0),
    ]
    rows = [{"n": 4, "throughput": 24945}, {"n": 8, "throughput": 27471}]
    assert [row.count for row in read_results(write(tmp_path / "a.json", rows), "gpus")] == [4, 8]


@pytest.mark.parametrize(
    ("name", "axis", "expected"),
    [
        ("replicas-4.json", "replicas", 4),
        ("replica_4-run2.json", "replicas", 4),
        ("4-replicas.json", "replicas", 4),
        ("llama3-8b-4x.json", "replicas", 4),
        ("gpus=2.json", "gpus", 2),
        ("n16.json", "replicas", 16),
        ("run2.json", "replicas", 0),
        ("llama3-8b.json", "replicas", 0),
    ],
)
def test_the_name_of_a_file_may_tell_the_number(
    tmp_path: Path, name: str, axis: str, expected: int
) -> None:
    assert read_one(write(tmp_path / name, samples.vllm(1.0)), axis).count == expected


def test_a_label_names_files() -> None:
    assert parse_label("4=a.json,b.json") == (4, [Path("a.json"), Path("b.json")])


@pytest.mark.parametrize("text", ["a.json", "x=a.json", "0=a.json", "-1=a.json", "9999999=a.json"])
def test_a_wrong_label_is_refused(text: str) -> None:
    with pytest.raises(ScaletestError, match="is not N=FILE"):
        parse_label(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not valid JSON"),
        (b'{"request_throughput": 1', "not valid JSON"),
        (b"\xff\xfe\x00", "not text"),
        (b"[]", "contains no result"),
        (b"[1, 2]", "contains no result"),
        (b'"text"', "not a JSON object"),
        (b"{}", "unknown format"),
        (b'{"n": 1, "throughput": NaN}', "not valid JSON"),
        (b'{"n": 1.5, "throughput": 1}', "not a count"),
        (b'{"n": 1, "throughput": -1}', "not a number from 0"),
        (b'{"n": 1, "throughput": [1]}', "not a number from 0"),
        (b'{"n": 1, "throughput": "many"}', "not a number from 0"),
        (b'{"metadata": {"guidellm_version": "1"}, "benchmarks": []}', "contains no benchmark"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_a_hostile_file_is_one_error(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(ScaletestError, match=message) as caught:
        read_results(path, "replicas")
    assert "\n" not in caught.value.message and caught.value.hint


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "contains no result"),
        (b"n,throughput\n", "contains no result"),
        (b"n,throughput\n1," + b"9" * 200_000, "not CSV"),
        (b"n,throughput\n1,\x00\n", "not"),
        (b"workers,rate\n1,2\n", "unknown format"),
        (b"n,throughput\n1\n", "unknown format"),
    ],
)
def test_a_hostile_table_is_one_error(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    with pytest.raises(ScaletestError, match=message) as caught:
        read_results(path, "replicas")
    assert "\n" not in caught.value.message and caught.value.hint


def test_a_file_of_100_mb_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(ScaletestError, match=f"longer than {MOST_BYTES} bytes"):
        read_results(path, "replicas", 1)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScaletestError, match=r"none\.json cannot be read"):
        read_results(tmp_path / "none.json", "replicas")


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
KNOWN = st.sampled_from(
    [
        samples.vllm(1.0),
        samples.sglang(1.0),
        samples.guidellm((1, 1.0)),
        samples.aiperf(1.0),
        samples.inference_perf(1.0),
        samples.llmd(1.0, 1),
    ]
)


@given(KNOWN, JSON, st.data())
def test_any_wrong_value_is_an_error_or_unknown(
    tmp_path_factory: pytest.TempPathFactory,
    document: dict[str, Any],
    value: Any,
    data: st.DataObject,
) -> None:
    # replace one value anywhere in it
    changed = json.loads(json.dumps(document))
    place: Any = changed
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if isinstance(place[key], dict | list) and place[key] and data.draw(st.booleans()):
            place = place[key]
            continue
        place[key] = value
        break
    path = tmp_path_factory.mktemp("any") / "x.json"
    write(path, changed)
    try:
        results = read_results(path, "replicas", 1)
    except ScaletestError:
        return
    assert all(ToolResult.from_json(row.to_json()) == row for row in results)


def test_an_aggregate_of_aiperf_tells_its_runs_and_their_scatter(tmp_path: Path) -> None:
    whole = read_one(write(tmp_path / "n2.json", samples.aiperf_aggregate(1.6, 5, 0.02)))
    assert (whole.requests_per_s, whole.repeats, whole.deviation) == (1.6, 5, 0.02)
