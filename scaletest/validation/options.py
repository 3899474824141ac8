"""The place where a validation runs, which its plan does not hold: a resumed run needs it again."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scaletest.model.errors import UsageError

if TYPE_CHECKING:  # it takes a while to import, and options need none of it
    from scaletest.validation.plan import Plan

# Gives the names of the devices of this machine that workers of a plan share.
Devices = Callable[["Plan"], Sequence[str]]

# Begins the names of queues that belong to one run; on Kubernetes the queue is the Deployment's.
OWN_QUEUE = "validate-"


def new_queue() -> str:
    """Return the name of a queue for one run."""
    return f"{OWN_QUEUE}{uuid.uuid4().hex[:8]}"


@dataclass(frozen=True, slots=True)
class DeploymentOptions:
    """Where on Kubernetes a run takes place; nowhere without a Deployment."""

    deployment: str
    namespace: str
    context: str
    client: str  # svc/NAME[:PORT] or a URL; "" submits from here
    ready_timeout: float  # in seconds
    pause_autoscalers: bool

    def refuse_alone(self) -> None:
        """Raise UsageError for what says where the Deployment is, when there is none."""
        names = ("namespace", "context", "client", "pause_autoscalers")
        given = [name for name in names if getattr(self, name)]
        if given and not self.deployment:
            raise UsageError(
                f"{' and '.join(given)} would have no effect without a Deployment",
                hint="give deployment, too",
            )

    def refuse_local(self, plan: Plan) -> None:
        """Raise UsageError for what only local workers can do, when there is a Deployment."""
        if not self.deployment:
            return
        if plan.per_device:
            raise UsageError(
                "<per_device> is for local workers: the pods of a Deployment share devices as its"
                " template says",
                hint=(
                    "set extraArguments: [--per-device, K] in the queue's values, validate, and"
                    " compare the runs for every K with: scaletest compare"
                ),
            )
        if plan.background or plan.device_glob or plan.preset or plan.command:
            raise UsageError(
                "a command, <device_glob> and background queues are for local workers",
                hint=(
                    "the Deployment says what its workers run: set it there, in the values of the"
                    " chart"
                ),
            )


@dataclass(frozen=True, slots=True)
class ValidationPlace:
    """Here, with a private Redis or that of `redis_url`, or on Kubernetes."""

    local: bool
    redis_url: str | None
    deployment: DeploymentOptions
    no_causes: bool  # local workers do not sample where requests spend their time

    def prepare(self, plan: Plan, devices: Devices, *, is_limited: bool) -> Plan:
        """Return the plan with the devices that its workers share.

        is_limited: whether somebody said how many workers there are at most. UsageError for what
        the plan asks of this place in vain.
        """
        self.deployment.refuse_local(plan)
        if self.deployment.deployment:
            if self.no_causes:
                raise UsageError(
                    "<no_causes> is for local workers",
                    hint="set extraArguments: [--no-causes] in the values of the queue's workers",
                )
            return plan
        count = len(devices(plan))
        if not count or not plan.compares:
            return replace(plan, devices=count)
        most_workers = plan.per_device[-1] * count
        if is_limited and plan.limit < most_workers:
            raise UsageError(
                f"limit is {plan.limit}, fewer than {plan.per_device[-1]} workers on each of"
                f" {count} devices",
                hint="leave it out: a run that compares numbers of workers fills all devices",
            )
        return replace(plan, limit=most_workers, devices=count)
