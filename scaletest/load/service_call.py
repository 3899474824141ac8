"""The call that reaches a Service of a cluster."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from scaletest.cluster.service import Service
from scaletest.load.http_call import HttpCall
from scaletest.model.errors import UsageError

IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
PROXIED = "reached through the API server: its proxy adds latency and has a ceiling of its own"


def reach(service: Service, make_call: Callable[[str], HttpCall], *, is_inside: bool) -> HttpCall:
    """Return the call: straight inside the cluster, else by the API server, see PROXIED."""
    if is_inside:
        return make_call(service.url())
    access = service.proxy_access()
    call = make_call(access.url)
    if any(name.lower() == "authorization" for name in call.headers):
        raise UsageError(
            "the API server's proxy keeps the Authorization header for itself",
            hint=(
                "load from inside the cluster, as with <agent_jobs> IMAGE, or the URL of a"
                " kubectl port-forward"
            ),
        )
    headers = {**call.headers, **access.headers}
    return replace(call, headers=headers, ca_file=access.ca_file)
