"""The `ftlab` command, and `python -m ftlab`. What it needs takes a moment to import; Ctrl-C ends that in order."""

from __future__ import annotations

import os
import signal
import threading


def main() -> None:
    """Runs the command line."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    # Where the shell has it ignored, as for what runs in the background, it stays ignored.
    ends = in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ends:
        signal.signal(signal.SIGINT, _leave)
    from ftlab import cli

    made = cli.app(cli.asked())
    try:
        if ends:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        cli.main(made)
    except KeyboardInterrupt:
        _leave()


def _leave(*_: object) -> None:
    """Ends the process at once: nothing has been begun, and what is being imported might catch an exception."""
    os.write(2, b"ftlab: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
