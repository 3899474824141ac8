"""The configuration file of the original load tool, as settings of ours. Pure.

    execution.autoScaling              mode: search, else sweep          (always closed load)
    execution.autoScaleIncrement       increment of the ramp             threadStep: of the sweep
    execution.threadCount, maxThreadCount      start, maximum
    execution.testCountPerThreadStep   repeats of a level; of a search: most_steps
    execution.retryCount               attempts, so retries + 1
    execution.clientName               client_name
    logDirectory                       original_csv
    defaultProvider.endpointUrl, fileInput, recordCount       url, payload, count
    recordProvider.local.localFile, recordCount               payload_provider file:, count

Keys (endpointKey, storageKey, connectionString) are secrets and stay out of files: --token-file and
--sql replace them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scaletest.model.errors import InvalidValue, UsageError

SECTIONS = {
    "execution",
    "logDirectory",
    "recordProviderDiskLocation",
    "recordProvider",
    "defaultProvider",
    "eventHubConfiguration",
}
_EXECUTION = {
    "autoScaling",
    "autoScaleIncrement",
    "threadCount",
    "maxThreadCount",
    "threadStep",
    "testCountPerThreadStep",
    "testCountPerThread",
    "retryCount",
    "clientName",
}


def is_original(data: Mapping[str, Any]) -> bool:
    """Whether it is such a file."""
    return "execution" in data or "defaultProvider" in data or "recordProvider" in data


def settings(data: Mapping[str, Any]) -> dict[str, Any]:
    """Values by the names of our options. InvalidValue or UsageError says which key has no
    equivalent.
    """
    strange = set(data) - SECTIONS
    if strange:
        raise InvalidValue(
            f"{min(strange)!r} is no key of the original tool",
            hint=f"it has {', '.join(sorted(SECTIONS))}",
        )
    found: dict[str, Any] = {"load": "closed", **_execution(_table(data, "execution"))}
    if data.get("logDirectory"):
        found["original_csv"] = str(data["logDirectory"])
    if data.get("recordProviderDiskLocation"):
        raise UsageError(
            "recordProviderDiskLocation names plug-ins of .NET",
            hint=(
                "write a provider in Python, an entry point of the group scaletest.payloads, and"
                " name it"
            ),
        )
    hub = _table(data, "eventHubConfiguration")
    if any(hub.values()):
        raise UsageError(
            "an event hub is not used here",
            hint="leave it empty: agents merge by themselves, --sql keeps the records",
        )
    return {
        **found,
        **_default(_table(data, "defaultProvider")),
        **_record(_table(data, "recordProvider")),
    }


def _execution(row: dict[str, Any]) -> dict[str, Any]:
    strange = set(row) - _EXECUTION
    if strange:
        raise InvalidValue(f"execution.{min(strange)} is no key of the original tool")
    auto = row.get("autoScaling", False)
    if not isinstance(auto, bool):
        raise InvalidValue("execution.autoScaling is neither true nor false")
    runs = _number(row, "execution", "testCountPerThreadStep", "testCountPerThread")
    found: dict[str, Any] = {"mode": "search" if auto else "sweep"}
    first = _number(row, "execution", "threadCount") or 1
    found["start"] = float(first)
    found["maximum"] = float(max(first, _number(row, "execution", "maxThreadCount") or 0))
    step = _number(row, "execution", "autoScaleIncrement" if auto else "threadStep")
    if step:
        found["increment"] = float(step)
    elif not auto:
        found["maximum"] = found["start"]
    if runs:
        found["most_steps" if auto else "repeats"] = max(3, min(runs, 100)) if auto else runs
    attempts = _number(row, "execution", "retryCount")
    if attempts is not None:
        found["retries"] = max(0, attempts - 1)
    if row.get("clientName"):
        found["client_name"] = str(row["clientName"])
    return found


def _default(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if row.get("endpointKey"):
        raise UsageError(
            "a key in a plan file is a secret that others read",
            hint="remove it, and give --token-file FILE",
        )
    if row.get("endpointUrl"):
        found["url"] = str(row["endpointUrl"])
    if row.get("fileInput"):
        found |= {"payload": str(row["fileInput"]), "method": "POST"}
    count = _number(row, "defaultProvider", "recordCount")
    return {**found, **({"count": count} if count else {})}


def _record(row: dict[str, Any]) -> dict[str, Any]:
    if any(_table(row, "storage").values()):
        raise UsageError(
            "recordProvider.storage is of one cloud",
            hint="write a provider of the group scaletest.payloads for it",
        )
    file = _table(row, "local").get("localFile")
    count = _number(row, "recordProvider", "recordCount")
    found: dict[str, Any] = {"payload_provider": f"file:{file}", "method": "POST"} if file else {}
    return {**found, **({"count": count} if count and file else {})}


def _table(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = data.get(name) or {}
    if not isinstance(found, dict):
        raise InvalidValue(f"{name} is no table of keys and values")
    return found


def _number(row: Mapping[str, Any], where: str, *names: str) -> int | None:
    for name in names:
        value = row.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 10_000_000:
            raise InvalidValue(
                f"{where}.{name} is {value!r:.40}", hint="give a whole number from 0"
            )
        return value
    return None
