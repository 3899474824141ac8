"""NVIDIA's devices by the real nvidia-ml-py, which loads a library that we compile in place of the
driver's.
"""

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hack.compiler import NoCompiler, shared_library
from scaletest.observe.devices.reader import DeviceReader
from tests.conftest import missing

ANSWERS = {
    "init": "0",
    "count": "0 1",
    "handle": "0",
    "minor": "0 0",
    "pci": "0 00000000:31:00.0",
    "utilization": "0 40 12",
    "encoder": "0 95",
    "decoder": "0 3",
    "memory": "0 1073741824 24152899584",
    "energy": "0 4742776",
    "power": "0 16365",
    "clock": "0 1020",
    "max_clock": "0 2040",
    "event_reasons": "0 1",
    "temperature": "0 31",
}
FIGURES = {
    "busy": 0.95,
    "busy.encoder": 0.95,
    "busy.decoder": 0.03,
    "memory_busy": 0.12,
    "memory_used": 1073741824.0,
    "memory_total": 24152899584.0,
    "energy_j": 4742.776,
    "power": 16.365,
    "frequency": 0.5,
    "throttled": 0.0,
    "temperature": 31.0,
}
NOT_SUPPORTED, GPU_IS_LOST, UNKNOWN = "3", "15", "999"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Loaded under the name by which the module asks for it: the loader gives a library that it has
    already.
    """
    path = tmp_path_factory.mktemp("nvml") / "stand-in.so"
    try:
        shared_library(
            Path(__file__).parents[1].joinpath("nvml_stand_in.c"),
            path,
            "-Wl,-soname,libnvidia-ml.so.1",
        )
    except NoCompiler as error:
        missing(str(error))
    return ctypes.CDLL(str(path))


class Driver:
    """What the library answers."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "dev").mkdir()
        self.node("nvidiactl")
        self.node("nvidia0")
        self.answer()

    def node(self, name: str) -> None:
        (self.root / "dev" / name).touch()

    def answer(self, *devices: dict[str, str], **changes: str) -> None:
        """Of one device, but for changes; or of several."""
        rows = [
            (number, {**ANSWERS, **answers}) for number, answers in enumerate(devices or (changes,))
        ]
        whole = {"count": f"0 {len(rows)}", **changes}
        lines = [f"- {name} {whole.get(name, ANSWERS[name])}" for name in ("init", "count")]
        lines += [
            f"{number} {name} {answer}"
            for number, answers in rows
            for name, answer in answers.items()
        ]
        (self.root / "answers").write_text("\n".join(lines) + "\n")


