"""What a part in a pod does before its tool starts."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from scaletest.benchmarks.documents import benchmark
from scaletest.benchmarks.kinds import BenchmarkFailed
from scaletest.benchmarks.measure import pod_main
from scaletest.benchmarks.objects import manifests


@pytest.mark.parametrize("told_after_s", [60.0, 10 * manifests.START_LIMIT_S])
def test_peers_are_waited_for_as_long_as_parts_may_take_to_start(
    told_after_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pingpong, now = benchmark.read_benchmark({"kind": "MPIPingPong", "spec": {}}), [0.0]

    def sleep(seconds: float) -> None:
        now[0] += 60.0
        if now[0] > told_after_s:
            (tmp_path / manifests.PEERS).write_text(
                '[{"role": "worker", "index": 0, "host": "h", "address": "a"}]'
            )

    monkeypatch.setattr(pod_main, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    if told_after_s < manifests.START_LIMIT_S:
        site = pod_main._wait_for_site(pingpong, tmp_path, tmp_path)
        assert site.peers["worker"][0].address == "a"
    else:
        with pytest.raises(BenchmarkFailed, match="did not arrive"):
            pod_main._wait_for_site(pingpong, tmp_path, tmp_path)
