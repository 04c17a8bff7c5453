"""Entries that give the words of another: copies under another model's name, or one run twice."""

from __future__ import annotations

import hashlib
import heapq
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Two models give a short answer alike by chance, a long one hardly ever.
_LONG = 100
# Of an entry's long answers, and at least so many of them.
_SHARE, _FEWEST = 0.5, 10
# Times of answers that stand for all of an entry, and how many of them two runs never share.
_TIMES, _SAME_TIMES = 16, 12
# Entries that are remembered for one answer; a crowd that says the same costs no more.
_MOST = 20
# What the text metrics see of an answer: words, without case and punctuation.
_WORD = re.compile(r"\w+")

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Speaker:
    """An entry: its model, and what it said. One `line` is an entry and its own corrections."""

    slug: str
    model: str
    line: str
    words: Mapping[str, Any]


@dataclass(frozen=True)
class Echo:
    """`same` of an entry's `of` long answers are other models' too, most of them `other`'s.

    `every`: so are all its answers, short ones too, and all of them are `other`'s. `again`: it is
    the very run of `other`, its times included.
    """

    other: str
    same: int
    of: int
    every: bool = False
    again: bool = False

    @property
    def told(self) -> str:
        """In words, for a reader; who had them first is not known."""
        if self.again:
            return f"all its answers, and the times that they took, are those of {self.other}"
        return (
            f"{self.same} of its {self.of} long answers have the very words of another model's "
            f"entry, most of them {self.other}'s"
        )


def words_of(parsed: Iterable[Row], raw: Iterable[Row]) -> dict[str, Any]:
    """What tells one run from another, however its answers are written down.

    Args:
        parsed: rows as in items.jsonl, of every task.
        raw: the same as in predictions.jsonl, for the times.

    Returns:
        `every`: one hash of all answers; `long`: a short hash of each long open one that was given
        once, for what is said to every question tells nothing; `times`: some hashes of how long
        answers took, none where most took alike.
    """
    told, long = [], Counter[str]()
    for row in parsed:
        text = " ".join(_WORD.findall(str(row.get("answer") or row.get("value") or "").lower()))
        told.append((row["task"], row["item_id"], row["variant"], row["sample"], text))
        if len(text) >= _LONG:
            long[text] += 1
    return {
        "every": _hash(repr(sorted(told))),
        "long": sorted(_hash(text)[:12] for text, times in long.items() if times == 1),
        "times": _times(raw),
    }


def _times(raw: Iterable[Row]) -> list[str]:
    took = {}
    for row in raw:
        performance = row.get("performance") or {}
        time = performance.get("latency_ms", performance.get("batch_share_ms"))
        if time is not None:
            took[row["task"], row["item_id"], row.get("variant"), row.get("sample")] = time
    if len(set(took.values())) < max(_TIMES, len(took) / 2):
        return []
    return heapq.nsmallest(_TIMES, (_hash(f"{key} {time}")[:12] for key, time in took.items()))


def echoes(speakers: Sequence[Speaker]) -> dict[str, Echo]:
    """Each entry whose words, or whose whole run, another entry has too."""
    said: dict[str, list[Speaker]] = defaultdict(list)
    alike: dict[str, list[Speaker]] = defaultdict(list)
    for own in speakers:
        for one in own.words["long"]:
            if len(said[one]) < _MOST:
                said[one].append(own)
        if len(alike[own.words["every"]]) < _MOST:
            alike[own.words["every"]].append(own)
    found: dict[str, Echo] = {}
    for own in speakers:
        same = alike[own.words["every"]]
        if echo := _of_words(own, said, same) or _of_run(own, same):
            found[own.slug] = echo
    return found


def _of_words(
    own: Speaker, said: Mapping[str, Sequence[Speaker]], same: Sequence[Speaker]
) -> Echo | None:
    long = own.words["long"]
    others = [{two.slug for two in said[one] if _are_two(own, two)} for one in long]
    shared = sum(map(bool, others))
    if len(long) < _FEWEST or shared < _SHARE * len(long):
        return None
    counts = Counter(slug for slugs in others for slug in slugs)
    most = min(counts, key=lambda slug: (-counts[slug], slug))
    return Echo(most, shared, len(long), any(two.slug == most for two in same))


def _of_run(own: Speaker, same: Sequence[Speaker]) -> Echo | None:
    times = set(own.words["times"])
    for two in same:
        if two.line != own.line and len(times & set(two.words["times"])) >= _SAME_TIMES:
            return Echo(two.slug, 0, 0, again=True)
    return None


def _are_two(one: Speaker, two: Speaker) -> bool:
    return one.line != two.line and one.model.lower() != two.model.lower()


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
