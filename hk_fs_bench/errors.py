"""The one exception that a user's mistake raises."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence

SHOWN = 20


class UserError(Exception):
    """A mistake that the user can mend.

    The text is one line that says what is wrong, where, and how to mend it. Commands print it
    without a traceback and exit with status 2. Where many things of one kind are wrong at once,
    as in a table's rows, `details` has a line for each.
    """

    def __init__(self, message: str, details: Sequence[str] = ()) -> None:
        super().__init__(" ".join(message.split()))
        self.details = [" ".join(line.split()) for line in details]


def run_command(main: Callable[[], int | None]) -> None:
    """Run a command's `main` and exit: its status, 2 on a user's mistake, 130 on Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal or a pipe of another encoding loses a sign, never the run.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        sys.exit(main() or 0)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        for line in error.details[:SHOWN]:
            print(f"  {line}", file=sys.stderr)
        if len(error.details) > SHOWN:
            print(f"  and {len(error.details) - SHOWN} more", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("stopped by Ctrl-C", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output went away (`| head`); not a fault of the run.
        sys.stderr.close()
        sys.exit(1)
