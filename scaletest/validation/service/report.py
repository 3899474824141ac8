"""A validation of a service, as a report."""

from dataclasses import replace
from typing import cast

from scaletest.render.blocks import Table
from scaletest.render.contents import Report, Section, make_page
from scaletest.render.numbers import NOTHING, format_percent, format_seconds
from scaletest.validation.imported.report import imported_report
from scaletest.validation.imported.run_type import ImportedRun
from scaletest.validation.service.causes import fullest_share, visits_of
from scaletest.validation.service.judging import ServiceEvaluation

# What a cell holds about which nothing is known.
BLANKS = ("", NOTHING)
# Of the table of replicas; those about which nothing is known are left out.
REPLICA_COLUMNS = (
    *("step", "replica", "requests", "latency", "each further token"),
    *("node", "restarts", "ready", "throttled"),
)


def service_report(run: ImportedRun) -> Report:
    """Return what every format shows of it."""
    result = cast(ServiceEvaluation, run.result)
    plan = result.plan
    report = imported_report(run)
    conditions = list(report.head.conditions)
    if plan.in_flight:
        conditions.append(f"{plan.in_flight} in flight for each replica")
    if plan.latency_limit:
        conditions.append(f"{plan.latency_limit} wanted")
    visits = visit_table(result)

    def sections() -> list[Section]:
        tables = {"Warm-up and client": [visits], "Replicas": [replica_table(result)]}
        return [*report.sections(), *make_page(tables)]

    return replace(
        report,
        head=replace(
            report.head, title=f"validate service {plan.workload}", conditions=tuple(conditions)
        ),
        sections=sections,
        summary=lambda: [*report.summary(), visits],
    )


def visit_table(result: ServiceEvaluation) -> Table:
    """Return a row for each step and way: what was around the measured time."""
    visits = visits_of(result.steps)
    rows = [
        {
            "step": visit.file,
            "ready after": format_seconds(visit.scale_s),
            "warm after": format_seconds(visit.warm_s) if visit.is_warm else "never",
            "fullest/mean": f"{fullest_share(visit):.2f}" if visit.served else "",
            "held by replicas": "" if visit.held is None else f"{visit.held:.0f}",
            "cache hits": format_percent(visit.cache_hit_rate, 0),
            "latency p50": format_seconds(visit.latencies.get("latency.p50", 0.0)),
            "client CPU": format_percent(visit.cpu, 0),
            "failed": ", ".join(f"{count} x {kind}" for kind, count in visit.outcomes.items()),
        }
        for visit in visits
    ]
    note = ""
    if any(visit.counts_chunks for visit in visits):
        note = "Tokens are chunks, since the service counts none."
    return Table.of_rows(rows, {"step", "failed"}, {"failed"}, BLANKS, note=note)


def replica_table(result: ServiceEvaluation) -> Table:
    """Return a row for each replica in each visit, of what is known about it."""
    rows = []
    for visit in visits_of(result.steps):
        for name in sorted({*visit.served, *visit.pods}):
            row = dict.fromkeys(REPLICA_COLUMNS, "") | {"step": visit.file, "replica": name}
            if name in visit.served:
                row["requests"] = f"{visit.served[name]:.0f}"
            share, pod = visit.replicas.get(name), visit.pods.get(name)
            if share is not None:
                row["latency"] = format_seconds(share.latency_s)
                row["each further token"] = format_seconds(share.per_token_s)
            if pod is not None:
                row["node"] = pod.node
                row["restarts"] = str(pod.restarts)
                row["ready"] = "all the time" if pod.stayed_ready else "not always"
                row["throttled"] = format_percent(pod.throttled, 0)
            rows.append(row)
    texts = {"step", "replica", "node", "ready"}
    return Table.of_rows(rows, texts, {"replica", "node"}, BLANKS)
