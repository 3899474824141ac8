"""A remote client as the load: `scaletest client`, controlled over HTTP, which sends its records.

The client does not know steps: a record belongs to the step in which it was fetched. That is
correct, because a step begins only when no request of the step before is in flight and all its
records are fetched.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from scaletest.model import NodeSample, Record
from scaletest.model.errors import InvalidValue, ScaletestError, Unreachable, UsageError

logger = logging.getLogger("scaletest.validation")

LOOK_S = 0.25
PATIENCE_S = 15.0
POSITION_HEADER = "scaletest-samples-position"
STATS = ("queue", "load", "parallel", "max_parallel", "in_flight", "record_seq")


class ClientHttp(Protocol):
    """HTTP access to the client."""

    name: str

    def get(self, path: str, **query: str) -> tuple[int, bytes, Mapping[str, str]]:
        """Return status, body, and headers with lower-case names; Unreachable without an answer."""


class RemoteLoad:
    """Requests in flight in a remote client. `close` restores its earlier number."""

    def __init__(
        self,
        http: ClientHttp,
        record: Callable[[Record], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._http = http
        self._record = record
        self._clock, self._sleep = clock, sleep
        stats = self._read_stats()
        self.queue, self.maximum = str(stats["queue"]), int(stats["max_parallel"])
        self.kind, self._before = str(stats["load"]), int(stats["parallel"])
        self._seq = int(stats["record_seq"])
        self._step, self._repeat = 0, 0
        self._looked_at = clock()
        self._steered = False

    def check_limit(self, limit: int) -> None:
        """Raise UsageError when this client cannot keep so many requests in flight."""
        if self.kind != "closed":
            raise UsageError(
                f"client {self._http.name} follows a schedule ({self.kind})",
                hint="name one that keeps requests in flight",
            )
        if limit > self.maximum:
            raise UsageError(
                f"client {self._http.name} keeps at most {self.maximum} requests in flight, fewer"
                f" than <limit> {limit}",
                hint="start it with a larger <max_parallel>, or give a smaller <limit>",
            )

    def set_parallel(self, parallel: int, step: int | None = None, repeat: int = 0) -> None:
        """Keep this many in flight from now on."""
        if step is not None:
            self._fetch_records()  # earlier records do not belong to this step
            self._step, self._repeat = step, repeat
        self._steered = True
        self._call("/parallel", value=str(parallel), type="json")

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until nothing is in flight and all records are fetched; false at a timeout."""
        deadline = self._clock() + timeout_s
        while self._read_stats()["in_flight"]:
            if self._clock() > deadline:
                return False
            self._sleep(LOOK_S)
        self._fetch_records()
        return True

    def check(self) -> None:
        """Fetch new records. Raises when the client no longer answers."""
        if self._clock() - self._looked_at >= LOOK_S:
            self._fetch_records()

    def close(self) -> None:
        """Restore the client's number in flight. Does nothing the second time."""
        if not self._steered:
            return
        self._steered = False
        try:
            self._call("/parallel", value=str(self._before), type="json")
        except ScaletestError as error:
            logger.error("client %s may still load its queue: %s", self._http.name, error)

    def _fetch_records(self) -> None:
        """Hand on the records since the last call, which belong to the current step."""
        self._looked_at = self._clock()
        body, headers = self._call("/api/v1/records", since=str(self._seq))
        first = int(headers.get("scaletest-first-seq", self._seq + 1))
        lines = body.splitlines()
        if lines and first > self._seq + 1:
            raise ScaletestError(
                f"client {self._http.name} dropped {first - self._seq - 1} records before they were"
                " fetched",
                hint="start it with a larger <keep_records>",
            )
        for line in lines:
            self._record(replace(Record.from_json(line), step=self._step, repeat=self._repeat))
            self._seq += 1

    def _read_stats(self) -> dict[str, Any]:
        body, _ = self._call("/api/v1/stats")
        try:
            stats = json.loads(body)
            return {name: stats[name] for name in STATS}
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidValue(
                f"{self._http.name} does not answer as a scaletest client",
                hint="name the client's Service and port",
            ) from error

    def _call(self, path: str, **query: str) -> tuple[bytes, Mapping[str, str]]:
        """Return body and headers of the answer, which may take some tries.

        A proxy may be replaced meanwhile, or a pod restarted. Unreachable for what does not end, or
        is refused; UsageError where there is no such client.
        """
        began = self._clock()
        while True:
            error: ScaletestError
            try:
                status, body, headers = self._http.get(path, **query)
            except Unreachable as unreachable:
                error = unreachable
            else:
                if status == 200:
                    return body, headers
                try:
                    answer = json.loads(body)
                    reason = answer.get("info") or answer.get("message") or ""
                except (ValueError, AttributeError):
                    reason = body.decode("utf-8", "replace")[:200]
                hint = {
                    401: "set SCALETEST_CLIENT_TOKEN to the client's token",
                    403: "you need the right to get services/proxy in this namespace",
                    404: "check the name of the Service",
                }.get(status, "read the client's log")
                kind = UsageError if status == 404 else Unreachable
                error = kind(f"client {self._http.name} answered {status}: {reason}", hint=hint)
                if status < 500:
                    raise error
            if self._clock() - began > PATIENCE_S:
                raise error
            self._sleep(LOOK_S)


class RemoteSamples:
    """Reads samples of a client's queue; the first call only finds where they begin."""

    def __init__(self, http: ClientHttp) -> None:
        self._http = http
        self._position = ""

    def read(self) -> list[NodeSample]:
        """Return the samples since the last call; Unreachable where the client gives none."""
        query = {"since": self._position} if self._position else {}
        status, body, headers = self._http.get("/api/v1/samples", **query)
        if status != 200:
            raise Unreachable(
                f"client {self._http.name} answered {status} when asked for samples of the nodes"
            )
        self._position = headers.get(POSITION_HEADER, self._position)
        return list(map(NodeSample.from_json, body.splitlines()))
