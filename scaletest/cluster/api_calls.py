"""Plain API calls, with the client library's credentials.

The client library would turn answers into its own generated classes; other API groups, watches of
thousands of objects and bodies that the proxy of a Service brings are needed as they are.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlencode

from scaletest.cluster.answers import Busy, read_message, refusal
from scaletest.cluster.connection import Cluster
from scaletest.model.checks import cut

TIMEOUT_S = 5.0
# Objects in a page of a long list.
PAGE = 500
MERGE_PATCH = "application/merge-patch+json"
# It merges lists such as containers and variables by name; only Kubernetes' own kinds know it.
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class Raw:
    """A pool of connections to the API server of a cluster; any thread may use it.

    sent: number of calls so far.
    """

    def __init__(self, cluster: Cluster, connections: int = 2) -> None:
        import urllib3

        self._settings: Any = cluster.client.configuration
        self._urllib3 = urllib3
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
        self._own_headers = dict(cluster.client.default_headers)
        self._counting = threading.Lock()
        self.sent = 0

    def get(self, path: str, action: str, right: str = "", **query: str) -> dict[str, Any]:
        """Return the answer's JSON. Raises Missing, Busy, Unreachable.

        action: as in "list pods", for messages. right: what a Role must allow, when it differs.
        """
        return _document(self.fetch(path, action, {}, **query), action, right)

    def objects(self, path: str, plural: str, **query: str) -> list[dict[str, Any]]:
        """Return the objects of a collection, which one page holds. Raises as `get`."""
        return list(self.get(path, f"list {plural}", f"list {plural}", **query)["items"])

    def pages(
        self, path: str, action: str, right: str = "", **query: str
    ) -> Iterator[dict[str, Any]]:
        """Yield the pages of a long collection.

        Raises as `get`; Busy when they expire meanwhile.
        """
        query["limit"] = str(PAGE)
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
        patch_form: str = MERGE_PATCH,
    ) -> dict[str, Any]:
        """Return the JSON that answers a document.

        Raises Conflict when the object exists, or was changed; and as `get`.
        """
        form = patch_form if method == "PATCH" else "application/json"
        headers = {"Content-Type": form, "Accept": "application/json"}
        answer = self.send(method, path, action, headers, json.dumps(body).encode())
        return _document(answer, action, right)

    def fetch(
        self, path: str, action: str, headers: Mapping[str, str], **query: str
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Return the status, body and headers, whatever the status is. Raises Busy without an
        answer.
        """
        return self.send("GET", path, action, headers, query=query)

    def send(
        self,
        method: str,
        path: str,
        action: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        timeout_s: float = TIMEOUT_S,
        query: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes, Mapping[str, str]]:
        """Like `fetch`, with any method and body."""
        try:
            answer = self._request(method, path, headers, query or {}, body=body, timeout=timeout_s)
        except (self._urllib3.exceptions.HTTPError, OSError) as error:
            raise self._no_answer(action, error) from error
        return answer.status, answer.data, answer.headers

    @contextmanager
    def stream(
        self, path: str, action: str, silence_s: float, **query: str
    ) -> Iterator[tuple[int, Iterator[bytes], Mapping[str, str]]]:
        """Yield the status, the body in pieces as they arrive, and headers.

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
            raise self._no_answer(action, error) from error
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
        headers = {**self._own_headers, **headers, **credentials(self._settings)}
        with self._counting:
            self.sent += 1
        return self._pool.request(method, url, headers=headers, **options)

    def _no_answer(self, action: str, error: Exception) -> Busy:
        return Busy(
            f"cannot {action}: {cut(str(error), 200)}",
            hint="is the API server of the kubeconfig reachable?",
        )


def _document(
    answer: tuple[int, bytes, Mapping[str, str]], action: str, right: str
) -> dict[str, Any]:
    """Return the JSON of an answer; the error that stands for any other one."""
    status, body, headers = answer
    if not 200 <= status < 300:
        raise refusal(status, read_message(body), action, right, headers)
    try:
        document: dict[str, Any] = json.loads(body)
    except ValueError as error:
        raise Busy(f"cannot {action}: the answer is not JSON") from error
    return document


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
