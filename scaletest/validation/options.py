"""Where a validation runs, which its plan does not hold: a resumed run needs it again."""

from __future__ import annotations

from dataclasses import dataclass

from scaletest.model import Plan
from scaletest.model.errors import UsageError


@dataclass(frozen=True, slots=True)
class DeploymentOptions:
    """Where on Kubernetes a run takes place; nowhere without a Deployment.

    client: svc/NAME[:PORT] or a URL; "" submits from here. ready_timeout: in seconds.
    """

    deployment: str
    namespace: str
    context: str
    client: str
    ready_timeout: float
    pause_autoscalers: bool

    def refuse_local(self, plan: Plan) -> None:
        """UsageError for what only local workers can do, when there is a Deployment."""
        if not self.deployment:
            return
        if plan.per_device:
            raise UsageError(
                "--per-device is for local workers: the pods of a Deployment share devices as its"
                " template says",
                hint=(
                    "set extraArguments: [--per-device, K] in the queue's values, validate, and"
                    " compare the runs for every K with: scaletest compare"
                ),
            )
        if plan.background or plan.device_glob or plan.preset or plan.command:
            raise UsageError(
                "a command, --device-glob and background queues are for local workers",
                hint=(
                    "the Deployment says what its workers run: set it there, in the values of the"
                    " chart"
                ),
            )


@dataclass(frozen=True, slots=True)
class ValidationPlace:
    """Here, with a private Redis or that of `redis_url`, or on Kubernetes.

    no_causes: local workers do not sample where requests spend their time. device_metrics_url: of
    an exporter that tells them of devices.
    """

    local: bool
    redis_url: str | None
    deployment: DeploymentOptions
    no_causes: bool
    device_metrics_url: str
