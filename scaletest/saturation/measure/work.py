"""What this process, or each agent, does to a service or a queue."""

from dataclasses import dataclass

from scaletest.broker import Client, connect
from scaletest.load.http import HttpLoad
from scaletest.load.http_call import HttpCall
from scaletest.load.level_load import LevelLoad
from scaletest.load.payloads import Payloads
from scaletest.model.errors import UsageError
from scaletest.observe.control_groups import raise_open_files
from scaletest.saturation.measure.queue_load import QueueLoad


@dataclass(frozen=True, slots=True)
class HttpWork:
    """What this process, or each agent, does to a service."""

    call: HttpCall
    bodies: list[bytes | None]

    def make_load(self, redis_url: str, agent: str = "") -> LevelLoad:
        """Make the load that does it. UsageError when it may not open so many connections."""
        # as many sockets as requests are in flight, and some for everything else
        sockets = self.call.connections + 64
        if raise_open_files(sockets) < sockets:
            raise UsageError(
                f"this process may not open {self.call.connections} connections",
                hint="raise ulimit -n, or give <max_in_flight>",
            )
        return HttpLoad(self.call, Payloads(self.bodies), agent=agent)


@dataclass(frozen=True, slots=True)
class QueueWork:
    """What this process, or each agent, does to a queue."""

    queue: str
    arguments: tuple[str, ...]
    time_limit_s: float
    maximum: int

    def make_load(self, redis_url: str, agent: str = "") -> LevelLoad:
        """Make the load that does it, with a client of its own in each step."""

        def client() -> Client:
            return Client(connect(redis_url), patience_s=60.0)

        return QueueLoad(
            client,
            self.queue,
            arguments=self.arguments,
            time_limit_s=self.time_limit_s,
            maximum=self.maximum,
            agent=agent,
        )


Work = HttpWork | QueueWork
