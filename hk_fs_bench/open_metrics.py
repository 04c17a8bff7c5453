"""The text metrics of open answers, for several runs at once.

One pass for all runs is what makes them affordable: one METEOR for all, every distinct text
tokenized, embedded and aligned once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hk_fs_bench.errors import UserError
from hk_fs_bench.metrics import citations, keypoints, pair_cache, text
from hk_fs_bench.metrics.bertscore import LAYERS, MODEL, BertScorer
from hk_fs_bench.metrics.common import Scored, Unavailable
from hk_fs_bench.metrics.encoder import Encoder
from hk_fs_bench.schema import OEQItem
from hk_fs_bench.stats import Pooled
from hk_fs_bench.stats.estimate import undefined

if TYPE_CHECKING:
    from hk_fs_bench.judging import Judge

OPTIONAL = ("bleu", "meteor", "rouge", "bertscore", "citations")
DEFAULT = ("bleu", "meteor", "rouge", "citations")
_OVERLAP = {"bleu": "bleu4", "meteor": "meteor", "rouge": "rouge_l"}
_GROUNDING = ("cites", "citations_exist", "citations_hit")
# A shorter answer has no 4-gram: its BLEU-4 is near 0 even where it equals the reference.
_SHORTEST_FOR_BLEU4 = 4
NOT_ASKED = "not asked for; --metrics names what is computed"

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Wanted:
    """Which metrics to compute; `bertscore` is a model and its layer, None for the usual one;
    `judge` says which key points an answer makes."""

    metrics: tuple[str, ...] = ("citations",)
    bertscore: tuple[str, int | None] = (MODEL, LAYERS)
    judge: Judge | None = None


@dataclass(frozen=True)
class System:
    """The answered rows of one run's open task, and where that run lies."""

    folder: Path
    rows: Sequence[Row]


def wanted(
    metrics: str, model: str | None = None, layers: int | None = None, judge: Judge | None = None
) -> Wanted:
    """The metrics that a command names, with commas; "all" and "none" too.

    Raises:
        UserError: a name that is none, or options that don't go together.
    """
    words = metrics.replace(",", " ").split()
    names = [name for name in words if name != "none"]
    if not words or ("none" in words and names):
        raise UserError(
            f'--metrics "{metrics}" says nothing clear; name {", ".join(OPTIONAL)}, or all, or '
            "none alone"
        )
    if unknown := [name for name in names if name not in (*OPTIONAL, "all")]:
        raise UserError(
            f"no metric {', '.join(unknown)}; --metrics takes {', '.join(OPTIONAL)}, all or none"
        )
    chosen = OPTIONAL if "all" in names else tuple(dict.fromkeys(names))
    if model is not None and not model.strip():
        raise UserError("--bertscore-model is empty; name a folder or a Hub id")
    if layers is not None and layers < 1:
        raise UserError(f"--bertscore-layers {layers} is no layer; they count from 1")
    if model is not None and "bertscore" not in chosen:
        chosen = (*chosen, "bertscore")
    if layers is not None and "bertscore" not in chosen:
        raise UserError("--bertscore-layers is of BERTScore: add --metrics bertscore")
    if model is None:
        return Wanted(chosen, (MODEL, layers or LAYERS), judge)
    return Wanted(chosen, (model, layers), judge)


@dataclass
class OpenScores:
    """The metrics of one run's open answers. `rows` are the answered rows with a usable reference,
    in the order of each metric's own rows."""

    rows: list[Row]
    metrics: dict[str, Scored | Unavailable] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    rescaled: dict[str, float] = field(default_factory=dict)

    @property
    def questions(self) -> list[str]:
        return [row["item_id"] for row in self.rows]

    def pooled(self, name: str) -> Pooled:
        """A metric's sums by question; ValueError where it could not be had."""
        scored = self.metrics[name]
        if isinstance(scored, Unavailable):
            raise ValueError(f"{name}: {scored}")
        return scored.pooled(self.questions)

    def figures(self) -> dict[str, Any]:
        """`metrics`: each as a figure; `texts`: what was counted on the way."""
        found = {}
        for name, scored in self.metrics.items():
            if isinstance(scored, Unavailable):
                found[name] = undefined(str(scored)).to_json()
            else:
                found[name] = scored.estimate(self.questions).to_json()
            if name in self.rescaled:
                found[name]["rescaled"] = self.rescaled[name]
        return {"metrics": found, "texts": self.counts}

    def of_rows(self) -> list[dict[str, float | None]]:
        """Each row's own value of every metric that could be had."""
        had = {name: s.rows for name, s in self.metrics.items() if isinstance(s, Scored)}
        return [{name: values[i] for name, values in had.items()} for i in range(len(self.rows))]


