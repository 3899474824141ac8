"""What kept a service from doubling, and what else was measured instead of it. Pure."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from scaletest.load.http_call import CAUSES
from scaletest.render.numbers import format_percent, plural
from scaletest.stats.verdict_order import Ground, Rank
from scaletest.validation.imported.judging import ImportedStep
from scaletest.validation.service.plan import ServicePlan, read_latency_limit
from scaletest.validation.service.visit import ReplicaShare, ServiceVisit

# A client that uses more of a core is the limit.
MOST_CLIENT_CORES = 0.9
# The part of the wanted requests in flight that the client must keep.
LEAST_KEPT_SHARE = 0.9
# A client is disturbed whose timers fire later than this, and than this part of the usual latency:
# so late is the next request.
LATE_TIMERS_S, LATE_TIMERS_SHARE = 0.05, 0.25
# The requests of the fullest replica over the mean: more is no balance, and below that a replica
# that is slow is so by itself.
UNEVEN_SHARE = 1.25
# A replica is slow whose pace is this many times the usual one, if so many requests say so.
SLOW_FACTOR, LEAST_REQUESTS = 1.25, 20
# The part of the requests in flight that is with the replicas, and neither on its way nor before
# them.
LEAST_HELD_SHARE = 0.8
# An even load on replicas that brings this factor more shows that they were not the limit.
LEAST_DIRECT_GAIN = 1.1
# A CPU limit that stops replicas for so much more of their time explains what is lost.
MORE_THROTTLED = 0.1
# Parts by which hits of a prefix cache may differ between steps.
ALIKE_HIT_RATES = 0.01
# The part by which the replicas' count of tokens may differ from ours: it is of the looks within
# the step, and a batch ends many requests at once.
ALIKE_TOKENS = 0.10


def visits_of(steps: Sequence[ImportedStep]) -> list[ServiceVisit]:
    """Return what was measured at these numbers of replicas."""
    return [cast(ServiceVisit, result) for step in steps for result in step.results]


def find_faults(plan: ServicePlan, steps: Sequence[ImportedStep]) -> Iterator[Ground]:
    """Yield what was measured instead of the service, and limits that it broke."""
    visits = visits_of(steps)
    for visit in visits:
        for reason, remedy in _faults_of_visit(plan, visit):
            yield Ground(Rank.NOT_THE_SUBJECT, f"{visit.file}: {reason}", remedy)
    for step in steps:
        yield from _slow_replica(step)
        if plan.latency_limit:
            yield from _broken_limit(plan, step)
    hit_rates = [visit.cache_hit_rate for visit in visits if visit.cache_hit_rate is not None]
    if hit_rates and max(hit_rates) - min(hit_rates) > ALIKE_HIT_RATES:
        yield Ground(
            Rank.NOT_THE_SUBJECT,
            f"hits of the prefix cache differ, from {format_percent(min(hit_rates), 0)} to"
            f" {format_percent(max(hit_rates), 0)} of the prompts' tokens",
            "send prompts that no cache has, without <shared_prefix>; or take it as the finding:"
            " each replica has a cache of its own",
        )
    for visit in visits:  # last, since all else says more
        if is_client_disturbed(visit):
            yield Ground(
                Rank.NOT_THE_SUBJECT,
                f"{visit.file}: the client was disturbed, its timers fired"
                f" {1000 * visit.beat_s:.0f} ms late",
                "run it on a machine of its own",
            )


def _faults_of_visit(plan: ServicePlan, visit: ServiceVisit) -> Iterator[tuple[str, str]]:
    """Yield reasons why a visit says nothing about the service, each with its remedy."""
    if visit.failed_share > plan.tolerate_failures:
        kinds = ", ".join(f"{count} x {kind}" for kind, count in visit.outcomes.items())
        most_frequent = max(visit.outcomes, key=visit.outcomes.__getitem__, default="")
        cause, remedy = CAUSES.get(most_frequent, ("requests fail", "read the log of the service"))
        failed = sum(visit.outcomes.values())
        ended = failed + (visit.successes or 0.0)
        yield (
            f"{failed} of {ended:.0f} requests failed ({kinds or 'none ended'}): {cause};"
            " a failed request is no load for the replicas",
            remedy,
        )
        return
    if visit.cpu > MOST_CLIENT_CORES:
        yield (
            f"the client was the limit, it used {format_percent(visit.cpu, 0)} of a core",
            "run it on a machine of its own; with answers of fewer tokens it has less to do",
        )
    wanted = visit.in_flight or 0.0
    if visit.kept_in_flight < LEAST_KEPT_SHARE * wanted:
        # it got too little of a core to send the next request at once
        yield (
            f"the client kept {visit.kept_in_flight:.0f} requests in flight instead of"
            f" {wanted:.0f}",
            "run the client on a machine of its own",
        )
    if not visit.is_warm:
        yield (
            f"not warm after {visit.warm_s:.0f} s under load, the latency still changed",
            "give a longer <warm_limit>, or find what changes the latency",
        )
    counted = 0.0 if visit.counts_chunks else visit.tokens_per_s
    generated = visit.generated_per_s
    if counted and generated and abs(generated / counted - 1.0) > ALIKE_TOKENS:
        yield (
            f"tokens do not add up, the replicas generated {generated:.4g}/s and"
            f" {counted:.4g}/s came here",
            "let nobody else load the service meanwhile, and list all its replicas and no others",
        )
    for name, pod in visit.pods.items():
        if pod.restarts or not pod.stayed_ready:
            what = f"was restarted {pod.restarts} times" if pod.restarts else "did not stay ready"
            yield (
                f"{name} on {pod.node} {what}",
                "read its log and events: kubectl logs --previous, kubectl describe pod",
            )


def _slow_replica(step: ImportedStep) -> Iterator[Ground]:
    """Yield that a replica was slow each time that it could be seen: once, it may be the moment."""
    visits = [visit for visit in visits_of([step]) if len(replica_paces(visit)) > 1]
    slow = [describe_slow_replica(visit) for visit in visits]
    if slow and all(slow):
        yield Ground(
            Rank.NOT_THE_SUBJECT,
            f"{visits[0].file}: replicas are not equal, {slow[0]}",
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


def fullest_share(visit: ServiceVisit) -> float:
    """Return the requests of the fullest replica over the mean; 0 where replicas are unknown."""
    counts = visit.served.values()
    return max(counts) * visit.count / sum(counts) if any(counts) else 0.0


def is_client_disturbed(visit: ServiceVisit) -> bool:
    """Return whether the client's timers fired so late that the load was another one."""
    usual_s = visit.latencies.get("latency.p50", 0.0)
    return visit.beat_s > max(LATE_TIMERS_S, LATE_TIMERS_SHARE * usual_s)


