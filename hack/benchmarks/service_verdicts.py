"""How often `scaletest validate --service` names what a service suffers from.

python -m hack.benchmarks.service_verdicts [--runs 20] [--limit 8] [CASE...]

Each run starts replicas of hack.inference as processes behind a proxy, with one pitfall switched
on. Prints a line for each run, and for each case how many were right.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """A pitfall, and what must be said about it."""

    front: tuple[str, ...] = ()
    kind: str = "PASS"
    words: str = ""
    load: tuple[str, ...] = ()


# what a replica serves with 8 slots, steps of 28 ms and answers of 16 tokens
PER_REPLICA = 8 / (0.028 * 16)
CASES = {
    "linear": Case(),
    "router": Case(("--limit", f"{2.5 * PER_REPLICA:.1f}"), "FAIL", "router"),
    "sticky": Case(("--balance", "sticky"), "FAIL", "balance"),
    "slow": Case(("--odd", "1=--slow=2"), "INVALID", "replica-1 is slow"),
    "cold": Case(("--cold", "6")),
    "cache": Case(("--cache", "--prefill", "0.0005")),
    "client": Case(
        ("--step", "0.001", "--step-each", "0", "--slots", "200"),
        "INVALID",
        "client",
        ("--in-flight", "200"),
    ),
    "rejects": Case(("--reject", "2"), "INVALID", "429"),
    "cut": Case(("--half-close", "5"), "INVALID", "requests failed"),
}


def run(case: Case, limit: int, step_s: float) -> dict[str, object]:
    """Run a case once; the result, or the error as a verdict."""
    line = [sys.executable, "-m", "hack.inference_front", *case.front]
    front = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert front.stdout
    url = f"http://127.0.0.1:{int(front.stdout.readline())}"
    try:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [
                    *(sys.executable, "-m", "scaletest", "validate", "--service", url),
                    *("--openai", "completions", "--model", "m", "--output-tokens", "16"),
                    *("--prompt-tokens", "32", "--replica-header", "X-Replica"),
                    *("--set-replicas", f"curl -sf -X POST {url}/replicas/{{n}}"),
                    *("--list-replicas", f"curl -sf {url}/addresses"),
                    *("--limit", str(limit), "--step-time", str(step_s), "--format", "json"),
                    *("--run-dir", f"{folder}/run", *(case.load or ("--in-flight", "12"))),
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
    result: dict[str, object] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--limit", type=int, default=8)
    parser.add_argument("--step-time", type=float, default=5.0)
    options = parser.parse_args()
    for name in options.cases:
        case, right = CASES[name], 0
        for _ in range(options.runs):
            result: dict[str, object] = run(case, options.limit, options.step_time)
            verdict: dict[str, str] = result["verdict"]  # type: ignore[assignment]
            steps: list[dict[str, dict[str, float]]] = result["steps"]  # type: ignore[assignment]
            ratios = [f"{step['ratio']['value']:.3f}" for step in steps if step["ratio"]]
            is_right = verdict["kind"] == case.kind and case.words in verdict["reason"]
            right += is_right
            mark = "right" if is_right else "WRONG"
            print(f"{name}: {mark}, {verdict['kind']} {verdict['reason']} {ratios}", flush=True)
        print(f"{name}: {right} of {options.runs} right", flush=True)


if __name__ == "__main__":
    main()
