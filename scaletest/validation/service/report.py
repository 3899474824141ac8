"""A validation of a service, as a report."""

from dataclasses import replace
from typing import cast

from scaletest.render.blocks import Table
from scaletest.render.contents import Report, Section, make_page
from scaletest.render.numbers import format_percent, format_seconds
from scaletest.validation.imported.report import imported_report
from scaletest.validation.imported.run_type import ImportedRun
from scaletest.validation.service.causes import fullest, visits_of
from scaletest.validation.service.judging import ServiceEvaluation
from scaletest.validation.service.visit import ServiceVisit


def service_report(run: ImportedRun) -> Report:
    """Return what every format shows of it."""
    result = cast(ServiceEvaluation, run.result)
    report = imported_report(run)
    plan = result.plan
    conditions = list(report.head.conditions)
    visits = visits_of_result(result)
    if visits:
        each = (visits[0].in_flight or 0.0) / visits[0].count
        conditions.append(f"{each:g} in flight for each replica")
    if plan.latency_limit:
        conditions.append(f"{plan.latency_limit} wanted")
    around, replicas = visit_table(result), replica_table(result)

    def sections() -> list[Section]:
        return [
            *report.sections(),
            *make_page({"Warm-up and client": [around], "Replicas": [replicas]}),
        ]

    def summary() -> list[Table | None]:
        return [*report.summary(), around]  # type: ignore[list-item]

    head = replace(
        report.head, title=f"validate service {plan.workload}", conditions=tuple(conditions)
    )
    return replace(report, head=head, sections=sections, summary=summary)


def visits_of_result(result: ServiceEvaluation) -> list[ServiceVisit]:
    """Return all visits, by their step."""
    return [visit for step in result.steps for visit in visits_of(step)]


def visit_table(result: ServiceEvaluation) -> Table:
    """Return a row for each step and way: what was around the measured time."""
    rows = [
        {
            "step": visit.file,
            "ready after": format_seconds(visit.scale_s),
            "warm after": format_seconds(visit.warm_s) if visit.is_warm else "never",
            "fullest/mean": f"{fullest(visit):.2f}" if visit.served else "",
            "held by replicas": "" if visit.held is None else f"{visit.held:.0f}",
            "cache hits": ""
            if visit.cache_hit_rate is None
            else format_percent(visit.cache_hit_rate, 0),
            "latency p50": format_seconds(visit.latencies.get("latency.p50", 0.0)),
            "client CPU": format_percent(visit.cpu, 0),
            "failed": ", ".join(f"{count} x {kind}" for kind, count in visit.outcomes.items()),
        }
        for visit in visits_of_result(result)
    ]
    chunks = any(visit.counts_chunks for visit in visits_of_result(result))
    note = "Tokens are chunks, since the service counts none." if chunks else ""
    return Table.of_rows(rows, {"step", "failed"}, {"failed"}, note=note)


def replica_table(result: ServiceEvaluation) -> Table:
    """Return a row for each replica in each visit, of what is known about it."""
    rows = []
    for visit in visits_of_result(result):
        for name in sorted({*visit.served, *visit.pods}):
            share, pod, requests = visit.replicas.get(name), visit.pods.get(name), visit.served
            row = {"step": visit.file, "replica": name}
            row["requests"] = f"{requests[name]:.0f}" if name in requests else ""
            row["latency"] = format_seconds(share.latency_s) if share else ""
            per_token_s = share.per_token_s if share else None
            row["each further token"] = format_seconds(per_token_s) if per_token_s else ""
            row["node"] = pod.node if pod else ""
            row["restarts"] = str(pod.restarts) if pod else ""
            row["ready"] = ("all the time" if pod.stayed_ready else "not always") if pod else ""
            throttled = pod.throttled if pod else None
            row["throttled"] = "" if throttled is None else format_percent(throttled, 0)
            rows.append(row)
    return Table.of_rows(rows, {"step", "replica", "node", "ready"}, {"replica", "node"})
