"""What kept a service from doubling, and what else was measured instead of it. Pure."""

import statistics
from collections.abc import Iterator, Sequence
from typing import cast

from scaletest.load.http_call import CAUSES
from scaletest.render.numbers import format_percent, plural
from scaletest.stats.verdict_order import Ground, Rank
from scaletest.validation.imported.judging import ImportedStep
from scaletest.validation.service.plan import ServicePlan, read_latency_limit
from scaletest.validation.service.visit import ReplicaShare, ServiceVisit

# A tester that uses more of a core is the limit, and one whose timers fire later than this and than
# this part of the usual latency: so late is the next request.
BUSY_CORES, LATE_S, LATE_PART = 0.9, 0.05, 0.25
# The fullest replica over the mean: more is no balance, and below the slow one is slow by itself.
FULLEST = 1.25
# A replica whose tokens take this many times as long as those of the others is slow, if so many
# requests say so.
SLOW, LEAST_REQUESTS = 1.25, 20
# Requests in flight that the tester must have kept.
KEPT = 0.9
# Of those, the part that is with the replicas and not on its way or before them.
HELD = 0.8
# An even load on replicas that brings this factor more shows that they were not the limit.
GAINS = 1.1
# A CPU limit that stops replicas for so much more of their time explains what is lost.
THROTTLED = 0.1
# Parts by which hits of a prefix cache may differ between steps, and the replicas' count of tokens
# from ours: theirs is of the looks within the step, and a batch ends many requests at once.
SAME_HITS, SAME_TOKENS = 0.01, 0.10


def visits_of(step: ImportedStep) -> list[ServiceVisit]:
    """Return what was measured at this number of replicas."""
    return [cast(ServiceVisit, result) for result in step.results]


def faults(plan: ServicePlan, steps: Sequence[ImportedStep]) -> Iterator[Ground]:
    """Yield what was measured instead of the service, and limits that it broke."""
    for step in steps:
        for visit in visits_of(step):
            yield from _faults_of_visit(plan, visit)
        if plan.latency_limit:
            yield from _broken_limit(plan, step)
    visits = [visit for step in steps for visit in visits_of(step)]
    rates = [visit.cache_hit_rate for visit in visits]
    hits = [rate for rate in rates if rate is not None]
    if hits and max(hits) - min(hits) > SAME_HITS:
        yield _doubt(
            f"hits of the prefix cache differ, from {format_percent(min(hits), 0)} to"
            f" {format_percent(max(hits), 0)} of the prompts' tokens",
            "send prompts that no cache has, without <shared_prefix>; or take it as the finding:"
            " each replica has a cache of its own",
        )
    for visit in visits:  # last, since all else says more
        if visit.beat_s > max(LATE_S, LATE_PART * visit.latencies.get("latency.p50", 0.0)):
            yield _doubt(
                f"{visit.file}: the client was disturbed, its timers fired"
                f" {1000 * visit.beat_s:.0f} ms late",
                "run it on a machine of its own",
            )


def _faults_of_visit(plan: ServicePlan, visit: ServiceVisit) -> Iterator[Ground]:
    at, failed = visit.file, sum(visit.outcomes.values())
    ended = failed + (visit.successes or 0.0)
    if visit.failed_share > plan.tolerate_failures:
        kinds = ", ".join(f"{count} x {kind}" for kind, count in visit.outcomes.items())
        most = max(visit.outcomes, key=lambda kind: visit.outcomes[kind], default="")
        cause, remedy = CAUSES.get(most, ("requests fail", "read the log of the service"))
        yield _doubt(
            f"{at}: {failed} of {ended:.0f} requests failed ({kinds or 'none ended'}): {cause};"
            " failures are fast and free capacity",
            remedy,
        )
        return
    if visit.cpu > BUSY_CORES:
        yield _doubt(
            f"{at}: the client was the limit, it used {format_percent(visit.cpu, 0)} of a core",
            "run it on a machine of its own; with answers of fewer tokens it has less to do",
        )
    wanted = visit.in_flight or 0.0
    if visit.kept_in_flight < KEPT * wanted:
        yield _doubt(
            f"{at}: the client kept {visit.kept_in_flight:.0f} requests in flight instead of"
            f" {wanted:.0f}",
            "run the client on a machine of its own",
        )
    if not visit.is_warm:
        yield _doubt(
            f"{at}: not warm after {visit.warm_s:.0f} s under load, the latency still changed",
            "give a longer <warm_limit>, or find what changes the latency",
        )
    counted, generated = visit.tokens_per_s, visit.generated_per_s
    if (
        counted
        and generated
        and not visit.counts_chunks
        and abs(generated / counted - 1.0) > SAME_TOKENS
    ):
        yield _doubt(
            f"{at}: tokens do not add up, the replicas generated {generated:.4g}/s and"
            f" {counted:.4g}/s came here",
            "let nobody else load the service meanwhile, and list all its replicas and no others",
        )
    for name, pod in visit.pods.items():
        if pod.restarts or not pod.stayed_ready:
            what = f"was restarted {pod.restarts} times" if pod.restarts else "did not stay ready"
            yield _doubt(
                f"{at}: {name} on {pod.node} {what}",
                "read its log and events: kubectl logs --previous, kubectl describe pod",
            )
    slow = slow_replica(visit)
    if slow:
        yield _doubt(
            f"{at}: replicas are not equal, {slow}",
            "look at its node, its device and what else runs there, and measure again",
        )


