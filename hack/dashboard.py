"""The Grafana dashboard, charts/scaletest/dashboards/scaletest.json."""

import json
from dataclasses import dataclass, field
from typing import Any

Q = 'queue=~"$queue"'
ENERGY = "scaletest_device_energy_joules_total"
BUSY = ',state="busy"'
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True)
class GrafanaPanel:
    """A panel.

    queries: pairs of expression and legend. unit: of Grafana, as in s or short. kind: of Grafana.
    note: the description that users read.
    """

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    note: str = field(kw_only=True)


def gauge_query(metric: str, more: str = "") -> str:
    """Query a gauge. Several exporters of one Redis read the same number, so the largest counts."""
    return f"max without (instance, pod) ({metric}{{{Q}{more}}})"


def sum_query(metric: str, by: str = "", more: str = "") -> str:
    """Query the sum of a gauge. by: labels to keep."""
    labels = f" by ({by})" if by else ""
    return f"sum{labels} ({gauge_query(metric, more)})"


def rate_query(metric: str, by: str = "queue") -> str:
    """Query a counter's growth a second. by: labels to keep."""
    return f"sum by ({by}) (max without (instance, pod) (rate({metric}{{{Q}}}[$__rate_interval])))"


def quantile_query(share: float, metric: str) -> str:
    """Query a quantile of a histogram, by queue."""
    return f"histogram_quantile({share}, {rate_query(metric + '_bucket', 'queue, le')})"


def by_node(metric: str, more: str = "") -> str:
    """Query a gauge of nodes. more: further labels, as in ", device".

    A node that serves several queues is sampled for each of them, so the largest sample counts.
    """
    return f"max by (node{more}) ({metric}{{{Q}}})"


