"""Apply, list and delete many objects of any kind, with many calls in flight.

A call that the API server defers (429, Retry-After) is sent again after the time that it sets, and
all threads that share an `Objects` wait so long. Applying and deleting are idempotent, so a call
without an answer is repeated.
"""

import json
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

from scaletest.cluster.api_calls import (
    LONGEST_OBEYED_S,
    ApiCalls,
    Busy,
    Missing,
    read_message,
    retry_after_s,
    status_error,
)
from scaletest.cluster.resources import Resource

# Statuses of a server that throttles, or is broken for now.
TEMPORARY_STATUSES = (429, 500, 502, 503, 504)
# A server that throttles thousands of calls takes long to answer one.
TIMEOUT_S = 30.0
# How many deletions are in flight.
DELETING_THREADS = 32
# Our own pause before a call is repeated doubles from the first to the longest.
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0


@dataclass(frozen=True, slots=True)
class Applied:
    """Outcome of applying an object."""

    accepted: bool  # whether the object exists now
    created: bool  # whether it did not exist before
    status: int  # the last HTTP status, 0 without an answer; of a program its exit code
    reason: str = ""
    tries: int = 1


class _LastAnswer(NamedTuple):
    """The answer to a call that was sent until the server took or refused it."""

    status: int  # 0 without an answer
    reason: str  # why it was refused, "" when it was not
    tries: int


class Objects:
    """The objects of a cluster; any thread may use it.

    manager: the field manager; fields of other managers are never taken over.
    patience_s: how long a call is sent again before it counts as refused; with Retry-After the
    server decides, up to an hour.
    stopping: when true, nothing is sent again.
    """

    def __init__(
        self,
        api: ApiCalls,
        manager: str = "scaletest",
        *,
        patience_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
        stopping: Callable[[], bool] = bool,
    ) -> None:
        self._api, self._manager, self._patience_s = api, manager, patience_s
        self._clock, self._sleep, self._stopping = clock, sleep, stopping
        self._resources: dict[tuple[str, str], Resource] = {}  # by API version and kind
        self._lock = threading.Lock()
        self._not_before = 0.0  # on the clock: when the server takes calls again

    def resource(self, api_version: str, kind: str) -> Resource:
        """Look a kind up, once. Raises Missing when the cluster does not know it."""
        with self._lock:
            if (api_version, kind) in self._resources:
                return self._resources[api_version, kind]
            group_path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            status, body, _ = self._api.fetch(group_path, f"look up {kind}", {})
            if status not in (200, 404):
                raise status_error(status, read_message(body), f"look up {kind} of {api_version}")
            for row in json.loads(body)["resources"] if status == 200 else ():
                # a name with a slash is a subresource
                if row["kind"] == kind and "/" not in row["name"]:
                    return self._resources.setdefault(
                        (api_version, kind),
                        Resource(kind, group_path, row["name"], bool(row["namespaced"])),
                    )
        raise Missing(
            f"the cluster does not define {kind} of {api_version}",
            hint="install its definitions (CRDs) and controller",
        )

    def apply(self, body: Mapping[str, Any], namespace: str) -> Applied:
        """Create the object, or change it if it differs. Never raises for the server's answer."""
        resource = self.resource(body["apiVersion"], body["kind"])
        answer = self._send(
            "PATCH",
            resource.path(namespace, body["metadata"]["name"]),
            "apply",
            {"fieldManager": self._manager},
            headers={"Content-Type": "application/apply-patch+yaml"},
            body=json.dumps(body).encode(),
        )
        return Applied(
            accepted=answer.status in (200, 201),
            created=answer.status == 201,
            status=answer.status,
            reason=answer.reason,
            tries=answer.tries,
        )

    def _send(
        self,
        method: str,
        path: str,
        action: str,
        query: Mapping[str, str],
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
    ) -> _LastAnswer:
        """Send a call, again while the server is busy and our patience lasts."""
        began_s = self._clock()
        tries = 0
        while True:
            self._wait_turn()
            tries += 1
            try:
                status, answer, answer_headers = self._api.send(
                    method, path, action, headers, body, timeout_s=TIMEOUT_S, query=query
                )
                reason = "" if status < 300 else read_message(answer)
                server_pause_s = retry_after_s(answer_headers)
            except Busy as error:  # there was no answer
                status, reason, server_pause_s = 0, error.message, 0.0
            # spread at random, so that threads that were refused together do not return together
            own_pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (tries - 1))
            pause_s = max(own_pause_s * random.uniform(0.5, 1.0), server_pause_s)
            patience_s = LONGEST_OBEYED_S if server_pause_s else self._patience_s
            is_patience_over = self._clock() + pause_s > began_s + patience_s
            if status not in (0, *TEMPORARY_STATUSES) or is_patience_over or self._stopping():
                return _LastAnswer(status, reason, tries)
            if status == 429:
                # all threads, this one too, wait before their next call
                with self._lock:
                    self._not_before = max(self._not_before, self._clock() + pause_s)
            else:
                self._sleep(pause_s)

    def _wait_turn(self) -> None:
        """Wait until the server takes calls again, or we are stopped."""
        while not self._stopping():
            left_s = self._not_before - self._clock()
            if left_s <= 0:
                return
            self._sleep(left_s)

    def list_names(self, resource: Resource, namespace: str, selector: str) -> list[str]:
        """Return the names of all objects with these labels that are not being deleted."""
        names = []
        for page in self._api.pages(
            resource.path(namespace), f"list {resource.plural}", labelSelector=selector
        ):
            for listed in page["items"]:
                if "deletionTimestamp" not in listed["metadata"]:
                    names.append(listed["metadata"]["name"])
        return names

    def delete(self, resource: Resource, namespace: str, names: Sequence[str]) -> None:
        """Delete objects and what they own, many at once; a missing one is fine.

        Raises Refused, Unreachable.
        """
        action = f"delete {resource.plural}"

        def delete_one(name: str) -> None:
            path, query = resource.path(namespace, name), {"propagationPolicy": "Background"}
            answer = self._send("DELETE", path, action, query, headers={})
            if answer.status not in (200, 202, 404):
                raise status_error(answer.status, answer.reason, action)

        # one call for the whole collection would exceed the API server's time limit with thousands
        # of objects
        with ThreadPoolExecutor(DELETING_THREADS) as pool:
            # making the list raises here what a thread raised
            list(pool.map(delete_one, names))

    def check_namespace(self, name: str) -> None:
        """Check that a namespace exists, where we may read it. Raises Missing, Busy."""
        action = f"read namespace {name}"
        status, body, _ = self._api.fetch(f"/api/v1/namespaces/{quote(name)}", action, {})
        if status not in (200, 401, 403):
            raise status_error(status, read_message(body), action)
