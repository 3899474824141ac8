"""Plain requests to the API server, with the client's own credentials: JSON as it comes, and the service proxy.

The client library turns answers into objects of its own generation; lists of other groups and proxied bodies are needed
as they are.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote, urlencode

from scaletest.cluster.connection import TIMEOUT_S, Busy, Cluster, Conflict, refusal
from scaletest.model.checks import cut


class Raw:
    """One pool of connections to the API server of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        import urllib3

        self._settings: Any = cluster.client.configuration
        self._urllib3 = urllib3
        options: dict[str, Any] = {"ca_certs": self._settings.ssl_ca_cert} if self._settings.ssl_ca_cert else {}
        if self._settings.cert_file:
            options |= {"cert_file": self._settings.cert_file, "key_file": self._settings.key_file}
        if not self._settings.verify_ssl:
            options |= {"cert_reqs": "CERT_NONE"}
        self._pool = urllib3.PoolManager(num_pools=2, maxsize=2, retries=False, timeout=TIMEOUT_S, **options)
        self._own_headers = dict(cluster.client.default_headers)

    def get(self, path: str, what: str, right: str = "", **query: str) -> Any:
        """The answer's JSON. Raises Missing, Busy, Unreachable."""
        status, body, _ = self.fetch(path, what, {}, **query)
        if status != 200:
            raise refusal(status, _message(body), what, right)
        try:
            return json.loads(body)
        except ValueError as error:
            raise Busy(f"cannot {what}: the answer is no JSON") from error

    def send(
        self, method: str, path: str, body: Any, what: str, right: str = "", form: str = "application/json"
    ) -> Any:
        """What the API server answers to a document. Raises as `get`, and Refused; a conflict is Conflict."""
        headers = {"Content-Type": form, "Accept": "application/json"}
        status, answer, _ = self._ask(method, path, what, headers, json.dumps(body).encode())
        if status == 409:
            raise Conflict(f"cannot {what}: {_message(answer)}", hint="somebody else changed it; read it again")
        if not 200 <= status < 300:
            raise refusal(status, _message(answer), what, right)
        return json.loads(answer)

    def fetch(self, path: str, what: str, headers: dict[str, str], **query: str) -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers, whatever they are. Raises Busy when there is no answer."""
        return self._ask("GET", path + (f"?{urlencode(query)}" if query else ""), what, headers)

    def _ask(
        self, method: str, path: str, what: str, headers: dict[str, str], body: bytes | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        url = f"{self._settings.host}{path}"
        headers = {**self._own_headers, **headers}
        for one in self._settings.auth_settings().values():
            if one.get("in") == "header" and one.get("value"):
                headers[one["key"]] = one["value"]
        try:
            answer = self._pool.request(method, url, headers=headers, body=body)
        except (self._urllib3.exceptions.HTTPError, OSError) as error:
            raise Busy(
                f"cannot {what}: {cut(str(error), 200)}", hint="is the API server of the kubeconfig reachable?"
            ) from error
        return answer.status, answer.data, {name.lower(): value for name, value in answer.headers.items()}


def service_path(namespace: str, name: str, port: str) -> str:
    """Where the API server passes requests on to a Service."""
    return f"/api/v1/namespaces/{quote(namespace)}/services/{quote(name)}:{quote(port)}/proxy"


def _message(body: bytes) -> str:
    """What a Status object says, else the body's beginning."""
    try:
        return cut(str(json.loads(body)["message"]), 200)
    except (ValueError, KeyError, TypeError):
        return cut(body.decode("utf-8", "replace"), 200)