ROWS: tuple[tuple[str, tuple[GrafanaPanel, ...]], ...] = (
    (
        "Queues",
        (
            GrafanaPanel(
                "Connected to Redis",
                (("min(scaletest_up)", "up"),),
                kind="stat",
                width=4,
                note="1 when Redis answered the last scrape. While it is 0 nothing else is known.",
            ),
            GrafanaPanel(
                "Waiting",
                ((sum_query("scaletest_queue_waiting"), "waiting"),),
                kind="stat",
                width=4,
                note="Requests that wait for a worker, in the chosen queues.",
            ),
            GrafanaPanel(
                "Running",
                ((sum_query("scaletest_queue_running"), "running"),),
                kind="stat",
                width=4,
                note="Requests that a worker runs, in the chosen queues.",
            ),
            GrafanaPanel(
                "Workers",
                ((sum_query("scaletest_workers"), "workers"),),
                kind="stat",
                width=4,
                note="Living workers of the chosen queues.",
            ),
            GrafanaPanel(
                "Wanted",
                ((sum_query("scaletest_queue_desired_workers"), "workers"),),
                kind="stat",
                width=4,
                note="Workers that the chosen queues need.",
            ),
            GrafanaPanel(
                "Clients",
                (("max(scaletest_clients)", "clients"),),
                kind="stat",
                width=4,
                note="Living clients, of all queues.",
            ),
            GrafanaPanel(
                "Waiting and running",
                (
                    (sum_query("scaletest_queue_waiting", "queue"), "{{queue}} waiting"),
                    (sum_query("scaletest_queue_running", "queue"), "{{queue}} running"),
                ),
                note=(
                    "When all workers are busy and the number waiting grows, there are too few"
                    " workers."
                ),
            ),
            GrafanaPanel(
                "Oldest waiting request",
                ((f"max by (queue) (scaletest_queue_oldest_waiting_seconds{{{Q}}})", "{{queue}}"),),
                "s",
                note=(
                    "Age of the request at the front; 0 when none waits. It grows when no worker"
                    " serves the queue."
                ),
            ),
            GrafanaPanel(
                "Submitted and ended per second",
                (
                    (rate_query("scaletest_requests_submitted_total"), "{{queue}} submitted"),
                    (rate_query("scaletest_requests_total"), "{{queue}} ended"),
                ),
                "reqps",
                note="When more are submitted than end for long, the queue grows.",
            ),
        ),
    ),
    (
        "Workers",
        (
            GrafanaPanel(
                "Workers by state",
                ((sum_query("scaletest_workers", "state"), "{{state}}"),),
                width=12,
                note="A suspect worker fails everything at once: look at its device.",
            ),
            GrafanaPanel(
                "Share of workers that are busy",
                (
                    (
                        (
                            f"{sum_query('scaletest_workers', 'queue', BUSY)} /"
                            f" ({sum_query('scaletest_workers', 'queue')} > 0)"
                        ),
                        "{{queue}}",
                    ),
                ),
                "percentunit",
                width=12,
                note=(
                    "Waits grow without bound as it approaches 100 %. Empty while there is no"
                    " worker."
                ),
            ),
        ),
    ),
    (
        "Times",
        (
            GrafanaPanel(
                "Wait",
                ((rate_query("scaletest_queue_wait_seconds_bucket", "le"), "{{le}}"),),
                "s",
                "heatmap",
                12,
                note="Time from submission to start: requests per second by their wait.",
            ),
            GrafanaPanel(
                "Run",
                ((rate_query("scaletest_request_run_seconds_bucket", "le"), "{{le}}"),),
                "s",
                "heatmap",
                12,
                note="Run time: requests per second by their run time.",
            ),
            GrafanaPanel(
                "Wait, median and 95 %",
                (
                    (quantile_query(0.5, "scaletest_queue_wait_seconds"), "{{queue}} p50"),
                    (quantile_query(0.95, "scaletest_queue_wait_seconds"), "{{queue}} p95"),
                ),
                "s",
                note="From the histogram, so within its buckets.",
            ),
            GrafanaPanel(
                "Run, median and 95 %",
                (
                    (quantile_query(0.5, "scaletest_request_run_seconds"), "{{queue}} p50"),
                    (quantile_query(0.95, "scaletest_request_run_seconds"), "{{queue}} p95"),
                ),
                "s",
                note="From the histogram, so within its buckets.",
            ),
            GrafanaPanel(
                "Longest in the exporter's window",
                (
                    (f"max by (queue) (scaletest_queue_wait_max_seconds{{{Q}}})", "{{queue}} wait"),
                    (f"max by (queue) (scaletest_queue_run_max_seconds{{{Q}}})", "{{queue}} run"),
                    (
                        f"max by (queue) (scaletest_queue_total_max_seconds{{{Q}}})",
                        "{{queue}} total",
                    ),
                ),
                "s",
                note=(
                    "Longest times of requests that ended in the last --window seconds, within 1 %."
                ),
            ),
        ),
    ),
    (
        "Outcomes",
        (
            GrafanaPanel(
                "Ended per second",
                ((rate_query("scaletest_requests_total", "outcome"), "{{outcome}}"),),
                "reqps",
                width=12,
                note="Requests that ended, by outcome.",
            ),
            GrafanaPanel(
                "Problems per second",
                (
                    (
                        rate_query("scaletest_requests_rejected_total"),
                        "{{queue}} rejected: queue full",
                    ),
                    (
                        rate_query("scaletest_requests_abandoned_total"),
                        "{{queue}} abandoned: client gone",
                    ),
                    (
                        rate_query("scaletest_requests_requeued_total"),
                        "{{queue}} requeued: worker died",
                    ),
                    (rate_query("scaletest_requests_lost_total"), "{{queue}} lost"),
                    (rate_query("scaletest_requests_poison_total"), "{{queue}} unreadable"),
                    (rate_query("scaletest_results_stale_total"), "{{queue}} stale results"),
                ),
                "reqps",
                width=12,
                note="All are 0 in normal operation.",
            ),
        ),
    ),
    (
        "Autoscaling",
        (
            GrafanaPanel(
                "Wanted and living workers",
                (
                    (sum_query("scaletest_queue_desired_workers", "queue"), "{{queue}} wanted"),
                    (sum_query("scaletest_workers", "queue"), "{{queue}} living"),
                    (sum_query("scaletest_queue_demand", "queue"), "{{queue}} waiting + running"),
                ),
                width=12,
                note="If the lines jump up and down, see docs/explanation/autoscaling.md.",
            ),
            GrafanaPanel(
                "Submitted per second",
                ((sum_query("scaletest_queue_submitted_per_second", "queue"), "{{queue}}"),),
                "reqps",
                width=4,
                note=(
                    "Over the exporter's window. The wanted workers are computed from it and the"
                    " mean run time."
                ),
            ),
            GrafanaPanel(
                "Mean run time",
                ((f"max by (queue) (scaletest_queue_run_mean_seconds{{{Q}}})", "{{queue}}"),),
                "s",
                width=4,
                note="Over the exporter's window, or the last one that is known.",
            ),
            GrafanaPanel(
                "Exporter: reading Redis",
                (("scaletest_exporter_read_seconds", "{{instance}}"),),
                "s",
                width=4,
                note=(
                    "Time of one read of all numbers; it does not grow with the number of waiting"
                    " requests."
                ),
            ),
        ),
    ),
    (
        "Nodes and devices, while there is work",
        (
            GrafanaPanel(
                "Busy CPUs",
                ((by_node("scaletest_node_cpu_busy_ratio"), "{{node}}"),),
                "percentunit",
                note="Share of the CPU time of a node that any program uses.",
            ),
            GrafanaPanel(
                "Pressure",
                (
                    (by_node("scaletest_node_cpu_pressure_ratio"), "{{node}} CPU"),
                    (by_node("scaletest_node_memory_pressure_ratio"), "{{node}} memory"),
                    (by_node("scaletest_node_io_pressure_ratio"), "{{node}} I/O"),
                ),
                "percentunit",
                note="Share of the time in which some thread of the node waits for the resource.",
            ),
            GrafanaPanel(
                "CPU limit",
                ((by_node("scaletest_node_container_throttled_ratio"), "{{node}}"),),
                "percentunit",
                note=(
                    "Share of the periods in which the CPU limit throttles a worker. Empty without"
                    " a limit."
                ),
            ),
            GrafanaPanel(
                "Memory available",
                ((by_node("scaletest_node_memory_available_bytes"), "{{node}}"),),
                "bytes",
                width=6,
                note="Memory of a node that programs can still use.",
            ),
            GrafanaPanel(
                "Busy devices",
                ((by_node("scaletest_device_busy_ratio", ", device"), "{{node}} {{device}}"),),
                "percentunit",
                width=6,
                note=(
                    "Share of the time in which a device is busy. Empty if its driver does not"
                    " report it."
                ),
            ),
            GrafanaPanel(
                "Device memory",
                (
                    (
                        by_node("scaletest_device_memory_used_bytes", ", device"),
                        "{{node}} {{device}}",
                    ),
                ),
                "bytes",
                width=6,
                note="Memory of a device that is in use.",
            ),
            GrafanaPanel(
                "Device power",
                (
                    (
                        f"max by (node, device) (rate({ENERGY}{{{Q}}}[$__rate_interval]))",
                        "{{node}} {{device}}",
                    ),
                ),
                "watt",
                width=6,
                note="Power of a device, from the energy counter of its driver.",
            ),
        ),
    ),
)


