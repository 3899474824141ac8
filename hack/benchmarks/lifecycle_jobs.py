"""Bar: every one of 2,000 Jobs and of 1,000 Indexed Jobs of 7 pods is measured.

Jobs come in bursts of 5 every second, Indexed Jobs in bursts of 10 every 5 s, on 1,000 simulated
nodes with 8 devices each. Takes about twenty minutes.
"""

from __future__ import annotations

import sys

from hack.benchmarks.lifecycle_runs import arguments, plane, run, step, tell

TOTALS = ("created", "total_scheduled", "total_ready", "total_finished")
INDEXED = ("-t", "indexed-job", "--num-workers", "7", "-p", "10", "--interval", "5")


def main() -> int:
    options = arguments(__doc__, jobs=2000, indexed=1000, nodes=1000)
    fine = True
    with plane(options.nodes) as cluster:
        kinds = (
            ("lifecycle.jobs", options.jobs, 1, ("-t", "job", "-p", "5", "--interval", "1")),
            ("lifecycle.indexed", options.indexed, 7, INDEXED),
        )
        for bar, count, pods, run_options in kinds:
            if not count:
                continue
            out = options.out / bar
            submitted = ("-n", str(count), "-g", "1", *run_options)
            outcome = run(cluster, out, *submitted, "--plot", "detailed", "--delete")
            books = outcome["books"]
            ok = (
                outcome["exit_code"] == 0
                and books["balanced"]
                and books["measured"] == books["submitted"] == count
                and outcome["throughput"]["pods"] == count * pods
            )
            fine &= tell(
                bar,
                ok,
                wanted=count,
                pods=outcome["throughput"]["pods"],
                books=books,
                folder=str(out),
                verdict=outcome["verdict"]["reason"],
                requests=outcome["sampling"]["requests"],
                seconds={name: step(outcome, name) for name in TOTALS},
                peak_memory_mb=outcome["sampling"]["peak_memory_mb"],
            )
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
