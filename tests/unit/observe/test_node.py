"""The resources of a node: recorded files give their figures, and what is absent, denied or strange
gives none.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.model import NodeSample
from scaletest.model.node_sample import FIGURES
from scaletest.observe.node import resources
from scaletest.observe.node.reader import MOST_DISKS, MOST_NETWORKS, NodeReader
from scaletest.observe.node.resources import (
    ResourceReading,
    interval_figures,
    parse_periods,
    parse_reclaims,
)
from scaletest.processes import proc

STAT = """cpu  {user} 200 300 5000 100 10 20 {steal} 7 7
cpu0 500 100 150 2500 50 5 10 4 0 0
cpu1 500 100 150 2500 50 5 10 4 0 0
intr 1 2 3
ctxt 99
"""
MEMINFO = """MemTotal:       24684084 kB
MemFree:        19986264 kB
MemAvailable:   23953504 kB
HugePages_Total:       0
"""
VMSTAT = "nr_free_pages 4996566\npswpin {swapped}\npswpout 0\noom_kill 0\n"
PRESSURE = """some avg10=5.02 avg60=2.03 avg300=6.72 total={some}
full avg10=0.00 avg60=0.00 avg300=0.00 total={full}
"""
DISKS = """   7       0 loop0 9 0 9 9 9 0 9 9 0 9 9 0 0 0 0 0 0
 259       0 nvme0n1 {reads} 459981 {sectors} {ms} 1000 2265129 8000 500 0 {busy} 5219107 1 2 3 4 5 6
 259       1 nvme0n1p1 90 0 900 90 0 0 0 0 0 90 90 0 0 0 0 0 0
 253       0 dm-0 90 0 900 90 0 0 0 0 0 90 90 0 0 0 0 0 0
 253       0 zram0 9 0 9 9 0 0 0 0 0 0 0 0 0 0 0 0 0
   8       0 sda 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
"""  # noqa: E501
NETWORKS = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 53031779475 8040076    0    0    0     0          0         0 53031779475 8040076    0    0    0     0       0          0
  ifb0:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
  eth0:{received}  159648    0    {dropped}    0     0          0         0 11875231  111412    0    1    0     0       0          0
"""  # noqa: E501


