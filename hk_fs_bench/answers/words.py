"""The word lists of data/answer_words.yaml as pieces of regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any

from hk_fs_bench.answers.folding import compat


@cache
def _lists() -> Any:
    import yaml

    path = resources.files("hk_fs_bench").joinpath("data", "answer_words.yaml")
    return yaml.safe_load(path.read_text("utf-8"))


def words(*path: str) -> list[str]:
    """The list at `path`, e.g. words("keys", "strong")."""
    found = _lists()
    for step in path:
        found = found[step]
    return [str(word) for word in found]


def any_of(entries: Iterable[str]) -> str:
    """A pattern for any of `entries`, as whole words where the script has spaces, longest first."""
    # A word may meet text that was folded (NFKC) or text that was not.
    spellings = sorted({form for e in entries for form in (e, compat(e))}, key=len, reverse=True)
    spaced = [word for word in spellings if word[0].isalnum() and not _touches(word)]
    others = [word for word in spellings if word not in spaced]
    parts = [rf"(?<!\w)(?:{'|'.join(map(_pattern, spaced))})"] if spaced else []
    return f"(?:{'|'.join([*parts, *map(_pattern, others)])})"


def _touches(word: str) -> bool:
    """Whether `word` is of a script without spaces, so that it touches its neighbours."""
    return any("\u2e80" <= char <= "\ud7ff" or "\u0e00" <= char <= "\u0eff" for char in word)


def _pattern(word: str) -> str:
    blanks = r"\s+".join(map(re.escape, word.split()))
    return blanks + (r"(?!\w)" if word[-1].isalnum() and not _touches(word) else "")
