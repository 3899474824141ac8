"""The process that computes for the workload torch.

A line with a request comes in, and a line with the answer goes out (child_answers.py). It stays
alive between requests, since starting torch and CUDA takes longer than most requests; its parent
ends it when a request must end.
"""

import resource
import sys
import time
from dataclasses import replace
from typing import Any

from scaletest.model.workload import UNAVAILABLE
from scaletest_workers.child_answers import Answer, answer_requests
from scaletest_workers.workloads.torch_options import TorchWork, from_words

try:
    import torch

    from scaletest_workers import torch_models
except (ImportError, OSError) as error:  # OSError: one of its shared libraries cannot be loaded
    if __name__ != "__main__":
        raise
    sys.stderr.write(f"{error}\n")
    sys.exit(UNAVAILABLE)

# Batches that are not measured.
WARM_UP_BATCHES = 2
_LEARNING_RATE = 0.01


class Session:
    """One model with its input on its device, ready to run."""

    def __init__(self, work: TorchWork) -> None:
        """Build the model, and run it until it is warm. LookupError without the device."""
        began = time.monotonic()
        self.device = work.device
        if work.device == "auto":
            self.device = "cuda" if torch.cuda.is_available() else "cpu"
        if self.device == "cuda" and not torch.cuda.is_available():
            raise LookupError("torch finds no CUDA device here")
        torch.manual_seed(1)
        self.model = torch_models.build(work.model).to(self.device).train(work.train)
        self._input = torch_models.sample(work.model, work.batch).to(self.device)
        if work.train:
            optimiser = torch.optim.SGD(self.model.parameters(), _LEARNING_RATE)
            labels = torch.randint(0, torch_models.CLASSES, (work.batch,), device=self.device)

        def run_batch() -> None:
            if not work.train:
                with torch.inference_mode():
                    self.model(self._input)
                return
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(self.model(self._input), labels).backward()
            optimiser.step()

        # the first batches are slow: kernels are chosen, and memory is allocated
        self._run_batch = run_batch
        for _ in range(WARM_UP_BATCHES):
            self._run_batch()
        self.wait()
        self.setup_s = time.monotonic() - began

    def wait(self) -> None:
        """Wait until the device has finished its work."""
        if self.device == "cuda":
            torch.cuda.synchronize()

    def run(self, work: TorchWork) -> dict[str, Any]:
        """Run all batches of one request; return its figures.

        Times are in ms of one batch, and memory in MiB.
        """
        # the device measures its own time between two marks in its queue of work
        marks = []
        if self.device == "cuda":
            marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            torch.cuda.reset_peak_memory_stats()
            marks[0].record()
        began = time.monotonic()
        for _ in range(work.batches):
            self._run_batch()
        if marks:
            marks[1].record()
        self.wait()
        seconds = time.monotonic() - began
        samples = work.batch * work.batches
        figures = {
            "samples": samples,
            "samples_per_s": samples / seconds,
            "batches": work.batches,
            "batch_wall_ms": 1000 * seconds / work.batches,
            "cpu_peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "setup_s": self.setup_s,
        }
        if marks:
            figures["batch_gpu_ms"] = marks[0].elapsed_time(marks[1]) / work.batches
            figures["gpu_peak_mib"] = torch.cuda.max_memory_allocated() / 2**20
        return {
            name: float(f"{figure:.6g}") if isinstance(figure, float) else figure
            for name, figure in figures.items()
        }


class Child:
    """Keeps the session of the last request, for the next one that is like it."""

    def __init__(self) -> None:
        # what the session was made for, with one batch a request
        self._made_for: TorchWork | None = None
        self._session: Session | None = None

    def answer(self, options: list[str]) -> Answer:
        """Run one request; return its figures, or an error with its reason."""
        try:
            work = from_words(options)
            made_for = replace(work, batches=1)
            if self._session is None or made_for != self._made_for:
                # first let go of the last one, whose memory the next one may need
                self._forget()
                self._session = Session(work)
                self._made_for = made_for
            session = self._session
            return {"figures": {**session.run(work), "torch_device": session.device}}
        except LookupError as error:
            return {"error": str(error), "no_device": True}
        except (torch.cuda.OutOfMemoryError, MemoryError) as error:
            self._forget()
            return {
                "error": f"out of memory: {error}".splitlines()[0],
                "figures": {"memory_limit_hits": 1},
            }
        except RuntimeError as error:
            self._forget()
            # the allocator of the CPU has no class of its own
            memory = {"memory_limit_hits": 1} if "allocate memory" in str(error) else {}
            return {"error": str(error).strip().splitlines()[0], "figures": memory}

    def _forget(self) -> None:
        """Give the memory of the session back to the device."""
        self._session = None
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


if __name__ == "__main__":
    answer_requests(Child().answer)
