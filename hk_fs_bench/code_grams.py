"""Runs of words that a text shares with the Code, found without holding the Code's text.

`data/code_12grams.bin` is the sorted set of 6-byte BLAKE2b digests of the Code's 12-word runs.
With n digests a run that isn't in the Code is taken for one with probability n / 2**48: about
3e-10 for the 2024 edition, 1 in 20,000 over the whole dataset.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import resources
from pathlib import Path

from hk_fs_bench.quantities import words_of

RUN = 12
DIGEST_BYTES = 6


def _digest(words: Iterable[str]) -> bytes:
    return hashlib.blake2b(" ".join(words).encode(), digest_size=DIGEST_BYTES).digest()


def _runs(text: str) -> Iterator[list[str]]:
    words = words_of(text)
    for start in range(len(words) - RUN + 1):
        yield words[start : start + RUN]


def grams_of_pdf(pdf: Path) -> bytes:
    """The digests of `pdf`, sorted and joined: the content of the committed file."""
    from hk_fs_bench.code_pdf import read_lines

    text = "\n".join(line.text for line in read_lines(pdf))
    return b"".join(sorted({_digest(run) for run in _runs(text)}))


@lru_cache(maxsize=1)
def load_grams() -> frozenset[bytes]:
    """The committed digests."""
    data = resources.files("hk_fs_bench").joinpath("data", "code_12grams.bin").read_bytes()
    return frozenset(data[i : i + DIGEST_BYTES] for i in range(0, len(data), DIGEST_BYTES))


def shared_run(text: str, grams: frozenset[bytes] | None = None) -> str | None:
    """The first run of 12 words that `text` shares with the Code, or None."""
    known = load_grams() if grams is None else grams
    return next((" ".join(run) for run in _runs(text) if _digest(run) in known), None)


def shared_run_beyond(text: str, words: int) -> str | None:
    """A run of more than `words` words that `text` shares with the Code, or None.

    `words` is at least 11. A run that long holds several runs of 12 in a row, so not all of them
    are looked up: one in every `words` - 10 can't be missed.
    """
    own = words_of(text)
    grams = load_grams()
    starts = len(own) - RUN + 1

    def shared(start: int) -> bool:
        return 0 <= start < starts and _digest(own[start : start + RUN]) in grams

    for start in range(0, starts, words - RUN + 2):
        if not shared(start):
            continue
        first, last = start, start
        while shared(first - 1):
            first -= 1
        while shared(last + 1):
            last += 1
        if last - first + RUN > words:
            return " ".join(own[first : last + RUN])
    return None
