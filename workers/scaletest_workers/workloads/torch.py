"""PyTorch in a process of its own, which keeps torch, the model and the device warm."""

from importlib.util import find_spec

from scaletest.model.errors import InvalidValue, UsageError
from scaletest.processes.children import python_module
from scaletest_workers.devices import ChosenDevice
from scaletest_workers.workloads.base import Result, ServedWorkload, WorkloadSetup, failed_result
from scaletest_workers.workloads.persistent import PersistentChild
from scaletest_workers.workloads.torch_options import from_words


class TorchWorkload(ServedWorkload):
    """Runs the worker's description with the request's changes."""

    def __init__(self, setup: WorkloadSetup) -> None:
        """Check the worker's words. InvalidValue for wrong ones, UsageError without torch."""
        from_words(setup.options)
        if find_spec("torch") is None:
            raise UsageError("torch is not installed here", hint="pip install 'scaletest[torch]'")
        self._options = setup.options
        self._child = PersistentChild(
            "torch", python_module("scaletest_workers.torch_child"), setup
        )

    def run(
        self, arguments: tuple[str, ...], limit_s: float, device: ChosenDevice | None
    ) -> Result:
        """Compute once. Raises Interrupted."""
        options = [*self._options, *arguments]
        try:
            from_words(options)
        except InvalidValue as error:
            return failed_result(error)
        return self._child.run(options, limit_s, device)

    def close(self) -> None:
        """End its process."""
        self._child.close()
