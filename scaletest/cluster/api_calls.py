"""Find a cluster, and call its API server; what it refuses becomes an error.

The cluster is that of a pod's service account, else that of the kubeconfig.

The calls are plain HTTP with the client library's credentials. The library itself would turn
answers into its generated classes, and cannot give what we need as it is: other API groups, watches
of thousands of objects, and what the proxy of a Service answers.
"""

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from scaletest.model.checks import cut_text
from scaletest.model.errors import ScaletestError, Unreachable

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
TIMEOUT_S = 5.0
MERGE_PATCH = "application/merge-patch+json"
# It merges lists such as containers and variables by name; only Kubernetes' own kinds know it.
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
# A server's Retry-After is obeyed, but no longer than this in all.
LONGEST_OBEYED_S = 3600.0
# Of 400 to 499 those that pass with time: timeout, conflict, expired pages of a list, too early,
# too many requests.
PASSING_STATUSES = (408, 409, 410, 425, 429)


class Missing(ScaletestError):
    """The object does not exist."""

    exit_code = 2


class Refused(ScaletestError):
    """The API server refuses the call for good: trying again does not help."""

    exit_code = 2


class Busy(Unreachable):
    """The API server is busy or unreachable (409, 429, 5xx, or a timeout): try again."""

    after_s = 0.0  # seconds until then, where the server names them


class Conflict(Busy):
    """The object exists already, or was changed since it was read (409)."""


class ApiAnswer(NamedTuple):
    """What an HTTP server answered."""

    status: int
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that was found."""

    client: Any  # the client library's, with the address and credentials
    namespace: str  # the one that was asked for, else the default


def connect_cluster(namespace: str = "", context: str = "") -> Cluster:
    """Find the cluster; no API call is made.

    Raises Unreachable when no cluster is configured.
    """
    # imported here, because it takes long
    import kubernetes
    import yaml
    from kubernetes.config.config_exception import ConfigException

    config: Any = kubernetes.config  # its functions have no types
    settings = kubernetes.client.Configuration()
    settings.retries = 0  # the caller decides
    try:
        if not context and _NAMESPACE_FILE.exists():
            config.load_incluster_config(client_configuration=settings)
            default = _NAMESPACE_FILE.read_text("utf-8").strip()
        else:
            # read here, because the client library reads it only once, when it is imported
            path = os.environ.get("KUBECONFIG") or None
            config.load_kube_config(path, context=context or None, client_configuration=settings)
            contexts, active = config.list_kube_config_contexts(path)
            chosen = next((entry for entry in contexts if entry["name"] == context), active)
            default = str(chosen["context"].get("namespace", "") if chosen else "")
    except (
        yaml.YAMLError,
        UnicodeDecodeError,
        TypeError,
        AttributeError,
        KeyError,
        RecursionError,
    ) as error:
        # the client library does not check that the file is a kubeconfig
        raise Unreachable(
            f"the kubeconfig cannot be read: {cut_text(' '.join(str(error).split()), 200)}",
            hint="correct it, or set KUBECONFIG to another file",
        ) from error
    except (ConfigException, OSError) as error:
        raise Unreachable(
            f"no Kubernetes cluster is configured: {cut_text(str(error), 200)}",
            hint="run it in a pod with a service account, or set KUBECONFIG",
        ) from error
    return Cluster(kubernetes.client.ApiClient(settings), namespace or default or "default")


class ApiCalls:
    """A pool of connections to the API server of a cluster; any thread may use it.

    Of the parameters of all calls, `action` is what is tried, as in "list pods", for messages, and
    `right` what a Role must allow for it, where the action does not say that.
    """

    def __init__(self, cluster: Cluster, connections: int = 2) -> None:
        import urllib3  # here, because it takes long

        self._urllib3 = urllib3
        self._settings: Any = cluster.client.configuration
        self._default_headers = dict(cluster.client.default_headers)
        self._pool = urllib3.PoolManager(
            num_pools=2,
            maxsize=connections,
            retries=False,
            timeout=TIMEOUT_S,
            ca_certs=self._settings.ssl_ca_cert or None,
            cert_file=self._settings.cert_file or None,
            key_file=self._settings.key_file or None,
            cert_reqs=None if self._settings.verify_ssl else "CERT_NONE",
        )
        self._counting = threading.Lock()
        self.sent = 0  # number of calls so far

    def get(self, path: str, action: str, right: str = "", **query: str) -> dict[str, Any]:
        """Return the JSON of the answer. Raises Missing, Refused, Busy or Unreachable."""
        return _parse_answer(self.fetch(path, action, {}, **query), action, right)

    def list_objects(self, path: str, plural: str, **query: str) -> list[dict[str, Any]]:
        """Return the objects of a collection, which one page holds. Raises as `get`."""
        return list(self.get(path, f"list {plural}", f"list {plural}", **query)["items"])

    def pages(
        self, path: str, action: str, right: str = "", **query: str
    ) -> Iterator[dict[str, Any]]:
        """Yield the pages of a long collection.

        Raises as `get`; Busy also when the pages expire meanwhile.
        """
        query["limit"] = "500"
        while True:
            page = self.get(path, action, right, **query)
            yield page
            query["continue"] = page["metadata"].get("continue", "")
            if not query["continue"]:
                return

    def write(
        self,
        method: str,
        path: str,
        body: dict[str, Any],
        action: str,
        right: str,
        *,
        patch_form: str = MERGE_PATCH,
    ) -> dict[str, Any]:
        """Send a document, and return the JSON of the answer.

        Raises as `get`; Conflict when the object exists already, or was changed since it was read.
        """
        headers = {
            "Content-Type": patch_form if method == "PATCH" else "application/json",
            "Accept": "application/json",
        }
        content = json.dumps(body).encode()
        return _parse_answer(self.send(method, path, action, headers, content), action, right)

    def fetch(self, path: str, action: str, headers: Mapping[str, str], **query: str) -> ApiAnswer:
        """Return the answer, whatever its status is. Raises Busy without one."""
        return self.send("GET", path, action, headers, query=query)

    def send(
        self,
        method: str,
        path: str,
        action: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        query: Mapping[str, str] | None = None,
    ) -> ApiAnswer:
        """Return the answer as `fetch` does, for any method and body."""
        try:
            answer = self._request(method, path, headers, query or {}, body=body, timeout=timeout_s)
        except (self._urllib3.exceptions.HTTPError, OSError) as error:
            raise _no_answer(action, error) from error
        return ApiAnswer(answer.status, answer.data, answer.headers)

    @contextmanager
    def stream(
        self, path: str, action: str, silence_s: float, **query: str
    ) -> Iterator[tuple[int, Iterator[bytes], Mapping[str, str]]]:
        """Yield the status, the body in pieces as they arrive, and the headers.

        Raises Busy when nothing arrives for `silence_s`.
        """
        answer = None
        try:
            answer = self._request(
                "GET",
                path,
                {},
                query,
                timeout=self._urllib3.Timeout(connect=TIMEOUT_S, read=silence_s),
                preload_content=False,
            )
            yield answer.status, answer.stream(65536, decode_content=True), answer.headers
        except (self._urllib3.exceptions.HTTPError, OSError) as error:
            raise _no_answer(action, error) from error
        finally:
            if answer is not None:
                # a connection that was not read to its end cannot be used again
                answer.close()

    def _request(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        query: Mapping[str, str],
        **options: Any,
    ) -> Any:
        url = f"{self._settings.host}{path}" + (f"?{urlencode(query)}" if query else "")
        # the credentials are asked for each time, because a token expires
        headers = {**self._default_headers, **headers, **credentials(self._settings)}
        with self._counting:
            self.sent += 1
        return self._pool.request(method, url, headers=headers, **options)


def _parse_answer(answer: ApiAnswer, action: str, right: str) -> dict[str, Any]:
    """Return the JSON of an answer; the error of its status when it is not a success."""
    if not 200 <= answer.status < 300:
        message = read_message(answer.body)
        raise status_error(answer.status, message, action, right, answer.headers)
    try:
        document: dict[str, Any] = json.loads(answer.body)
    except ValueError as error:
        raise Busy(f"cannot {action}: the answer is not JSON") from error
    return document


def _no_answer(action: str, error: Exception) -> Busy:
    return Busy(
        f"cannot {action}: {cut_text(str(error), 200)}",
        hint="is the API server of the kubeconfig reachable?",
    )


def credentials(settings: Any) -> dict[str, str]:
    """Return the headers with our credentials, by the client library's settings."""
    return {
        setting["key"]: setting["value"]
        for setting in settings.auth_settings().values()
        if setting.get("in") == "header" and setting.get("value")
    }


