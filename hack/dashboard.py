"""The Grafana dashboard, charts/scaletest/dashboards/scaletest.json: one row here for each panel."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Q = 'queue=~"$queue"'
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True)
class Panel:
    """kind: of Grafana. queries: (expression, legend). unit: of Grafana, as s or short."""

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    note: str = ""


def rate(metric: str, by: str = "queue", more: str = "") -> str:
    """A counter a second."""
    return f"sum by ({by}) (rate({metric}{{{Q}{more}}}[$__rate_interval]))"


def quantile(share: float, metric: str) -> str:
    """A quantile of a histogram, by queue."""
    return f"histogram_quantile({share}, {rate(metric + '_bucket', 'queue, le')})"


ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Queues",
        (
            Panel("Redis answers", (("min(scaletest_up)", "up"),), kind="stat", width=4),
            Panel("Waiting", ((f"sum(scaletest_queue_waiting{{{Q}}})", "waiting"),), kind="stat", width=4),
            Panel("Running", ((f"sum(scaletest_queue_running{{{Q}}})", "running"),), kind="stat", width=4),
            Panel("Workers", ((f"sum(scaletest_workers{{{Q}}})", "workers"),), kind="stat", width=4),
            Panel("Wanted", ((f"sum(scaletest_queue_desired_workers{{{Q}}})", "workers"),), kind="stat", width=4),
            Panel("Clients", (("max(scaletest_clients)", "clients"),), kind="stat", width=4),
            Panel(
                "Waiting and running",
                ((f"scaletest_queue_waiting{{{Q}}}", "{{queue}} waiting"),
                 (f"scaletest_queue_running{{{Q}}}", "{{queue}} running")),
            ),
            Panel("Oldest waiting request", ((f"scaletest_queue_oldest_waiting_seconds{{{Q}}}", "{{queue}}"),), "s"),
            Panel(
                "Submitted and ended a second",
                ((rate("scaletest_requests_submitted_total"), "{{queue}} submitted"),
                 (rate("scaletest_requests_total"), "{{queue}} ended")),
                "reqps",
            ),
        ),
    ),
    (
        "Workers",
        (
            Panel("Workers by state", ((f"sum by (state) (scaletest_workers{{{Q}}})", "{{state}}"),), width=12),
            Panel(
                "Share of workers that are busy",
                ((f'sum by (queue) (scaletest_workers{{{Q},state="busy"}}) / sum by (queue) (scaletest_workers{{{Q}}})',
                  "{{queue}}"),),
                "percentunit",
                width=12,
            ),
        ),
    ),
    (
        "Times",
        (
            Panel("Wait", ((rate("scaletest_queue_wait_seconds_bucket", "le"), "{{le}}"),), "s", "heatmap", 12),
            Panel("Run", ((rate("scaletest_request_run_seconds_bucket", "le"), "{{le}}"),), "s", "heatmap", 12),
            Panel(
                "Wait, median and 95 %",
                ((quantile(0.5, "scaletest_queue_wait_seconds"), "{{queue}} p50"),
                 (quantile(0.95, "scaletest_queue_wait_seconds"), "{{queue}} p95")),
                "s",
            ),
            Panel(
                "Run, median and 95 %",
                ((quantile(0.5, "scaletest_request_run_seconds"), "{{queue}} p50"),
                 (quantile(0.95, "scaletest_request_run_seconds"), "{{queue}} p95")),
                "s",
            ),
            Panel(
                "Longest of the exporter's window",
                ((f"scaletest_queue_wait_max_seconds{{{Q}}}", "{{queue}} wait"),
                 (f"scaletest_queue_run_max_seconds{{{Q}}}", "{{queue}} run"),
                 (f"scaletest_queue_total_max_seconds{{{Q}}}", "{{queue}} total")),
                "s",
            ),
        ),
    ),
    (
        "Outcomes",
        (
            Panel("Ended a second", ((rate("scaletest_requests_total", "outcome"), "{{outcome}}"),), "reqps", width=12),
            Panel(
                "What went wrong a second",
                ((rate("scaletest_requests_rejected_total"), "{{queue}} rejected: queue full"),
                 (rate("scaletest_requests_abandoned_total"), "{{queue}} abandoned: client gone"),
                 (rate("scaletest_requests_requeued_total"), "{{queue}} requeued: worker died"),
                 (rate("scaletest_requests_lost_total"), "{{queue}} lost"),
                 (rate("scaletest_requests_poison_total"), "{{queue}} unreadable"),
                 (rate("scaletest_results_stale_total"), "{{queue}} stale results")),
                "reqps",
                width=12,
            ),
        ),
    ),
    (
        "Autoscaling",
        (
            Panel(
                "Wanted workers and those there",
                ((f"scaletest_queue_desired_workers{{{Q}}}", "{{queue}} wanted"),
                 (f"sum by (queue) (scaletest_workers{{{Q}}})", "{{queue}} there"),
                 (f"scaletest_queue_demand{{{Q}}}", "{{queue}} waiting + running")),
                width=12,
                note="Lines that jump up and down: see docs/explanation/autoscaling.md.",
            ),
            Panel(
                "What the number is made of",
                ((f"scaletest_queue_submitted_per_second{{{Q}}}", "{{queue}} submitted a second"),
                 (f"scaletest_queue_run_mean_seconds{{{Q}}}", "{{queue}} mean run, s")),
            ),
            Panel("Exporter: reading Redis", (("scaletest_exporter_read_seconds", "{{instance}}"),), "s", width=4),
        ),
    ),
)  # fmt: skip


def dashboard() -> str:
    """The JSON that Grafana imports; schema 39, Grafana 10 and later."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row in ROWS:
        panels.append({"type": "row", "title": title, "id": len(panels) + 1, "collapsed": False, "panels": [],
                       "gridPos": {"h": 1, "w": 24, "x": 0, "y": y}})  # fmt: skip
        x, y, height = 0, y + 1, 0
        for panel in row:
            if x + panel.width > 24:
                x, y = 0, y + height
            height = 4 if panel.kind == "stat" else 8
            panels.append(_panel(panel, len(panels) + 1, {"h": height, "w": panel.width, "x": x, "y": y}))
            x += panel.width
        y += height
    return json.dumps(_frame(panels), indent=2) + "\n"


