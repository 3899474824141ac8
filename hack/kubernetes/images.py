"""The images for a real node, as archives."""

import fcntl
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hack.kubernetes.process import ROOT, NotBuilt

IMAGES = ("scaletest", "redis", "pause")


def archives(names: Sequence[str] = IMAGES) -> list[Path]:
    """Build the images, or find them in the folder that SCALETEST_IMAGES names. Raises NotBuilt."""
    if prebuilt := os.environ.get("SCALETEST_IMAGES"):
        return [Path(prebuilt) / f"{name}.tar" for name in names]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "scaletest" / "images" / "archives"
    line = [ROOT / "hack" / "images", "--archive", folder, *names]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second process finds what the first has built
        done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotBuilt(f"hack/images: {done.stderr[-1000:]}")
    return [folder / f"{name}.tar" for name in names]
