"""A validation of a service, as a report."""

from dataclasses import replace
from typing import cast

from scaletest.render.blocks import Table
from scaletest.render.contents import Report, Section, make_page
from scaletest.render.numbers import format_percent, format_seconds, format_significant
from scaletest.validation.imported.report import imported_report
from scaletest.validation.imported.run_type import ImportedRun
from scaletest.validation.service.causes import fullest, visits_of
from scaletest.validation.service.judging import ServiceEvaluation


def service_report(run: ImportedRun) -> Report:
    """Return what every format shows of it."""
    result = cast(ServiceEvaluation, run.result)
    report = imported_report(run)
    plan = result.plan
    conditions = [*report.head.conditions, f"{plan.in_flight} in flight for each replica"]
    if plan.latency_limit:
        conditions.append(f"{plan.latency_limit} wanted")
    visits, replicas = visit_table(result), replica_table(result)

    def sections() -> list[Section]:
        return [
            *report.sections(),
            *make_page({"Warm-up and client": [visits], "Replicas": [replicas]}),
        ]

    def summary() -> list[Table | None]:
        return [*report.summary(), visits]  # type: ignore[list-item]

    head = replace(
        report.head, title=f"validate service {plan.workload}", conditions=tuple(conditions)
    )
    return replace(report, head=head, sections=sections, summary=summary)


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
        for step in result.steps
        for visit in visits_of(step)
    ]
    chunks = any(visit.counts_chunks for step in result.steps for visit in visits_of(step))
    note = "Tokens are chunks, since the service counts none." if chunks else ""
    return Table.of_rows(rows, {"step", "failed"}, {"failed"}, note=note)


def replica_table(result: ServiceEvaluation) -> Table:
    """Return a row for each replica in each visit; no rows where answers do not name theirs."""
    rows = [
        {
            "step": visit.file,
            "replica": name,
            "requests": format_significant(share.requests, 4),
            "latency": format_seconds(share.latency_s),
            "each further token": format_seconds(share.per_token_s) if share.per_token_s else "",
        }
        for step in result.steps
        for visit in visits_of(step)
        for name, share in visit.replicas.items()
    ]
    rows += [
        {
            "step": visit.file,
            "replica": name,
            "requests": format_significant(count, 4),
            "latency": "",
            "each further token": "",
        }
        for step in result.steps
        for visit in visits_of(step)
        if not visit.replicas
        for name, count in visit.served.items()
    ]
    return Table.of_rows(rows, {"step", "replica"}, {"replica"})
