"""Payloads of requests: none, one file again and again, or the files of a folder in turn.

All are read before the load begins, so that reading them takes no time while it runs.
"""

from pathlib import Path

from scaletest.model.errors import UsageError

MOST_BYTES = 512 * 1024 * 1024


def read_payloads(path: str) -> list[bytes | None]:
    """Return bodies: of a file, or of all files of a folder by name; [None] without a path.

    UsageError when they cannot be read.
    """
    if not path:
        return [None]
    root = Path(path)
    try:
        files = sorted(filter(Path.is_file, root.iterdir())) if root.is_dir() else [root]
        if sum(file.stat().st_size for file in files) > MOST_BYTES:
            raise UsageError(
                f"the payloads exceed {MOST_BYTES} bytes", hint="give fewer or smaller ones"
            )
        bodies: list[bytes | None] = [file.read_bytes() for file in files]
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", hint="give the path of a payload"
        ) from error
    if not bodies:
        raise UsageError(f"there is no file in {path}", hint="give a folder of payloads")
    return bodies
