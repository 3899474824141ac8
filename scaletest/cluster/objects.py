"""Objects of any kind: look up their resource, apply server-side and delete, with many in flight.

A call that the API server defers (429, Retry-After) is sent again after the time that it sets, and
all threads that share an `Objects` wait so long. Applying is idempotent: a call without an answer
is repeated.
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

from scaletest.cluster.connection import (
    LONGEST_OBEYED_S,
    Busy,
    Missing,
    Refused,
    refusal,
    retry_after_s,
)
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
    """API path of objects of a kind. api: as in /api/v1 or /apis/batch/v1."""

    kind: str
    api: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """Path of the collection in a namespace ("": in all), or of one object."""
        within = f"/namespaces/{quote(namespace)}" if self.namespaced and namespace else ""
        return f"{self.api}{within}/{self.plural}" + (f"/{quote(name)}" if name else "")


@dataclass(frozen=True, slots=True)
class Applied:
    """Outcome of applying an object.

    status: the last HTTP status, 0 without an answer. throttled: number of answers 429.
    """

    status: int
    reason: str
    tries: int
    throttled: int

    @property
    def accepted(self) -> bool:
        """Whether the object exists now."""
        return self.status in (200, 201)

    @property
    def created(self) -> bool:
        """Whether the object did not exist before."""
        return self.status == 201


class Objects:
    """Objects of a cluster.

    manager: the field manager; fields of other managers are never taken over. patience_s: how
    long an object is sent again before it counts as refused; with Retry-After the server
    decides, up to an hour. stop: when set, nothing is sent again.
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
        """The resource of a kind. Raises Missing when the cluster does not know the kind."""
        with self._lock:
            if (api_version, kind) not in self._known:
                self._known[api_version, kind] = self._discover(api_version, kind)
            return self._known[api_version, kind]

    def _discover(self, api_version: str, kind: str) -> Resource:
        api = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        status, body, _ = self._raw.fetch(api, f"look up {kind}", {})
        if status not in (200, 404):
            raise refusal(status, message(body), f"look up {kind} of {api_version}")
        resources = json.loads(body)["resources"] if status == 200 else []
        for resource in resources:
            # a name with a slash is a subresource
            if resource["kind"] == kind and "/" not in resource["name"]:
                return Resource(kind, api, resource["name"], bool(resource["namespaced"]))
        raise Missing(
            f"the cluster does not know {kind} of {api_version}",
            hint="install its definitions (CRDs) and controller",
        )

    def apply(self, body: Mapping[str, Any], namespace: str) -> Applied:
        """Create the object, or change it if it differs. Never raises for the server's answer."""
        resource = self.resource(body["apiVersion"], body["kind"])
        path = resource.path(namespace, body["metadata"]["name"])
        encoded = json.dumps(body).encode()
        began_s = self._clock()
        tries = throttled = 0
        while True:
            self._wait_turn()
            tries += 1
            status, reason, pause_s, server_s = self._try(path, encoded, tries)
            throttled += status == 429
            after_s = max(pause_s, server_s)
            most_s = LONGEST_OBEYED_S if server_s else self._patience_s
            if (
                status not in (0, *LATER)
                or self._clock() + after_s > began_s + most_s
                or self._stop.is_set()
            ):
                return Applied(status, reason, tries, throttled)
            self._hold(after_s, everyone=status == 429)

    def _try(self, path: str, encoded: bytes, tries: int) -> tuple[int, str, float, float]:
        """Status, reason, our own pause before the next try, and the server's (0 without)."""
        pause_s = min(LONGEST_PAUSE_S, 0.25 * 2**tries) * random.uniform(0.5, 1.0)
        headers = {"Content-Type": "application/apply-patch+yaml"}
        try:
            status, body, answered = self._raw.send(
                "PATCH",
                path,
                "apply",
                headers,
                encoded,
                APPLY_TIMEOUT_S,
                {"fieldManager": self._manager},
            )
        except Busy as error:
            return 0, error.message, pause_s, 0.0
        if status in (200, 201):
            return status, "", 0.0, 0.0
        return status, message(body), pause_s, retry_after_s(answered)

    def _wait_turn(self) -> None:
        while not self._stop.is_set() and (left := self._not_before - self._clock()) > 0:
            self._sleep(left)

    def _hold(self, seconds: float, *, everyone: bool) -> None:
        """Wait; all threads wait when the server throttles."""
        if everyone:
            with self._lock:
                self._not_before = max(self._not_before, self._clock() + seconds)
        else:
            self._sleep(seconds)

    def get(self, resource: Resource, namespace: str, name: str) -> dict[str, Any]:
        """The object. Raises Missing, Busy, Unreachable."""
        answer: dict[str, Any] = self._raw.get(
            resource.path(namespace, name), f"read {resource.kind} {name}", "get"
        )
        return answer

    def names(self, resource: Resource, namespace: str, selector: str) -> list[str]:
        """Names of all objects with these labels that are not being deleted, listed in pages."""
        names: list[str] = []
        token = ""
        while True:
            query = {"labelSelector": selector, "limit": "500"}
            if token:
                query["continue"] = token
            page = self._raw.get(
                resource.path(namespace),
                f"list {resource.plural}",
                f"list {resource.plural}",
                **query,
            )
            metas = [listed["metadata"] for listed in page["items"]]
            names += [meta["name"] for meta in metas if "deletionTimestamp" not in meta]
            token = page["metadata"].get("continue", "")
            if not token:
                return names

    def delete(self, resource: Resource, namespace: str, names: Sequence[str]) -> None:
        """Delete objects and what they own, many at once; a missing one is no error.

        One call for the whole collection would exceed the API server's time limit with thousands of
        objects. Raises Refused, Unreachable.
        """
        with ThreadPoolExecutor(DELETES_AT_ONCE) as pool:
            for _ in pool.map(
                lambda name: self._delete(resource, resource.path(namespace, name)), names
            ):
                pass

    def _delete(self, resource: Resource, path: str) -> None:
        action = f"delete {resource.plural}"
        for tries in range(1, DELETE_TRIES + 1):
            self._wait_turn()
            try:
                query = {"propagationPolicy": "Background"}
                status, body, answered = self._raw.send(
                    "DELETE", path, action, {}, timeout_s=DELETE_TIMEOUT_S, query=query
                )
                if status in (200, 202, 404):
                    return
                if status not in LATER or tries == DELETE_TRIES:
                    raise refusal(status, message(body), action, action)
                self._hold(retry_after_s(answered) or 0.5 * 2**tries, everyone=status == 429)
            except Busy:
                if tries == DELETE_TRIES:
                    raise
                self._sleep(0.5 * 2**tries)

    def namespace(self, name: str) -> None:
        """Raises Refused when the namespace does not exist.

        Without the right to read it, it counts as existing.
        """
        try:
            self._raw.get(
                f"/api/v1/namespaces/{quote(name)}", f"read namespace {name}", "get namespaces"
            )
        except Missing as error:
            raise Refused(
                f"there is no namespace {cut(name, 80)}",
                hint=f"create it: kubectl create namespace {cut(name, 80)}",
            ) from error
        except Busy:
            raise
        except ScaletestError:
            return
