"""Words as the arguments of a function: what fits, and what is refused in words."""

from __future__ import annotations

import time
from enum import Enum
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.documents.typed_arguments import TypedArguments
from scaletest.model.errors import InvalidValue, NoDevice
from scaletest.model.workload import Device


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


def everything(
    size: int,
    /,
    file: Path,
    *more: float,
    fast: bool = False,
    mode: Literal["one", 2] = "one",
    colour: Colour | None = None,
    name="",  # type: ignore[no-untyped-def]
    device: Device | None = None,
) -> dict[str, Any]:
    """All types that can be read."""
    return dict(locals())


def read(*texts: str, device: Device | None = None) -> dict[str, Any]:
    bound = TypedArguments(everything, "everything").read(texts, device)
    return everything(*bound.args, **bound.kwargs)


USUAL = {
    "size": 1,
    "file": Path("a"),
    "more": (),
    "fast": False,
    "mode": "one",
    "colour": None,
    "name": "",
    "device": None,
}


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("1 a", {}),
        ("-3 --file b", {"size": -3, "file": Path("b")}),
        ("1 a 2 3.5 -1e3", {"more": (2.0, 3.5, -1000.0)}),
        ("1 a --fast --mode=2 --colour red", {"fast": True, "mode": 2, "colour": Colour.RED}),
        ("1 a --fast --no-fast --colour blue", {"colour": Colour.BLUE}),
        ("1 a --fast=1 --name=", {"fast": True}),
        ("1 a --name --fast", {"name": "--fast"}),
        ("1 -- --a", {"file": Path("--a")}),
        ("1 a --name x --name y", {"name": "y"}),
        # no word is lost
        ("1 2 --file a 3", {"more": (2.0, 3.0)}),
    ],
)
def test_texts_become_typed_arguments(text: str, changes: dict[str, Any]) -> None:
    assert read(*text.split()) == USUAL | changes


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "needs the argument"),
        ("1", "needs the argument file"),
        ("1.5 a", "size in everything is '1.5', not a whole number"),
        ("1 a x", "more in everything is 'x', not a number"),
        ("1 a --fast=maybe", "fast in everything is 'maybe', not true or false"),
        ("1 a --mode three", "mode in everything is 'three'"),
        ("1 a --colour green", "colour in everything is 'green'"),
        ("1 a --name", "--name of everything needs a value"),
        ("1 a --size 2", "everything has no argument --size"),
        ("1 a --device x", "everything has no argument --device"),
        ("1 a --no-name", "has no argument --no_name"),
    ],
)
def test_texts_that_do_not_fit_are_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        read(*text.split())
    assert why in refused.value.message and refused.value.hint


def test_a_function_without_further_arguments_says_so() -> None:
    def plain(size: int = 1) -> None:
        """It has one argument."""

    with pytest.raises(InvalidValue, match="takes no further argument '2'") as refused:
        TypedArguments(plain, "plain").read(("1", "2"), None)
    assert refused.value.hint == "its arguments are size: int = 1"


def test_a_device_comes_from_the_worker() -> None:
    device = Device("/dev/dri/renderD128", "226:128")
    assert read("1", "a", device=device)["device"] is device

    def needy(device: Device) -> None:
        """It cannot do without."""

    with pytest.raises(NoDevice, match="needy needs a device"):
        TypedArguments(needy, "needy").read((), None)


def of_bytes(content: bytes) -> None:
    """Its type cannot be read."""


def of_two(value: int | str) -> None:
    """Nobody can tell which one is meant."""


def of_any(**options: str) -> None:
    """Its names are not known."""


def of_unknown(value: Unknown) -> None:  # type: ignore[name-defined] # noqa: F821
    """Its type is not there."""


def of_nothing(value: Path.unknown) -> None:  # type: ignore[name-defined]
    """Its type is no attribute."""


@pytest.mark.parametrize("function", [of_bytes, of_two, of_any, of_unknown, of_nothing, time.sleep])
def test_types_that_cannot_be_read_are_refused_at_once(function: Any) -> None:
    with pytest.raises(InvalidValue) as refused:
        TypedArguments(function, "mine")
    assert "cannot be read" in refused.value.message and refused.value.hint


@given(st.lists(st.text(max_size=8) | st.sampled_from(["--fast", "--name", "--", "1"]), max_size=6))
def test_any_texts_are_read_or_refused(texts: list[str]) -> None:
    try:
        assert set(read(*texts)) == set(USUAL)
    except InvalidValue as error:
        assert error.message and "\n" not in error.message