@pytest.fixture
def driver(library: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    assert library
    monkeypatch.setenv("SCALETEST_NVML", str(tmp_path / "answers"))
    return Driver(tmp_path)


@pytest.fixture
def warnings() -> list[str]:
    return []


@pytest.fixture
def reader(driver: Driver, warnings: list[str]) -> DeviceReader:
    return DeviceReader(warnings.append, root=driver.root)


def figures(reader: DeviceReader, device: str = "/dev/nvidia0") -> dict[str, float]:
    return reader.read().get(f"device:{device}", {})


def test_all_figures_have_the_units_of_samples(reader: DeviceReader, warnings: list[str]) -> None:
    assert reader.read() == {"device:/dev/nvidia0": pytest.approx(FIGURES)}
    assert warnings == []


def test_the_module_loads_the_library_of_the_driver(driver: Driver, library: ctypes.CDLL) -> None:
    """In a process of its own, where the loader has to look for it."""
    (driver.root / "libnvidia-ml.so.1").symlink_to(library._name)
    code = (
        "import json, sys; from pathlib import Path; from scaletest.observe.devices.reader import"
        " DeviceReader\nprint(json.dumps(DeviceReader(root=Path(sys.argv[1])).read()))"
    )
    variables = {**os.environ, "LD_LIBRARY_PATH": str(driver.root)}
    line = [sys.executable, "-c", code, str(driver.root)]
    done = subprocess.run(line, env=variables, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {"device:/dev/nvidia0": pytest.approx(FIGURES)}


def test_devices_have_the_names_of_their_nodes(driver: Driver, reader: DeviceReader) -> None:
    # a container sees the nodes of those that it was given
    driver.node("nvidia2")
    driver.answer({"minor": "0 0"}, {"minor": "0 7"}, {"minor": NOT_SUPPORTED})
    assert set(reader.read()) == {"device:/dev/nvidia0", "device:nvidia7", "device:/dev/nvidia2"}


def test_devices_have_the_names_of_replies(driver: Driver) -> None:
    reader = DeviceReader(paths=lambda: {"0000:31:00.0": "/dev/accelerator"}, root=driver.root)
    assert set(reader.read()) == {"device:/dev/accelerator"}


def test_unsupported_figures_are_left_out(
    driver: Driver, reader: DeviceReader, warnings: list[str]
) -> None:
    """As on a device that is partitioned (MIG)."""
    driver.answer(
        utilization=NOT_SUPPORTED, encoder=NOT_SUPPORTED, decoder=NOT_SUPPORTED, clock=NOT_SUPPORTED
    )
    supported = {"memory_used", "memory_total", "energy_j", "power", "throttled", "temperature"}
    assert set(figures(reader)) == supported
    # nor is it asked again
    driver.answer()
    assert set(figures(reader)) == supported
    assert warnings == []


def test_a_passing_error_leaves_one_figure_of_one_sample_out(
    driver: Driver, reader: DeviceReader
) -> None:
    driver.answer(power=UNKNOWN)
    assert figures(reader).keys() == FIGURES.keys() - {"power"}
    driver.answer()
    assert figures(reader).keys() == FIGURES.keys()


@pytest.mark.parametrize(
    ("answers", "name", "figures_of_name"),
    [
        # busy engines are not taken for the utilisation of a device
        (
            {"utilization": NOT_SUPPORTED},
            "busy",
            {"busy.encoder": 0.95, "busy.decoder": 0.03},
        ),
        # clocks lowered by idleness or settings are no throttling
        *(
            ({"event_reasons": f"0 {reasons}"}, "throttled", {"throttled": float(throttled)})
            for reasons, throttled in (
                *((0x0, 0), (0x3, 0), (0x100, 0)),
                *((0x4, 1), (0x21, 1), (0x80, 1)),
            )
        ),
    ],
)
def test_figures_follow_from_the_answers_of_the_driver(
    driver: Driver,
    reader: DeviceReader,
    answers: dict[str, str],
    name: str,
    figures_of_name: dict[str, float],
) -> None:
    driver.answer(**answers)
    shown = {key: value for key, value in figures(reader).items() if key.startswith(name)}
    assert shown == pytest.approx(figures_of_name)


def test_a_lost_device_has_no_figures(driver: Driver, reader: DeviceReader) -> None:
    driver.node("nvidia1")
    driver.answer({}, {"minor": "0 1"})
    assert set(reader.read()) == {"device:/dev/nvidia0", "device:/dev/nvidia1"}
    driver.answer({}, {"minor": "0 1"} | dict.fromkeys(ANSWERS, GPU_IS_LOST))
    assert set(reader.read()) == {"device:/dev/nvidia0"}


def test_a_device_that_cannot_be_opened_gives_one_warning(
    driver: Driver, reader: DeviceReader, warnings: list[str]
) -> None:
    driver.answer({}, {"handle": GPU_IS_LOST})
    for _ in range(3):
        assert set(reader.read()) == {"device:/dev/nvidia0"}
    assert warnings == ["NVIDIA's device 1 cannot be read: GPU is lost"]


def test_a_driver_without_answer_gives_one_warning(
    driver: Driver, reader: DeviceReader, warnings: list[str]
) -> None:
    driver.answer(init="9")
    for _ in range(3):
        assert reader.read() == {}
    assert len(warnings) == 1 and warnings[0].startswith("NVIDIA's devices cannot be read: ")


def test_a_missing_nvml_module_is_reported_with_what_to_install(
    reader: DeviceReader, warnings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert reader.read() == {}
    assert warnings == [
        "there are NVIDIA devices, but nothing to read them with: pip install 'scaletest[nvidia]'"
    ]


def test_without_a_driver_nothing_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    assert DeviceReader(root=tmp_path).read() == {}
    assert "pynvml" not in sys.modules
