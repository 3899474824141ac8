"""A class or function of Python as a workload, in a process that stays alive between requests.

The worker itself never imports it: what it does cannot harm the worker.
"""

from dataclasses import asdict

from scaletest.model import Outcome
from scaletest.model.errors import UsageError
from scaletest.model.workload import WORKLOAD_PROCESS
from scaletest.processes.children import python_module
from scaletest_workers.devices import ChosenDevice
from scaletest_workers.workloads.base import PreparedWorkload, Result, WorkloadSetup
from scaletest_workers.workloads.persistent import PersistentChild


class PythonWorkload(PreparedWorkload):
    """Runs what the first word of the worker's command names."""

    def __init__(self, setup: WorkloadSetup) -> None:
        argv = python_module(WORKLOAD_PROCESS, *setup.command)
        self._name = setup.command[0]
        self._child = PersistentChild(self._name, argv, setup)

    def prepare(self, device: ChosenDevice | None) -> None:
        """Import and make it. UsageError when that fails; raises Interrupted."""
        result = self._child.run([None, _fields(device)], 0.0, device)
        if result.outcome is not Outcome.SUCCEEDED:
            self._child.close()
            raise UsageError(
                f"the workload {self._name} cannot start: {result.error}",
                hint=f"try it alone with: scaletest worker --once --workload {self._name}",
            )

    def run(
        self, arguments: tuple[str, ...], limit_s: float, device: ChosenDevice | None
    ) -> Result:
        """Run once; a new process makes it first. Raises Interrupted."""
        fields = _fields(device)
        return self._child.run([arguments, fields], limit_s, device, first=[None, fields])

    def close(self) -> None:
        """End its process."""
        self._child.close()


def _fields(device: ChosenDevice | None) -> dict[str, str] | None:
    """Return the device, as its process reads it behind the arguments of a request."""
    return asdict(device.device) if device else None
