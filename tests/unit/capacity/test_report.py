"""Simulated rules as a report."""

import pytest
import yaml

from scaletest.capacity.autoscale.load import Requests
from scaletest.capacity.autoscale.rule import parse_rule, to_values
from scaletest.capacity.report import RuleComparison, draw_courses, make_comparison_report
from scaletest.render.chart import Chart
from scaletest.report import formats
from tests.unit.capacity.simulations import LOAD, compared, figures
from tests.unit.golden_files import golden

RULES_COMPARED = ("original-count", "waiting-fast", "desired", "desired:window=300")


@pytest.mark.parametrize("form", ["text", "md", "csv"])
def test_simulated_rules_are_shown_alike(form: str) -> None:
    golden(
        f"autoscale.{form}", formats.render(make_comparison_report(compared(*RULES_COMPARED)), form)
    )


def test_the_page_names_the_best_rule_with_its_settings_before_anything_else() -> None:
    comparison = compared(*RULES_COMPARED)
    page = formats.render(make_comparison_report(comparison), "html")
    assert "<title>BEST RULE: Autoscaling rules" in page
    assert "<strong>BEST RULE</strong> desired:window=300:" in page
    settings, others = page.index('<pre class="copy">queues:'), page.index(">All rules</h2>")
    assert settings < others < page.index("shorter than a request") < page.index("<figure")
    # expect the settings as the chart takes them
    text = page[page.index("queues:") : page.index("</pre>")]
    values = yaml.safe_load(text.replace("&#39;", "'"))
    assert values == {"queues": {"NAME": to_values(parse_rule("desired:window=300"))}}
    # no word of the program's inside
    assert "direction_changes" not in page and "makespan" not in page
    assert "desired:window=300 (best)" in page
    assert page.count("<svg ") == 2 * len(RULES_COMPARED)


def test_charts_of_rules_have_labelled_axes_with_whole_counts_on_one_scale() -> None:
    comparison = compared(*RULES_COMPARED)
    drawn = draw_courses(comparison, comparison.choice)
    assert drawn[0].title.startswith("desired:window=300 (best): 0 direction changes, 0 killed")
    for chart in drawn:
        assert (chart.x.label, chart.y.label) == ("time, min", "requests, replicas")
        assert whole(chart)
        assert len(chart.x.labelled_marks) >= 4
    assert len({(chart.x.high, chart.y.high) for chart in drawn}) == 1
    # of one request at a time as well
    quiet = RuleComparison(
        Requests((0.0,), (10.0,)),
        [figures("one", course=comparison.results[0].course[:2])],
        LOAD,
        1,
    )
    assert all(map(whole, draw_courses(quiet, quiet.choice)))


def whole(chart: Chart) -> bool:
    """Whether the axis upwards has marks at whole numbers only."""
    return all(mark == round(mark) for mark, _ in chart.y.labelled_marks)


def test_where_even_the_best_rule_kills_the_page_says_so() -> None:
    head = make_comparison_report(compared("waiting-fast")).head
    assert head.verdict.kind == "FAIL" and "search" in head.verdict.remedy
    assert "no other rule was simulated" in head.verdict.reason
