"""A run of benchmarks for programs."""

from __future__ import annotations

from typing import Any

from scaletest.analysis.benchmark_run import BenchmarkRun
from scaletest.kinds.fields import as_yaml
from scaletest.render.contents import Sheet
from scaletest.render.text import cell


def sheet(run: BenchmarkRun) -> Sheet:
    """One row a benchmark; new columns come at the end.

    KEY is permutation.KEY where it is taken.
    """
    keys = list(dict.fromkeys(key for row in run.rows for key in row.values))
    fixed = [
        "name",
        "kind",
        "permutation",
        "repetition",
        "phase",
        "failure",
        "started_s",
        "finished_s",
    ]
    net = ["interface", "family", "mtu"]
    numbers = [headline.name for headline in run.headlines]
    titles = [
        f"permutation.{key}" if key in (*fixed, *net, *numbers) else cell(key) for key in keys
    ]
    rows = []
    for one, ended in run.counted:
        values = run.rows[one.permutation].values
        row: list[Any] = [
            one.name,
            one.kind.name,
            one.permutation,
            one.repetition,
            ended.phase,
            ended.failure,
        ]
        row += [
            ended.started_s,
            ended.finished_s,
            *(ended.network.get(name, "") for name in net),
        ]
        row += [as_yaml(values.get(key, "")) for key in keys]
        row += [ended.headlines.get(headline.name, "") for headline in run.headlines]
        rows.append(row)
    return Sheet([*fixed, *net, *titles, *numbers], rows, line_end="\n")
