"""Patterns of errors: which texts are alike, which are not, and that no text takes long."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.model.error_pattern import MOST_CHARACTERS, pattern_of

VAAPI = "[AVHWDeviceContext @ {}] Failed to initialise VAAPI connection: -1 (unknown libva error)."
HEXADECIMAL = st.text("0123456789abcdef", min_size=8, max_size=16)
PARTS: dict[str, st.SearchStrategy[str]] = {
    "uuid": st.uuids().map(str),
    "url": st.from_regex(
        r"https?://[a-z]{1,9}(:[0-9]{2,4})?(/[a-z0-9.]{1,9}[a-z]){0,3}", fullmatch=True
    ),
    "time": st.one_of(
        st.datetimes().map(lambda time: time.isoformat()),
        st.datetimes().map(lambda time: f"{time.isoformat(timespec='milliseconds')}Z"),
        st.times().map(lambda time: f"{time:%H:%M:%S}"),
    ),
    "address": st.one_of(
        st.integers(0, 2**64 - 1).map(hex),
        st.ip_addresses(v=4).map(str),
        st.builds("{}:{}".format, st.ip_addresses(v=4), st.integers(1, 65535)),
        st.builds("[{}]:{}".format, st.ip_addresses(v=6).map(str), st.integers(1, 65535)).filter(
            lambda text: "::" in text or text.count(":") == 8
        ),
    ),
    "path": st.from_regex(r"(~|\.|\.\.)?(/[A-Za-z0-9_-]{1,9}){1,4}(\.[a-z]{1,4})?", fullmatch=True),
    "id": HEXADECIMAL.filter(lambda text: not text.isdigit() and not text.isalpha()),
    "number": st.one_of(
        st.integers().map(str),
        st.floats(allow_nan=False, allow_infinity=False).map(repr),
        st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){2}", fullmatch=True),
    ),
}
AROUND = st.sampled_from(["{}", "({})", "'{}'", "{}:", "{},", "{}.", "at={}", '"{}";'])


@pytest.mark.parametrize(
    ("error", "pattern"),
    [
        (VAAPI.format("0x55d0c3a1b2c0"), VAAPI.format("<address>").replace("-1", "<number>")),
        ("/dev/dri/renderD128: No such file or directory", "<path>: No such file or directory"),
        ("/src/main.cu:123: CUDA error 700", "<path>:<number>: CUDA error <number>"),
        ("C:\\clips\\a.mp4 is broken", "<path> is broken"),
        ("Input/output error", "Input/output error"),
        ("dial tcp 10.0.0.12:6379: refused", "dial tcp <address>: refused"),
        ("dial tcp [fe80::1%eth0]:6379: refused", "dial tcp <address>: refused"),
        ("GPU 0000:3b:00.0 fell off the bus", "GPU <address> fell off the bus"),
        ("aa:bb:cc:dd:ee:ff is down", "<address> is down"),
        ("GET http://me@host:80/a?b=c: 503.", "GET <url>: <number>."),
        ("[00:12:34] ended", "[<time>] ended"),
        ("at 12:03:04.5: late", "at <time>: late"),
        ("2026/11/23 09:37:12 late", "<time> late"),
        ("pod load-7d9f8b6c5d-x2x9z is gone", "pod load-<id> is gone"),
        ("frame=   12 fps=1.5e-3", "frame= <number> fps=<number>"),
        ("output_00012.png", "output_<number>.png"),
        ("h264_qsv, x264, utf8, sm_90, v1.2", "h264_qsv, x264, utf8, sm_90, v1.2"),
        ("defaced facade", "defaced facade"),
        ("lost 3 times, by w-1, w-12", "lost <number> times, by w-<number>, w-<number>"),
        ("two\n lines", "two lines"),
        ("", ""),
    ],
)
def test_the_circumstances_are_masked_and_the_rest_stays(error: str, pattern: str) -> None:
    assert pattern_of(error) == pattern
    assert pattern_of(pattern) == pattern


@pytest.mark.parametrize("name", sorted(PARTS))
@given(data=st.data(), around=AROUND)
def test_texts_that_differ_only_in_such_a_part_have_one_pattern(
    name: str, data: Any, around: str
) -> None:
    first, second = data.draw(PARTS[name]), data.draw(PARTS[name])
    patterns = {pattern_of(f"open {around.format(part)} failed") for part in (first, second)}
    assert patterns == {f"open {around.format(f'<{name}>')} failed"}


@given(st.one_of(st.text(), st.text("0:/.af[-\\xT 9e+_<>~", max_size=3000)))
def test_every_text_has_a_pattern_of_bounded_length(error: str) -> None:
    pattern = pattern_of(error)
    assert len(pattern) <= MOST_CHARACTERS
    assert "\n" not in pattern


@pytest.mark.parametrize("piece", ["1 ", "a", "af", "1", "0x", "/a", ".1", "-1", "a:", "~/", "é"])
def test_a_very_long_text_is_cut_before_it_is_read(piece: str) -> None:
    assert len(pattern_of(piece * 5_000_000)) <= MOST_CHARACTERS
