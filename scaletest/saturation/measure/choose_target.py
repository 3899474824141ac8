"""The choice of the target: what the options name, with those of them that it needs."""

from __future__ import annotations

from scaletest.saturation.measure.http_target import NamedUrl
from scaletest.saturation.measure.queue_target import NamedQueue
from scaletest.saturation.measure.service_target import NamedService
from scaletest.saturation.options import SaturationOptions


def choose_target(options: SaturationOptions) -> NamedQueue | NamedService | NamedUrl:
    """Return what the options name; its `find` looks at it, and changes nothing yet."""
    if options.queue:
        return NamedQueue(options.queue, options.arguments, options.http, options.agents)
    if options.cluster.service:
        return NamedService(
            options.cluster.service,
            may_hold=options.cluster.pause_autoscalers,
            is_tuned=bool(options.tune),
            http=options.http,
            agents=options.agents,
        )
    return NamedUrl(options.url, options.http, options.agents)
