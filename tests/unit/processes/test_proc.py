"""Parsers of files of /proc take any text, and known lines give what they say."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.processes import addresses, proc


@given(st.binary(max_size=80))
def test_parsers_take_any_bytes(data: bytes) -> None:
    for parse in (
        proc.parse_schedule,
        proc.parse_status,
        proc.parse_call,
        addresses.parse_address,
        addresses.unix_name,
    ):
        parse(data)
    assert all(number >= 0 for number in proc.parse_pollfds(data))
    assert all(number >= 0 for number in proc.parse_ring(data))
    assert len(proc.parse_fd_set(data)) == sum(byte.bit_count() for byte in data)


@given(st.text("0123456789abcdefx:>- \n.[]", max_size=120))
def test_parsers_take_any_text(text: str) -> None:
    proc.parse_throttled_s(text)
    proc.find_mapped_file(text, 1)
    proc.find_ring(text)
    proc.find_awaited_inode(text, 1)
    proc.parse_epoll(text)
    proc.parse_inode(text)
    list(addresses.parse_peers(text))


@given(st.integers(0, 2**62), st.integers(0, 2**62), st.integers(0, 2**62))
def test_schedstat_is_parsed_into_seconds(run: int, wait: int, slices: int) -> None:
    assert proc.parse_schedule(b"%d %d %d\n" % (run, wait, slices)) == (
        run / 1e9,
        wait / 1e9,
        slices,
    )


@given(st.binary(max_size=15))
def test_a_program_name_with_any_bytes_is_parsed(name: bytes) -> None:
    fields = b" ".join(b"%d" % number for number in range(4, 53))
    status = proc.parse_status(b"12 (%s) D %s\n" % (name, fields))
    assert status is not None and (status.letter, status.parent, status.major_faults) == (
        "D",
        4,
        12,
    )
    assert status.began_s == 22 / proc.TICKS_PER_S
    assert status.cpu_s == pytest.approx((14 + 15 + 16 + 17) / proc.TICKS_PER_S)


def test_shared_memory_has_a_name_and_private_memory_none() -> None:
    maps = (
        "7f0000000000-7f0000001000 rw-s 00000000 00:19 5                          /dev/shm/sem.gate"
        " (deleted)\n7f0000002000-7f0000003000 rw-p 00000000 fe:00 6                         "
        " /usr/lib/libc.so.6\n7f0000004000-7f0000005000 rw-s 00000000 00:01 7                      "
        "    /dev/zero (deleted)\n"
    )
    assert proc.find_mapped_file(maps, 0x7F0000000010) == "/dev/shm/sem.gate"
    without_file = (0x7F0000002010, 0x7F0000004010, 1)
    assert [proc.find_mapped_file(maps, address) for address in without_file] == [
        "",
        "",
        "",
    ]


def test_the_requests_of_a_ring_name_descriptors() -> None:
    maps = (
        "7f0000000000-7f0000001000 rw-s 00000000 00:10 5                  anon_inode:[io_uring]\n"
        "7f0000004000-7f0000005000 rw-s 10000000 00:10 5                  anon_inode:[io_uring]\n"
    )
    assert (proc.find_ring(maps), proc.find_ring("")) == (0x7F0000004000, 0)
    read, none, unused = b"\x16" + bytes(3) + b"\x07", b"\x0b" + bytes(3) + b"\xff" * 4, b""
    data = b"".join(request.ljust(64, b"\0") for request in (read, none, unused))
    assert proc.parse_ring(data) == [7]


def test_the_file_of_an_awaited_lock_is_parsed() -> None:
    locks = (
        "1: FLOCK  ADVISORY  WRITE 6441 fe:00:9978047 0 EOF\n"
        "1: -> FLOCK  ADVISORY  READ 12395 fe:00:9978047 0 EOF\n"
        "2: POSIX  ADVISORY  WRITE 11767 fe:00:10316409 0 EOF\n"
    )
    assert proc.find_awaited_inode(locks, 12395) == 9978047
    assert proc.find_awaited_inode(locks, 6441) is None
    assert proc.parse_lock_holders(locks) == {10316409: 11767}
    assert proc.parse_lock_holders("1: OFDLCK ADVISORY  WRITE -1 fe:00:42 0 EOF\n\n1: x\n") == {}


def test_peers_of_both_versions_of_ip() -> None:
    tcp = (
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout"
        " inode\n   0: 0100007F:A06B 0100007F:18EB 01 00000000:00000000 00:00000000 00000000     0 "
        "       0 4711 1 0\n   1: 00000000:18EB 00000000:0000 0A 00000000:00000000 00:00000000"
        " 00000000     0        0 4712 1 0\n"
    )
    assert list(addresses.parse_peers(tcp)) == [
        (4711, "127.0.0.1:6379", 0xA06B, False),
        (4712, "", 6379, True),
    ]
    six = (
        "  sl  local_address                         remote_address                        st\n  "
        " 0: 00000000000000000000000001000000:A06B 00000000000000000000000001000000:18EB 01 0:0 0:0"
        " 0 0 0 4713 1\n   1: 0000000000000000FFFF00000100007F:A06B"
        " 0000000000000000FFFF00000100007F:18EB 01 0:0 0:0 0 0 0 4714 1\n"
    )
    assert list(addresses.parse_peers(six)) == [
        (4713, "[::1]:6379", 0xA06B, False),
        (4714, "127.0.0.1:6379", 0xA06B, False),
    ]


def test_a_socket_address_in_memory_is_parsed() -> None:
    assert (
        addresses.parse_address(struct.pack("=H", 2) + b"\x18\xeb\x0a\x00\x00\x01" + bytes(8))
        == "10.0.0.1:6379"
    )
    assert (
        addresses.parse_address(struct.pack("=H", 10) + b"\x18\xeb" + bytes(19) + b"\x01")
        == "[::1]:6379"
    )
    assert addresses.parse_address(struct.pack("=H", 1) + b"/run/x.sock\0rest") == "/run/x.sock"
    assert addresses.parse_address(struct.pack("=H", 1) + b"\0name\0\0") == "@name"
    assert addresses.parse_address(struct.pack("=H", 2) + b"\x18") == ""


def test_descriptors_of_epoll_poll_and_select_are_parsed() -> None:
    assert proc.parse_epoll(
        "pos:\t0\nflags:\t02\ntfd:        5 events:       19 data: 5\ntfd: 7 events: 1\n"
    ) == [5, 7]
    assert proc.parse_pollfds(struct.pack("=ihhihh", 3, 1, 0, -1, 1, 0)) == [3]
    assert proc.parse_fd_set(b"\x08\x01") == [3, 8]
    assert proc.is_two_way("pos:\t0\nflags:\t0100002\n")
    assert not proc.is_two_way("pos:\t0\nflags:\t0100001\n") and not proc.is_two_way("")
    assert proc.parse_inode("pos:\t0\nino:\t42\n") == 42