class Node:
    """The recorded files of a node, and a clock."""

    def __init__(self, root: Path) -> None:
        self.root, self.now = root, 100.0
        self.write("proc/self/cgroup", "0::/kubepods/pod1\n")
        self.counters()
        self.write("proc/meminfo", MEMINFO)
        for name in ("loop0", "nvme0n1", "dm-0", "zram0", "sda"):
            (root / "sys/block" / name).mkdir(parents=True, exist_ok=True)
        self.write("sys/class/net/eth0/speed", "10000\n")

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="ascii")

    def counters(self, grown: int = 0) -> None:
        """What grows, 0 or 1 times."""
        self.write(
            "proc/stat",
            STAT.format(user=1000 + 150 * grown, steal=8 + 4 * grown),
        )
        self.write("proc/vmstat", VMSTAT.format(swapped=10 + 2 * grown))
        for name, part in (("cpu", 900_000), ("memory", 100_000), ("io", 3_000_000)):
            self.write(
                f"proc/pressure/{name}",
                PRESSURE.format(some=7_870_263_640 + part * grown, full=5 + grown),
            )
        self.write(
            "proc/diskstats",
            DISKS.format(
                reads=100 + 60 * grown,
                sectors=800 + 2000 * grown,
                ms=50 + 30 * grown,
                busy=9 + 700 * grown,
            ),
        )
        self.write(
            "proc/net/dev", NETWORKS.format(received=3578738518 + 5000 * grown, dropped=3 * grown)
        )

    def version_2(self, grown: int = 0) -> None:
        for folder in ("", "kubepods/", "kubepods/pod1/"):
            self.write(f"cgroup/{folder}cgroup.procs", "")
        self.write("cgroup/kubepods/pod1/cpu.max", "20000 100000\n")
        rows = {
            "nr_periods": 10 + 20 * grown,
            "nr_throttled": 4 + 15 * grown,
            "throttled_usec": 700_000 + 800_000 * grown,
        }
        self.write(
            "cgroup/kubepods/pod1/cpu.stat",
            "".join(f"{name} {value}\n" for name, value in rows.items()),
        )
        self.write(
            "cgroup/kubepods/pod1/memory.events",
            f"low 0\nhigh 1\nmax {3 + 6 * grown}\noom 0\n",
        )

    def version_1(self, grown: int = 0) -> None:
        self.write(
            "proc/self/cgroup", "4:memory:/pod/c1\n3:cpu,cpuacct:/pod/c1\n1:name=systemd:/x\n0::/\n"
        )
        for controller in ("cpu,cpuacct", "memory"):
            self.write(f"cgroup/{controller}/cgroup.procs", "")
        cpu, memory = "cgroup/cpu,cpuacct", "cgroup/memory"
        self.write(f"{cpu}/cpu.cfs_quota_us", "20000\n")
        self.write(f"{cpu}/cpu.cfs_period_us", "100000\n")
        throttled_ns = 700_000_000 + 800_000_000 * grown
        periods = f"nr_periods {10 + 20 * grown}\nnr_throttled {4 + 15 * grown}\n"
        self.write(f"{cpu}/cpu.stat", f"{periods}throttled_time {throttled_ns}\n")
        self.write(f"{memory}/memory.failcnt", f"{4 + 6 * grown}\n")

    def cpu(self, number: int, clock: int) -> None:
        folder = f"sys/devices/system/cpu/cpu{number}"
        self.write(f"{folder}/cpufreq/cpuinfo_max_freq", "4000000\n")
        self.write(f"{folder}/cpufreq/scaling_cur_freq", f"{clock}\n")

    def reader(self) -> NodeReader:
        return NodeReader(
            lambda: self.now,
            procfs=self.root / "proc",
            sysfs=self.root / "sys",
            cgroups=self.root / "cgroup",
            own_cgroup=self.root / "proc/self/cgroup",
        )


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_the_first_reading_gives_levels_and_the_second_the_rates_of_its_interval(
    node: Node,
) -> None:
    reader = node.reader()
    first = reader.read()
    assert first == {
        "cpu": {"cores": 2.0},
        "memory": {"total": 24684084 * 1024.0, "available": 23953504 * 1024.0},
        "network:eth0": {"speed": 1.25e9},
    }
    assert reader.interval_s == 0.0
    node.counters(1)
    node.now += 2.0
    second = reader.read()
    assert reader.interval_s == 2.0
    hertz = proc.TICKS_PER_S
    rates = {"user": 75 / hertz, "system": 0.0, "steal": 2 / hertz}
    assert second["cpu"] == pytest.approx({"cores": 2.0, **rates})
    assert second["memory"] == {
        **first["memory"],
        "swap_in": float(resources.PAGE_BYTES),
        "swap_out": 0.0,
    }
    # io: three seconds of stalls in two: the clocks differ
    pressures = {"cpu_some": 0.45, "memory_some": 0.05, "io_some": 1.0}
    assert second["pressure"] == pytest.approx(pressures)
    disk = {"busy": 0.35, "read": 512_000.0, "written": 0.0}
    assert {name for name in second if name.startswith("disk:")} == {"disk:nvme0n1"}
    assert second["disk:nvme0n1"] == pytest.approx(disk)
    assert second["network:eth0"] == {
        "received": 2500.0,
        "sent": 0.0,
        "dropped": 1.5,
        "speed": 1.25e9,
    }


@pytest.mark.parametrize("version", [Node.version_1, Node.version_2])
def test_the_container_is_read_by_both_versions(node: Node, version: Callable[..., None]) -> None:
    version(node)
    reader = node.reader()
    levels = {"cpu_limit": 0.2}
    assert reader.read()["container"] == levels
    version(node, 1)
    node.now += 2.0
    rates = {"throttled_periods": 0.75, "reclaims": 3.0}
    assert reader.read()["container"] == pytest.approx({**levels, **rates})


