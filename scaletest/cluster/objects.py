"""Objects of any kind: look up their resource, apply and delete many, and read single ones.

Many are applied server-side and deleted, with many calls in flight. A call that the API server
defers (429, Retry-After) is sent again after the time that it sets, and all threads that share an
`Objects` wait so long. Applying is idempotent: a call without an answer is repeated.

`Documents` reads, creates, changes and deletes single objects, and reads logs of pods. It tries
nothing again, since its callers repeat their pass every second. It needs the rights get, list,
create, patch and delete on the resources in question, get pods/log for logs, and create
localsubjectaccessreviews for `may`.
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
    MERGE_PATCH,
    Busy,
    Cluster,
    Conflict,
    Missing,
    Raw,
    Refused,
    message,
    refusal,
    retry_after_s,
)
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


def selectors(labels: str, fields: str) -> dict[str, str]:
    """The query of a list that has these labels and fields, "" for any."""
    both = {"labelSelector": labels, "fieldSelector": fields}
    return {name: text for name, text in both.items() if text}


@dataclass(frozen=True, slots=True)
class Applied:
    """Outcome of applying an object.

    accepted: whether the object exists now. created: whether it did not exist before. status: the
    last HTTP status, 0 without an answer; of a program its exit code. throttled: number of answers
    429.
    """

    accepted: bool
    created: bool
    status: int
    reason: str = ""
    tries: int = 1
    throttled: int = 0


class Objects:
    """Objects of a cluster.

    manager: the field manager; fields of other managers are never taken over. patience_s: how
    long an object is sent again before it counts as refused; with Retry-After the server
    decides, up to an hour. stopping: when true, nothing is sent again.
    """

    def __init__(
        self,
        raw: Raw,
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
        for resource in json.loads(body)["resources"] if status == 200 else ():
            # a name with a slash is a subresource
            if resource["kind"] == kind and "/" not in resource["name"]:
                return Resource(kind, api, resource["name"], bool(resource["namespaced"]))
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
            status, reason, pause_s, server_s = self._try(path, encoded, tries)
            throttled += status == 429
            after_s = max(pause_s, server_s)
            most_s = LONGEST_OBEYED_S if server_s else self._patience_s
            if (
                status not in (0, *LATER)
                or self._clock() + after_s > began_s + most_s
                or self._stopping()
            ):
                return Applied(
                    status in (200, 201), status == 201, status, reason, tries, throttled
                )
            self._hold(after_s, everyone=status == 429)

    def _try(self, path: str, encoded: bytes, tries: int) -> tuple[int, str, float, float]:
        """Status, reason, our own pause before the next try, and the server's (0 without)."""
        pause_s = min(LONGEST_PAUSE_S, 0.25 * 2**tries) * random.uniform(0.5, 1.0)
        try:
            status, body, answered = self._raw.send(
                "PATCH",
                path,
                "apply",
                {"Content-Type": "application/apply-patch+yaml"},
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
        """Names of all objects with these labels that are not being deleted, listed in pages."""
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
        with ThreadPoolExecutor(DELETES_AT_ONCE) as pool:
            # the list meets what a thread raised
            list(
                pool.map(lambda name: self._delete(resource, resource.path(namespace, name)), names)
            )

    def _delete(self, resource: Resource, path: str) -> None:
        action = f"delete {resource.plural}"
        for tries in range(1, DELETE_TRIES + 1):
            self._wait_turn()
            try:
                status, body, answered = self._raw.send(
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


__all__ = ["Busy", "Conflict", "Documents", "Missing", "Resource"]

CONNECTIONS = 16
# The end of a log that is read: larger than any framed result.
LOG_BYTES = 4 * 1024 * 1024
Document = dict[str, Any]

CONFIG_MAPS = Resource("ConfigMap", "/api/v1", "configmaps", True)
PODS = Resource("Pod", "/api/v1", "pods", True)
SECRETS = Resource("Secret", "/api/v1", "secrets", True)
SERVICES = Resource("Service", "/api/v1", "services", True)
CLAIMS = Resource("PersistentVolumeClaim", "/api/v1", "persistentvolumeclaims", True)
NODES = Resource("Node", "/api/v1", "nodes", False)
QUOTAS = Resource("ResourceQuota", "/api/v1", "resourcequotas", True)
DEPLOYMENTS = Resource("Deployment", "/apis/apps/v1", "deployments", True)
JOBS = Resource("Job", "/apis/batch/v1", "jobs", True)
HPAS = Resource("HorizontalPodAutoscaler", "/apis/autoscaling/v2", "horizontalpodautoscalers", True)
ENDPOINT_SLICES = Resource("EndpointSlice", "/apis/discovery.k8s.io/v1", "endpointslices", True)
SCALED_OBJECTS = Resource("ScaledObject", "/apis/keda.sh/v1alpha1", "scaledobjects", True)
EVENTS = Resource("Event", "/api/v1", "events", True)
LEASES = Resource("Lease", "/apis/coordination.k8s.io/v1", "leases", True)


def read_log(raw: Raw, namespace: str, pod: str, **query: str) -> tuple[int, str]:
    """The HTTP status and the text of a pod's log. Raises Busy without an answer."""
    status, body, _ = raw.fetch(
        f"{PODS.path(namespace, pod)}/log", f"read the log of {pod}", {}, **query
    )
    return status, body.decode("utf-8", "replace")


class Documents:
    """Objects of one cluster. Several threads may use it."""

    def __init__(self, cluster: Cluster) -> None:
        self._raw = Raw(cluster, CONNECTIONS)

    def find(self, resource: Resource, namespace: str, name: str) -> Document | None:
        """The object, or None if it does not exist."""
        try:
            return self._raw.get(
                resource.path(namespace, name), f"read {name}", f"get {resource.plural}"
            )
        except Missing:
            return None

    def list(
        self, resource: Resource, namespace: str = "", labels: str = "", fields: str = ""
    ) -> list[Document]:
        """All objects with these labels and fields, in a namespace ("": in all)."""
        return self._raw.objects(
            resource.path(namespace), resource.plural, **selectors(labels, fields)
        )

    def create(self, resource: Resource, namespace: str, body: Document) -> Document | None:
        """The object as created; None if one with that name exists."""
        try:
            return self._raw.write(
                "POST",
                resource.path(namespace),
                body,
                f"create {resource.plural} {body['metadata']['name']}",
                f"create {resource.plural}",
            )
        except Conflict:
            return None

    def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: Document,
        subresource: str = "",
        form: str = MERGE_PATCH,
    ) -> Document:
        """Merge a document into the object, or into its subresource (status).

        Raises Missing and Conflict.
        """
        suffix = f"/{subresource}" if subresource else ""
        return self._raw.write(
            "PATCH",
            resource.path(namespace, name) + suffix,
            body,
            f"change {resource.kind} {name}",
            f"patch {resource.plural}{suffix}",
            form,
        )

    def delete(self, resource: Resource, namespace: str, name: str, uid: str = "") -> None:
        """Delete the object, and what it owns in the background; with a uid only that very object.

        An object that does not exist is no error.
        """
        only = {"preconditions": {"uid": uid}} if uid else {}
        try:
            self._raw.write(
                "DELETE",
                resource.path(namespace, name),
                {"propagationPolicy": "Background", **only},
                f"delete {resource.kind} {name}",
                f"delete {resource.plural}",
            )
        except (Missing, Conflict) as error:
            if isinstance(error, Conflict) and not uid:
                raise

    def version(self) -> str:
        """Version of the API server, as in v1.37.1; every authenticated user may read it."""
        return str(self._raw.get("/version", "read the version", "get /version")["gitVersion"])

    def log(self, namespace: str, pod: str) -> str:
        """The end of a pod's log; "" without a log, as before its start."""
        status, text = read_log(
            self._raw, namespace, pod, tailLines="2000", limitBytes=str(LOG_BYTES)
        )
        if status in (400, 404):
            return ""
        if status != 200:
            raise refusal(status, text[:200], f"read the log of {pod}", "get pods/log")
        return text