def score_open(
    systems: Sequence[System], items: Mapping[str, OEQItem], wanted: Wanted
) -> list[OpenScores]:
    """The wanted metrics of each run's answered rows; the others say that nobody asked."""
    found = []
    for rows in (system.rows for system in systems):
        usable = [r for r in rows if not text.is_empty(items[r["item_id"]].reference_answer)]
        answers = [row["answer"] for row in usable]
        lengths = [len(text.clean(a).split()) for a in answers if not text.is_empty(a)]
        counts = {
            "answers": len(rows),
            "empty_reference": len(rows) - len(usable),
            "empty": sum(map(text.is_empty, answers)),
            "truncated": sum(
                row["status"] == "truncated" and not text.is_empty(row["answer"]) for row in usable
            ),
            "cut": sum(map(text.is_cut, answers)),
            "too_short_for_bleu4": sum(n < _SHORTEST_FOR_BLEU4 for n in lengths),
        }
        found.append(OpenScores(list(usable), counts=counts))
    pairs = [
        [text.Pair(row["answer"], (items[row["item_id"]].reference_answer,)) for row in one.rows]
        for one in found
    ]
    _overlap(found, pairs, [_OVERLAP[name] for name in wanted.metrics if name in _OVERLAP])
    _bertscore(found, pairs, wanted)
    _grounding(found, items, "citations" in wanted.metrics)
    if wanted.judge is not None:
        _key_points(systems, found, items, wanted.judge)
    return found


def _overlap(
    found: Sequence[OpenScores], pairs: Sequence[Sequence[text.Pair]], names: Sequence[str]
) -> None:
    scored = text.overlap(pairs, names) if names else [{} for _ in found]
    for one, metrics in zip(found, scored, strict=True):
        for name in _OVERLAP.values():
            one.metrics[name] = metrics.get(name, Unavailable(NOT_ASKED))


def _bertscore(
    found: Sequence[OpenScores], pairs: Sequence[Sequence[text.Pair]], wanted: Wanted
) -> None:
    column = "bertscore_f1"
    lack: Unavailable | None = Unavailable(NOT_ASKED)
    if "bertscore" in wanted.metrics:
        try:
            scorer = BertScorer(Encoder(*wanted.bertscore), pair_cache.default_path())
            column, scores, lack = scorer.column, scorer.score(pairs), None
        except Unavailable as why:
            lack = why
    for i, one in enumerate(found):
        if lack is not None:
            one.metrics[column] = lack
            continue
        one.metrics[column] = scores[i].metric
        one.counts["beyond_encoder"] = scores[i].truncated
        if (rescaled := scores[i].rescaled) is not None:
            one.rescaled[column] = rescaled


def _grounding(found: Sequence[OpenScores], items: Mapping[str, OEQItem], asked: bool) -> None:
    for one in found:
        if not asked:
            one.metrics |= {name: Unavailable(NOT_ASKED) for name in _GROUNDING}
            continue
        texts = ["\n".join(filter(None, (row["answer"], row["reason"]))) for row in one.rows]
        own = [items[row["item_id"]].references for row in one.rows]
        one.metrics |= citations.grounding(texts, own)


def _key_points(
    systems: Sequence[System],
    found: Sequence[OpenScores],
    items: Mapping[str, OEQItem],
    judge: Judge,
) -> None:
    from hk_fs_bench.judging import Query
    from hk_fs_bench.runs import key_of

    queries = [
        Query(system.folder, key_of(row), keypoints.prompt(items[row["item_id"]], row["answer"]))
        for system, one in zip(systems, found, strict=True)
        for row in one.rows
        if keypoints.needs_judge(items[row["item_id"]], row["answer"])
    ]
    replies = dict(zip(queries, judge.ask(queries), strict=True))
    asked = iter(queries)
    for one in found:
        verdicts: list[keypoints.Verdict | None] = []
        for row in one.rows:
            item, verdict = items[row["item_id"]], None
            if needed := keypoints.needs_judge(item, row["answer"]):
                verdict = keypoints.read_verdict(replies[next(asked)], len(item.key_points or []))
            one.counts["unjudged"] = one.counts.get("unjudged", 0) + (needed and verdict is None)
            verdicts.append(verdict)
        one.metrics |= keypoints.coverage(one.rows, items, verdicts, judge.signature)
