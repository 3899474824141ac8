"""Devices, from trees as sysfs and /proc have them: the figures of a node in the units of samples,
and what a request's processes did on them; nothing counts twice or is made up.
"""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.model.node_sample import DEVICE, FIGURES
from scaletest.observe.devices import clients
from scaletest.observe.devices.cards import parse_levels
from scaletest.observe.devices.clients import Clients, CycleClocks
from scaletest.observe.devices.fdinfo import Engine, parse_fdinfo
from scaletest.observe.devices.nvml import pci_address
from scaletest.observe.devices.reader import DeviceReader
from scaletest.processes import proc
from tests.unit.fakes import Clock

SAMPLES = Path(__file__).parents[1] / "samples" / "devices"
MIB = 1024**2


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.fdinfo").read_text()


class Processes:
    """A tree like /proc, of processes with open device files."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def open(self, pid: int, number: int, text: str, target: str = "/dev/dri/renderD128") -> None:
        """A descriptor, or what it says now."""
        for folder in ("fd", "fdinfo"):
            (self.root / str(pid) / folder).mkdir(parents=True, exist_ok=True)
        link = self.root / str(pid) / "fd" / str(number)
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        (self.root / str(pid) / "fdinfo" / str(number)).write_text(text)

    def end(self, pid: int) -> None:
        """It is gone."""
        shutil.rmtree(self.root / str(pid), ignore_errors=True)


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path)


@pytest.fixture
def reader(tmp_path: Path) -> Clients:
    reader = Clients(str(tmp_path))
    reader.begin()
    return reader


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock by which requests are looked at."""
    clock = Clock(100.0)
    monkeypatch.setattr(clients, "time", SimpleNamespace(monotonic=clock))
    return clock


def i915(client: int = 1, render_s: float = 0.0, video_s: float = 0.0, memory_kib: int = 0) -> str:
    return (
        f"drm-driver:\ti915\ndrm-client-id:\t{client}\ndrm-pdev:\t0000:00:02.0\n"
        f"drm-resident-system0:\t{memory_kib} KiB\ndrm-engine-render:\t{int(render_s * 1e9)} ns\n"
        f"drm-engine-video:\t{int(video_s * 1e9)} ns\ndrm-engine-capacity-video:\t2\n"
    )


def xe(cycles: int, clock: int, client: int = 1) -> str:
    return (
        f"drm-driver:\txe\ndrm-client-id:\t{client}\ndrm-pdev:\t0000:03:00.0\ndrm-cycles-vcs:\t{cycles}\n"
        f"drm-total-cycles-vcs:\t{clock}\ndrm-engine-capacity-vcs:\t2\n"
    )


# -- files
# --------------------------------------------------------------------------------------------------


def test_i915_counts_nanoseconds() -> None:
    client = parse_fdinfo(sample("i915"))
    assert (client.device, client.id) == ("0000:00:02.0", "39")
    assert client.engines["render"] == Engine(9288864723, None, None, 1)
    assert client.engines["video"] == Engine(3000000000, None, None, 2)
    assert set(client.engines) == {"render", "copy", "video", "video-enhance"}
    assert client.memory_bytes == 6044 * 1024 + 1048576


def test_xe_counts_cycles_beside_a_clock() -> None:
    client = parse_fdinfo(sample("xe"))
    assert client.engines["vcs"] == Engine(None, 1920000, 7655183225, 2)
    assert set(client.engines) == {"rcs", "bcs", "vcs", "vecs", "ccs"}
    # of its own memory, not of the machine's
    assert client.memory_bytes == 23992 * 1024


def test_amdgpu_has_two_names_for_the_same_memory() -> None:
    client = parse_fdinfo(sample("amdgpu"))
    assert client.engines["gfx"].busy_ns == 10781351614
    assert client.memory_bytes == 310488 * 1024
    old = parse_fdinfo(sample("amdgpu-6.1"))
    assert old is not None and old.memory_bytes == 64 * MIB and set(old.engines) == {"gfx", "dec"}


@pytest.mark.parametrize(
    "text", ["", "pos:\t0\nflags:\t02\n", "drm-driver:\ti915\n", "drm-client-id:\t1\n", "drm-:\n"]
)
def test_files_that_are_no_devices_give_no_clients(text: str) -> None:
    assert parse_fdinfo(text) is None


