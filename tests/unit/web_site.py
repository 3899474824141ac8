"""The client's pages without a network."""

from typing import Any

from flask.testing import FlaskClient

from scaletest.client_page.app import make_app
from scaletest.load import ClosedLoop, Statistics, Steering
from scaletest.model import NodeSample, Outcome, Reason, Record
from scaletest.pages.security import HttpCounts
from tests.unit.fakes import Clock, FakeClient, replied


def _position_and_samples(position: str) -> tuple[str, list[NodeSample]]:
    return "7-1", [NodeSample("n", "w", 7.0, 1.0, {"cpu": {"user": 1.5}})]


class Site:
    """An application over a load that does nothing by itself."""

    def __init__(self, **options: Any) -> None:
        self.clock = Clock(100.0)
        client: Any = FakeClient()
        self.statistics = Statistics("q", clock=self.clock, wall=lambda: 1_700_000_000.0)
        self.loop = ClosedLoop(client, "q", self.statistics.add, observer=None)
        self.steering = Steering(self.loop, self.statistics, load="closed", maximum=16)
        self.counts = HttpCounts()
        self.app = make_app(
            self.steering, self.counts, **{"samples": _position_and_samples, **options}
        )
        self.http: FlaskClient = self.app.test_client()

    def fill(self) -> None:
        """Two nodes, three pods, successes and failures, in four seconds."""
        self.statistics.note_lateness(0.0)
        for number in range(40):
            self.clock.now += 0.1
            place = {"node": f"node-{'ab'[number % 3 == 0]}", "pod": f"pod-{number % 3}"}
            run_s = 0.105 + number / 100
            reply = replied(
                f"c-{number}", **place, device=f"/dev/dri/renderD{128 + number % 2}", run_s=run_s
            )
            self.statistics.add(Record("q", 0, reply, run_s + 0.0125))
        for number in range(3):
            failed = {
                "outcome": Outcome.FAILED,
                "reason": Reason.EXIT,
                "exit_code": 1 + number // 2,
            }
            reply = replied(
                f"f-{number}", **failed, error=f"/bin/x returned error code {1 + number // 2}"
            )
            self.statistics.add(Record("q", 0, reply, 0.6))
