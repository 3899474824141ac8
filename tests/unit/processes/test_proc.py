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


@given(st.text("0123456789abcdefx:>- \n.[]", max_size=120))
def test_a_table_of_connections_may_be_any_text(text: str) -> None:
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
