"""Parsers of what blocked calls wait for take any text, and known lines give what they say."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from scaletest.observe import control_groups, wait_targets


@given(st.binary(max_size=80))
def test_parsers_take_any_memory(data: bytes) -> None:
    assert all(number >= 0 for number in wait_targets.parse_pollfds(data))
    assert all(number >= 0 for number in wait_targets.parse_ring(data))
    assert len(wait_targets.parse_fd_set(data)) == sum(byte.bit_count() for byte in data)


@given(st.text("0123456789abcdefx:>- \n.[]", max_size=120))
def test_parsers_take_any_text(text: str) -> None:
    control_groups.parse_throttled_s(text)
    wait_targets.find_mapped_file(text, 1)
    wait_targets.find_ring(text)
    wait_targets.find_awaited_inode(text, 1)
    wait_targets.parse_epoll(text)
    wait_targets.parse_inode(text)


def test_shared_memory_has_a_name_and_private_memory_none() -> None:
    maps = (
        "7f0000000000-7f0000001000 rw-s 00000000 00:19 5                          /dev/shm/sem.gate"
        " (deleted)\n7f0000002000-7f0000003000 rw-p 00000000 fe:00 6                         "
        " /usr/lib/libc.so.6\n7f0000004000-7f0000005000 rw-s 00000000 00:01 7                      "
        "    /dev/zero (deleted)\n"
    )
    assert wait_targets.find_mapped_file(maps, 0x7F0000000010) == "/dev/shm/sem.gate"
    without_file = (0x7F0000002010, 0x7F0000004010, 1)
    assert [wait_targets.find_mapped_file(maps, address) for address in without_file] == [
        "",
        "",
        "",
    ]


def test_the_requests_of_a_ring_name_descriptors() -> None:
    maps = (
        "7f0000000000-7f0000001000 rw-s 00000000 00:10 5                  anon_inode:[io_uring]\n"
        "7f0000004000-7f0000005000 rw-s 10000000 00:10 5                  anon_inode:[io_uring]\n"
    )
    assert (wait_targets.find_ring(maps), wait_targets.find_ring("")) == (0x7F0000004000, 0)
    read, none, unused = b"\x16" + bytes(3) + b"\x07", b"\x0b" + bytes(3) + b"\xff" * 4, b""
    data = b"".join(request.ljust(64, b"\0") for request in (read, none, unused))
    assert wait_targets.parse_ring(data) == [7]


def test_the_file_of_an_awaited_lock_is_parsed() -> None:
    locks = (
        "1: FLOCK  ADVISORY  WRITE 6441 fe:00:9978047 0 EOF\n"
        "1: -> FLOCK  ADVISORY  READ 12395 fe:00:9978047 0 EOF\n"
        "2: POSIX  ADVISORY  WRITE 11767 fe:00:10316409 0 EOF\n"
    )
    assert wait_targets.find_awaited_inode(locks, 12395) == 9978047
    assert wait_targets.find_awaited_inode(locks, 6441) is None
    assert wait_targets.parse_lock_holders(locks) == {10316409: 11767}
    of_nobody = "1: OFDLCK ADVISORY  WRITE -1 fe:00:42 0 EOF\n\n1: x\n"
    assert wait_targets.parse_lock_holders(of_nobody) == {}


def test_descriptors_of_epoll_poll_and_select_are_parsed() -> None:
    assert wait_targets.parse_epoll(
        "pos:\t0\nflags:\t02\ntfd:        5 events:       19 data: 5\ntfd: 7 events: 1\n"
    ) == [5, 7]
    assert wait_targets.parse_pollfds(struct.pack("=ihhihh", 3, 1, 0, -1, 1, 0)) == [3]
    assert wait_targets.parse_fd_set(b"\x08\x01") == [3, 8]
    assert wait_targets.is_two_way("pos:\t0\nflags:\t0100002\n")
    assert not wait_targets.is_two_way(
        "pos:\t0\nflags:\t0100001\n"
    ) and not wait_targets.is_two_way("")
    assert wait_targets.parse_inode("pos:\t0\nino:\t42\n") == 42