def service_path(namespace: str, name: str, port: str) -> str:
    """Return the path under which the API server forwards requests to a Service."""
    return f"/api/v1/namespaces/{quote(namespace)}/services/{quote(name)}:{quote(port)}/proxy"


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Return the seconds after which the API server takes the call again; 0 when it names none."""
    after = headers.get("retry-after", "")
    return float(after) if after.isdigit() else 0.0


def status_error(
    status: int, reason: str, action: str, right: str = "", headers: Mapping[str, str] | None = None
) -> ScaletestError:
    """Return the error for an HTTP status of the API server; action and right as in `ApiCalls`."""
    if status == 404:
        return Missing(f"cannot {action}: not found", hint="check its name and the namespace")
    if status in (401, 403):
        return Unreachable(
            f"not allowed to {action}: {reason}",
            hint=f"give the service account the right to {right or action} in this namespace",
        )
    if 400 <= status < 500 and status not in PASSING_STATUSES:
        return Refused(
            f"cannot {action}: {status} {reason}",
            hint="correct the object; trying again does not help",
        )
    if status == 409:
        return Conflict(
            f"cannot {action}: {reason}", hint="it was changed meanwhile; read it again"
        )
    hint = "the API server is overloaded or broken; try again"
    if status == 410:
        hint = "the pages of the list have expired; list again"
    busy = Busy(f"cannot {action}: {status} {reason}", hint=hint)
    busy.after_s = retry_after_s(headers or {})
    return busy


def read_message(body: bytes) -> str:
    """Read the message of a Status object, else the beginning of the body."""
    try:
        return cut_text(str(json.loads(body)["message"]), 200)
    except (ValueError, KeyError, TypeError):
        return cut_text(body.decode("utf-8", "replace"), 200)
