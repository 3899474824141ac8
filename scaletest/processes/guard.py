"""A guard that ends the processes of a parent that was killed.

It is a tiny shell that outlives its parent by a moment. The parent holds the write end of the
guard's standard input. When the parent dies, however it dies, the kernel closes that end, the
shell's `read` returns, and it signals the process group that it was last told of. Then it looks
through /proc for processes that carry the guard's own mark in their environment: that finds a
process that was started but not yet announced, and one that left its group. A shell costs a
megabyte and no Python start-up, and nothing that the parent does (a long C call, a stopped
interpreter) can hold it up.
"""

import os
import subprocess
import uuid
import weakref
from contextlib import suppress
from pathlib import Path
from typing import IO

MARK = "SCALETEST_GUARD"
# $1 mark, $2 signal, $3 directory to remove or empty. Reads group ids line by line; an empty line
# means "no group".
_SCRIPT = r"""
trap '' INT TERM HUP
group=
strike() {
  [ -n "$group" ] && kill -s "$1" -- "-$group" 2>/dev/null
  for file in $(grep -lsa "$MARK_LINE" /proc/[0-9]*/environ 2>/dev/null); do
    pid=${file#/proc/}; pid=${pid%/environ}
    [ "$pid" = "$$" ] || kill -s "$1" "$pid" 2>/dev/null
  done
}
MARK_LINE=$1
while read -r line; do
  # the parent ends in order: one look for strays, and no second one
  [ "$line" = close ] && { group=; strike "$2"; exit 0; }
  group=$line
done
struck=$group
strike "$2"
# again: a process may have been between fork and exec at the first look
sleep 0.2; strike "$2"
sleep 0.8; strike "$2"
[ -n "$3" ] && [ -n "$struck" ] && rm -rf -- "$3"
exit 0
"""


def _release_in_child(stream: IO[bytes] | None) -> None:
    """Let go of a pipe's end in a forked child, whose stream object stays usable."""
    if stream is not None and not stream.closed:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno(), inheritable=False)
        os.close(null)


class Guard:
    """Ends a process group when this process dies.

    Guarded processes must be started with `environment()`, by which strays of them are found.
    """

    def __init__(self, signal_name: str = "KILL", remove: Path | None = None) -> None:
        """Start the guard.

        signal_name: sent to the group. remove: a folder that is deleted when a group was ended.
        """
        self._variable = f"{MARK}_{uuid.uuid4().hex}"
        arguments = [f"{self._variable}=", signal_name, str(remove or "")]
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "scaletest-guard", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={"PATH": os.environ.get("PATH", os.defpath)},
        )

        assert self._process.stdin is not None
        self._stream = self._process.stdin
        # A forked child must not hold the pipe open: the guard would take it for the parent.
        stream = weakref.ref(self._stream)
        os.register_at_fork(after_in_child=lambda: _release_in_child(stream()))

    def environment(self, base: dict[str, str] | None = None) -> dict[str, str]:
        """Return the environment for a guarded process: `base` (default: ours) with the mark."""
        return {**(os.environ if base is None else base), self._variable: "1"}

    def watch(self, group: int | None) -> None:
        """Name the process group to end, None for none. Costs one small write."""
        # a guard that was killed cannot be told: the next command runs without one
        with suppress(OSError):
            os.write(self._stream.fileno(), b"%d\n" % group if group else b"\n")

    def close(self) -> None:
        """End whatever still carries the mark, then the guard."""
        if self._stream.closed:
            return
        with suppress(OSError):  # it was killed
            os.write(self._stream.fileno(), b"close\n")
        self._process.wait()
        self._stream.close()
