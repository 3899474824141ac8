"""Watches objects of the API server."""

import json
import subprocess
import threading
from collections.abc import Callable
from typing import Any

from hack.kubernetes.plane import ControlPlane
from hack.kubernetes.process import tool

AGAIN_S = 1.0


class Watch:
    """Calls `see` with the kind and the object of each event, on a thread of its own."""

    def __init__(
        self, plane: ControlPlane, path: str, see: Callable[[str, dict[str, Any]], None]
    ) -> None:
        self._line = [
            tool("kubernetes", "kubectl"),
            f"--kubeconfig={plane.kubeconfig}",
            "get",
            "--raw",
            path,
        ]
        self._see = see
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the watch; `see` is not called any more when this returns."""
        with self._lock:
            self._closed.set()
            if self._process:
                self._process.kill()
        self._thread.join()

    def _live(self) -> None:
        # the server ends a watch now and then; a new one begins with all objects, so none is missed
        while not self._closed.is_set():
            with self._lock:
                if self._closed.is_set():
                    return
                self._process = subprocess.Popen(
                    self._line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
                )
            with self._process as process:
                assert process.stdout
                for line in process.stdout:
                    event = json.loads(line)
                    if event["type"] != "ERROR" and not self._closed.is_set():
                        self._see(event["type"], event["object"])
            self._closed.wait(AGAIN_S)
