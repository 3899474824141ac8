"""Reach the HTTP API of a client by its URL, or by the API server's proxy of its Service."""

from scaletest.cluster.api_calls import TIMEOUT_S, ApiAnswer, ApiCalls, Cluster, service_path
from scaletest.model import checks
from scaletest.model.errors import Unreachable

# The proxy consumes the header Authorization, so the client's token has a header of its own.
TOKEN_HEADER = "Scaletest-Token"


class ServiceProxy:
    """A client behind the service proxy, which works outside the cluster's network too.

    Needs the right to get services/proxy.
    """

    def __init__(self, cluster: Cluster, service: str, port: str, token: str = "") -> None:
        self.name = f"svc/{service}:{port}"
        self._path = service_path(cluster.namespace, service, port)
        self._api = ApiCalls(cluster)
        self._headers = {TOKEN_HEADER: token} if token else {}

    def get(self, path: str, **query: str) -> ApiAnswer:
        """Return the answer, whatever its status is. Raises Unreachable without one."""
        return self._api.fetch(self._path + path, f"reach {self.name}", self._headers, **query)


class Direct:
    """A client by its URL."""

    def __init__(self, url: str, token: str = "") -> None:
        import urllib3

        self.name = self._url = url.rstrip("/")
        self._headers = {TOKEN_HEADER: token} if token else {}
        self._pool = urllib3.PoolManager(retries=False, timeout=TIMEOUT_S)

    def get(self, path: str, **query: str) -> ApiAnswer:
        """Return the answer, whatever its status is. Raises Unreachable without one."""
        import urllib3.exceptions

        try:
            answer = self._pool.request(
                "GET", self._url + path, fields=query, headers=self._headers
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(
                f"client {self.name} does not answer: {checks.cut_text(str(error), 200)}",
                hint="is it running?",
            ) from error
        return ApiAnswer(answer.status, answer.data, answer.headers)
