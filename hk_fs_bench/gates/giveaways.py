"""Gates 3 and 4: what the options give away to a reader who doesn't know the answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from hk_fs_bench.gates.base import LETTERS, Item, key_of, settings, wrong_of
from hk_fs_bench.gates.report import Finding, GateReport
from hk_fs_bench.quantities import quantities, words_of

_CLAUSE_ID = re.compile(r"\b[A-G]\d+(?:\.\d+)+\b|\b(?:Table|Diagram) [A-G]\d")


def key_letters(items: Sequence[Item], report: GateReport) -> None:
    """Gate 3: each letter is the key about equally often, in the set and in large Parts."""
    limits = settings()["keys"]
    for letter in LETTERS:
        share = mean([item["answer"] == letter for item in items])
        report.measure("3 keys", f"key {letter}", share, *limits["share"], n=len(items))
    for part in sorted({item.get("part") or "" for item in items}):
        members = [item for item in items if (item.get("part") or "") == part]
        if len(members) < limits["part_from"]:
            continue
        for letter in LETTERS:
            share = mean([item["answer"] == letter for item in members])
            name = f"key {letter} in Part {part}"
            report.measure("3 keys", name, share, *limits["part_share"], n=len(members))


def _overlap(item: Item) -> Callable[[str], float]:
    stem = set(words_of(item["question"]))
    return lambda option: len(stem & set(words_of(option)))


def likeness(choices: Sequence[str]) -> dict[str, float]:
    """For each option its mean share of words in common with the others (Jaccard)."""
    bags = {choice: set(words_of(choice)) for choice in choices}
    return {
        a: mean([len(bags[a] & bags[b]) / max(1, len(bags[a] | bags[b])) for b in bags if b != a])
        for a in bags
    }


def _likeness(item: Item) -> Callable[[str], float]:
    alike = likeness(item["choices"])
    return lambda option: round(alike[option], 9)


# Ways to answer without knowing, each an order of the options; ties share the credit.
BASELINES: Mapping[str, tuple[Callable[[Item], Callable[[str], float]], bool]] = {
    "longest": (lambda item: len, True),
    "shortest": (lambda item: len, False),
    "most overlap": (_overlap, True),
    "least overlap": (_overlap, False),
    # Distractors made by changing one thing of the key each leave the key in their middle.
    "most like the others": (_likeness, True),
    "least like the others": (_likeness, False),
}
# Gate 4 names these four; the others are shown, for they explain what the probe finds.
ENFORCED = ("longest", "shortest", "most overlap", "least overlap")


def baseline_scores(items: Sequence[Item]) -> dict[str, float]:
    """Accuracy of each way to answer without knowing; a fraction."""
    return {
        name: mean([_credit(item, measure(item), most) for item in items])
        for name, (measure, most) in BASELINES.items()
    }


def _credit(item: Item, measure: Callable[[str], float], most: bool) -> float:
    values = [measure(choice) for choice in item["choices"]]
    best = max(values) if most else min(values)
    picked = [letter for letter, value in zip(LETTERS, values, strict=True) if value == best]
    return 1 / len(picked) if item["answer"] in picked else 0.0


def hedges(text: str) -> int:
    """How many absolute or qualifying words a text has."""
    vocabulary = set(settings()["giveaways"]["hedges"].split())
    return sum(word in vocabulary for word in words_of(text))


COUNTS: Mapping[str, Callable[[str], float]] = {
    "numbers": lambda text: len(quantities(text)),
    "clause ids": lambda text: len(_CLAUSE_ID.findall(text)),
    "hedges": hedges,
}


def giveaways(items: Sequence[Item], report: GateReport) -> None:
    """Gate 4: lengths, overlaps, and the words that right options have more of."""
    limits = settings()["giveaways"]
    for name, score in baseline_scores(items).items():
        report.measure(
            "4 give-aways",
            name,
            score,
            *limits["baseline"],
            n=len(items),
            report_only=name not in ENFORCED,
        )
    band = limits["mean_difference"]
    for name, count in COUNTS.items():
        difference = mean(
            [count(key_of(item)) - mean([count(t) for t in wrong_of(item)]) for item in items]
        )
        title = f"{name}, right minus wrong"
        report.measure("4 give-aways", title, difference, -band, band, n=len(items))


def numeric_order(choices: Sequence[str]) -> list[tuple[float, ...]] | None:
    """The numbers of each option if all four begin with one, else None."""
    if not all(re.match(r"\s*[\d.]", choice) for choice in choices):
        return None
    found = [tuple(number.value for number in quantities(choice)) for choice in choices]
    return found if all(found) else None


def ascending(item: Item) -> Iterator[Finding]:
    """Gate 4: options that are numbers stand in ascending order, so their place tells nothing."""
    values = numeric_order(item["choices"])
    if values and values != sorted(values):
        yield Finding("4 ascending", item["id"], "numeric options don't ascend")


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
