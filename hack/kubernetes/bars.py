"""Acceptance bars that need a cluster or minutes; each prints its figures as a JSON line.

The control plane, KEDA, prometheus-adapter, Prometheus, Redis, exporter, workers and clients are
real processes; nodes are kwok's. In bars on a real node the chart's pods are containers there.
Autoscalers keep the settings of the chart's examples, except that KEDA scales to zero after 20 s,
and an HPA down after 30 s. The bars of lifecycle, saturation, scripts, laws, causes, completion,
drifting, servers, workers, python-workload and http-peers are programs of hack/benchmarks: those of
lifecycle start a control plane of their own, the others need a quiet machine.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hack.kubernetes import ControlPlane, NotBuilt, Pool
from hack.kubernetes.accounts import kubeconfig
from hack.kubernetes.adapter import Adapter
from hack.kubernetes.images import archives
from hack.kubernetes.keda import Keda
from hack.kubernetes.names import Names
from hack.kubernetes.release import DEPLOYMENT, EXPORTER, Release

REQUESTS, SECONDS = 200, 0.5
PATIENCE_S = 180.0
SCALING = "queues.sleep.autoscaling"
DOWN = f"{SCALING}.behavior.scaleDown.stabilizationWindowSeconds=30"


class BarCluster:
    """A control plane for one bar. real: with a real node, on which all pods run."""

    def __init__(self, stack: ExitStack, *, real: bool) -> None:
        self._stack = stack
        self.plane = ControlPlane(Path(tempfile.mkdtemp(prefix="scaletest-bar-")))
        stack.callback(self.plane.down)
        if real:
            self.plane.up(real=True, images=archives())
        else:
            self.plane.up([Pool("plain", 2, 0)])
        self.names = Names(self.plane.folder)

    def keda(self) -> None:
        """Start KEDA."""
        keda = Keda(self.plane, self.names)
        self._stack.callback(keda.down)
        keda.up()

    def adapter(self) -> Adapter:
        """Start prometheus-adapter."""
        adapter = Adapter(self.plane, self.names)
        self._stack.callback(adapter.down)
        adapter.up()
        return adapter

    def release(self, example: str, *settings: str) -> Release:
        """Install the chart, with real processes."""
        return self._stack.enter_context(Release(self.plane, self.names, example, *settings))


def keda_burst(site: BarCluster) -> dict[str, Any]:
    """200 requests scale workers up from zero and back to zero, and none fails."""
    site.keda()
    release = site.release("scale-to-zero", f"{SCALING}.cooldownPeriod=20", DOWN)
    _until(lambda: release.wanted == 0 and release.declared())
    return _burst(release, floor=0)


def keda_burst_real(site: BarCluster) -> dict[str, Any]:
    """200 requests scale containers on a real node from zero and back to zero; needs root."""
    return keda_burst(site)


def hpa_external(site: BarCluster) -> dict[str, Any]:
    """An HPA on external metrics scales between 1 and 8."""
    return _hpa(site, "hpa-prometheus-adapter")


def hpa_custom(site: BarCluster) -> dict[str, Any]:
    """An HPA on custom metrics scales between 1 and 8."""
    return _hpa(site, "hpa-custom")


def validate_1_8(site: BarCluster) -> dict[str, Any]:
    """scaletest validate, with the chart's rights: PASS for sleep workers to 8 at scale 1.9."""
    release = site.release("sleep")
    _until(release.declared)
    before = release.wanted
    folder = site.plane.folder
    config = kubeconfig(
        site.plane, release.namespace, "bench-scaletest-validate", folder / "validate.kubeconfig"
    )
    line = [
        sys.executable,
        "-m",
        "scaletest",
        "validate",
        "--deployment",
        DEPLOYMENT,
        "-n",
        release.namespace,
    ]
    line += [
        "--redis-url",
        release.redis_url("client"),
        "--seconds",
        "2",
        "--limit",
        "8",
        "--scale",
        "1.9",
    ]
    line += ["--format", "json", "--run-dir", str(folder / "run")]
    environment = {**os.environ, "KUBECONFIG": str(config)}
    done = subprocess.run(line, capture_output=True, text=True, check=False, env=environment)
    report = (
        json.loads(done.stdout) if done.stdout else {"verdict": {"kind": done.stderr}, "steps": []}
    )
    return {
        "passed": done.returncode == 0 and release.wanted == before,
        "verdict": report["verdict"],
        "workers": [step["workers"] for step in report["steps"]],
        "replicas_before": before,
        "replicas_after": release.wanted,
    }


def _hpa(site: BarCluster, example: str) -> dict[str, Any]:
    adapter = site.adapter()
    release = site.release(example, DOWN)
    adapter.scrape(release.namespace, EXPORTER)
    _until(release.declared)
    return _burst(release, floor=1)


def _burst(release: Release, floor: int) -> dict[str, Any]:
    first, began = len(release.history) - 1, release.age_s()
    statistics = release.burst(REQUESTS, SECONDS)
    done_s = release.age_s() - began
    _until(lambda: release.wanted == floor)
    wanted = [workers for _, workers in release.history[first:]]
    return {
        "passed": (
            statistics["succeeded"] == REQUESTS
            and max(wanted) == 8
            and min(wanted) == wanted[-1] == floor
        ),
        "requests": REQUESTS,
        "seconds": SECONDS,
        "succeeded": statistics["succeeded"],
        "failed": statistics["failed"],
        "all_done_s": round(done_s, 1),
        "wanted": [
            [round(max(0.0, at - began), 1), workers] for at, workers in release.history[first:]
        ],
        "events": release.events("ScaledObject", "HorizontalPodAutoscaler"),
    }


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"the expected state was not reached within {PATIENCE_S:.0f} s")
        time.sleep(0.5)


