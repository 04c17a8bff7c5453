"""Entries that give the words of another: the same answers under two models' names."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
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
class Speaker:
    """An entry: its model, and what it said. One `line` is an entry and its own corrections."""

    slug: str
    model: str
    line: str
    words: Mapping[str, Any]


@dataclass(frozen=True)
class Echo:
    """`same` of an entry's `of` long answers are, word for word, the other entry's too.

    `every`: so are all its answers, short ones too.
    """

    other: str
    same: int
    of: int
    every: bool

    @property
    def told(self) -> str:
        """In words, for a reader; who had them first is not known."""
        shares = (
            f"{self.same} of its {self.of} long answers are word for word those of {self.other}"
        )
        return f"{shares}, another model's"


def words_of(rows: Mapping[Key, Mapping[str, Any]]) -> dict[str, Any]:
    """What tells one model's words from another's, whatever stands beside them.

    Returns:
        `every`: one hash of all outputs, in whatever order; `long`: a short hash of each long one
        that was given once, for what is said to every question tells nothing.
    """
    told = sorted((*key, row.get("output") or "") for key, row in rows.items())
    long = Counter(text.strip() for *_, text in told if len(text.strip()) >= _LONG)
    return {
        "every": _hash(repr(told)),
        "long": sorted(_hash(text)[:12] for text, times in long.items() if times == 1),
    }


def echoes(speakers: Sequence[Speaker]) -> dict[str, Echo]:
    """Each entry whose words another entry with another model's name has too."""
    said: dict[str, list[Speaker]] = defaultdict(list)
    for own in speakers:
        for one in own.words["long"]:
            if len(said[one]) < _MOST:
                said[one].append(own)
    by_slug = {own.slug: own for own in speakers}
    found: dict[str, Echo] = {}
    for own in speakers:
        long = own.words["long"]
        shared = Counter(
            other.slug for one in long for other in said[one] if _are_two(own, other)
        ).most_common(1)
        if shared and len(long) >= _FEWEST and shared[0][1] >= _SHARE * len(long):
            slug, same = shared[0]
            every = own.words["every"] == by_slug[slug].words["every"]
            found[own.slug] = Echo(slug, same, len(long), every)
    return found


def _are_two(one: Speaker, two: Speaker) -> bool:
    return one.line != two.line and one.model.lower() != two.model.lower()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
