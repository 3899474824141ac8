"""Objects of any kind: found by discovery, applied server-side and deleted, with many in flight.

What the API server wants to be asked later is sent again after as long as it says (429, Retry-After), by all threads
that share an `Objects`. Applying is idempotent: an answer that never came is asked for again.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from scaletest.cluster.connection import LONGEST_OBEYED_S, Busy, Missing, Refused, refusal, told
from scaletest.cluster.raw import Raw, message
from scaletest.model.checks import cut
from scaletest.model.errors import ScaletestError

LATER = (429, 500, 502, 503, 504)
APPLY_TIMEOUT_S = 30.0
DELETE_TIMEOUT_S = 30.0
DELETES_AT_ONCE, DELETE_TRIES = 32, 5
LONGEST_PAUSE_S = 30.0


@dataclass(frozen=True, slots=True)
class Resource:
    """Where objects of a kind are. api: as in /api/v1 or /apis/batch/v1."""

    kind: str
    api: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """Of the collection in a namespace ("": in all), or of one object."""
        within = f"/namespaces/{quote(namespace)}" if self.namespaced and namespace else ""
        return f"{self.api}{within}/{self.plural}" + (f"/{quote(name)}" if name else "")


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of an object. status: the last HTTP status, 0 when there was no answer. throttled: times of 429."""

    status: int
    reason: str
    tries: int
    throttled: int

    @property
    def accepted(self) -> bool:
        """Whether the object is there now."""
        return self.status in (200, 201)

    @property
    def created(self) -> bool:
        """Whether it was not there before."""
        return self.status == 201


class Objects:
    """Objects of a cluster. manager: the field manager; another manager's fields are never taken over.

    patience_s: so long is one object sent again before it counts as refused, unless the server says when (Retry-After):
    then that is waited for, up to an hour. stop: when set, nothing is sent again.
    """

    def __init__(
        self,
        raw: Raw,
        manager: str = "scaletest",
        patience_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        self._raw, self._manager, self._patience_s = raw, manager, patience_s
        self._stop = stop or threading.Event()
        self._clock, self._sleep = clock, sleep or self._stop.wait
        self._known: dict[tuple[str, str], Resource] = {}
        self._lock = threading.Lock()
        self._not_before = 0.0

    def resource(self, api_version: str, kind: str) -> Resource:
        """Where that kind is. Raises Missing when the cluster does not know it."""
        with self._lock:
            if (api_version, kind) not in self._known:
                self._known[api_version, kind] = self._discover(api_version, kind)
            return self._known[api_version, kind]

    def _discover(self, api_version: str, kind: str) -> Resource:
        api = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        status, body, _ = self._raw.fetch(api, f"look up {kind}", {})
        if status not in (200, 404):
            raise refusal(status, message(body), f"look up {kind} of {api_version}")
        rows = json.loads(body)["resources"] if status == 200 else []
        for row in rows:
            if row["kind"] == kind and "/" not in row["name"]:
                return Resource(kind, api, row["name"], bool(row["namespaced"]))
        raise Missing(
            f"the cluster does not know {kind} of {api_version}", hint="install its definitions (CRDs) and controller"
        )

    def apply(self, body: Mapping[str, Any], namespace: str) -> Applied:
        """Create the object, or leave it as it is when it is there as given. Never raises for what the server says."""
        found = self.resource(body["apiVersion"], body["kind"])
        path = found.path(namespace, body["metadata"]["name"])
        data = json.dumps(body).encode()
        began_s = self._clock()
        tries = throttled = 0
        while True:
            self._wait_turn()
            tries += 1
            status, reason, pause_s, told_s = self._try(path, data, tries)
            throttled += status == 429
            after_s = max(pause_s, told_s)
            most_s = LONGEST_OBEYED_S if told_s else self._patience_s
            if status not in (0, *LATER) or self._clock() + after_s > began_s + most_s or self._stop.is_set():
                return Applied(status, reason, tries, throttled)
            self._hold(after_s, everyone=status == 429)

    def _try(self, path: str, data: bytes, tries: int) -> tuple[int, str, float, float]:
        """Status, reason, our own pause before the next try, and the one that the server asks for (0: it does not)."""
        pause_s = min(LONGEST_PAUSE_S, 0.25 * 2**tries) * random.uniform(0.5, 1.0)
        headers = {"Content-Type": "application/apply-patch+yaml"}
        try:
            status, body, answered = self._raw.send(
                "PATCH", path, "apply", headers, data, APPLY_TIMEOUT_S, {"fieldManager": self._manager}
            )
        except Busy as error:
            return 0, error.message, pause_s, 0.0
        if status in (200, 201):
            return status, "", 0.0, 0.0
        return status, message(body), pause_s, told(answered)

    def _wait_turn(self) -> None:
        while not self._stop.is_set() and (left := self._not_before - self._clock()) > 0:
            self._sleep(left)

    def _hold(self, seconds: float, *, everyone: bool) -> None:
        """Wait; when the server is asked too much, all wait."""
        if everyone:
            with self._lock:
                self._not_before = max(self._not_before, self._clock() + seconds)
        else:
            self._sleep(seconds)

    def get(self, found: Resource, namespace: str, name: str) -> dict[str, Any]:
        """The object. Raises Missing, Busy, Unreachable."""
        answer: dict[str, Any] = self._raw.get(found.path(namespace, name), f"read {found.kind} {name}", "get")
        return answer

    def names(self, found: Resource, namespace: str, selector: str) -> list[str]:
        """Names of all objects with these labels that are not on their way out, listed in pages."""
        names: list[str] = []
        token = ""
        while True:
            query = {"labelSelector": selector, "limit": "500"} | ({"continue": token} if token else {})
            page = self._raw.get(found.path(namespace), f"list {found.plural}", f"list {found.plural}", **query)
            rows = (row["metadata"] for row in page["items"])
            names += [row["name"] for row in rows if "deletionTimestamp" not in row]
            token = page["metadata"].get("continue", "")
            if not token:
                return names

    def delete(self, found: Resource, namespace: str, names: Sequence[str]) -> None:
        """Delete objects and what they own, many at once; one that is gone is no error. Raises Refused, Unreachable.

        One request for the whole collection would outlive what the API server gives a request when there are thousands.
        """
        with ThreadPoolExecutor(DELETES_AT_ONCE) as pool:
            for _ in pool.map(lambda name: self._delete(found, found.path(namespace, name)), names):
                pass

    def _delete(self, found: Resource, path: str) -> None:
        what = f"delete {found.plural}"
        for tries in range(1, DELETE_TRIES + 1):
            self._wait_turn()
            try:
                query = {"propagationPolicy": "Background"}
                status, body, answered = self._raw.send(
                    "DELETE", path, what, {}, timeout_s=DELETE_TIMEOUT_S, query=query
                )
                if status in (200, 202, 404):
                    return
                if status not in LATER or tries == DELETE_TRIES:
                    raise refusal(status, message(body), what, what)
                self._hold(told(answered) or 0.5 * 2**tries, everyone=status == 429)
            except Busy:
                if tries == DELETE_TRIES:
                    raise
                self._sleep(0.5 * 2**tries)

    def namespace(self, name: str) -> None:
        """Raises Refused when there is no such namespace. One that we may not read is taken as there."""
        try:
            self._raw.get(f"/api/v1/namespaces/{quote(name)}", f"read namespace {name}", "get namespaces")
        except Missing as error:
            raise Refused(
                f"there is no namespace {cut(name, 80)}", hint=f"make it: kubectl create namespace {cut(name, 80)}"
            ) from error
        except Busy:
            raise
        except ScaletestError:
            return
