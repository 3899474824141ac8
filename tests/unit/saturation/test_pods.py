"""Times that a service measures itself, for each of its pods, and settings that are tuned."""

import pytest

from scaletest.model.attempt import OK, Attempt
from scaletest.model.errors import InvalidValue
from scaletest.saturation.judging.pods import times_of_pods
from scaletest.saturation.judging.tuning import settings


def test_pods_times_stand_beside_the_clients() -> None:
    # given a pod that says 10 ms where its client saw 40
    rows = [Attempt(n, 0.0, 0.0, 0.0, 0.04, OK, server_s=0.01, pod="a") for n in range(3)]
    (pod_times,) = times_of_pods(rows)
    assert (pod_times.pod, pod_times.count, pod_times.mean_s, pod_times.queueing) == (
        "a",
        3,
        pytest.approx(0.01),
        pytest.approx(0.75),
    )


def test_variables_and_arguments_of_the_program_are_tuned_by_their_names() -> None:
    assert settings(["WORKERS=1,2", "--threads=4"]) == [
        {"WORKERS": "1", "--threads": "4"},
        {"WORKERS": "2", "--threads": "4"},
    ]
    for wrong in ("workers=1", "cpu", "replicas=x"):
        with pytest.raises(InvalidValue):
            settings([wrong])
