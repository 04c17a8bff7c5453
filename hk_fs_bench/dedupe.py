"""Items that are too much alike, ask one fact, or give away each other's key."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from hk_fs_bench.errors import UserError
from hk_fs_bench.quantities import quantities, words_of

if TYPE_CHECKING:
    from rich.table import Table

Item = Mapping[str, Any]
Pair = tuple[int, int]
KINDS = ("near-identical", "give-away", "overlapping", "same fact")
_BLOCK = 500


@dataclass(frozen=True)
class Overlap:
    """Two items and what they share; `score` in [0, 1], None where nothing was measured."""

    kind: str
    first: str
    second: str
    score: float | None
    why: str


@lru_cache(maxsize=1)
def settings() -> Mapping[str, Any]:
    """The thresholds of `data/dedupe.yaml`."""
    import yaml

    text = resources.files("hk_fs_bench").joinpath("data", "dedupe.yaml").read_text("utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def find_overlaps(items: Sequence[Item], new: Sequence[Item] = ()) -> list[Overlap]:
    """Everything that two items share too much of, gravest first.

    Args:
        items: MCQ and OEQ as dicts of the dataset's format; only id and question are needed.
        new: candidates; if there are any, only pairs with one of them are reported.
    """
    every = [*items, *new]
    if len(every) < 2:
        return []
    near = _neighbours([_whole(item) for item in every])
    found = [*_alike(every, near), *_same_fact(every), *_given_away(every, near)]
    fresh = {item["id"] for item in new}
    if fresh:
        found = [o for o in found if o.first in fresh or o.second in fresh]
    return sorted(found, key=lambda o: (KINDS.index(o.kind), -(o.score or 0), o.first, o.second))


def table(overlaps: Sequence[Overlap]) -> Table:
    """One row an overlap."""
    from rich.table import Table

    out = Table(title=f"{len(overlaps)} overlaps")
    for column in ("kind", "items", "alike", "why"):
        out.add_column(column, overflow="fold")
    for one in overlaps:
        share = "" if one.score is None else f"{one.score:.2f}"
        out.add_row(one.kind, f"{one.first}, {one.second}", share, one.why)
    return out


def _whole(item: Item) -> str:
    return " ".join(words_of(" ".join([item["question"], *(item.get("choices") or ())])))


def _neighbours(texts: Sequence[str]) -> dict[Pair, float]:
    """Pairs of places whose texts share much of what is rare in the set, with their cosine."""
    try:
        import numpy as np
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError:
        raise UserError("dedupe needs scikit-learn: pip install 'hk-fs-bench[data]'") from None
    limits = settings()
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\S+")
    matrix = vectorizer.fit_transform(texts).astype(np.float32)
    pairs: dict[Pair, float] = {}
    for start in range(0, len(texts), _BLOCK):
        block = (matrix[start : start + _BLOCK] @ matrix.T).tocsr()
        for row in range(block.shape[0]):
            a = start + row
            span = slice(block.indptr[row], block.indptr[row + 1])
            places, cosines = block.indices[span], block.data[span]
            keep = (cosines >= limits["neighbour_cosine"]) & (places != a)
            places, cosines = places[keep], cosines[keep]
            best = np.argsort(-cosines, kind="stable")[: limits["neighbours"]]
            for b, cosine in zip(places[best].tolist(), cosines[best].tolist(), strict=True):
                pairs[min(a, b), max(a, b)] = cosine
    return pairs


def _alike(items: Sequence[Item], near: Mapping[Pair, float]) -> Iterator[Overlap]:
    try:
        from rapidfuzz import fuzz, process
    except ImportError:
        raise UserError("dedupe needs rapidfuzz: pip install 'hk-fs-bench[data]'") from None
    limits = settings()
    pairs = sorted(near)
    wholes = [_whole(item) for item in items]
    stems = [" ".join(words_of(item["question"])) for item in items]

    def ratios(texts: Sequence[str]) -> list[float]:
        firsts, seconds = [texts[a] for a, _ in pairs], [texts[b] for _, b in pairs]
        found: list[float] = process.cpdist(firsts, seconds, scorer=fuzz.token_sort_ratio).tolist()
        return found

    for (a, b), whole, stem in zip(pairs, ratios(wholes), ratios(stems), strict=True):
        one, other = items[a], items[b]
        one_sort = ("choices" in one) == ("choices" in other)
        long = min(stems[a].count(" "), stems[b].count(" ")) + 1 >= limits["stem_words"]
        score = max(whole if one_sort else 0.0, stem if long else 0.0) / 100
        shared = set(one.get("references") or ()) & set(other.get("references") or ())
        if score < limits["overlapping_same_provision" if shared else "overlapping"]:
            continue
        kind = "near-identical" if score >= limits["near_identical"] else "overlapping"
        digits = re.sub(r"\d+", "0", wholes[a]) == re.sub(r"\d+", "0", wholes[b])
        if wholes[a] == wholes[b]:
            why = "the same words"
        else:
            why = "the same but for numbers" if digits else f"“{one['question'][:70]}…”"
        yield Overlap(kind, one["id"], other["id"], round(score, 3), why)


def _same_fact(items: Sequence[Item]) -> Iterator[Overlap]:
    """Each item with the first that asks its fact; two may, if they ask it differently."""
    first: dict[str, Item] = {}
    for item in items:
        fact = item.get("fact_id")
        if fact and fact in first:
            yield Overlap("same fact", first[fact]["id"], item["id"], None, fact)
        elif fact:
            first[fact] = item


def _given_away(items: Sequence[Item], near: Mapping[Pair, float]) -> Iterator[Overlap]:
    """Stems that state another item's key."""
    limits = settings()["give_away"]
    size = limits["key_words"]
    by_run: dict[tuple[str, ...], list[tuple[int, list[str]]]] = defaultdict(list)
    for place, item in enumerate(items):
        key = words_of(_key(item) or "")
        if len(key) >= size:
            by_run[tuple(key[:size])].append((place, key))
    for place, item in enumerate(items):
        stem = words_of(item["question"])
        for start in range(len(stem) - size + 1):
            for asked, key in by_run.get(tuple(stem[start : start + size]), ()):
                if asked == place or stem[start : start + len(key)] != key:
                    continue
                if len(key) >= limits["long_key_words"] or _may_share(items[asked], item):
                    why = f"{item['id']} says “{_key(items[asked])}”, the key of the other"
                    yield Overlap("give-away", items[asked]["id"], item["id"], None, why)
    for (a, b), cosine in sorted(near.items()):
        if cosine >= limits["number_cosine"]:
            yield from _number_given_away(items[a], items[b], cosine)
            yield from _number_given_away(items[b], items[a], cosine)


def _may_share(one: Item, other: Item) -> bool:
    """Whether two items cite one provision, or one of them cites nothing."""
    first, second = set(one.get("references") or ()), set(other.get("references") or ())
    return not first or not second or bool(first & second)


def _number_given_away(asked: Item, telling: Item, cosine: float) -> Iterator[Overlap]:
    key = _key(asked)
    if key is None or not set(asked.get("references") or ()) & set(telling.get("references") or ()):
        return
    numbers = set(quantities(key))
    told = set(quantities(telling["question"])) - set(quantities(asked["question"]))
    if numbers and all(n.unit for n in numbers) and numbers <= told:
        why = f"{telling['id']} says “{key}” on the same provision; does it tell the key?"
        yield Overlap("give-away", asked["id"], telling["id"], round(cosine, 3), why)


def _key(item: Item) -> str | None:
    if not item.get("choices"):
        return None
    key: str = item["choices"]["ABCD".index(item["answer"])]
    return key