def _broken_limit(plan: ServicePlan, step: ImportedStep) -> Iterator[Ground]:
    limit = read_latency_limit(plan.latency_limit)
    name = limit.measure if "." in limit.measure else f"latency.{limit.measure}"
    values = [visit.latencies[name] for visit in step.results if name in visit.latencies]
    broken = [value for value in values if value > limit.bound]
    if broken:
        # on one way only, it may be the machine
        yield Ground(
            Rank.REFUTED if len(broken) == len(values) else Rank.OPEN,
            f"{plural(step.workers, 'replica')}: {limit.measure} is"
            f" {statistics.fmean(values):.3g} s, and {plan.latency_limit} was wanted",
            "give a smaller <in_flight>",
        )


def fullest(visit: ServiceVisit) -> float:
    """Return the requests of the fullest replica over the mean; 0 where replicas are unknown."""
    counts = list(visit.served.values())
    return max(counts) * visit.count / sum(counts) if counts and sum(counts) else 0.0


def slow_replica(visit: ServiceVisit) -> str:
    """Name the replica that is slow although it has no more to do than others; "" without one."""
    shares = visit.replicas
    if fullest(visit) >= FULLEST:
        shares = visit.direct  # under an even load; empty where there was none

    def pace(share: ReplicaShare) -> float:
        return share.latency_s if share.per_token_s is None else share.per_token_s

    known = {name: share for name, share in shares.items() if share.requests >= LEAST_REQUESTS}
    if len(known) < 2:
        return ""
    name, slowest = max(known.items(), key=lambda row: pace(row[1]))
    usual = statistics.median_low(map(pace, known.values()))
    if usual <= 0 or pace(slowest) < SLOW * usual:
        return ""
    what = "its answers take" if slowest.per_token_s is None else "its tokens take"
    on = f" on {visit.pods[name].node}" if name in visit.pods else ""
    return (
        f"{name}{on} is slow: {what} {pace(slowest) / usual:.1f} times as long as those of others"
    )


def throttling(step: ImportedStep) -> float:
    """Return for which part of their time CPU limits stopped the replicas; 0 where unknown."""
    parts = [pod.throttled or 0.0 for visit in visits_of(step) for pod in visit.pods.values()]
    return statistics.fmean(parts) if parts else 0.0


def explain_doubling(before: ImportedStep, step: ImportedStep) -> tuple[str, str]:
    """Return the cause of a doubling that fails, and what to do."""
    visits = visits_of(step)
    known = [visit for visit in visits if visit.served]
    if not known:
        return (
            "",
            "name the header that tells the replica with <replica_header>, or list the replicas"
            " with <list_replicas>, so that balance and slow replicas can be seen; else look at the"
            " proxy or router, and what replicas share",
        )
    full = statistics.fmean(map(fullest, known))
    if full >= FULLEST:
        served = statistics.fmean(sum(map(bool, visit.served.values())) for visit in known)
        few = f" ({served:.0f} of {step.workers} replicas got any)" if served < step.workers else ""
        direct = [
            (visit.direct_per_s or 0.0) / visit.requests_per_s
            for visit in known
            if visit.requests_per_s
        ]
        gain = max(direct, default=0.0)
        if gain >= GAINS:
            few += f"; spread evenly over their own addresses, they served {gain:.1f} times as much"
        return (
            f"; cause: balance, the fullest replica got {full:.1f} times the mean{few}",
            "balance by request and not by connection or client: a sticky cookie or address, or"
            " connections that are kept open, pin requests to replicas",
        )
    if throttling(step) > throttling(before) + THROTTLED:
        return (
            f"; cause: CPU limits, which stop the replicas for"
            f" {format_percent(throttling(step), 0)} of their time, and"
            f" {format_percent(throttling(before), 0)} before",
            "raise the CPU limit of the pods, or give their nodes more cores",
        )
    held = [visit.held for visit in visits if visit.held is not None]
    asked = statistics.fmean(visit.in_flight or 0.0 for visit in visits)
    if held and statistics.fmean(held) < HELD * asked:
        return (
            f"; cause: a router or proxy in front, which lets {statistics.fmean(held):.0f} of"
            f" {asked:.0f} requests in flight through to the replicas",
            "give the router or proxy more CPU, connections or copies",
        )
    nodes = {pod.node for visit in visits for pod in visit.pods.values()}
    where = f", on {plural(len(nodes), 'node')}" if nodes else ""
    return (
        f"; cause: a router or proxy in front, or something else that the replicas share: the"
        f" {step.workers} replicas got equal parts (the fullest {full:.2f} of the mean){where}",
        "load the address of one replica: if it alone reaches the throughput for each of"
        f" {before.workers}, give the router or proxy more CPU or copies; else look at what the"
        " replicas share",
    )


def _doubt(reason: str, remedy: str) -> Ground:
    return Ground(Rank.NOT_THE_SUBJECT, reason, remedy)
