"""Bar: `scaletest validate --service` says what a service suffers from; one wrong answer a case.

hack/bars services [--runs 20] [--cases linear ...] [--step-time 3]

Each run starts replicas of hack.inference as processes behind a proxy, with one pitfall switched
on. Cases take turns. Prints a line for each run, and for each case how many were right.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

from hack.benchmarks.lines import report

MOST_WRONG = 1
# where a doubling is linear, every ratio is within these
LEAST_RATIO, MOST_RATIO = 1.94, 2.06
# few and slow tokens, so that eight replicas and the client share two cores
REPLICA = ("--step", "0.04", "--step-each", "0.002")
# what a replica serves a second with 8 slots, steps of 56 ms and answers of 8 tokens
PER_REPLICA = 8 / (0.056 * 8)


@dataclass(frozen=True)
class Case:
    """A pitfall, and what must be said about it."""

    front: tuple[str, ...] = ()
    kind: str = "PASS"
    words: str = ""
    load: tuple[str, ...] = ("--in-flight", "12")
    limit: int = 4


CASES = {
    "linear": Case(limit=8),
    "router": Case(("--limit", f"{2.5 * PER_REPLICA:.1f}"), "FAIL", "router"),
    "sticky": Case(("--balance", "sticky"), "FAIL", "balance", limit=2),
    "slow": Case(("--odd", "1=--slow=2"), "INVALID", "replica-1 is slow", limit=2),
    "client": Case(
        ("--step", "0.001", "--step-each", "0", "--slots", "200"),
        "INVALID",
        "client",
        ("--in-flight", "200", "--warm-limit", "8"),
        limit=2,
    ),
    "cold": Case(("--cold", "6")),
    "cache": Case(("--cache", "--prefill", "0.0005")),
    "rejects": Case(("--reject", "2"), "INVALID", "429", limit=2),
    "cut": Case(("--half-close", "5"), "INVALID", "requests failed", limit=2),
}


def main() -> int:
    """Run the cases and print their lines; 0 when all bars are met."""
    parser = argparse.ArgumentParser(
        prog="hack/bars services",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), metavar="CASE")
    parser.add_argument("--runs", type=int, default=20, help="of each case [default: 20]")
    parser.add_argument("--step-time", type=float, default=3.0)
    options = parser.parse_args()
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in options.cases}
    for _ in range(options.runs):
        for name in options.cases:
            row = judge_answer(CASES[name], run_case(CASES[name], options.step_time))
            rows[name].append(row)
            print(json.dumps({"case": name, **row}), flush=True)
    return max([report_case(name, rows[name]) for name in options.cases])


def run_case(case: Case, step_s: float) -> dict[str, Any]:
    """Run a case once; the result, or the error as a verdict."""
    line = [sys.executable, "-m", "hack.inference_front", *REPLICA, *case.front]
    front = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert front.stdout
    url = f"http://127.0.0.1:{int(front.stdout.readline())}"
    try:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [
                    *(sys.executable, "-m", "scaletest", "validate", "--service", url),
                    *("--openai", "completions", "--model", "m", "--output-tokens", "8"),
                    *("--prompt-tokens", "32", "--replica-header", "X-Replica"),
                    *("--set-replicas", f"curl -sf -X POST {url}/replicas/{{n}}"),
                    *("--list-replicas", f"curl -sf {url}/addresses", *case.load),
                    *("--limit", str(case.limit), "--step-time", str(step_s)),
                    *("--format", "json", "--run-dir", f"{folder}/run"),
                ],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
    finally:
        front.communicate()
    if not done.stdout:
        return {"verdict": {"kind": "ERROR", "reason": done.stderr.strip()[-200:]}, "steps": []}
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def judge_answer(case: Case, result: dict[str, Any]) -> dict[str, Any]:
    """Return what a run said, and whether that is right."""
    verdict = result["verdict"]
    ratios = [round(step["ratio"]["value"], 4) for step in result["steps"] if step["ratio"]]
    is_right = verdict["kind"] == case.kind and case.words in verdict["reason"]
    if case.kind == "PASS":
        is_right = is_right and all(LEAST_RATIO <= ratio <= MOST_RATIO for ratio in ratios)
    return {"right": is_right, "ratios": ratios, **verdict}


def report_case(name: str, rows: list[dict[str, Any]]) -> int:
    """Print the bar of a case."""
    right = sum(row["right"] for row in rows)
    ratios = [ratio for row in rows for ratio in row["ratios"]]
    return report(
        f"services-{name}",
        len(rows) - right <= MOST_WRONG,
        runs=len(rows),
        right=right,
        ratios=[min(ratios), max(ratios)] if ratios else None,
    )


if __name__ == "__main__":
    sys.exit(main())