def dashboard() -> str:
    """Write the JSON that Grafana imports; schema 39, Grafana 10 and later."""
    panels: list[dict[str, Any]] = []
    y = 0
    for title, row_panels in ROWS:
        panels.append(
            {
                "type": "row",
                "title": title,
                "id": len(panels) + 1,
                "collapsed": False,
                "panels": [],
                "gridPos": {"h": 1, "w": 24, "x": 0, "y": y},
            }
        )
        x, y, height = 0, y + 1, 0
        for panel in row_panels:
            if x + panel.width > 24:
                x, y = 0, y + height
            height = 4 if panel.kind == "stat" else 8
            panels.append(
                _panel(panel, len(panels) + 1, {"h": height, "w": panel.width, "x": x, "y": y})
            )
            x += panel.width
        y += height
    return json.dumps(_frame(panels), indent=2) + "\n"


def _frame(panels: list[dict[str, Any]]) -> dict[str, Any]:
    queue = {
        "name": "queue",
        "label": "Queue",
        "type": "query",
        "datasource": SOURCE,
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "sort": 1,
        "definition": "label_values(scaletest_queue_waiting, queue)",
        "query": {"query": "label_values(scaletest_queue_waiting, queue)", "refId": "queue"},
    }
    source = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {},
    }
    return {
        "title": "scaletest",
        "uid": "scaletest",
        "tags": ["scaletest"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [source, queue]},
        "annotations": {"list": []},
        "links": [],
        "panels": panels,
    }


def _panel(panel: GrafanaPanel, number: int, place: dict[str, int]) -> dict[str, Any]:
    heat = panel.kind == "heatmap"
    query_format = "heatmap" if heat else "time_series"
    targets = [
        {
            "refId": chr(65 + index),
            "expr": expression,
            "legendFormat": legend,
            "datasource": SOURCE,
            "format": query_format,
            "instant": False,
            "range": True,
        }
        for index, (expression, legend) in enumerate(panel.queries)
    ]
    options: dict[str, Any] = {
        "legend": {"displayMode": "list", "placement": "bottom"},
        "tooltip": {"mode": "multi"},
    }
    if heat:
        options = {
            "calculate": False,
            "yAxis": {"unit": panel.unit},
            "color": {"scheme": "Oranges", "mode": "scheme"},
        }
    elif panel.kind == "stat":
        options = {
            "reduceOptions": {"calcs": ["lastNotNull"]},
            "colorMode": "none",
            "graphMode": "area",
        }
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.note,
        "datasource": SOURCE,
        "gridPos": place,
        "targets": targets,
        "options": options,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
    }
