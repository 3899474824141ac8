"""Payloads of requests."""

from pathlib import Path

import pytest

from scaletest.load.payloads import read_payloads
from scaletest.model.errors import UsageError


def test_a_file_is_sent_each_time_and_the_files_of_a_folder_in_turn(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "b").write_bytes(b"two")
    in_turn = read_payloads(str(tmp_path))
    assert [in_turn.get(number) for number in range(3)] == [b"one", b"two", b"one"]
    assert read_payloads(str(tmp_path / "b")).get(7) == b"two"
    assert read_payloads("").get(5) is None
    with pytest.raises(UsageError, match="cannot be read"):
        read_payloads(str(tmp_path / "none"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="there is no file in"):
        read_payloads(str(tmp_path / "empty"))
