"""What the gates share: the settings, and an item's texts and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import resources
from typing import Any

from hk_fs_bench.quantities import Quantity, quantities

Item = Mapping[str, Any]
LETTERS = "ABCD"


@lru_cache(maxsize=1)
def settings() -> Mapping[str, Any]:
    """The thresholds and word lists of `data/gates.yaml`."""
    import yaml

    text = resources.files("hk_fs_bench").joinpath("data", "gates.yaml").read_text("utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def is_mcq(item: Item) -> bool:
    return "choices" in item


def key_of(item: Item) -> str:
    """The text of the right option."""
    text: str = item["choices"][LETTERS.index(item["answer"])]
    return text


def wrong_of(item: Item) -> list[str]:
    """The texts of the wrong options."""
    key = LETTERS.index(item["answer"])
    return [choice for place, choice in enumerate(item["choices"]) if place != key]


def citations(item: Item) -> Iterator[str]:
    """Every reference of an item and of its key points."""
    yield from item.get("references") or ()
    for point in item.get("key_points") or ():
        yield from point["references"]


def texts(item: Item) -> Iterator[tuple[str, str]]:
    """(field, text) for everything of an item that a person reads."""
    for field in ("question", "reference_answer", "explanation"):
        if item.get(field):
            yield field, item[field]
    for letter, choice in zip(LETTERS, item.get("choices") or (), strict=False):
        yield f"option {letter}", choice
    for letter, distractor in (item.get("distractors") or {}).items():
        yield f"distractor {letter}", distractor["why"]
    for place, point in enumerate(item.get("key_points") or (), 1):
        yield f"key point {place}", point["text"]


# The same quantity written otherwise: 1.5 m as 1500 mm, 20% as 0.2.
_SCALES = {"m": 1000.0, "mm": 0.001, "%": 0.01}


def all_scales(found: Iterable[Quantity]) -> set[float]:
    """Values, with lengths in metres and millimetres and percentages as fractions too."""
    out = set()
    for number in found:
        out.add(round(number.value, 9))
        if number.unit in _SCALES:
            out.add(round(number.value * _SCALES[number.unit], 9))
    return out


def numbers_in(*parts: str, words: bool = False) -> set[float]:
    """Numbers in the texts on all scales: in digits, with `words` written out too."""
    return all_scales(number for part in parts for number in quantities(part, words=words))


def growth_factors(found: Iterable[Quantity]) -> set[float]:
    """Factors that percentages stand for in a calculation: "50% more" is 1.5, "20% less" 0.8."""
    shares = [number.value / 100 for number in found if number.unit == "%"]
    return {round(1 + sign * share, 9) for share in shares for sign in (1, -1)}


def word_count(text: str) -> int:
    return len(text.split())


def asked(question: str) -> str:
    """The sentence of a stem that asks: the last with a question mark, else the last."""
    parts = sentences(question)
    marked = [part for part in parts if part.endswith("?")]
    return (marked or parts or [""])[-1]


def sentences(text: str) -> list[str]:
    """The sentences of a text; a point inside a number or an id ends none."""
    return [part for part in re.split(r"(?<=[.?!])\s+(?=[A-Z\"“(])", text.strip()) if part]
