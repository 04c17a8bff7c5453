"""Key-point coverage: which points of a complete answer does an answer make, by a judge model.

A judge is a model, and errs as one: its figures are a column of their own, with its name and its
prompt in the signature, and stand beside neither overlap metrics nor human scores.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined

from hk_fs_bench.answers.folding import well_formed
from hk_fs_bench.metrics.common import Scored, Unavailable, signature
from hk_fs_bench.metrics.text import is_empty
from hk_fs_bench.schema import OEQItem
from hk_fs_bench.stats.intervals import mean_of_sums

Verdict = tuple[bool, ...]
NO_POINTS = "not annotated: no item has key points"

_WORDS = {"true": True, "yes": True, "false": False, "no": False}
_FENCE = re.compile(r"={2,}")
_OBJECT = re.compile(r"\{[^{}]*\}")
_REASONING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


@cache
def settings() -> dict[str, Any]:
    """data/judge.yaml: version, max_tokens, template."""
    text = resources.files("hk_fs_bench").joinpath("data/judge.yaml").read_text("utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def prompt(item: OEQItem, answer: str) -> str:
    """What the judge is asked about an answer to `item`, which has key points."""
    environment = Environment(undefined=StrictUndefined, autoescape=False)
    points = [point.text for point in item.key_points or []]
    template = environment.from_string(settings()["template"])
    return template.render(question=item.question, points=points, answer=fenceless(answer))


def fenceless(answer: str) -> str:
    """An answer that can't look as if it ended before the prompt's fence of equals signs."""
    return _FENCE.sub("=", well_formed(answer))


def without_reasoning(text: str) -> str:
    """A judge's reply without the thinking that some write before it."""
    return _REASONING.sub("", text)


def read_verdict(text: str | None, points: int) -> Verdict | None:
    """The judge's word on each point; None unless its last object has one for every point.

    Nothing is guessed: a point without a word, or any other word than true or false, spoils it.
    """
    found = _OBJECT.findall(without_reasoning(text or ""))
    if not found:
        return None
    try:
        held = json.loads(found[-1])
    except (ValueError, RecursionError):
        return None
    if set(held) != {str(n + 1) for n in range(points)}:
        return None
    verdict = [_WORDS.get(str(held[str(n + 1)]).strip().lower()) for n in range(points)]
    return None if None in verdict else tuple(value is True for value in verdict)


def needs_judge(item: OEQItem, answer: str | None) -> bool:
    """Whether there is something to judge; an empty answer makes no point, and nobody is asked."""
    return bool(item.key_points) and not is_empty(answer)


def coverage(
    rows: Sequence[Mapping[str, Any]],
    items: Mapping[str, OEQItem],
    verdicts: Sequence[Verdict | None],
    judge: str,
) -> dict[str, Scored | Unavailable]:
    """Three metrics over answers: `key_points`, `essential_points`, `complete`.

    The mean share of an item's points that the answers make; the same of its essential points; the
    share of answers that make every essential one. Answers without a verdict are left out; empty
    ones make no point.

    Args:
        verdicts: one a row; None where there is none, or none was needed.
        judge: who judged, for the signature.
    """
    import numpy as np

    names = ("key_points", "essential_points", "complete")
    table = np.zeros((3, len(rows), 2))
    for i, (row, verdict) in enumerate(zip(rows, verdicts, strict=True)):
        points = items[row["item_id"]].key_points or []
        if points and not needs_judge(items[row["item_id"]], row["answer"]):
            verdict = (False,) * len(points)
        if verdict is None or not points:
            continue
        essential = [made for made, point in zip(verdict, points, strict=True) if point.essential]
        table[0, i] = sum(verdict) / len(verdict), 1
        if essential:
            table[1, i] = sum(essential) / len(essential), 1
            table[2, i] = all(essential), 1
    if not any(items[row["item_id"]].key_points for row in rows):
        return dict.fromkeys(names, Unavailable(NO_POINTS))
    asked = settings()["template"].encode()
    how = {"judge": judge, "prompt": hashlib.sha256(asked).hexdigest()[:12]}
    how |= {"unjudged": "left out", "v": settings()["version"]}
    return {
        name: Scored(
            signature(name, **how),
            [value if weight else None for value, weight in sums.tolist()],
            sums,
            mean_of_sums,
            is_share=True,
        )
        for name, sums in zip(names, table, strict=True)
    }
