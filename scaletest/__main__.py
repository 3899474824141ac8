"""The program, as the script `scaletest` and as `python -m scaletest`."""

import os
import signal


def main() -> None:
    """Run the program and exit."""
    if os.getpid() == 1:
        # The kernel gives the first process of a container no default action, so that a kubelet's
        # SIGTERM would do nothing until a command has a handler of its own, which takes imports.
        signal.signal(signal.SIGTERM, lambda *_: os._exit(128 + signal.SIGTERM))
    from scaletest.cli import main as program

    program.main()


if __name__ == "__main__":
    main()
