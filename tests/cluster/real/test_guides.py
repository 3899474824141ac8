"""The guide from nothing to a verdict on Kubernetes, typed as it stands."""

import os
import sys
from pathlib import Path

import pytest

from hack.guides import PAGES, ROOT, Terminal, read_blocks
from hack.kubernetes import ControlPlane, tool
from tests.cluster.charts import MAIN_HELM

# It measures for a minute what test_release.py measures in CI.
pytestmark = pytest.mark.weekly(part="guides")


def test_a_newcomer_to_kubernetes_gets_a_verdict(real: ControlPlane, tmp_path: Path) -> None:
    # given the image in the node, which is what kind would load
    folders = [
        Path(sys.executable).parent,
        Path(tool(MAIN_HELM, "helm")).parent,
        Path(tool("kubernetes", "kubectl")).parent,
    ]
    path = ":".join([*map(str, folders), os.environ["PATH"]])
    terminal = Terminal(tmp_path, {"PATH": path, "KUBECONFIG": str(real.kubeconfig)}, {})
    (tmp_path / "charts").symlink_to(ROOT / "charts")
    try:
        # when all blocks for a cluster are typed
        typed = [block for page in PAGES for block in read_blocks(page) if block.tier == "cluster"]
        outputs = {}
        for block in typed:
            code, outputs[block.text.split()[1]] = terminal.run(block.text)
            assert code == 0, f"{block.place}\n{outputs}"
    finally:
        terminal.close()
    # expect what the guide shows
    assert "successfully rolled out" in outputs["install"]
    assert "--limit 4 fits" in outputs["cluster"]
    assert "every doubling up to 4 workers reaches 1.80" in outputs["validate"]
