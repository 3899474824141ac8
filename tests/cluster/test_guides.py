"""What the guides say to install is what the chart takes."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from tests.cluster.charts import ROOT, objects, render
from tests.cluster.conftest import helm_program

GUIDES = [
    ROOT / "docs" / "how-to" / f"{name}.md" for name in ("kubernetes", "from-the-original", "ui")
]


@pytest.fixture
def helm() -> str:
    return helm_program()


def lines(page: Path, program: str) -> list[list[str]]:
    """The command lines of a program, as the page has them."""
    text = page.read_text("utf-8").splitlines()
    return [shlex.split(line)[1:] for line in text if line.strip().startswith(f"{program} ")]


def test_helm_commands_in_the_guides_render(helm: str) -> None:
    commands = [
        arguments
        for page in GUIDES
        for arguments in lines(page, "helm")
        if arguments[0] == "install"
    ]
    assert commands
    for arguments in commands:
        assert arguments[2] == "charts/scaletest"
        options = [
            word for flag, value in pairwise(arguments) if flag == "--set" for word in (flag, value)
        ]
        render(helm, *options)


def test_the_originals_media_deployment_becomes_an_equivalent_pod(
    helm: str, tmp_path: Path
) -> None:
    # given the values of the guide
    block = re.search(r"```yaml\n(.*?)```", GUIDES[1].read_text("utf-8"), re.DOTALL)
    assert block
    values = tmp_path / "values.yaml"
    values.write_text(block[1], "utf-8")
    rows = objects(render(helm, "-f", str(values)))
    pods = {
        row["metadata"]["name"]: row["spec"]["template"]["spec"]
        for row in rows
        if row["kind"] == "Deployment"
    }
    media = pods["trial-scaletest-media-worker"]
    (worker,) = media["containers"]
    # expect the arguments of the original's, word for word, and what they stand for
    options, command = (
        worker["args"][: worker["args"].index("--")],
        worker["args"][worker["args"].index("--") + 1 :],
    )
    original = (
        "/usr/bin/sample_multi_transcode -hw -async 4 -device FILENAME -i::h265 input.h265 -o::h265"
        " /dev/null"
    )
    assert command == f"{original} -u medium -w 3840 -h 2160 -n 600".split()
    wanted = {
        "--device-glob=/dev/dri/renderD*",
        "--directory=/data",
        "--null-input",
        "--ignore-arguments",
    }
    assert wanted <= set(options)
    assert worker["resources"]["limits"]["gpu.intel.com/i915"] == 1
    assert {"name": "data", "mountPath": "/data", "readOnly": True} in worker["volumeMounts"]
    assert any(
        volume.get("persistentVolumeClaim", {}).get("claimName") == "media-data"
        for volume in media["volumes"]
    )
    # and the documented differences: no root, and the device's groups instead
    assert media["securityContext"]["runAsNonRoot"] is True
    assert media["securityContext"]["supplementalGroups"] == [44, 109]
    assert media["terminationGracePeriodSeconds"] >= 15
    # its sleep queue: the load of the original
    client = pods["trial-scaletest-sleep-client"]["containers"][0]["args"]
    assert {"--parallel=2", "--max-parallel=16"} <= set(client)
    assert client[-2:] == ["--", "2"]
    monitor = next(row for row in rows if row["kind"] == "ServiceMonitor")
    assert monitor["spec"]["endpoints"][0]["interval"] == "4s"


def test_values_in_the_guide_of_the_pages_render(helm: str, tmp_path: Path) -> None:
    (block,) = re.findall(r"```yaml\n(.*?)```", GUIDES[2].read_text("utf-8"), re.DOTALL)
    values = tmp_path / "values.yaml"
    values.write_text(block, "utf-8")
    rows = {row["kind"]: row for row in objects(render(helm, "-f", str(values)))}
    assert rows["Ingress"]["spec"]["rules"][0]["host"] == "pages.example.org"


def test_autoscaling_blocks_in_the_guide_render(helm: str) -> None:
    blocks = re.findall(r"`autoscaling: (\{.*?\})`", GUIDES[1].read_text("utf-8"))
    assert len(blocks) == 2
    for text in blocks:
        block = yaml.safe_load(text)
        options = [
            word
            for key, value in block.items()
            for word in ("--set-string", f"queues.sleep.autoscaling.{key}={value}")
        ]
        rows = objects(render(helm, *options))
        assert any(row["kind"] == "HorizontalPodAutoscaler" for row in rows)
