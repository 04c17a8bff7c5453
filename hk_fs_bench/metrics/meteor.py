"""METEOR 1.5, the English ranking task, by the program that pycocoevalcap brings.

The program aligns each answer with its reference and gives the counts of what it matched; the
score is a formula over them (Denkowski and Lavie 2014, WMT), which adds up over a corpus. Doing the
formula here gives the same values and intervals too, and spares the second round that the
program's own protocol needs, in which it can be made to wait for ever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hk_fs_bench.metrics.common import Unavailable
from hk_fs_bench.metrics.java import Java, resource

if TYPE_CHECKING:
    from hk_fs_bench.stats.intervals import Floats

SIGNATURE = "meteor-1.5|lang:en|norm:yes"
STATISTICS = 23
# Of the task "rank": precision against recall, the penalty's two, content against function words,
# and the matches that are exact, by stem, synonym and paraphrase.
_ALPHA, _BETA, _GAMMA, _DELTA = 0.85, 0.2, 0.6, 0.75
_STAGES = (1.0, 0.6, 0.8, 0.6)

_JAR = "meteor/meteor-1.5.jar"
_PARAPHRASES = "data/paraphrase-en.gz"
_OPTIONS = ("-", "-", "-stdio", "-l", "en", "-norm")

Row = tuple[str, tuple[str, ...]]


class Meteor(Java):
    """One run of the program, which begins to load its tables on entering."""

    def __init__(self) -> None:
        jar = resource(_JAR)
        super().__init__(
            jar.parent, [jar.name, _PARAPHRASES], ["-Xmx2G", "-jar", jar.name, *_OPTIONS]
        )

    def align(
        self, rows: Sequence[Row], deadline: float | None = None
    ) -> dict[Row, tuple[float, ...]]:
        """Each distinct row → its STATISTICS counts.

        Raises:
            Unavailable: the program failed, took longer than `deadline` seconds, or answered
                other than a line a row.
        """
        distinct = list(dict.fromkeys(rows))
        lines = [
            " ||| ".join(("SCORE", *references, candidate)) for candidate, references in distinct
        ]
        assert all("\n" not in line for line in lines)
        out = self.finish("".join(f"{line}\n" for line in lines), deadline or 300 + len(lines))
        try:
            counts = [_counts(line) for line in out]
        except ValueError:
            raise Unavailable("METEOR answered something that is no count") from None
        if len(counts) != len(distinct):
            raise Unavailable(f"METEOR answered {len(counts)} of {len(distinct)} rows")
        return dict(zip(distinct, counts, strict=True))


def _counts(line: str) -> tuple[float, ...]:
    """The counts of a line; no chunk where the whole answer is one, as METEOR adds them up."""
    counts = [float(part) for part in line.split()]
    if len(counts) != STATISTICS:
        raise ValueError(line)
    length, reference, chunks, matched, matched_reference = *counts[:2], *counts[20:]
    if (chunks, matched, matched_reference) == (1, length, reference):
        counts[20] = 0.0
    return tuple(counts)


def score(sums: Floats) -> Floats:
    """METEOR of (..., STATISTICS) sums; 0 where nothing matched.

    The order of the counts: words of the answer and the reference, function words of both; for
    each stage matched content words of both, matched function words of both; chunks, and matched
    words of both.
    """
    import numpy as np

    def weighted(content: Floats, function: Floats) -> Floats:
        return _DELTA * content + (1 - _DELTA) * function

    def side(offset: int) -> Floats:
        """Precision for the answer's counts, recall for the reference's."""
        length, function = sums[..., offset], sums[..., offset + 2]
        matched = sum(
            weight * weighted(sums[..., at + offset], sums[..., at + offset + 2])
            for weight, at in zip(_STAGES, range(4, 20, 4), strict=True)
        )
        found: Floats = matched / weighted(length - function, function)
        return found

    with np.errstate(invalid="ignore", divide="ignore"):
        mean = 1 / ((1 - _ALPHA) / side(0) + _ALPHA / side(1))
        fragments = 2 * sums[..., 20] / (sums[..., 21] + sums[..., 22])
        values = mean * (1 - _GAMMA * fragments**_BETA)
    return np.where((sums[..., 21] > 0) & np.isfinite(values), values, 0.0)
