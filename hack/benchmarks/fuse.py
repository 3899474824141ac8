"""A device with a shared capacity, as a file of a FUSE file system.

It serves a number of reads at a time, and takes some seconds for each.

python -m hack.benchmarks.fuse FOLDER NAME SLOTS SECONDS

mounts it on the folder and prints a line when it is there; it ends, and is unmounted, at the end of
standard input. It speaks the kernel's protocol itself and needs no library, but the right to mount.
"""

import ctypes
import os
import stat
import struct
import sys
import threading
import time

_REQUEST, _REPLY = struct.Struct("=IIQQIIII"), struct.Struct("=IiQ")
_ATTRIBUTES = struct.Struct("=QQQQQQIIIIIIIIII")
_LARGEST_REQUEST = 1 << 18
_LOOKUP, _FORGET, _GETATTR, _OPEN, _READ, _RELEASE, _FLUSH, _INIT = 1, 2, 3, 14, 15, 18, 25, 26
_INTERRUPT, _FORGET_MANY = 36, 42
_DIRECT_IO = 1
_ROOT, _FILE = 1, 2
_NO_ENTRY, _NO_CALL = 2, 38
_DETACH = 2


class SlowFiles:
    """A slow file system. slots: reads served at a time; seconds: how long each takes."""

    def __init__(self, folder: str, name: str, slots: int, seconds: float) -> None:
        self._name, self._seconds = os.fsencode(name), seconds
        self._slots = threading.Semaphore(slots)
        self._channel = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        owner = f"user_id={os.getuid()},group_id={os.getgid()}"
        options = f"fd={self._channel},rootmode=40000,{owner},allow_other"
        library = ctypes.CDLL(None, use_errno=True)
        if library.mount(b"scaletest", os.fsencode(folder), b"fuse", 0, options.encode()):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), folder)

    def serve(self) -> None:
        """Answer until the file system is unmounted."""
        while True:
            try:
                request = os.read(self._channel, _LARGEST_REQUEST)
            except OSError:
                return
            _, call, unique, node, *_ = _REQUEST.unpack_from(request)
            body = request[_REQUEST.size :]
            if call == _READ:
                threading.Thread(target=self._read, args=(unique,), daemon=True).start()
            elif call not in (_FORGET, _INTERRUPT, _FORGET_MANY):  # these get no answer
                self._reply(unique, self._answer(call, node, body))

    def _answer(self, call: int, node: int, body: bytes) -> bytes | int:
        """Return what a call gives, or the number of its error."""
        if call == _INIT:
            _, minor, ahead = struct.unpack_from("=III", body)
            return struct.pack(
                "=IIIIHHIIHHI28x", 7, min(minor, 31), ahead, 0, 16, 12, 4096, 1, 1, 0, 0
            )
        if call == _LOOKUP:
            if body.rstrip(b"\0") != self._name:
                return _NO_ENTRY
            return struct.pack("=QQQQII", _FILE, 0, 3600, 3600, 0, 0) + _attributes(_FILE)
        if call == _GETATTR:
            return struct.pack("=QII", 3600, 0, 0) + _attributes(node)
        if call == _OPEN:
            return struct.pack("=QII", 0, _DIRECT_IO, 0)
        if call in (_RELEASE, _FLUSH):
            return b""
        return _NO_CALL

    def _read(self, unique: int) -> None:
        with self._slots:
            time.sleep(self._seconds)
        self._reply(unique, b"x")

    def _reply(self, unique: int, answer: bytes | int) -> None:
        if isinstance(answer, int):
            self._send(unique, b"", -answer)
        else:
            self._send(unique, answer, 0)

    def _send(self, unique: int, body: bytes, error: int) -> None:
        try:
            os.write(self._channel, _REPLY.pack(_REPLY.size + len(body), error, unique) + body)
        except OSError:  # who asked is gone
            return


def unmount(folder: str) -> None:
    """Take it away, also while it is used."""
    ctypes.CDLL(None).umount2(os.fsencode(folder), _DETACH)


def _attributes(node: int) -> bytes:
    mode = stat.S_IFREG | 0o444
    if node == _ROOT:
        mode = stat.S_IFDIR | 0o755
    return _ATTRIBUTES.pack(
        node, 1 << 20, 0, 0, 0, 0, 0, 0, 0, mode, 1, os.getuid(), os.getgid(), 0, 4096, 0
    )


def main() -> None:
    """Serve until the end of standard input."""
    folder, name, slots, seconds = sys.argv[1:]
    device = SlowFiles(folder, name, int(slots), float(seconds))
    threading.Thread(target=device.serve, daemon=True).start()
    print(name, flush=True)
    try:
        sys.stdin.read()
    finally:
        unmount(folder)


if __name__ == "__main__":
    main()