def _evenly_loaded(visit: ServiceVisit) -> Mapping[str, ReplicaShare]:
    """Return what each replica did under an even load; where it was uneven, under the control."""
    return visit.replicas if fullest_share(visit) < UNEVEN_SHARE else visit.direct


def replica_paces(visit: ServiceVisit) -> dict[str, float]:
    """Return the seconds for a token of each replica with enough requests.

    For an answer, where not all of them are known to have streamed their tokens.
    """
    shares = {
        name: share
        for name, share in _evenly_loaded(visit).items()
        if share.requests >= LEAST_REQUESTS
    }
    per_token = {
        name: share.per_token_s for name, share in shares.items() if share.per_token_s is not None
    }
    if len(per_token) == len(shares):
        return per_token
    return {name: share.latency_s for name, share in shares.items()}


def describe_slow_replica(visit: ServiceVisit) -> str:
    """Name the replica that is slow although it has no more to do than others; "" without one."""
    paces = replica_paces(visit)
    name = max(paces, key=paces.__getitem__)
    usual = statistics.median_low(paces.values())
    if usual <= 0 or paces[name] < SLOW_FACTOR * usual:
        return ""
    shares = _evenly_loaded(visit)
    streamed = all(shares[each].per_token_s is not None for each in paces)
    parts = "tokens" if streamed else "answers"
    node = f" on {visit.pods[name].node}" if name in visit.pods else ""
    factor = paces[name] / usual
    return f"{name}{node} is slow: its {parts} take {factor:.1f} times as long as those of others"


def explain_doubling(before: ImportedStep, step: ImportedStep) -> tuple[str, str]:
    """Return the cause of a doubling that fails, and what to do.

    The cause goes on with the sentence that tells the ratio; it is "" where nothing tells it.
    """
    visits = visits_of([step])
    known = [visit for visit in visits if visit.served]
    if not known:
        return (
            "",
            "name the header that tells the replica with <replica_header>, or list the replicas"
            " with <list_replicas>, so that balance and slow replicas can be seen; else look at the"
            " proxy or router, and what replicas share",
        )
    # the replicas do not get the same
    fullest = statistics.fmean(map(fullest_share, known))
    if fullest >= UNEVEN_SHARE:
        return (
            f"; cause: balance, the fullest replica got {fullest:.1f} times the mean"
            f"{_describe_balance(known)}",
            "balance by request and not by connection or client: a sticky cookie or address, or"
            " connections that are kept open, pin requests to replicas",
        )
    # they get the same, and may not use their CPUs
    throttled, throttled_before = throttled_share(step), throttled_share(before)
    if throttled > throttled_before + MORE_THROTTLED:
        return (
            f"; cause: CPU limits, which stop the replicas for {format_percent(throttled, 0)} of"
            f" their time, and {format_percent(throttled_before, 0)} before",
            "raise the CPU limit of the pods, or give their nodes more cores",
        )
    # something before them keeps requests
    asked = statistics.fmean(visit.in_flight or 0.0 for visit in visits)
    held = [visit.held for visit in visits if visit.held is not None]
    if held and statistics.fmean(held) < LEAST_HELD_SHARE * asked:
        return (
            f"; cause: a router or proxy in front, which lets {statistics.fmean(held):.0f} of"
            f" {asked:.0f} requests in flight through to the replicas",
            "give the router or proxy more CPU, connections or copies",
        )
    return (
        "; cause: a router or proxy in front, or something else that the replicas share: the"
        f" {step.workers} replicas got equal parts (the fullest {fullest:.2f} of the mean)",
        "load the address of one replica: if it alone reaches the throughput for each of"
        f" {before.workers}, give the router or proxy more CPU or copies; else look at what the"
        " replicas share",
    )


def _describe_balance(visits: Sequence[ServiceVisit]) -> str:
    """Say how many replicas got requests, and what an even load on them brought."""
    text = ""
    served = min(sum(map(bool, visit.served.values())) for visit in visits)
    if served < visits[0].count:
        text = f" ({served} of {visits[0].count} replicas got any)"
    gain = max((visit.direct_per_s or 0.0) / (visit.requests_per_s or 1.0) for visit in visits)
    if gain >= LEAST_DIRECT_GAIN:
        text += f"; spread evenly over their own addresses, they served {gain:.1f} times as much"
    return text


def throttled_share(step: ImportedStep) -> float:
    """Return for which part of their time CPU limits stopped the replicas; 0 where unknown."""
    shares = [pod.throttled or 0.0 for visit in visits_of([step]) for pod in visit.pods.values()]
    return statistics.fmean(shares) if shares else 0.0