def _frame(panels: list[dict[str, Any]]) -> dict[str, Any]:
    queue = {
        "name": "queue", "label": "Queue", "type": "query", "datasource": SOURCE, "refresh": 2, "multi": True,
        "includeAll": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"}, "sort": 1,
        "definition": "label_values(scaletest_queue_waiting, queue)",
        "query": {"query": "label_values(scaletest_queue_waiting, queue)", "refId": "queue"},
    }  # fmt: skip
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {}}
    return {
        "title": "scaletest", "uid": "scaletest", "tags": ["scaletest"], "schemaVersion": 39, "version": 1,
        "editable": True, "refresh": "10s", "time": {"from": "now-30m", "to": "now"}, "timezone": "browser",
        "templating": {"list": [source, queue]}, "annotations": {"list": []}, "links": [], "panels": panels,
    }  # fmt: skip


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    heat = panel.kind == "heatmap"
    targets = [
        {"refId": chr(65 + index), "expr": expression, "legendFormat": legend, "datasource": SOURCE,
         "format": "heatmap" if heat else "time_series", "instant": False, "range": True}
        for index, (expression, legend) in enumerate(panel.queries)
    ]  # fmt: skip
    options: dict[str, Any] = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}
    if heat:
        options = {"calculate": False, "yAxis": {"unit": panel.unit}, "color": {"scheme": "Oranges", "mode": "scheme"}}
    elif panel.kind == "stat":
        options = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "none", "graphMode": "area"}
    return {
        "id": number, "type": panel.kind, "title": panel.title, "description": panel.note, "datasource": SOURCE,
        "gridPos": place, "targets": targets, "options": options,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
    }  # fmt: skip
