"""A Service of a cluster as a target: how it is reached, and its autoscalers, which are held."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from scaletest.cluster import connection
from scaletest.cluster.changes import Changes, refuse_changed
from scaletest.cluster.connection import Cluster
from scaletest.cluster.deployment import Deployment
from scaletest.cluster.hold_autoscalers import Autoscalers
from scaletest.cluster.service import Service
from scaletest.load.http_call import HttpCall
from scaletest.load.level_load import LevelLoad
from scaletest.model.errors import UsageError
from scaletest.saturation.measure.pods import WatchedPods
from scaletest.saturation.measure.target import Target, http_call, http_load
from scaletest.saturation.options import AgentOptions, HttpOptions
from scaletest.saturation.plan import SaturationPlan

IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


@dataclass(frozen=True, slots=True)
class NamedService:
    """A Service that options name."""

    service: str  # svc/NAME[:PORT][/PATH]
    may_hold: bool  # whether autoscalers may be held during the run
    is_tuned: bool  # whether this run is one of several that change the Deployment
    http: HttpOptions
    agents: AgentOptions

    def find(self, plan: SaturationPlan) -> Target:
        """Look at the Service; refuse while something scales it."""
        cluster = connection.connect(self.agents.namespace, self.agents.context)
        service = Service(cluster, self.service)
        deployment = service.deployment()
        name = service.reference.name
        ready, total = service.endpoints()
        lines = [f"service {name}: {service.url()}, {ready} of {total} addresses are ready"]
        if not ready:
            raise UsageError(f"no pod of service {name} is ready", hint="look at its pods")
        if deployment is None:
            call = self.reach(service, plan, lines)
            return Target(tuple(lines), http_load(self.http, self.agents, plan, call))
        if not self.is_tuned:
            refuse_changed(deployment)
        autoscalers, scaler_line = scalers(cluster, deployment, self.may_hold)
        replicas = deployment.replicas()
        lines += [f"deployment {deployment.name}: {replicas} replicas", scaler_line]
        start = http_load(self.http, self.agents, plan, self.reach(service, plan, lines))
        changes = Changes(cluster, deployment)

        def start_watched(stack: ExitStack) -> LevelLoad:
            return WatchedPods(start(stack), deployment)

        def hold(stack: ExitStack) -> None:
            # registered first: what was held half-way is put back too
            stack.callback(changes.close)
            autoscalers.hold(replicas, changes)

        return Target(tuple(lines), start_watched, hold, replicas)

    def reach(self, service: Service, plan: SaturationPlan, lines: list[str]) -> HttpCall:
        """Return the call that reaches it: straight inside the cluster, from outside through the
        API server, whose own ceiling is told in a further line.
        """
        if IN_CLUSTER.exists() or self.agents.agent_jobs:
            return http_call(self.http, plan, service.url())
        url, headers, authority = service.proxied()
        call = http_call(self.http, plan, url)
        if any(name.lower() == "authorization" for name in call.headers):
            raise UsageError(
                "the API server's proxy keeps the Authorization header for itself",
                hint=(
                    "run agents in the cluster with <agent_jobs> IMAGE, or load the URL of a"
                    " kubectl port-forward"
                ),
            )
        lines.append(
            "reached through the API server: its proxy adds latency and has a ceiling of its own"
        )
        return replace(call, headers={**call.headers, **headers}, ca_file=authority)


def scalers(cluster: Cluster, deployment: Deployment, may_hold: bool) -> tuple[Autoscalers, str]:
    """Return who scales the Deployment, and what is told of them. UsageError unless they may be
    held.
    """
    autoscalers = Autoscalers(cluster, deployment.name)
    names = ", ".join(map(str, autoscalers.active(may_hold=may_hold)))
    return autoscalers, f"autoscaler: {f'{names}, held for the run' if names else 'none is active'}"
