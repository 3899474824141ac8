"""The original tester's media deployment against the example that takes its place."""

import argparse
import shlex
from typing import Any

import pytest

from tests.cluster.charts import CHART, objects, render
from tests.cluster.test_chart import helm

__all__ = ["helm"]

# The container of the original's deployment: its arguments, the device's resources, its data and
# its user.
ORIGINAL_ARGUMENTS = shlex.split(
    "-name media -node-env NODE_NAME -pod-env POD_NAME -dir /data -glob '/dev/dri/renderD*' -limit"
    " 0 -null-in -ignore -- /usr/bin/sample_multi_transcode -hw -async 4 -device FILENAME -i::h265"
    " video.h265 -o::h265 /dev/null -u medium -w 3840 -h 2160 -n 600"
)
ORIGINAL_LIMITS = {
    "gpu.intel.com/i915": 1,
    "gpu.intel.com/millicores": 480,
    "gpu.intel.com/memory.max": "560M",
}
ORIGINAL_SECURITY = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
    "runAsUser": 0,
}
# The original's option and ours; both are given a value in the same form.
OPTIONS = {
    "-name": "--queue",
    "-node-env": "--node-env",
    "-pod-env": "--pod-env",
    "-dir": "--directory",
}
OPTIONS |= {"-glob": "--device-glob", "-limit": "--time-limit"}
FLAGS = {"-null-in": "--null-input", "-ignore": "--ignore-arguments"}


def parsed(arguments: list[str], options: list[str], flags: list[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prefix_chars="-", allow_abbrev=False, exit_on_error=False)
    for name in options:
        parser.add_argument(name, dest=name)
    for name in flags:
        parser.add_argument(name, dest=name, action="store_true")
    return vars(parser.parse_args(arguments))


@pytest.fixture
def pod(helm: str) -> dict[str, Any]:
    """The pod of the example's workers."""
    rows = objects(render(helm, "-f", str(CHART / "examples" / "intel-original-media.yaml")))
    (deployment,) = [
        row
        for row in rows
        if row["kind"] == "Deployment" and row["metadata"]["name"] == "trial-scaletest-media-worker"
    ]
    spec: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return spec


def test_the_command_equals_that_of_the_original(pod: dict[str, Any]) -> None:
    ours = pod["containers"][0]["args"]
    assert ours[ours.index("--") + 1 :] == ORIGINAL_ARGUMENTS[ORIGINAL_ARGUMENTS.index("--") + 1 :]


def test_every_option_of_the_original_has_the_same_value(pod: dict[str, Any]) -> None:
    ours = pod["containers"][0]["args"]
    theirs = parsed(
        ORIGINAL_ARGUMENTS[: ORIGINAL_ARGUMENTS.index("--")], list(OPTIONS), list(FLAGS)
    )
    own = ["--grace", "--per-device"]
    values = parsed(ours[1 : ours.index("--")], [*OPTIONS.values(), *own], list(FLAGS.values()))
    # no limit is said by leaving it out
    expected = {
        ours: None if theirs[name] == "0" else theirs[name]
        for name, ours in {**OPTIONS, **FLAGS}.items()
    }
    assert {name: value for name, value in values.items() if name not in own} == expected


def test_device_volume_and_grace_period_equal_those_of_the_original(pod: dict[str, Any]) -> None:
    (worker,) = pod["containers"]
    resource = "gpu.intel.com/i915"
    assert int(worker["resources"]["limits"][resource]) == ORIGINAL_LIMITS[resource]
    (mount,) = [mounted for mounted in worker["volumeMounts"] if mounted["mountPath"] == "/data"]
    (volume,) = [place for place in pod["volumes"] if place["name"] == mount["name"]]
    assert mount["readOnly"] is True
    assert volume["persistentVolumeClaim"] == {"claimName": "media-data", "readOnly": True}
    assert pod["terminationGracePeriodSeconds"] == 15
    fields = {
        variable["name"]: variable["valueFrom"]["fieldRef"]["fieldPath"]
        for variable in worker["env"]
        if "NAME" in variable["name"]
    }
    assert fields == {"NODE_NAME": "spec.nodeName", "POD_NAME": "metadata.name"}


def test_the_volume_is_claimed_read_only_many(helm: str) -> None:
    rows = objects(render(helm, "-f", str(CHART / "examples" / "intel-original-media.yaml")))
    (claim,) = [
        row
        for row in rows
        if row["kind"] == "PersistentVolumeClaim" and row["metadata"]["name"] == "media-data"
    ]
    assert claim["spec"]["accessModes"] == ["ReadOnlyMany"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "1G"


def test_the_differences_from_the_original_are_those_of_the_documentation(
    pod: dict[str, Any],
) -> None:
    (worker,) = pod["containers"]
    rules = {**pod["securityContext"], **worker["securityContext"]}
    same = {name: value for name, value in ORIGINAL_SECURITY.items() if name != "runAsUser"}
    assert {name: rules[name] for name in same} == same
    # a user without privileges, in the groups of the device files, where the original is root
    assert rules["runAsNonRoot"] is True
    assert "runAsUser" not in rules
    assert rules["supplementalGroups"] == [44, 109]
    # resources that the device plugin no longer has; 480 thousandths let two share a GPU, and so do
    # the slots
    limits = worker["resources"]["limits"]
    assert not {"gpu.intel.com/millicores", "gpu.intel.com/memory.max"} & limits.keys()
    slots = int(worker["args"][worker["args"].index("--per-device") + 1])
    assert slots == 1000 // int(ORIGINAL_LIMITS["gpu.intel.com/millicores"])
    guide = (CHART.parents[1] / "docs" / "how-to" / "from-the-original.md").read_text("utf-8")
    for word in (
        "runAsNonRoot",
        "capabilities",
        "millicores",
        "memory.max",
        "shared-dev-num",
        "deviceClass",
    ):
        assert word in guide, word
