"""BERTScore by bert_score: raw F1, no idf, as in the paper; roberta-large unless told otherwise.

bert_score's own parts embed and match; what is ours is which texts they see, and when. Every
distinct text is embedded once for all runs, in batches of like lengths; a pair that was scored
before comes from a cache; empty texts, which bert_score can't take, score 0 by rule; texts beyond
the encoder's limit are counted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hk_fs_bench.answers.folding import well_formed
from hk_fs_bench.metrics.common import Scored, signature
from hk_fs_bench.metrics.encoder import Encoder
from hk_fs_bench.metrics.pair_cache import PairCache, Texts, Values
from hk_fs_bench.metrics.text import Pair, is_empty
from hk_fs_bench.stats.intervals import mean_of_sums

if TYPE_CHECKING:
    import torch

    from hk_fs_bench.metrics.encoder import Embedded

MODEL, LAYERS = "roberta-large", 17


def column(encoder: str, layer: object) -> str:
    """The name of an encoder's figures: the usual one's has no suffix."""
    usual = (encoder, str(layer)) == (MODEL, str(LAYERS))
    return "bertscore_f1" if usual else f"bertscore_f1:{encoder}-L{layer}"


@dataclass(frozen=True)
class BertScore:
    """BERTScore of one run: F1 as the metric, (precision, recall, F1) of each answer.

    `truncated` counts the answers of which the encoder saw only the beginning. `rescaled` is the
    mean F1 on the scale where unrelated texts are about 0, None for an encoder whose baseline
    bert_score doesn't bring.
    """

    metric: Scored
    prf: list[Values]
    truncated: int
    rescaled: float | None


class BertScorer:
    """Scores runs with one encoder.

    Args:
        encoder: what embeds the texts.
        cache: a SQLite file of scored pairs; None keeps none.
    """

    def __init__(self, encoder: Encoder, cache: Path | None = None) -> None:
        self.encoder = encoder
        self._cache = cache

    @property
    def column(self) -> str:
        """The name of the figures: another encoder's are another column."""
        return column(self.encoder.name, self.encoder.layers)

    @property
    def signature(self) -> str:
        encoder = self.encoder
        model = f"{encoder.name}@{encoder.revision[:12]}"
        rules = {"layer": encoder.layers, "idf": "no", "rescale": "no", "empty": 0}
        return signature("bertscore_f1", level="mean", model=model, **rules, **encoder.versions)

    def score(self, systems: Sequence[Sequence[Pair]]) -> list[BertScore]:
        """BERTScore of each run's answers; of several references the one of the best F1 counts.

        Every pair has a reference with a word in it.

        Raises:
            Unavailable: the encoder can't be loaded.
        """
        import numpy as np

        pairs = {pair for system in systems for own in system for pair in _texts(own)}
        with PairCache(self._cache, self._cache_key) as cache:
            known = cache.get(pairs)
            if missing := pairs - set(known):
                new = dict(self._computed(missing))
                cache.put(new)
                known |= new
        found = []
        for system in systems:
            prf = [_best(pair, known) for pair in system]
            f1 = [values[2] for values in prf]
            sums = np.array([(value, 1.0) for value in f1]).reshape(-1, 2)
            metric = Scored(self.signature, f1, sums, mean_of_sums)
            texts = [_text(pair.candidate) for pair in system if not is_empty(pair.candidate)]
            cut = sum(map(self.encoder.is_cut, texts))
            found.append(BertScore(metric, prf, cut, self._rescaled(system, f1)))
        return found

    def _rescaled(self, system: Sequence[Pair], f1: Sequence[float]) -> float | None:
        """An empty answer keeps its 0: it is worth no more than an unrelated text."""
        floor = self.encoder.baseline
        if floor is None or not f1:
            return None
        scaled = (
            0.0 if is_empty(pair.candidate) else (value - floor) / (1 - floor)
            for pair, value in zip(system, f1, strict=True)
        )
        return sum(scaled) / len(f1)

    @property
    def _cache_key(self) -> str:
        encoder = self.encoder
        return "|".join([encoder.revision, str(encoder.layers), *encoder.versions.values()])

    def _computed(self, pairs: set[Texts]) -> Iterator[tuple[Texts, Values]]:
        from bert_score.utils import greedy_cos_idf

        references = dict(self.encoder.embed({reference for _, reference in pairs}))
        of_candidate = defaultdict(list)
        for candidate, reference in sorted(pairs):
            of_candidate[candidate].append(reference)
        for candidate, embedded in self.encoder.embed(of_candidate):
            for reference in of_candidate[candidate]:
                found = greedy_cos_idf(*_batch(references[reference]), *_batch(embedded))
                p, r, f = (float(value) for value in found)
                yield (candidate, reference), (p, r, f)


def _text(text: str | None) -> str:
    return well_formed(text or "").strip()


def _texts(pair: Pair) -> list[Texts]:
    """What is to be compared for a pair: nothing where the answer is empty."""
    if is_empty(pair.candidate):
        return []
    return [(_text(pair.candidate), _text(reference)) for reference in pair.references]


def _best(pair: Pair, known: Mapping[Texts, Values]) -> Values:
    return max((known[texts] for texts in _texts(pair)), key=lambda prf: prf[2], default=(0, 0, 0))


def _batch(embedded: Embedded) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A text as the batch of one that bert_score matches: embedding, mask, weights."""
    import torch

    hidden, weights = embedded
    mask = torch.ones(1, len(weights), dtype=torch.bool, device=weights.device)
    return hidden.unsqueeze(0), mask, weights.clone().unsqueeze(0)
