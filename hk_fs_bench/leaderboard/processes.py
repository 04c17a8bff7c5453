"""Work shared out over the cores, which ends at once and in silence when somebody stops it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from typing import TypeVar

Piece = TypeVar("Piece")
Done = TypeVar("Done")

# More than this many processes no system of ours takes, and no board needs.
_MOST = 8


def cores(pieces: int) -> int:
    """How many processes to give so many pieces of work to."""
    return max(1, min(pieces, os.cpu_count() or 1, _MOST))


def each(work: Callable[[Piece], Done], pieces: Sequence[Piece]) -> list[Done]:
    """`work` done on each piece, in their order; in one process where there is only one core.

    Whatever the work raises is raised here, and Ctrl-C ends every process.
    """
    workers = cores(len(pieces))
    if workers < 2:
        return [work(piece) for piece in pieces]
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import active_children

    with ProcessPoolExecutor(workers, initializer=_leave_ctrl_c_to_the_parent) as pool:
        try:
            return list(pool.map(work, pieces))
        except BaseException:
            for child in active_children():
                child.terminate()
            raise


def _leave_ctrl_c_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
