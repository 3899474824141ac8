"""Many objects of any kind: applied server-side, listed and deleted, with many calls in flight.

A call that the API server defers (429, Retry-After) is sent again after the time that it sets, and
all threads that share an `Objects` wait so long. Applying is idempotent: a call without an answer
is repeated.
"""

import json
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from typing import Any
from urllib.parse import quote

from scaletest.cluster.connection import (
    LONGEST_OBEYED_S,
    ApiCalls,
    Busy,
    Missing,
    Refused,
    read_message,
    refusal,
    retry_after_s,
)
from scaletest.cluster.objects import Resource
from scaletest.model.checks import cut_text
from scaletest.model.errors import ScaletestError

LATER = (429, 500, 502, 503, 504)
APPLY_TIMEOUT_S = 30.0
DELETE_TIMEOUT_S = 30.0
DELETES_AT_ONCE, DELETE_TRIES = 32, 5
LONGEST_PAUSE_S = 30.0


@dataclass(frozen=True, slots=True)
class Applied:
    """Outcome of applying an object."""

    accepted: bool  # whether the object exists now
    created: bool  # whether it did not exist before
    status: int  # the last HTTP status, 0 without an answer; of a program its exit code
    reason: str = ""
    tries: int = 1
    throttled: int = 0  # number of answers 429


class Objects:
    """Objects of a cluster.

    manager: the field manager; fields of other managers are never taken over. patience_s: how
    long an object is sent again before it counts as refused; with Retry-After the server
    decides, up to an hour. stopping: when true, nothing is sent again.
    """

    def __init__(
        self,
        raw: ApiCalls,
        manager: str = "scaletest",
        patience_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
        stopping: Callable[[], bool] = bool,
    ) -> None:
        self._raw, self._manager, self._patience_s = raw, manager, patience_s
        self._clock, self._sleep, self._stopping = clock, sleep, stopping
        self._known: dict[tuple[str, str], Resource] = {}
        self._lock = threading.Lock()
        self._not_before = 0.0

    def resource(self, api_version: str, kind: str) -> Resource:
        """Return the resource of a kind. Raises Missing when the cluster does not know the kind."""
        with self._lock:
            if (api_version, kind) in self._known:
                return self._known[api_version, kind]
            api = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            status, body, _ = self._raw.fetch(api, f"look up {kind}", {})
            if status not in (200, 404):
                raise refusal(status, read_message(body), f"look up {kind} of {api_version}")
            for row in json.loads(body)["resources"] if status == 200 else ():
                # a name with a slash is a subresource
                if row["kind"] == kind and "/" not in row["name"]:
                    found = Resource(kind, api, row["name"], bool(row["namespaced"]))
                    return self._known.setdefault((api_version, kind), found)
        raise Missing(
            f"the cluster does not know {kind} of {api_version}",
            hint="install its definitions (CRDs) and controller",
        )

    def apply(self, body: Mapping[str, Any], namespace: str) -> Applied:
        """Create the object, or change it if it differs. Never raises for the server's answer."""
        path = self.resource(body["apiVersion"], body["kind"]).path(
            namespace, body["metadata"]["name"]
        )
        encoded = json.dumps(body).encode()
        began_s = self._clock()
        tries = throttled = 0
        while True:
            self._wait_turn()
            tries += 1
            try:
                status, answer, headers = self._raw.send(
                    "PATCH",
                    path,
                    "apply",
                    {"Content-Type": "application/apply-patch+yaml"},
                    encoded,
                    APPLY_TIMEOUT_S,
                    {"fieldManager": self._manager},
                )
                reason = "" if status in (200, 201) else read_message(answer)
                server_s = retry_after_s(headers)
            except Busy as error:  # there was no answer
                status, reason, server_s = 0, error.message, 0.0
            throttled += status == 429
            pause_s = min(LONGEST_PAUSE_S, 0.25 * 2**tries) * random.uniform(0.5, 1.0)
            after_s = max(pause_s, server_s)
            longest_s = LONGEST_OBEYED_S if server_s else self._patience_s
            if (
                status not in (0, *LATER)
                or self._clock() + after_s > began_s + longest_s
                or self._stopping()
            ):
                return Applied(
                    status in (200, 201), status == 201, status, reason, tries, throttled
                )
            self._hold(after_s, everyone=status == 429)

    def _wait_turn(self) -> None:
        while not self._stopping() and (left := self._not_before - self._clock()) > 0:
            self._sleep(left)

    def _hold(self, seconds: float, *, everyone: bool) -> None:
        """Wait; all threads wait when the server throttles."""
        if everyone:
            with self._lock:
                self._not_before = max(self._not_before, self._clock() + seconds)
        else:
            self._sleep(seconds)

    def names(self, resource: Resource, namespace: str, selector: str) -> list[str]:
        """Return the names of all objects with these labels that are not being deleted, listed in
        pages.
        """
        names: list[str] = []
        path, action = resource.path(namespace), f"list {resource.plural}"
        for page in self._raw.pages(path, action, action, labelSelector=selector):
            metas = [listed["metadata"] for listed in page["items"]]
            names += [meta["name"] for meta in metas if "deletionTimestamp" not in meta]
        return names

    def delete(self, resource: Resource, namespace: str, names: Sequence[str]) -> None:
        """Delete objects and what they own, many at once; a missing one is no error.

        One call for the whole collection would exceed the API server's time limit with thousands of
        objects. Raises Refused, Unreachable.
        """
        paths = [resource.path(namespace, name) for name in names]
        with ThreadPoolExecutor(DELETES_AT_ONCE) as pool:
            # the list meets what a thread raised
            list(pool.map(self._delete, paths, repeat(f"delete {resource.plural}")))

    def _delete(self, path: str, action: str) -> None:
        for tries in range(1, DELETE_TRIES + 1):
            self._wait_turn()
            try:
                status, body, headers = self._raw.send(
                    "DELETE",
                    path,
                    action,
                    {},
                    timeout_s=DELETE_TIMEOUT_S,
                    query={"propagationPolicy": "Background"},
                )
                if status in (200, 202, 404):
                    return
                if status not in LATER or tries == DELETE_TRIES:
                    raise refusal(status, read_message(body), action, action)
                self._hold(retry_after_s(headers) or 0.5 * 2**tries, everyone=status == 429)
            except Busy:
                if tries == DELETE_TRIES:
                    raise
                self._sleep(0.5 * 2**tries)

    def check_namespace(self, name: str) -> None:
        """Check that a namespace exists; Refused when it does not.

        Without the right to read it, it counts as existing.
        """
        try:
            self._raw.get(
                f"/api/v1/namespaces/{quote(name)}", f"read namespace {name}", "get namespaces"
            )
        except Missing as error:
            raise Refused(
                f"there is no namespace {cut_text(name, 80)}",
                hint=f"create it: kubectl create namespace {cut_text(name, 80)}",
            ) from error
        except Busy:
            raise
        except ScaletestError:
            return
