"""Entries that give the words of another: the same answers under two models' names."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from hk_fs_bench.runs import Key

# Two models give a short answer alike by chance, a long one hardly ever.
_LONG = 100
# Of an entry's long answers, and at least so many of them.
_SHARE, _FEWEST = 0.5, 10
# Entries that are remembered for one answer; a crowd that says the same costs no more.
_MOST = 20


@dataclass(frozen=True)
class Echo:
    """An entry's long answers: `same` of all `of` are the other entry's, word for word.

    `every`: so are all its answers, short ones too.
    """

    other: str
    same: int
    of: int
    every: bool

    @property
    def told(self) -> str:
        """In words, for a reader."""
        if self.every:
            return f"gives the very answers of {self.other}, all of them word for word"
        return f"gives {self.same} of its {self.of} long answers word for word as {self.other} does"


def words_of(rows: Mapping[Key, Mapping[str, Any]]) -> dict[str, Any]:
    """What tells one model's words from another's, whatever stands beside them.

    Returns:
        `every`: one hash of all outputs, in whatever order; `long`: a short hash of each long one.
    """
    told = sorted((*key, row.get("output") or "") for key, row in rows.items())
    long = {(item, text.strip()) for *_, item, _, _, text in told if len(text.strip()) >= _LONG}
    return {
        "every": _hash(repr(told)),
        "long": sorted(_hash(f"{item} {text}")[:12] for item, text in long),
    }


def echoes(entries: Iterable[tuple[str, str, Mapping[str, Any]]]) -> dict[str, Echo]:
    """Entries whose words are those of one before them that has another model's name.

    Args:
        entries: (slug, model, `words_of` its rows), the oldest first.
    """
    found: dict[str, Echo] = {}
    every: dict[str, tuple[str, str]] = {}
    said: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for slug, model, words in entries:
        long = words["long"]
        shared = Counter(
            other for one in long for other, whose in said[one] if whose != model
        ).most_common(1)
        first, whose = every.setdefault(words["every"], (slug, model))
        if whose != model:
            found[slug] = Echo(first, len(long), len(long), True)
        elif shared and len(long) >= _FEWEST and shared[0][1] >= _SHARE * len(long):
            found[slug] = Echo(*shared[0], len(long), False)
        for one in long:
            if len(said[one]) < _MOST:
                said[one].append((slug, model))
    return found


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