def test_odd_values_are_not_taken_for_numbers() -> None:
    lines = (
        "drm-engine-a:\t-1 ns\ndrm-engine-b:\t1"
        " ms\ndrm-engine-c:\t²\ndrm-cycles-d:\tx\ndrm-engine-capacity-e:\t0\n"
    )
    client = parse_fdinfo(
        f"drm-driver: v3d\ndrm-client-id: 1\n{lines}drm-engine-e: 5 ns\ndrm-resident-m: 4 EiB\n"
    )
    assert client is not None and client.device == "v3d"
    assert {
        name: engine.busy_ns for name, engine in client.engines.items() if name != "e"
    } == dict.fromkeys("abcd")
    assert client.engines["e"] == Engine(5, None, None, 1)
    assert client.memory_bytes == 0


@given(
    st.text()
    | st.lists(st.sampled_from(sample("i915").splitlines() + sample("xe").splitlines())).map(
        "\n".join
    )
)
def test_any_text_is_read_or_refused(text: str) -> None:
    client = parse_fdinfo(text)
    assert client is None or all(engine.capacity > 0 for engine in client.engines.values())


# -- a request
# --------------------------------------------------------------------------------------------------


def test_time_is_that_of_all_engines_of_a_kind(reader: Clients, processes: Processes) -> None:
    processes.open(10, 4, sample("i915"))
    reader.look([10])
    assert reader.busy_s() == pytest.approx(
        {
            "0000:00:02.0 render": 9.288864723,
            "0000:00:02.0 copy": 2.035071108,
            "0000:00:02.0 video": 1.5,
            "0000:00:02.0 video-enhance": 0.0,
        }
    )
    assert reader.memory_bytes == 6044 * 1024 + 1048576


ONE, LESS = i915(render_s=1.0, memory_kib=1024), i915(1, render_s=1.5, memory_kib=1024)
OTHER = i915(2, render_s=2.0, memory_kib=1024)


@pytest.mark.parametrize(
    ("looks", "render_s", "memory_bytes"),
    [
        # a client in several descriptors and processes
        ([{(10, 4): ONE, (10, 5): ONE, (11, 4): ONE, (11, 5): ONE}] * 2, 1.0, MIB),
        # of two clients one goes on; the process of the other ended, and is missed later
        ([{(10, 4): ONE, (11, 4): OTHER}, {(10, 4): LESS, (11, 4): ""}, {}], 3.5, 2 * MIB),
        # a client goes on in the process that is left
        ([{(10, 4): ONE, (11, 4): ONE}, {(11, 4): i915(render_s=3.0)}], 3.0, MIB),
        # a counter that goes back
        ([{(10, 4): i915(render_s=seconds)} for seconds in (2.0, 0.5, 1.9, 2.25)], 2.25, 0),
    ],
)
def test_a_client_counts_once_and_keeps_what_it_had(
    reader: Clients,
    processes: Processes,
    looks: list[dict[tuple[int, int], str]],
    render_s: float,
    memory_bytes: int,
) -> None:
    for look in looks:
        for pid in (10, 11):
            processes.end(pid)
        for (pid, number), text in look.items():
            if text:
                processes.open(pid, number, text)
        reader.look(sorted({pid for pid, _ in look}))
    assert reader.busy_s()["0000:00:02.0 render"] == pytest.approx(render_s)
    assert reader.memory_bytes == memory_bytes


def test_a_device_that_is_opened_late_is_seen(reader: Clients, processes: Processes) -> None:
    processes.open(10, 1, "pos:\t0\n", "/dev/null")
    for _ in range(20):
        reader.look([10])
    processes.open(10, 4, i915(render_s=1.0))
    for _ in range(
        13
    ):  # 32 looks in all, however little the kernel says of the number of descriptors
        reader.look([10])
    assert reader.busy_s()["0000:00:02.0 render"] == pytest.approx(1.0)


def test_only_devices_are_read(reader: Clients, processes: Processes) -> None:
    processes.open(10, 4, i915(render_s=1.0), "/home/dri/renderD128")
    processes.open(10, 5, i915(render_s=1.0), "socket:[1]")
    reader.look([10])
    assert reader.busy_s() == {} and reader.memory_bytes == 0


