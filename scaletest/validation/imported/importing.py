"""Make a stored run of results that were read."""

import random
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scaletest.model.errors import UsageError
from scaletest.model.labels import Labels
from scaletest.runs.environment import read_environment
from scaletest.runs.folder import RESULT, STEPS
from scaletest.validation.imported.comparable import SAME_LENGTH
from scaletest.validation.imported.judging import evaluate_results
from scaletest.validation.imported.plan import (
    PARALLEL_AXES,
    REQUESTS,
    TOKENS,
    USUAL_SCALE,
    ImportedPlan,
)
from scaletest.validation.imported.result import ToolResult
from scaletest.validation.imported.run_type import ImportedFolder
from scaletest.validation.judging.growth import SEED


def make_plan(
    results: Sequence[ToolResult], axis: str, *, measure: str | None, scale: float | None
) -> ImportedPlan:
    """Return the plan that fits these results; UsageError where one has no number of replicas.

    measure, scale: None for what is usual of such results.
    """
    for result in results:
        if not result.count:
            raise UsageError(
                f"{result.file} does not tell the number of {axis}",
                hint=f"give --label N={result.file}, or another --axis",
            )
    # tokens are judged where answers differ in length, and where there is nothing else
    lengths = [result.output_tokens for result in results if result.output_tokens]
    lengths_differ = bool(lengths) and max(lengths) > min(lengths) * (1 + SAME_LENGTH)
    have_tokens = all(result.tokens_per_s for result in results)
    have_requests = any(result.requests_per_s for result in results)
    usual_measure = REQUESTS
    if (lengths_differ and have_tokens) or not have_requests:
        usual_measure = TOKENS
    if scale is None:
        scale = 0.0 if axis in PARALLEL_AXES else USUAL_SCALE
    sources = dict.fromkeys(" ".join(filter(None, (row.tool, row.model))) for row in results)
    return ImportedPlan(
        steps=tuple(sorted({result.count for result in results})),
        axis=axis,
        measure=measure or usual_measure,
        scale=scale,
        source=", ".join(sources)[:200],
    )


def import_results(
    plan: ImportedPlan, results: Sequence[ToolResult], path: Path, labels: Labels
) -> ImportedFolder:
    """Store the results as a run in a new folder at this path, and return it."""
    folder = ImportedFolder.create(path)
    folder.begin(plan, read_environment(sys.argv), labels)
    numbers: Counter[int] = Counter()
    rows = []
    for result in results:
        rows.append(replace(result, repeat=numbers[result.count]))
        numbers[result.count] += 1
    folder.append(STEPS, [row.to_json() for row in rows])
    folder.write(RESULT, evaluate_results(plan, rows, random.Random(SEED)).to_dict())
    return folder
