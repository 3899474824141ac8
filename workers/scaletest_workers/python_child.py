"""The process of a workload in Python: imports and makes it once, and runs it for each request.

    python -m scaletest_workers.python_child MODULE:NAME [WORD...]

A request is [ARGUMENTS, DEVICE]; with null for the arguments it only makes the workload.
"""

import importlib
import importlib.util
import inspect
import json
import math
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from scaletest.documents.typed_arguments import TypedArguments
from scaletest.model.checks import cut_text
from scaletest.model.errors import InvalidValue, NoDevice, ScaletestError, suggestion
from scaletest.model.wording import as_options
from scaletest.model.workload import Device
from scaletest_workers.child_answers import Answer, answer_requests

# Figures of one request.
MOST_FIGURES = 64
# Bytes of JSON of a value that a request returns.
MOST_VALUE_BYTES = 64 * 1024
# Larger whole numbers are no longer exact in JSON's readers.
LARGEST_WHOLE = 2**53


class PythonSession:
    """One workload. It is made with the first request, and again when that failed."""

    def __init__(self, reference: str, options: Sequence[str]) -> None:
        """Prepare to make what MODULE:NAME or FILE.py:NAME names, with these words of a worker."""
        self._reference = reference
        self._options = tuple(options)
        self._run: Callable[[tuple[str, ...], Device | None], object] | None = None

    def answer(self, request: tuple[list[str] | None, dict[str, str] | None]) -> Answer:
        """Run one request; return its figures and its value, or an error with its reason."""
        texts, fields = request
        device = Device(**fields) if fields else None
        try:
            if self._run is None:
                self._run = self._make_workload(device)
            returned = None if texts is None else self._run(tuple(texts), device)
            return read_result(returned, self._reference)
        except ScaletestError as error:
            hint = f" ({error.hint})" if error.hint else ""
            text = as_options(f"{error.message}{hint}")
            return {"error": text, "no_device": isinstance(error, NoDevice)}
        except MemoryError as error:
            # what is left of its memory is in pieces: the next request gets another process
            text = f"out of memory: {error}".removesuffix(": ")
            return {"error": text, "figures": {"memory_limit_hits": 1}, "last": True}
        except SystemExit:
            raise
        except BaseException as error:  # CancelledError of asyncio, KeyboardInterrupt
            traceback.print_exc()
            return {"error": describe_error(error), "unavailable": isinstance(error, ImportError)}

    def _make_workload(
        self, device: Device | None
    ) -> Callable[[tuple[str, ...], Device | None], object]:
        """Return what runs requests: the method `run` of the class, or the function."""
        name = self._reference
        subject = load(name)
        if not inspect.isclass(subject):
            options = self._options
            arguments = TypedArguments(subject, name)
            return lambda texts, device: _call(subject, arguments, (*options, *texts), device)
        instance = _call(subject, TypedArguments(subject, name), self._options, device)
        run = getattr(instance, "run", None)
        if not callable(run):
            raise InvalidValue(
                f"the class {name} has no method run", hint="run(self, ...) runs one request"
            )
        _refuse_async(run, f"{name}.run")
        method = TypedArguments(run, name)
        return lambda texts, device: _call(run, method, texts, device)


def _call(
    subject: Callable[..., object],
    arguments: TypedArguments,
    texts: tuple[str, ...],
    device: Device | None,
) -> object:
    """Call it with the arguments that these words give."""
    bound = arguments.read(texts, device)
    return subject(*bound.args, **bound.kwargs)


def load(reference: str) -> Callable[..., object]:
    """Return the class or function of MODULE:NAME or FILE.py:NAME.

    InvalidValue when there is none.
    """
    place, _, name = reference.rpartition(":")
    if place.endswith(".py"):
        path = Path(place)
        if not path.is_file():
            raise InvalidValue(f"there is no file {path}", hint="write FILE.py:NAME")
        # it may import its neighbours
        sys.path.insert(0, str(path.resolve().parent))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        try:
            module = importlib.import_module(place)
        except ModuleNotFoundError as error:
            if not f"{place}.".startswith(f"{error.name}."):
                raise  # the module is there, and one that it imports is not
            raise InvalidValue(
                f"there is no module {place}",
                hint="install its package here, or start in the folder that has it",
            ) from error
    subject: Any = module
    for part in name.split("."):
        if not hasattr(subject, part):
            public = [other for other in vars(module) if not other.startswith("_")]
            raise InvalidValue(f"{place} has no {name}", hint=suggestion(name, public))
        subject = getattr(subject, part)
    if not callable(subject):
        raise InvalidValue(
            f"{reference} is neither a class nor a function",
            hint="name a class with a method run, or a function",
        )
    _refuse_async(subject, reference)
    return subject  # type: ignore[no-any-return]


def _refuse_async(subject: object, name: str) -> None:
    """Raise InvalidValue for a function that would only make a coroutine when it is called."""
    if inspect.iscoroutinefunction(subject):
        raise InvalidValue(f"{name} is async", hint="call asyncio.run in a function that is not")


def read_result(returned: object, name: str) -> Answer:
    """Return the figures of what a run returned, and its value where it is more than figures.

    Its numbers and texts by name are figures. InvalidValue for what JSON cannot hold.
    """
    members = returned if isinstance(returned, Mapping) else {}
    is_more = any(isinstance(member, Mapping | list | tuple | None) for member in members.values())
    if returned is None or (isinstance(returned, Mapping) and not is_more):
        return {"figures": _read_figures(members, name)}
    try:
        size = len(json.dumps(returned, allow_nan=False).encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidValue(
            f"{name} returned what JSON cannot hold: {error}",
            hint="return None, or numbers, texts, lists and mappings of them",
        ) from error
    if size > MOST_VALUE_BYTES:
        raise InvalidValue(
            f"{name} returned {size} bytes of JSON, at most {MOST_VALUE_BYTES} are kept",
            hint="write it to a file, and return its path",
        )
    figures = {key: value for key, value in members.items() if isinstance(value, int | float | str)}
    return {"figures": _read_figures(figures, name), "value": returned}


def _read_figures(members: Mapping[Any, Any], name: str) -> dict[str, float | int | str]:
    """Return these members as figures. InvalidValue where one of them is none."""
    if len(members) > MOST_FIGURES:
        raise InvalidValue(
            f"{name} returned {len(members)} figures",
            hint=f"return None, or at most {MOST_FIGURES} numbers by name",
        )
    return {
        cut_text(str(key), 60): _read_figure(value, f"{name}: {key}")
        for key, value in members.items()
    }


def _read_figure(value: object, name: str) -> float | int | str:
    """Return a value as JSON can hold it. InvalidValue where it cannot."""
    if isinstance(value, str):
        return cut_text(value, 200)
    if isinstance(value, int) and abs(value) <= LARGEST_WHOLE:
        return int(value)
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise InvalidValue(
            f"{cut_text(name, 200)} is an object of type {type(value).__name__}, not a number",
            hint="return a float or an int",
        ) from None
    if not math.isfinite(number):
        raise InvalidValue(
            f"{cut_text(name, 200)} is {number}, not a finite number",
            hint="leave the figure out where there is none",
        )
    return number


def describe_error(error: BaseException) -> str:
    """Describe an exception in a line: type, text, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    try:
        text = " ".join(str(error).split())
    except Exception:  # a workload's own __str__
        text = "its text cannot be written"
    return cut_text(f"{type(error).__name__}: {text}".removesuffix(": ") + where, 600)


if __name__ == "__main__":
    sys.path.insert(0, "")
    answer_requests(PythonSession(sys.argv[1], sys.argv[2:]).answer)
