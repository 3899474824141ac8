"""Times of pods from headers and logs."""

from __future__ import annotations

import pytest

from scaletest.analysis.saturation.pods import from_headers, from_logs
from scaletest.model.errors import InvalidValue
from scaletest.model.saturation import OK, Attempt


def test_pods_times_stand_beside_the_clients() -> None:
    # given a pod that says 10 ms where its client saw 40, and a log that says 5, 15 and something
    # else
    rows = [Attempt(n, 1, True, 0.0, 0.0, 0.0, 0.04, OK, server_s=0.01, pod="a") for n in range(3)]
    (pod_times,) = from_headers(rows)
    assert (pod_times.pod, pod_times.count, pod_times.mean_s, pod_times.queueing) == (
        "a",
        3,
        pytest.approx(0.01),
        pytest.approx(0.75),
    )
    lines = ["took 5 ms", "took 15.0 ms", "took long ms", "nothing"]
    (two,) = from_logs({"b": lines, "c": []}, r"took (\S+) ms", 0.02)
    assert (two.pod, two.count, two.mean_s, two.queueing) == (
        "b",
        2,
        pytest.approx(0.01),
        pytest.approx(0.5),
    )
    for pattern in ("(", "no group"):
        with pytest.raises(InvalidValue, match="--log-pattern"):
            from_logs({}, pattern, None)