def test_unreadable_files_are_left_out_with_one_warning(
    processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    reader = Clients(str(tmp_path), warnings.append)
    reader.begin()
    processes.open(10, 4, i915(1, render_s=1.0))
    processes.open(11, 4, i915(2, render_s=2.0))

    def read(path: str, limit: int = 4096) -> bytes:
        if "/11/" in path:
            raise PermissionError(path)
        return Path(path).read_bytes()[:limit]

    monkeypatch.setattr(proc, "read", read)
    reader.look([10, 11])
    assert reader.busy_s()["0000:00:02.0 render"] == pytest.approx(1.0)
    assert set(warnings) == {"fdinfo"}


def test_a_client_that_outlives_a_request_goes_on_from_where_it_was(
    reader: Clients, processes: Processes
) -> None:
    processes.open(10, 4, i915(render_s=5.0, memory_kib=1024))
    reader.look([10])
    reader.begin()
    assert reader.busy_s() == {} and reader.memory_bytes == 0
    processes.open(10, 4, i915(render_s=5.5))
    reader.look([10])
    assert reader.busy_s()["0000:00:02.0 render"] == pytest.approx(0.5)
    # one that a request did not have is forgotten: its number may be another's
    reader.begin()
    reader.begin()
    processes.open(10, 4, i915(render_s=0.25))
    reader.look([10])
    assert reader.busy_s()["0000:00:02.0 render"] == pytest.approx(0.25)


# -- cycles
# --------------------------------------------------------------------------------------------------

HERTZ = 19_200_000


def test_cycles_are_seconds_by_the_clock_of_the_device(
    reader: Clients, processes: Processes, time: Clock
) -> None:
    for at_s, busy_s in ((0.0, 0.5), (0.5, 1.0), (1.0, 1.5)):
        time.now = 100.0 + at_s
        processes.open(10, 4, xe(int(busy_s * HERTZ), int((1000 + at_s) * HERTZ)))
        reader.look([10])
    # of two engines
    assert reader.busy_s() == pytest.approx({"0000:03:00.0 vcs": 0.75})


def test_cycles_are_left_out_while_the_clock_is_not_known(
    reader: Clients, processes: Processes, time: Clock
) -> None:
    processes.open(10, 4, xe(HERTZ, 1000 * HERTZ))
    reader.look([10])
    assert reader.busy_s() == {}
    time.now += 1.0
    processes.open(10, 4, xe(2 * HERTZ, 1001 * HERTZ))
    reader.look([10])
    # a request that is too short for two looks uses what was learned
    reader.begin()
    time.now += 60.0
    processes.open(11, 4, xe(HERTZ // 2, HERTZ, client=2))
    reader.look([11])
    assert reader.busy_s() == pytest.approx({"0000:03:00.0 vcs": 0.25})


def test_a_clock_that_was_reset_begins_anew() -> None:
    clocks = CycleClocks()
    for clock, at_s in ((1000, 0.0), (2000, 1.0), (10, 2.0), (20, 2.01), (510, 2.5)):
        clocks.take("d", clock, at_s)
    assert clocks.ticks_per_s == pytest.approx({"d": 1000})


# -- where devices are
# --------------------------------------------------------------------------------------------------


def test_a_machine_without_devices_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "FOLDERS", (str(tmp_path / "dri"),))
    assert not clients.devices_present()
    (tmp_path / "dri").mkdir()
    assert clients.devices_present()


I915, XE, AMD = (
    "device:/dev/dri/renderD128",
    "device:/dev/dri/renderD129",
    "device:/dev/dri/renderD130",
)
CARD0 = "sys/devices/pci0000:00/0000:00:02.0"
CARD1 = "sys/devices/pci0000:00/0000:00:01.0/0000:03:00.0"
CARD2 = "sys/devices/pci0000:60/0000:65:00.0"


def plant(root: Path, name: str) -> None:
    """A recorded tree, below a folder."""
    for line in (SAMPLES / f"{name}.tree").read_text().splitlines():
        path, arrow, target = line.partition(" -> ")
        if arrow:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).symlink_to(target)
        else:
            path, _, text = line.partition(": ")
            put(root, path.rstrip(":"), text.replace("|", "\n"))


def put(root: Path, path: str, text: str) -> None:
    """A file."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(f"{text}\n")


@pytest.fixture
def cards(tmp_path: Path) -> DeviceReader:
    return DeviceReader(root=tmp_path)


def only(cards: DeviceReader) -> dict[str, float]:
    """The figures of the only device."""
    resources = cards.read()
    assert len(resources) == 1
    (figures,) = resources.values()
    unknown = {
        name for name in figures if name not in FIGURES[DEVICE] and not name.startswith("busy.")
    }
    assert not unknown
    return figures


def test_figures_of_i915_are_read(cards: DeviceReader, tmp_path: Path) -> None:
    plant(tmp_path, "i915")
    # the whole card's energy, and of both parts the busier one
    assert cards.read() == {
        I915: pytest.approx({"energy_j": 12.345678, "frequency": 0.5, "throttled": 1.0})
    }
    put(tmp_path, f"{CARD0}/drm/card0/gt/gt0/throttle_reason_status", "0")
    assert only(cards)["throttled"] == 0.0


def test_figures_of_xe_are_read(cards: DeviceReader, tmp_path: Path) -> None:
    plant(tmp_path, "xe")
    expected = {"energy_j": 987.654321, "temperature": 61.0, "frequency": 0.8, "throttled": 0.0}
    assert cards.read() == {XE: pytest.approx(expected)}


def test_figures_of_amdgpu_are_read(cards: DeviceReader, tmp_path: Path) -> None:
    plant(tmp_path, "amdgpu")
    expected = {
        "busy": 0.87,
        "memory_busy": 0.12,
        "memory_used": 317939712,
        "memory_total": 17163091968,
        "frequency": 0.75,
        "power": 203.0,
        "temperature": 54.0,
    }
    assert cards.read() == {AMD: pytest.approx(expected)}


def test_several_cards_are_read_side_by_side_under_the_names_of_replies(tmp_path: Path) -> None:
    for name in ("i915", "xe", "amdgpu"):
        plant(tmp_path, name)
    path = "/dev/dri/by-path/pci-0000:03:00.0-render"
    resources = DeviceReader(paths=lambda: {"0000:03:00.0": path}, root=tmp_path).read()
    assert set(resources) == {I915, AMD, f"device:{path}"}


def test_figures_that_cannot_be_read_are_absent(cards: DeviceReader, tmp_path: Path) -> None:
    plant(tmp_path, "amdgpu")
    assert "busy" in only(cards)
    (tmp_path / CARD2 / "gpu_busy_percent").unlink()
    put(tmp_path, f"{CARD2}/mem_busy_percent", "N/A")
    put(tmp_path, f"{CARD2}/pp_dpm_sclk", "")
    put(tmp_path, f"{CARD2}/hwmon/hwmon6/temp1_input", "-5000")
    assert set(only(cards)) == {"memory_used", "memory_total", "power"}


def test_a_card_that_is_gone_has_no_figures(cards: DeviceReader, tmp_path: Path) -> None:
    plant(tmp_path, "amdgpu")
    cards.read()
    (tmp_path / "sys").rename(tmp_path / "gone")
    assert cards.read() == {}


def test_a_card_that_sleeps_is_not_woken(cards: DeviceReader, tmp_path: Path) -> None:
    plant(tmp_path, "i915")
    cards.read()
    put(tmp_path, f"{CARD0}/power/runtime_status", "suspended")
    assert cards.read() == {}
    put(tmp_path, f"{CARD0}/power/runtime_status", "active")
    assert only(cards)["frequency"] == 0.5


def test_a_card_without_a_render_node_has_its_address(cards: DeviceReader, tmp_path: Path) -> None:
    plant(tmp_path, "i915")
    shutil.rmtree(tmp_path / CARD0 / "drm/renderD128")
    assert set(cards.read()) == {"device:0000:00:02.0"}


def test_cards_of_other_drivers_and_platforms_are_left_out(
    cards: DeviceReader, tmp_path: Path
) -> None:
    put(tmp_path, "sys/class/drm/card0/uevent", "no device")
    put(tmp_path, "sys/devices/platform/simple-framebuffer.0/drm/card1/x", "")
    (tmp_path / "sys/class/drm/card1").symlink_to(
        "../../devices/platform/simple-framebuffer.0/drm/card1"
    )
    (tmp_path / "sys/devices/platform/simple-framebuffer.0/drm/card1/device").symlink_to("../..")
    put(tmp_path, f"{CARD0}/drm/card2/x", "")
    (tmp_path / "sys/class/drm/card2").symlink_to(f"../../../{CARD0}/drm/card2")
    (tmp_path / CARD0 / "drm/card2/device").symlink_to("../..")
    (tmp_path / CARD0 / "driver").symlink_to("../../../bus/pci/drivers/ast")
    assert cards.read() == {}


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("00000000:31:00.0", "0000:31:00.0"),
        ("0000:3A:00.1", "0000:3a:00.1"),
        ("10000:01:00.0", "10000:01:00.0"),
        ("gpu-1", "gpu-1"),
    ],
)
def test_addresses_are_written_as_sysfs_does(written: str, address: str) -> None:
    assert pci_address(written) == address


@pytest.mark.parametrize(
    ("text", "ratio"),
    [
        ("0: 500Mhz\n1: 1000Mhz *\n", 1.0),
        ("0: 500Mhz *\n1: 1000Mhz\n", 0.5),
        ("S: 19Mhz *\n0: 500Mhz\n1: 1900Mhz\n", 0.01),
        ("0: 500Mhz\n", None),
        ("0: 0Mhz *\n", None),
        ("", None),
    ],
)
def test_the_current_level_of_an_amd_clock_is_read(text: str, ratio: float | None) -> None:
    assert parse_levels(text) == ratio
