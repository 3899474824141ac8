"""What went wrong in kube-perftest, and does not here: a test for each defect that kinds, sets and
reports can have.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from scaletest.analysis.estimate import summarise
from scaletest.benchmarks import programs
from scaletest.benchmarks.sweep import plan_of
from scaletest.kinds import benchmark, fio
from scaletest.kinds.kind import ExecutionSite, PartAddress, ToolOutput
from scaletest.kinds.registry import KINDS
from scaletest.model.errors import InvalidValue
from scaletest.render.numbers import quantity, quantity_measured

SAMPLES = Path(__file__).parent / "samples" / "benchmarks"


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1999e3, "bit/s", "1.999 Mbit/s"),
        (1000010e3, "bit/s", "1.000 Gbit/s"),
        (0.5, "bit/s", "0.5000 bit/s"),
        (999.96e6, "bit/s", "1.000 Gbit/s"),
        (999.9e6, "bit/s", "999.9 Mbit/s"),
        (0, "B/s", "0 B/s"),
        (37.59e9, "bit/s", "37.59 Gbit/s"),
        (16441.5, "1/s", "16.44 k/s"),
        (1e30, "B/s", "1000000000000 EB/s"),
        (5.36e-6, "s", "5.360 us"),
        (0.12e-6, "s", "120.0 ns"),
        (24.68, "s", "24.68 s"),
        (7200, "s", "7200 s"),
        (0.99999, "s", "1.000 s"),
        (21.0, "", "21"),
        (0.25, "", "0.2500"),
    ],
)
def test_1_units_are_right_at_every_size(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def test_1_an_interval_has_the_unit_of_its_value() -> None:
    summary = summarise([10e9, 11e9, 12e9])
    assert quantity_measured(summary.mean, summary.half_width, "bit/s") == "11.0 ± 2.5 Gbit/s"
    assert quantity_measured(5e9, float("inf"), "bit/s") == "5.000 Gbit/s"


def test_4_a_slow_link_has_decimals() -> None:
    iperf = benchmark.read({"kind": "IPerf", "spec": {"tool": "iperf", "duration": 2}})
    line = "[  1] 0.0000-2.1448 sec  14.1 KBytes  53.8 Kbits/sec\n"
    assert iperf.kind.parse(iperf.spec, ToolOutput(line)).headlines == {"bandwidth": 53800.0}


@pytest.mark.parametrize("pattern", ["rw,readwrite", "rw", "readwrite"])
def test_9_an_alias_of_a_fio_pattern_is_read_as_readwrite_with_a_warning(pattern: str) -> None:
    fio_benchmark = benchmark.read({"kind": "Fio", "spec": {"rw": pattern}})
    assert "rw=readwrite\n" in fio.job_file(fio_benchmark.spec)  # type: ignore[arg-type]
    assert bool(fio_benchmark.warnings) == (pattern != "readwrite")


def test_9_an_empty_claim_template_is_ignored_and_an_existing_volume_is_used() -> None:
    fio_benchmark: Any = benchmark.read(
        {"kind": "Fio", "spec": {"volumeClaimTemplate": {}, "volume": {"emptyDir": {}}}}
    ).spec
    assert fio_benchmark.volume == {"emptyDir": {}} and not fio_benchmark.volume_claim_template
    with pytest.raises(InvalidValue, match="exclude each other"):
        benchmark.read(
            {"kind": "Fio", "spec": {"volumeClaimTemplate": {"a": 1}, "volume": {"emptyDir": {}}}}
        )


def test_12_a_list_is_replaced_and_a_value_can_be_unset() -> None:
    template = {"kind": "RDMALatency", "spec": {"extraArgs": ["--tclass=96"], "mode": "write"}}
    explicit = [{"extraArgs": ["--sl=3"], "mode": None}, {"extraArgs": None}]
    plan, _ = plan_of(a_set(template=template, permutations={"explicit": explicit}), list)
    first, second = (planned.spec for planned in plan.benchmarks)
    assert (first.extra_args, first.mode) == (("--sl=3",), "read")  # type: ignore[attr-defined]
    assert (second.extra_args, second.mode) == ((), "write")  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", ["IPerf", "Fio", "RDMALatency", "RDMABandwidth"])
def test_13_commands_reach_peers_over_ipv6_where_the_spec_asks_for_it(kind: str) -> None:
    peers_benchmark = benchmark.read({"kind": kind, "spec": {"ipFamily": "IPv6"}})
    peers = {
        role: [PartAddress(role, 0, "a", "2001:2::1", "/w")]
        for role in ("server", "client", "worker", "master")
    }
    command = " ".join(
        word
        for task in peers_benchmark.kind.tasks(peers_benchmark.spec, ExecutionSite(peers))
        for word in task.argv
    )
    assert "2001:2::1" in command and "6" in command.replace("2001:2::1", "")


def test_15_results_do_not_grow_with_bins_and_intervals() -> None:
    fio_benchmark = benchmark.read(
        {"kind": "Fio", "spec": {"rw": "randrw", "numJobs": 2, "runtime": "3s"}}
    )
    text = (SAMPLES / "fio-client-1worker-2jobs.out").read_text("utf-8")
    parsed = fio_benchmark.kind.parse(fio_benchmark.spec, ToolOutput(text))
    assert len(json.dumps(parsed.result)) < len(text) / 10
    data = json.loads((SAMPLES / "iperf3-tcp-2streams.json").read_text("utf-8"))
    data["intervals"] = data["intervals"] * 5000
    long = benchmark.read({"kind": "IPerf", "spec": {"streams": 2, "duration": 3}})
    assert len(long.kind.parse(long.spec, ToolOutput(json.dumps(data))).result["intervals"]) <= 120


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_17_every_benchmark_has_a_deadline(kind: Any) -> None:
    assert 0 < benchmark.read({"kind": kind.name}).limit_s < float("inf")
    assert benchmark.read({"kind": kind.name, "spec": {"timeLimit": 7}}).limit_s == 7


def test_18_percentiles_retransmits_directions_and_datagrams_are_there() -> None:
    names = {name: {headline.name for headline in kind.headlines} for name, kind in KINDS.items()}
    assert {"readLatency99", "writeLatency99"} <= names["Fio"]
    assert {"retransmits", "reverseBandwidth", "jitter", "lost"} <= names["IPerf"]
    udp = {
        "start": {
            "test_start": {
                "protocol": "UDP",
                "num_streams": 1,
                "duration": 10,
                "omit": 0,
                "reverse": 0,
            }
        },
        "end": {
            "streams": [{"udp": {"bytes": 1.25e6}}],
            "sum": {"bytes": 1.25e6, "seconds": 10, "bits_per_second": 1e6, "jitter_ms": 0.5}
            | {"packets": 100, "lost_packets": 10, "lost_percent": 10},
        },
    }
    iperf = benchmark.read({"kind": "IPerf", "spec": {"protocol": "UDP"}})
    headlines = iperf.kind.parse(iperf.spec, ToolOutput(json.dumps(udp))).headlines
    assert headlines == {
        "bandwidth": pytest.approx(9e5),
        "jitter": pytest.approx(5e-4),
        "lost": pytest.approx(0.1),
    }


def a_set(**spec: Any) -> dict[str, Any]:
    return {
        "kind": "BenchmarkSet",
        "metadata": {"name": "s"},
        "spec": {"template": {"kind": "IPerf"}, **spec},
    }


def test_19_a_program_that_does_not_say_its_version_costs_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given programs that do not answer, as on a node that is busy
    for name in ("mpirun", "ip"):
        (tmp_path / name).write_text("#!/bin/sh\nexec sleep 60\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(programs, "ASK_S", 0.05)
    monkeypatch.setattr(programs, "PATIENCE_S", 0.05)
    # expect their words to be missing, and nothing else
    pingpong = benchmark.read({"kind": "MPIPingPong"})
    assert programs.facts(pingpong)["programs"]["mpirun"] == ""
    assert programs.card((), "fast0", tmp_path) == {"name": "fast0"}


def test_19_a_machine_and_its_card_are_recorded(tmp_path: Path) -> None:
    iperf = benchmark.read({"kind": "IPerf"})
    facts = programs.facts(iperf)
    assert facts["kernel"] == os.uname().release
    assert {"processor", "memory", "cores", "system", "programs"} <= set(facts)
    # given a card with a driver, as the kernel shows it
    (tmp_path / "drivers" / "mlx5_core").mkdir(parents=True)
    (tmp_path / "fast0" / "device").mkdir(parents=True)
    (tmp_path / "fast0" / "device" / "driver").symlink_to(tmp_path / "drivers" / "mlx5_core")
    (tmp_path / "fast0" / "speed").write_text("100000\n")
    assert programs.card((), "fast0", tmp_path) == {
        "name": "fast0",
        "driver": "mlx5_core",
        "speed_bit_s": 10**11,
    }
    # and one that says nothing of its speed
    (tmp_path / "fast0" / "speed").write_text("-\n")
    assert programs.card((), "fast0", tmp_path) == {"name": "fast0", "driver": "mlx5_core"}
