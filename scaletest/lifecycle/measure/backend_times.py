"""The times at which a control plane's database noted the jobs.

They come from a file that a query there made; no database is spoken to. The original asks
PostgreSQL itself (table jobs, column time_created in ms), which works inside Run:ai alone.
"""

import csv
import json
import math
from pathlib import Path
from typing import Any

from scaletest.model.errors import UsageError

NAME, TIME = "jobName", "time_created"


def read_backend_times(path: Path) -> dict[str, float]:
    """Read epoch seconds by job name.

    UsageError unless the file is CSV or JSON with both columns.
    """
    try:
        text = path.read_text("utf-8")
        rows: list[dict[str, Any]] = (
            json.loads(text)
            if text.lstrip().startswith("[")
            else list(csv.DictReader(text.splitlines()))
        )
        times = {str(row[NAME]): float(row[TIME]) / 1000.0 for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"the backend times cannot be read: {error!r}",
            hint=f"give CSV or JSON with {NAME} and {TIME} in ms",
        ) from error
    if not all(map(math.isfinite, times.values())):
        raise UsageError(
            "the backend times hold what is no time", hint=f"{TIME} is milliseconds since 1970"
        )
    return times
