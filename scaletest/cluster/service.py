"""Read a Service: its address, its ready endpoints, and its Deployment."""

import re
from typing import Any, NamedTuple

from scaletest.cluster.api_calls import ApiCalls, Cluster, credentials, service_path
from scaletest.cluster.deployment import Deployment, pod_templates
from scaletest.cluster.resources import ENDPOINT_SLICES, PODS, SERVICES
from scaletest.model import checks
from scaletest.model.errors import InvalidValue

_REFERENCE = re.compile(
    r"(?:svc|service|services)/([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)(?::([A-Za-z0-9-]{1,63}))?(/.*)?"
)


class ProxyAccess(NamedTuple):
    """How a Service is reached through the API server."""

    url: str
    headers: dict[str, str]  # with our credentials
    ca_file: str  # of the API server's certificate, "" for the system's


class Service:
    """A Service. Needs the rights to get services, list endpointslices and list deployments."""

    def __init__(self, cluster: Cluster, text: str) -> None:
        """Read the Service by a reference svc/NAME[:PORT][/PATH]. InvalidValue for other text."""
        match = _REFERENCE.fullmatch(text)
        if not match:
            raise InvalidValue(
                f"<service> is {text[:80]!r}",
                hint="give svc/NAME, svc/NAME:PORT or svc/NAME:PORT/PATH",
            )
        self.name, self.path = match[1], match[4] or "/"
        wanted = match[3] or ""  # the port's number or name, "" for the only port
        self._cluster, self._api = cluster, ApiCalls(cluster)
        self.namespace = cluster.namespace
        spec = self._api.get(
            SERVICES.path(self.namespace, self.name),
            f"read service {self.name} in namespace {self.namespace}",
            "get services",
        )["spec"]
        self._selector: dict[str, str] = spec.get("selector") or {}
        # the port that the reference names, by number or name, else the only one
        ports = spec.get("ports", [])
        numbers = [str(port["port"]) for port in ports]
        matching = [port for port in ports if wanted in ("", str(port["port"]), port.get("name"))]
        checks.raise_first_mistake(
            (
                not wanted and len(ports) != 1,
                f"service {self.name} has {len(ports)} ports",
                f"choose one: svc/{self.name}:{'|'.join(numbers)}",
            ),
            (
                not matching,
                f"service {self.name} has no port {wanted}",
                f"it has {', '.join(numbers) or 'none'}",
            ),
        )
        self.port = str(matching[0]["port"])
        self._port_name = matching[0].get("name") or ""

    def endpoints(self) -> tuple[int, int]:
        """Return the number of ready addresses, and of all addresses."""
        slices = self._slices()
        ready = [endpoint for piece in slices for endpoint in _ready_endpoints(piece)]
        return len(ready), sum(len(piece.get("endpoints") or ()) for piece in slices)

    def pod_urls(self, *, is_inside: bool) -> dict[str, str]:
        """Return the address of each ready pod by its name; through the API server from outside."""
        urls = {}
        for piece in self._slices():
            ports = [
                port["port"]
                for port in piece.get("ports") or ()
                if (port.get("name") or "") == self._port_name
            ]
            for endpoint in _ready_endpoints(piece):
                pod, host = (endpoint.get("targetRef") or {}).get("name"), endpoint["addresses"][0]
                if not ports or not pod:
                    continue
                url = f"http://{f'[{host}]' if ':' in host else host}:{ports[0]}"
                if not is_inside:
                    path = f"{PODS.path(self.namespace)}/{pod}:{ports[0]}/proxy"
                    url = f"{self._cluster.client.configuration.host}{path}"
                urls[pod] = url
        return urls

    def _slices(self) -> list[dict[str, Any]]:
        return self._api.list_objects(
            ENDPOINT_SLICES.path(self.namespace),
            ENDPOINT_SLICES.plural,
            labelSelector=f"kubernetes.io/service-name={self.name}",
        )

    def deployment(self) -> Deployment | None:
        """Return the Deployment whose pods the Service selects; None unless there is just one."""
        if not self._selector:
            return None
        names = [
            name
            for name, template in pod_templates(self._cluster).items()
            if self._selector.items() <= (template["metadata"].get("labels") or {}).items()
        ]
        return Deployment(self._cluster, names[0]) if len(names) == 1 else None

    def url(self) -> str:
        """Return the URL of the Service inside the cluster's network."""
        return f"http://{self.name}.{self.namespace}.svc:{self.port}{self.path}"

    def proxy_access(self) -> ProxyAccess:
        """Return the access through the API server.

        UsageError with client certificates, which the load does not support.
        """
        settings: Any = self._cluster.client.configuration
        headers = credentials(settings)
        checks.raise_first_mistake(
            (
                settings.cert_file and not headers,
                "the kubeconfig has a client certificate, which a load test does not support",
                "use a kubeconfig with a token, run it in the cluster, or load the URL of a kubectl"
                " port-forward",
            )
        )
        path = service_path(self.namespace, self.name, self.port)
        url = f"{settings.host}{path}{self.path}"
        return ProxyAccess(url, headers, settings.ssl_ca_cert or "")


def _ready_endpoints(piece: dict[str, Any]) -> list[dict[str, Any]]:
    """Return those of an EndpointSlice that are ready; without the condition, as in Kubernetes."""
    return [
        endpoint
        for endpoint in piece.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready") is not False
    ]
