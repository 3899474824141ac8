"""How a command waits with its end for the pages of its run that are open in browsers."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread

import pytest

from scaletest.ui.open_pages import LOADED_S, LONGEST_S, SILENT_S, OpenPages


class Site:
    """Open pages, a time that stands still, and a command that waits for them."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.pages = OpenPages(lambda: self.now_s)
        self._command = Thread(target=self.pages.wait)

    def begin_to_end(self) -> None:
        self._command.start()

    def ended(self) -> bool:
        """Whether the command ends by itself; it has what it needs to do so."""
        self._command.join(60)
        return not self._command.is_alive()

    @property
    def waits(self) -> bool:
        return self._command.is_alive()

    def let_go(self) -> None:
        """Whatever still waits ends."""
        self.now_s += LONGEST_S + SILENT_S
        self.pages.answered("last", shows_end=True)
        if self._command.ident is not None:
            self._command.join()


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.let_go()


def test_nobody_is_waited_for_where_no_page_is_open(site: Site) -> None:
    site.pages.wait()
    # nor for one that was opened after the end
    site.pages.answered("", shows_end=True)
    site.pages.wait()


def test_every_page_is_waited_for_until_it_shows_the_end(site: Site) -> None:
    for page in ("a", "b"):
        site.pages.answered(page, shows_end=False)
    site.begin_to_end()
    for page in ("a", "b", "a"):
        site.pages.answered(page, shows_end=True)
    # b was told of the end, and did not ask again yet
    assert site.waits
    site.pages.answered("b", shows_end=True)
    assert site.ended()


def test_a_page_whose_answer_takes_long_is_waited_for(site: Site) -> None:
    site.pages.answered("a", shows_end=False)
    site.pages.asked("a")
    site.now_s += SILENT_S + 1.0
    site.begin_to_end()
    site.pages.answered("b", shows_end=False)
    assert site.waits
    for page in ("a", "b", "a", "b"):
        site.pages.answered(page, shows_end=True)
    assert site.ended()


def test_a_page_of_an_earlier_run_is_no_longer_waited_for(site: Site) -> None:
    for _ in range(9):
        site.pages.answered("a", shows_end=True)
    site.pages.wait()


@pytest.mark.parametrize(("page", "silent_s"), [("a", SILENT_S), ("", LOADED_S)])
def test_a_page_that_does_not_ask_any_more_is_closed(
    site: Site, page: str, silent_s: float
) -> None:
    site.pages.answered(page, shows_end=False)
    site.now_s += silent_s
    site.pages.wait()
    # it leaves nothing behind
    site.now_s += 1.0
    site.pages.answered("b", shows_end=True)
    assert page not in site.pages._ends


def test_a_page_that_goes_on_without_an_end_is_waited_for_a_while(site: Site) -> None:
    site.pages.answered("a", shows_end=False)
    site.begin_to_end()
    site.pages.answered("a", shows_end=False)
    assert site.waits
    site.now_s += LONGEST_S
    site.pages.answered("a", shows_end=False)
    assert site.ended()
