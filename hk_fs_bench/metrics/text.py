"""BLEU-4, METEOR and ROUGE-L, as pycocoevalcap defines them, for any texts.

    clean(text)                 one line, no field marks, no half characters
    overlap(systems)            all three, for the answers of several runs at once

pycocoevalcap's tokenizer and METEOR are Java programs that read a line a text; a line break of any
kind inside an answer gives every later answer the wrong reference there. Here each row is scored
as if it were alone, whatever stands in the others.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hk_fs_bench.answers.folding import well_formed
from hk_fs_bench.metrics import meteor
from hk_fs_bench.metrics.common import Scored, Unavailable, library, signature
from hk_fs_bench.metrics.java import Java, resource
from hk_fs_bench.stats.intervals import mean_of_sums

if TYPE_CHECKING:
    from hk_fs_bench.stats.intervals import Floats

OVERLAP = ("bleu4", "meteor", "rouge_l")
# Both programs take quadratic time; an answer of 512 tokens has about 2,500 characters.
LONGEST = 10_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FIELD_MARK = re.compile(r"\|{3,}")

_TOKENIZER = "tokenizer/stanford-corenlp-3.4.1.jar"
_TOKENIZER_CLASS = "edu.stanford.nlp.process.PTBTokenizer"
# Stands between two rows: its quotes close a quoted string that a row leaves open, which the
# tokenizer else reads on into the next rows.
_BETWEEN = "'\"x"


@dataclass(frozen=True)
class Pair:
    """An answer (None where there is none) and the references it is held against."""

    candidate: str | None
    references: tuple[str, ...]


def clean(text: str | None) -> str:
    """`text` as one line without METEOR's field mark, at most LONGEST characters.

    All blanks and line breaks, those of Unicode too, and control characters become single blanks;
    a lone surrogate, which is no character, becomes U+FFFD.
    """
    plain = _FIELD_MARK.sub(" ", _CONTROL.sub(" ", well_formed(text or "")))
    return " ".join(plain.split())[:LONGEST].rstrip()


def is_empty(text: str | None) -> bool:
    """Whether nothing in `text` is a letter or a digit: such an answer has no word to score."""
    return not any(char.isalnum() for char in text or "")


def is_cut(text: str | None) -> bool:
    """Whether `clean` leaves an end of the text out."""
    return len(text or "") > LONGEST and len(" ".join((text or "").split())) > LONGEST


def overlap(
    systems: Sequence[Sequence[Pair]],
    metrics: Iterable[str] = OVERLAP,
    *,
    tokenized: bool = False,
    deadline: float | None = None,
) -> list[dict[str, Scored | Unavailable]]:
    """The named metrics for each run's answers, at corpus level and a row each.

    Every distinct text is tokenized once and every distinct pair aligned once, and METEOR runs
    once for all. An empty answer scores 0. A metric that can't be had is its `Unavailable`.

    Args:
        systems: the answers of each run; every pair has a reference with a word in it.
        tokenized: the texts are tokenized already, words between blanks.
        deadline: seconds for each of the two Java programs.
    """
    names = list(metrics)
    if not any(systems):
        return [dict.fromkeys(names, Unavailable("no answer to count")) for _ in systems]
    with contextlib.ExitStack() as stack:
        aligner: meteor.Meteor | Unavailable | None = None
        if "meteor" in names:
            try:
                # Loading its tables takes METEOR seconds, in which the rest is done.
                aligner = stack.enter_context(meteor.Meteor())
            except Unavailable as lack:
                aligner = lack
        try:
            words = _words(systems, tokenized, deadline)
            name = library("pycocoevalcap")
            library("rapidfuzz")
        except Unavailable as lack:
            return [dict.fromkeys(names, lack) for _ in systems]
        rows = [[_tokens(pair, words) for pair in system] for system in systems]
        tokens = "none" if tokenized else "ptb-3.4.1"
        how = {"tok": tokens, "empty": 0, "longest": LONGEST, "lib": name}
        found: list[dict[str, Scored | Unavailable]] = [{} for _ in systems]
        if "bleu4" in names:
            for into, system in zip(found, rows, strict=True):
                into["bleu4"] = _bleu(system, signature("bleu4", level="corpus", **how))
        if "rouge_l" in names:
            for into, system in zip(found, rows, strict=True):
                into["rouge_l"] = _rouge(system, signature("rouge_l", level="mean", **how))
        if aligner is not None:
            scored = _meteor(rows, aligner, signature("meteor", level="corpus", **how), deadline)
            for into, one in zip(found, scored, strict=True):
                into["meteor"] = one
    return found


Row = tuple[str, tuple[str, ...]]


def _words(
    systems: Sequence[Sequence[Pair]], tokenized: bool, deadline: float | None
) -> Mapping[str, str]:
    """Every distinct text, cleaned → its words."""
    texts = dict.fromkeys(
        clean(text) for system in systems for p in system for text in (p.candidate, *p.references)
    )
    if tokenized:
        return {text: text for text in texts}
    return ptb_tokens(list(texts), deadline)


def _tokens(pair: Pair, words: Mapping[str, str]) -> Row:
    return words[clean(pair.candidate)], tuple(words[clean(text)] for text in pair.references)


def ptb_tokens(texts: Sequence[str], deadline: float | None = None) -> dict[str, str]:
    """Each text → its words between blanks, lower case, without punctuation.

    The Penn Treebank tokenizer of Stanford CoreNLP 3.4.1, with pycocoevalcap's options and its list
    of punctuation. `texts` are lines, as `clean` makes them.

    Raises:
        Unavailable: no Java, no pycocoevalcap, or the deadline.
    """
    jar = resource(_TOKENIZER)
    from pycocoevalcap.tokenizer.ptbtokenizer import PUNCTUATIONS

    # A program of half a second: compiling it twice costs more than it saves.
    arguments = ["-XX:TieredStopAtLevel=1", "-cp", jar.name, _TOKENIZER_CLASS]
    arguments += ["-preserveLines", "-lowerCase"]
    arguments += ["-encoding", "UTF-8"]
    lines = "".join(f"{text}\n{_BETWEEN}\n" for text in texts)
    with Java(jar.parent, [jar.name], arguments) as program:
        out = program.finish(lines, deadline or 120 + 0.1 * len(texts))
    if len(out) != 2 * len(texts) or len(set(out[1::2])) > 1:
        raise Unavailable("the PTB tokenizer lost or made lines, so no row could be trusted")
    return {
        text: " ".join(word for word in line.rstrip().split(" ") if word not in PUNCTUATIONS)
        for text, line in zip(texts, out[::2], strict=True)
    }


def _bleu(rows: Sequence[Row], signed: str) -> Scored:
    """Sums: matches of 1 to 4 words, words of 1 to 4 in the answer, its length, the reference's."""
    import numpy as np
    from pycocoevalcap.bleu.bleu_scorer import cook_test

    sums = []
    for candidate, references in rows:
        counts = cook_test(candidate, _cooked(references))
        length = counts["testlen"]
        closest = min((abs(reference - length), reference) for reference in counts["reflen"])[1]
        sums.append([*counts["correct"], *counts["guess"], length, closest])
    table = np.array(sums, dtype=float).reshape(-1, 10)
    return Scored(signed, _zero_where_empty(rows, bleu4(table).tolist()), table, bleu4)


