"""Foreign text never becomes markup, a formula or the end of a code span."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.render import text


@given(st.text(alphabet=st.characters(codec="utf-8") | st.sampled_from("`|<>&\\\n")))
def test_a_code_span_ends_where_it_should(foreign: str) -> None:
    span = text.code_span(foreign)
    fence = re.match("`+", span)
    assert fence and "\n" not in span
    inner = span[fence.end() : -fence.end()]
    assert fence.group() not in re.findall("`+", inner)
    assert not re.search(r"(?<!\\)\|", inner)


@pytest.mark.parametrize("formula", ["=1+1", "+1", "-1", "@x"])
def test_a_spreadsheet_gets_no_formula(formula: str) -> None:
    assert text.csv_cell(formula) == f"'{formula}"


def test_elements_escape_what_is_no_markup() -> None:
    markup = text.html_element(
        "p", "<b>", text.html_element("i", "x"), title='"', data_x=1, missing=None
    )
    assert markup == '<p title="&#34;" data-x="1">&lt;b&gt;<i>x</i></p>'
