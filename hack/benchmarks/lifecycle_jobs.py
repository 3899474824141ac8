"""2,000 Jobs in bursts of 5 every second, 1,000 Indexed Jobs of 7 pods in bursts of 10 every 5 s: do the books balance?

On 1,000 simulated nodes with 8 devices each, to completion. Takes about twenty minutes.
"""

from __future__ import annotations

import sys

from hack.benchmarks.lifecycle_runs import arguments, plane, run, step, tell

TOTALS = ("created", "total_scheduled", "total_ready", "total_finished")


def main() -> int:
    given = arguments(__doc__, jobs=2000, indexed=1000, nodes=1000)
    fine = True
    with plane(given.nodes) as made:
        kinds = (
            ("lifecycle.jobs", given.jobs, 1, ("-t", "job", "-p", "5", "--interval", "1")),
            ("lifecycle.indexed", given.indexed, 7,
             ("-t", "indexed-job", "--num-workers", "7", "-p", "10", "--interval", "5")),
        )  # fmt: skip
        for bar, count, pods, words in kinds:
            if not count:
                continue
            out = given.out / bar
            found = run(made, out, "-n", str(count), *words, "--plot", "detailed", "--delete")
            books = found["books"]
            ok = (
                found["exit_code"] == 0
                and books["balanced"]
                and books["measured"] == books["submitted"] == count
                and found["throughput"]["pods"] == count * pods
            )
            fine &= tell(
                bar, ok, wanted=count, pods=found["throughput"]["pods"], books=books, folder=str(out),
                verdict=found["verdict"]["reason"], requests=found["sampling"]["requests"],
                seconds={name: step(found, name) for name in TOTALS},
                peak_memory_mb=found["sampling"]["peak_memory_mb"],
            )  # fmt: skip
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
