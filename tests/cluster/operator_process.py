"""The operator with results that a test scripts: fake nodes run nothing, so nothing is in their
pods' logs.

python -m tests.cluster.operator_process NAMESPACE JOURNAL [GROUP]
Every pod whose log is read is written into the journal, so that a test sees what was measured how
often. GROUP: kube-perftest's API group, to be served too.
"""

import sys
from pathlib import Path

from scaletest.benchmarks.documents.result import BenchmarkPhase, BenchmarkResult, frame_result
from scaletest.benchmarks.objects import manifests
from scaletest.benchmarks.operator.handlers import run
from scaletest.cluster.api_calls import connect_cluster
from scaletest.cluster.objects import ObjectClient
from scaletest.cluster.resources import PODS


class Scripted(ObjectClient):
    """Logs are made up from the pod: a benchmark named slow* goes on for ever, any other measures 5
    Gbit/s.

    What it reached its peer from is what its pod's annotation `test/address` says.
    """

    journal: Path

    def log(self, namespace: str, pod: str) -> str | None:
        pod_object = self.find(PODS, namespace, pod)
        if pod_object is None:
            return None
        name = pod_object["metadata"]["labels"][manifests.BENCHMARK]
        with self.journal.open("a") as file:
            file.write(f"{name} {pod_object['metadata']['uid']}\n")
        if name.startswith("slow"):
            return "still measuring\n"
        address = pod_object["metadata"].get("annotations", {}).get("test/address", "")
        rate = {"bandwidth": 5e9, "retransmits": 3.0}
        return "some words\n" + frame_result(
            BenchmarkResult(
                name,
                BenchmarkPhase.COMPLETED,
                rate,
                {"streams": [1]},
                {"interface": "net1", "address": address},
                started_s=1e9,
                finished_s=1e9 + 1,
            )
        )


if __name__ == "__main__":
    objects = Scripted(connect_cluster())
    Scripted.journal = Path(sys.argv[2])
    run(objects, "none", [sys.argv[1]], 0, perftest_group="".join(sys.argv[3:]))
