"""Usage of pods in the metrics of cAdvisor."""

from hypothesis import given
from hypothesis import strategies as st

from scaletest.cluster.cadvisor import parse_usage


def test_figures_of_cadvisor_are_summed_by_pod() -> None:
    page = """# HELP container_cpu_usage_seconds_total x
container_cpu_usage_seconds_total{container="a",namespace="n",pod="p",image="x{y}"} 1.5 1700000000000
container_cpu_usage_seconds_total{container="b",namespace="n",pod="p"} 2
container_cpu_usage_seconds_total{container="",namespace="n",pod="p"} 99
container_cpu_usage_seconds_total{container="a",namespace="other",pod="p"} 99
container_memory_working_set_bytes{container="a",namespace="n",pod="p"} 1e+06
container_memory_working_set_bytes{container="POD",namespace="n",pod="p"} 99
"""  # noqa: E501
    assert parse_usage(page, "n") == {"p": (3.5, 1e6, 1.7e9)}


@given(st.text(max_size=200))
def test_any_page_of_figures_is_read(text: str) -> None:
    assert isinstance(parse_usage(text, "n"), dict)