@lru_cache(maxsize=1024)
def _cooked(references: tuple[str, ...]) -> Any:
    """The n-grams of an item's references; every run is held against the same ones."""
    from pycocoevalcap.bleu.bleu_scorer import cook_refs

    return cook_refs(references)


def bleu4(sums: Floats) -> Floats:
    """BLEU-4 of (..., 10) sums."""
    return bleu(sums, 4)


def bleu(sums: Floats, order: int) -> Floats:
    """BLEU up to `order` words, with pycocoevalcap's smoothing and brevity penalty."""
    import numpy as np

    small, tiny = 1e-9, 1e-15
    correct, guess = sums[..., :order], sums[..., 4 : 4 + order]
    length, reference = sums[..., 8], sums[..., 9]
    precision = ((correct + tiny) / (guess + small)).prod(axis=-1) ** (1 / order)
    ratio = (length + tiny) / (reference + small)
    found: Floats = precision * np.exp(np.minimum(0.0, 1 - 1 / ratio))
    return found


def _rouge(rows: Sequence[Row], signed: str) -> Scored:
    import numpy as np

    values = [_rouge_l(candidate, references) for candidate, references in rows]
    sums = np.array([(value, 1.0) for value in values]).reshape(-1, 2)
    return Scored(signed, values, sums, mean_of_sums)


def _rouge_l(candidate: str, references: Sequence[str]) -> float:
    """ROUGE-L with beta 1.2 and the best precision and recall of all references.

    The longest common subsequence comes from rapidfuzz, which finds that of long texts in
    milliseconds; it is the same number of words.
    """
    if not candidate:
        return 0.0
    from rapidfuzz.distance import LCSseq

    numbers: dict[str, int] = {}
    words = [numbers.setdefault(word, len(numbers)) for word in candidate.split(" ")]
    precision = recall = 0.0
    for reference in references:
        others = [numbers.setdefault(word, len(numbers)) for word in reference.split(" ")]
        common = LCSseq.similarity(words, others)
        precision = max(precision, common / len(words))
        recall = max(recall, common / len(others))
    if not precision:
        return 0.0
    square = 1.2**2
    return (1 + square) * precision * recall / (recall + square * precision)


def _meteor(
    rows: Sequence[Sequence[Row]],
    aligner: meteor.Meteor | Unavailable,
    signed: str,
    deadline: float | None,
) -> Sequence[Scored | Unavailable]:
    import numpy as np

    if isinstance(aligner, Unavailable):
        return [aligner for _ in rows]
    try:
        aligned = aligner.align([row for system in rows for row in system], deadline)
    except Unavailable as lack:
        return [lack for _ in rows]
    signed += f"|{meteor.SIGNATURE}"
    found = []
    for system in rows:
        sums = np.array([aligned[row] for row in system], dtype=float)
        sums = sums.reshape(-1, meteor.STATISTICS)
        values = _zero_where_empty(system, meteor.score(sums).tolist())
        found.append(Scored(signed, values, sums, meteor.score))
    return found


def _zero_where_empty(rows: Sequence[Row], values: Sequence[float]) -> list[float]:
    return [value if row[0] else 0.0 for row, value in zip(rows, values, strict=True)]