BARS: dict[str, Callable[[BarCluster], dict[str, Any]]] = {
    "keda-burst": keda_burst,
    "keda-burst-real": keda_burst_real,
    "hpa-external": hpa_external,
    "hpa-custom": hpa_custom,
    "validate-1-8": validate_1_8,
}


# Programs of hack/benchmarks, and what each checks.
PROGRAMS = {
    "lifecycle-jobs": (
        "2,000 Jobs and 1,000 Indexed Jobs of 7 pods on 1,000 nodes: every one measured. 20"
        " minutes."
    ),
    "lifecycle-pods": (
        "20,000 pods without devices: memory, requests, and none miscounted though they are"
        " collected."
    ),
    "lifecycle-clock": (
        "scaletest's time stamps against an independent recorder's, at 5 objects a second."
    ),
    "scripts-bounded": (
        "no script blocks Redis for 10 ms: 10,000 of 100,000 cancelled, 1,000,000 purged. 1 minute."
    ),
    "laws": (
        "real runs find ceiling, contention, coherency, peak and lock of known laws. 15 minutes."
    ),
    "causes": (
        "20 real runs of each of 13 injected bottlenecks, and 100 linear ones: cause, object,"
        " share. 2 hours."
    ),
    "completion": "a shell completes commands, options, runs and queues in time. 1 minute.",
    "drifting": (
        "10 validations of devices that get 0.1 % slower or faster every second: no wrong verdict."
        " 20 minutes."
    ),
    "workers": (
        "10,000 workers' heartbeats beside 8 real workers: Redis, scripts, scrapes, 1,000 deaths. 5"
        " minutes."
    ),
    "servers": (
        "the tests of queue, worker and books on Redis 6.2, 7.0 and 8.2 and Valkey 9.1. 10 minutes."
    ),
    "python-workload": (
        "a workload in Python at 50 requests/s costs under 1 ms a request beside its own time. 1"
        " minute."
    ),
    "saturation-search": (
        "8 slots of 10 ms saturate at 800/s within 3 %, and latency at 70 % is as in theory."
    ),
    "saturation-refusing": (
        "as saturation-search, and requests beyond 64 waiting are refused with 503."
    ),
    "saturation-open": "open load at 2,000 requests/s for 60 s: lag p99 under 5 ms, not INVALID.",
    "saturation-tester": (
        "a tester limited to 20 % CPU ends INVALID and names itself as the bottleneck."
    ),
    "saturation-agents": "four agents at 100 requests/s each equal one at 400 within 3 %.",
    "http-peers": (
        "exporter and client answer within 1 s beside 250 slow connections and 100 bodies of 1 GB."
    ),
}

# Bars that run another bar's program with other options.
VARIANTS = {
    "scripts-bounded": ("scripts",),
    "saturation-refusing": ("saturation-search", "--room", "64"),
}


def module_and_arguments(name: str) -> list[str]:
    """Return the module of a bar's program, and its arguments."""
    base, *arguments = VARIANTS.get(name, (name,))
    return [f"hack.benchmarks.{base.replace('-', '_')}", *arguments]


def program(name: str) -> dict[str, Any]:
    """Run a program that prints lines of JSON.

    It passes when all of them, at least one, are met.
    """
    line = [sys.executable, "-m", *module_and_arguments(name)]
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=False)
    results = [json.loads(printed) for printed in done.stdout.splitlines()]
    passed = done.returncode == 0 and bool(results) and all(bar["met"] for bar in results)
    return {"passed": passed, "exit_code": done.returncode, "results": results}


def run(name: str) -> dict[str, Any]:
    """Run one bar, on a control plane of its own.

    Raises NotBuilt; any other error is a bar that did not pass.
    """
    outcome: dict[str, Any] = {
        "bar": name,
        "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    outcome["conditions"] = {"cpus": os.cpu_count(), "load_before": round(os.getloadavg()[0], 1)}
    with ExitStack() as stack:
        try:
            if name in PROGRAMS:
                return outcome | program(name)
            site = BarCluster(stack, real=name.endswith("-real"))
            version = json.loads(site.plane.kubectl("version", "-o", "json"))["serverVersion"][
                "gitVersion"
            ]
            outcome["conditions"]["kubernetes"] = version
            outcome |= BARS[name](site)
        except NotBuilt:
            raise
        except Exception as error:
            outcome |= {"passed": False, "error": f"{type(error).__name__}: {error}"}
    return outcome


def main() -> None:
    descriptions = {**{name: bar.__doc__ for name, bar in BARS.items()}, **PROGRAMS}
    lines = [f"{name:19} {description}" for name, description in descriptions.items()]
    parser = argparse.ArgumentParser(
        prog="hack/bars",
        description="\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="+", choices=descriptions, metavar="NAME")
    failed = False
    for name in parser.parse_args().names:
        try:
            outcome = run(name)
        except NotBuilt as error:
            sys.exit(f"error: {error}")
        print(json.dumps(outcome), flush=True)
        failed |= not outcome["passed"]
    sys.exit(3 if failed else 0)


if __name__ == "__main__":
    main()