def test_a_container_without_a_limit_has_no_figure_of_it(node: Node) -> None:
    node.version_2()
    node.write("cgroup/kubepods/pod1/cpu.max", "max 100000\n")
    reader = node.reader()
    reader.read()
    node.version_2(1)
    node.now += 1.0
    assert set(reader.read()["container"]) == {"reclaims"}
    node.version_1()
    node.write("cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
    assert "container" not in node.reader().read()


def test_the_tightest_limit_counts(node: Node) -> None:
    node.version_2()
    node.write("cgroup/kubepods/cpu.max", "10000 100000\n")
    node.write("cgroup/kubepods/cpu.stat", "nr_periods 10\nnr_throttled 0\nthrottled_usec 0\n")
    reader = node.reader()
    assert reader.read()["container"]["cpu_limit"] == 0.1
    node.version_2(1)
    node.write("cgroup/kubepods/cpu.stat", "nr_periods 20\nnr_throttled 5\nthrottled_usec 100000\n")
    node.now += 1.0
    assert reader.read()["container"]["throttled_periods"] == 0.5


def test_clocks_are_read_of_a_few_cpus(node: Node) -> None:
    for number in range(20):
        node.cpu(number, clock=3_000_000)
    reader = node.reader()
    assert reader.read()["cpu"]["frequency"] == 0.75
    for number in range(20):
        node.cpu(number, clock=1_000_000)
    assert reader.read()["cpu"]["frequency"] == 0.25


def test_counters_that_go_backwards_give_no_figure(node: Node) -> None:
    node.version_2(1)
    node.counters(1)
    reader = node.reader()
    reader.read()
    node.counters()
    node.version_2()
    node.now += 1.0
    sample = reader.read()
    assert set(sample["cpu"]) == {"cores", "system"}
    assert set(sample["memory"]) == {"total", "available", "swap_out"}
    assert "pressure" not in sample
    assert set(sample["container"]) == {"cpu_limit"}
    assert set(sample["disk:nvme0n1"]) == {"written"}
    assert set(sample["network:eth0"]) == {"sent", "speed"}


def test_files_that_are_absent_leave_their_figures_out(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    reader = Node(tmp_path / "other").reader()
    assert reader.read()
    empty = tmp_path / "nowhere"
    bare = NodeReader(lambda: 0.0, procfs=empty, sysfs=empty, cgroups=empty, own_cgroup=empty)
    assert bare.read() == bare.read() == {}


def test_only_the_busiest_disks_and_interfaces_are_reported(node: Node) -> None:
    disk = " 8 0 {name} 1 0 8 1 0 0 0 0 0 {busy} 1 0 0 0 0 0 0\n"
    network = " {name}: {received} 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    for number in range(20):
        (node.root / f"sys/block/sd{number}").mkdir()
    reader = node.reader()
    for grown in (0, 1):
        rows = [(number, 1 + grown * number) for number in range(20)]
        node.write(
            "proc/diskstats", "".join(disk.format(name=f"sd{n}", busy=busy) for n, busy in rows)
        )
        node.write(
            "proc/net/dev",
            "".join(network.format(name=f"eth{n}", received=size) for n, size in rows),
        )
        sample = reader.read()
        node.now += 1.0
    assert {name for name in sample if name.startswith("disk:")} == {
        f"disk:sd{n}" for n in range(20 - MOST_DISKS, 20)
    }
    networks = {name for name in sample if name.startswith("network:")}
    assert networks == {f"network:eth{n}" for n in range(20 - MOST_NETWORKS, 20)}


def test_this_machine_gives_known_figures_only() -> None:
    reader = NodeReader()
    for _ in range(2):
        resources = reader.read()
    for name, row in resources.items():
        kind = name.partition(":")[0]
        assert row.keys() <= FIGURES[kind].keys() and all(
            math.isfinite(value) and value >= 0 for value in row.values()
        )
    assert resources["cpu"]["cores"] >= 1 and resources["memory"]["total"] > 0
    sample = NodeSample("n", "w", 0.0, reader.interval_s, resources)
    assert NodeSample.from_dict(sample.to_dict()).resources.keys() == resources.keys()


def test_long_files_are_read_to_their_end(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(9000))
    (tmp_path / "long").write_text(text)
    assert proc.OpenFile(tmp_path / "long").text() == text
    assert proc.OpenFile(tmp_path / "none").text() == "" == proc.OpenFile(tmp_path).text()


PARSERS: list[Callable[[str], Any]] = [
    *(resources.parse_stat, resources.parse_memory, resources.parse_swap),
    *(resources.parse_pressure, parse_periods, parse_reclaims),
    *(resources.parse_disks, resources.parse_networks, resources.parse_speed),
    *(
        proc.parse_first_number,
        proc.parse_table,
    ),
]
LINES = [
    STAT,
    MEMINFO,
    VMSTAT,
    PRESSURE,
    DISKS,
    NETWORKS,
    "20000 100000",
    "max",
    "nr_periods 1\nnr_throttled 2\n",
    "-1",
]
FILE_WORDS = sorted(
    {word for text in LINES for word in text.split()} | {"٣", "1e9", "9" * 5000, "-3", "\x00", "²"}
)
TEXTS = st.text(max_size=80) | st.lists(
    st.sampled_from([*FILE_WORDS, "\n", "\n", ":"]), max_size=60
).map(" ".join)


@pytest.mark.parametrize("parse", PARSERS)
@given(text=TEXTS)
def test_any_text_gives_finite_numbers_and_no_error(parse: Callable[[str], Any], text: str) -> None:
    assert all(math.isfinite(number) and number >= 0 for number in _numbers(parse(text)))


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, ResourceReading):
        value = [value.levels, value.counters, value.quotients]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _numbers(each)
    elif value is not None:
        yield value


@given(
    st.dictionaries(st.sampled_from("ab"), st.floats(0, 1e18)),
    st.dictionaries(st.sampled_from("ab"), st.floats(0, 1e18)),
    st.just(0.0) | st.floats(1e-3, 1e6),
)
def test_a_rate_is_growth_by_time(
    before: dict[str, float], now: dict[str, float], interval_s: float
) -> None:
    rates = interval_figures(
        ResourceReading(counters=before), ResourceReading(counters=now), interval_s
    )
    grown = {
        name for name in before.keys() & now.keys() if now[name] >= before[name] and interval_s > 0
    }
    assert rates.keys() == grown
    assert all(
        rates[name] * interval_s == pytest.approx(now[name] - before[name]) for name in grown
    )
