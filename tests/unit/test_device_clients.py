"""What a request's processes did on devices, from trees as /proc has them: nothing counts twice or
is made up.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.system import proc
from scaletest.system.devices import clients
from scaletest.system.devices.clients import Clients, CycleClocks, Engine, parse_fdinfo

SAMPLES = Path(__file__).parent / "samples" / "devices"
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


class Time:
    """A clock that a test sets."""

    now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path)


@pytest.fixture
def reader(tmp_path: Path) -> Clients:
    reader = Clients(str(tmp_path))
    reader.begin()
    return reader


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    monkeypatch.setattr(clients, "time", time)
    return time


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


def test_the_requests_own_device_may_have_any_name(reader: Clients, processes: Processes) -> None:
    processes.open(10, 4, i915(render_s=1.0), "/dev/gpu")
    reader.begin("/dev/gpu")
    reader.look([10])
    assert reader.busy_s()["0000:00:02.0 render"] == pytest.approx(1.0)


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
    reader: Clients, processes: Processes, time: Time
) -> None:
    for at_s, busy_s in ((0.0, 0.5), (0.5, 1.0), (1.0, 1.5)):
        time.now_s = 100.0 + at_s
        processes.open(10, 4, xe(int(busy_s * HERTZ), int((1000 + at_s) * HERTZ)))
        reader.look([10])
    # of two engines
    assert reader.busy_s() == pytest.approx({"0000:03:00.0 vcs": 0.75})


def test_cycles_are_left_out_while_the_clock_is_not_known(
    reader: Clients, processes: Processes, time: Time
) -> None:
    processes.open(10, 4, xe(HERTZ, 1000 * HERTZ))
    reader.look([10])
    assert reader.busy_s() == {}
    time.now_s += 1.0
    processes.open(10, 4, xe(2 * HERTZ, 1001 * HERTZ))
    reader.look([10])
    # a request that is too short for two looks uses what was learned
    reader.begin()
    time.now_s += 60.0
    processes.open(11, 4, xe(HERTZ // 2, HERTZ, client=2))
    reader.look([11])
    assert reader.busy_s() == pytest.approx({"0000:03:00.0 vcs": 0.25})


def test_a_clock_that_was_reset_begins_anew() -> None:
    clocks = CycleClocks()
    for clock, at_s in ((1000, 0.0), (2000, 1.0), (10, 2.0), (20, 2.01), (510, 2.5)):
        clocks.take("d", clock, at_s)
    assert clocks.rate("d") == pytest.approx(1000)
    assert clocks.rate("e") is None


# -- where devices are
# --------------------------------------------------------------------------------------------------


def test_a_machine_without_devices_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "FOLDERS", (str(tmp_path / "dri"),))
    file = tmp_path / "file"
    file.touch()
    assert not clients.present()
    assert not clients.present(str(file)) and not clients.present(str(tmp_path / "missing"))
    (tmp_path / "dri").mkdir()
    assert clients.present()
