"""The language of templates in documents."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.documents.templates import fill
from scaletest.model.errors import InvalidValue


def test_templates_use_values_and_nothing_else() -> None:
    document = {
        "a": "{{ p.n }}",
        "b": "n is {{ p.n }}",
        "c": ["{{ p.list | toyaml }}"],
        "d": 5,
        "{{ p.n }}": "{% raw %}{{ theirs }}{% endraw %}",
        "e": "{% if %}",
    }
    assert fill(document, {"p": {"n": 3, "list": [1]}}) == {
        "a": 3,
        "b": "n is 3",
        "c": [[1]],
        "d": 5,
        "3": "{{ theirs }}",
        "e": "{% if %}",
    }


@pytest.mark.parametrize(
    ("template", "problem", "hint"),
    [
        ("{{ p.nunber }}", "asks for 'nunber', which nothing fills", "did you mean number?"),
        ("{{ q }}", "asks for 'q', which nothing fills", "there are p, number"),
        ("{{ p.number.real.x }}", "asks for 'x', which nothing fills", "there are"),
        ("{{ ().__class__.__bases__ }}", "cannot be filled in: access to attribute", "NAME"),
        ("{{ p.update({'number': 4}) }}", "cannot be filled in", "NAME"),
        ("{{ p.number / 0 }}", "cannot be filled in: division by zero", "NAME"),
        ("{{ p.number", "cannot be filled in", "NAME"),
        ("{{ range(9) }}", "cannot be filled in: call is not allowed", "NAME"),
        ("{{ p.number | shout }}", "cannot be filled in: No filter named 'shout'", "NAME"),
        ("{{ 'x' * 100001 }}", "'x' is no number to compute with", "NAME"),
        ("{{ '%9999d' % 1 }}", "'%9999d' is no number to compute with", "NAME"),
        ("{{ p.long }}" * 2, "makes more than 100000 characters", "shorten it"),
        ("{{ p }}" + "x" * 100_000, "makes more than 100000 characters", "shorten it"),
        ("{{ 9**(9**9) }}", "cannot be filled in: pow is not allowed", "NAME"),
        ("{{ 'x'.ljust(10**9) | length }}", "cannot be filled in: ", "NAME"),
        ("{{ 'x' | center(1000000000) }}", "the filter center with arguments is not", "NAME"),
        ("{{ 1.5 | round(1000000000, 'ceil') }}", "the filter round with arguments is", "NAME"),
        ("{{ p.number ~ p.number }}", "concat is not allowed", "NAME"),
        ("{% for i in p %}{{ i }}{% endfor %}", "for is not allowed", "NAME"),
        ("{{ p.number + 11e999 }}", "a number without end is not allowed", "NAME"),
        ("{{ p.number * 9e18 }}", "the result is too large", "NAME"),
        ("{{ " + "p and " * 300 + "p }}", "more than 20 levels are nested", "NAME"),
        ("{{ 1e9\uff11 }}", "cannot be filled in", "NAME"),
        ("{{ p.gone | toyaml }}", "cannot be filled in", "NAME"),
        ("{{ '[1' }}", "makes is not valid YAML", "correct it"),
    ],
)
def test_mistakes_are_explained(template: str, problem: str, hint: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        fill({"a": [template]}, {"p": {"number": 3, "long": "x" * 60_000}})
    assert problem in caught.value.message
    assert hint in caught.value.hint


@given(st.text(alphabet="{}%#pn.|'\"()[]-+ 1~", max_size=20))
def test_any_template_is_filled_in_or_refused(text: str) -> None:
    try:
        fill("{{" + text, {"p": {"n": 3}})
    except InvalidValue as error:
        assert error.hint
