"""Compute the status of a benchmark object: phase, headlines, reason, bounded in size. Pure."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from scaletest.benchmarks.documents import MOST_MESSAGE, Benchmark, BenchmarkPhase
from scaletest.benchmarks.kinds import Failure
from scaletest.benchmarks.objects import manifests, reconcile
from scaletest.cluster.objects import Document
from scaletest.model.wording import as_options
from scaletest.render.numbers import format_quantity

# Pods, lines of a failure, and characters of a line in a status: so that it stays small.
MOST_PODS = 32
MOST_LINES = 8
MOST_LINE = 200
MOST_NETWORK = 1000  # characters of the network as JSON, which a pod writes


def status_of(
    benchmark: Benchmark,
    observation: reconcile.Observation,
    old_status: Mapping[str, Any],
    now_s: float,
) -> Document:
    """Return the status after a reconcile pass.

    old_status: the status until now, whose times are retained; a phase never goes back.
    """
    phase = max(
        observation.phase,
        BenchmarkPhase(old_status.get("phase") or "Pending"),
        key=list(BenchmarkPhase).index,
    )
    # names, nodes and addresses of the first pods, by role
    pods: dict[str, list[Document]] = {}
    for pod in observation.pods[:MOST_PODS]:
        current = pod.get("status", {})
        facts = {
            "name": pod["metadata"]["name"],
            "nodeName": pod["spec"].get("nodeName"),
            "podIp": current.get("podIP"),
            "nodeIp": current.get("hostIP"),
        }
        pods.setdefault(pod["metadata"]["labels"][manifests.ROLE], []).append(
            {key: text for key, text in facts.items() if text}
        )
    status: Document = {
        "phase": str(phase),
        "message": observation.message[:MOST_MESSAGE],
        "pods": pods or old_status.get("pods") or {},
    }
    if "startedAt" in old_status or phase is not BenchmarkPhase.PENDING:
        status = {"startedAt": old_status.get("startedAt") or write_time(now_s), **status}
    # what a benchmark has at its end
    if (result := observation.result) is not None:
        units = {headline.name: headline.unit for headline in benchmark.kind.headlines}
        numbers = {name: number for name, number in result.headlines.items() if name in units}
        texts = {name: format_quantity(number, units[name]) for name, number in numbers.items()}
        message = result.message or "; ".join((*benchmark.warnings, *result.notes))
        network = dict(result.network)
        status |= {
            "failure": str(result.failure),
            "message": as_options(message)[:MOST_MESSAGE],
            "lines": [line[:MOST_LINE] for line in result.lines[:MOST_LINES]],
            "remedy": as_options(result.advice)[:MOST_MESSAGE],
            "headlines": texts,
            "values": numbers,
            "summary": (
                next(iter(texts.values()), "")
                if result.ok
                else (result.message or str(result.failure))[:MOST_LINE]
            ),
            "network": network if len(json.dumps(network)) <= MOST_NETWORK else {},
            "finishedAt": write_time(result.finished_s or now_s),
        }
        # a benchmark that was refused stores no result
        if result.failure is not Failure.REFUSED:
            status["resultConfigMap"] = manifests.result_name(benchmark.name)
    status["conditions"] = make_conditions(
        old_status,
        {
            "Complete": phase is BenchmarkPhase.COMPLETED,
            "Failed": phase is BenchmarkPhase.FAILED,
        },
        str(status.get("failure") or phase),
        status["message"],
        now_s,
    )
    return status


def make_conditions(
    old_status: Mapping[str, Any],
    facts: Mapping[str, bool],
    reason: str,
    message: str,
    now_s: float,
) -> list[Document]:
    """Return conditions by type; a transition time changes only with the fact.

    reason: a CamelCase word, or words in lower case with underscores.
    """
    if reason.islower():
        reason = "".join(part.capitalize() for part in reason.split("_"))
    since = {
        (condition["type"], condition["status"]): condition.get("lastTransitionTime")
        for condition in old_status.get("conditions") or ()
    }
    return [
        {
            "type": name,
            "status": str(fact),
            "reason": reason,
            "message": message[:500],
            "lastTransitionTime": since.get((name, str(fact))) or write_time(now_s),
        }
        for name, fact in facts.items()
    ]


def write_time(seconds: float) -> str:
    """Write a time in seconds since the epoch as Kubernetes does."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
