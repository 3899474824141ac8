"""Plain API calls with the client library's credentials: unparsed JSON, and the service proxy.

The client library would turn answers into its own generated classes; other API groups, watches of
thousands of objects and proxied bodies are needed as they are.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlencode

from scaletest.cluster.connection import TIMEOUT_S, Busy, Cluster, refusal
from scaletest.model.checks import cut


class Raw:
    """A pool of connections to the API server of a cluster; any thread may use it.

    sent: number of calls so far.
    """

    def __init__(self, cluster: Cluster, connections: int = 2) -> None:
        import urllib3

        self._settings: Any = cluster.client.configuration
        self._urllib3 = urllib3
        options: dict[str, Any] = (
            {"ca_certs": self._settings.ssl_ca_cert} if self._settings.ssl_ca_cert else {}
        )
        if self._settings.cert_file:
            options |= {"cert_file": self._settings.cert_file, "key_file": self._settings.key_file}
        if not self._settings.verify_ssl:
            options |= {"cert_reqs": "CERT_NONE"}
        self._pool = urllib3.PoolManager(
            num_pools=2, maxsize=connections, retries=False, timeout=TIMEOUT_S, **options
        )
        self._own_headers = dict(cluster.client.default_headers)
        self._counting = threading.Lock()
        self.sent = 0

    def get(self, path: str, action: str, right: str = "", **query: str) -> Any:
        """The answer's JSON. Raises Missing, Busy, Unreachable.

        action: as in "list pods", for messages. right: what a Role must allow, when it differs.
        """
        status, body, headers = self.fetch(path, action, {}, **query)
        if status != 200:
            raise refusal(status, message(body), action, right, headers)
        try:
            return json.loads(body)
        except ValueError as error:
            raise Busy(f"cannot {action}: the answer is not JSON") from error

    def fetch(
        self, path: str, action: str, headers: dict[str, str], **query: str
    ) -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers, whatever the status is. Raises Busy without an answer."""
        return self.send("GET", path, action, headers, query=query)

    def send(
        self,
        method: str,
        path: str,
        action: str,
        headers: dict[str, str],
        body: bytes | None = None,
        timeout_s: float = TIMEOUT_S,
        query: dict[str, str] | None = None,
    ) -> tuple[int, bytes, dict[str, str]]:
        """Like `fetch`, with any method and body."""
        try:
            answer = self._request(method, path, headers, query or {}, body=body, timeout=timeout_s)
        except (self._urllib3.exceptions.HTTPError, OSError) as error:
            raise self._no_answer(action, error) from error
        return answer.status, answer.data, _lower(answer.headers)

    @contextmanager
    def stream(
        self, path: str, action: str, silence_s: float, **query: str
    ) -> Iterator[tuple[int, Iterator[bytes], dict[str, str]]]:
        """Status, the body in pieces as they arrive, and headers.

        Raises Busy when nothing arrives for `silence_s`.
        """
        timeout = self._urllib3.Timeout(connect=TIMEOUT_S, read=silence_s)
        answer = None
        try:
            answer = self._request("GET", path, {}, query, timeout=timeout, preload_content=False)
            yield answer.status, answer.stream(65536, decode_content=True), _lower(answer.headers)
        except (self._urllib3.exceptions.HTTPError, OSError) as error:
            raise self._no_answer(action, error) from error
        finally:
            if answer is not None:
                # a connection that was not read to its end cannot be used again
                answer.close()

    def _request(
        self, method: str, path: str, headers: dict[str, str], query: dict[str, str], **options: Any
    ) -> Any:
        url = f"{self._settings.host}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = {**self._own_headers, **headers}
        for setting in self._settings.auth_settings().values():
            if setting.get("in") == "header" and setting.get("value"):
                headers[setting["key"]] = setting["value"]
        with self._counting:
            self.sent += 1
        return self._pool.request(method, url, headers=headers, **options)

    def _no_answer(self, action: str, error: Exception) -> Busy:
        return Busy(
            f"cannot {action}: {cut(str(error), 200)}",
            hint="is the API server of the kubeconfig reachable?",
        )


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): text for name, text in headers.items()}


def service_path(namespace: str, name: str, port: str) -> str:
    """Path under which the API server forwards requests to a Service."""
    return f"/api/v1/namespaces/{quote(namespace)}/services/{quote(name)}:{quote(port)}/proxy"


def message(body: bytes) -> str:
    """The message of a Status object, else the beginning of the body."""
    try:
        return cut(str(json.loads(body)["message"]), 200)
    except (ValueError, KeyError, TypeError):
        return cut(body.decode("utf-8", "replace"), 200)
