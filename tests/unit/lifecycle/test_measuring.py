"""Threads while a lifecycle is measured."""

import sys

import pytest

from scaletest.lifecycle.measure import measuring


def test_the_switch_interval_of_threads_is_short_only_while_events_are_stamped() -> None:
    before = sys.getswitchinterval()
    with pytest.raises(KeyError), measuring.attentive():
        assert sys.getswitchinterval() < before
        raise KeyError
    assert sys.getswitchinterval() == before
