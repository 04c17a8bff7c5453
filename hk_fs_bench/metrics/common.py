"""What the metrics share: signatures, one metric's result, and why there may be none."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from hk_fs_bench.stats import Estimate, Pooled, wilson

if TYPE_CHECKING:
    from hk_fs_bench.stats.intervals import Floats

INSTALL = "pip install 'hk-fs-bench[score]'"


class Unavailable(Exception):
    """This machine can't compute a metric; the text says why and how to mend it."""


@dataclass(frozen=True)
class Scored:
    """One metric over the answers of one run.

    `rows` has the value of each answer alone, None where it has none. `sums` and `statistic` are
    what the figure over all of them is made of, as in `stats.Pooled`. `is_share`: it is a share of
    things that are or are not so, not a score. `nothing`: why there may be no figure.
    """

    signature: str
    rows: Sequence[float | None]
    sums: Floats
    statistic: Callable[[Floats], Floats]
    is_share: bool = False
    nothing: str = "no answer to count"

    def pooled(self, clusters: Sequence[Hashable]) -> Pooled:
        return Pooled(self.sums, clusters, self.statistic)

    def estimate(self, clusters: Sequence[Hashable]) -> Estimate:
        """The figure over all answers; `clusters` are the ids of their questions.

        The interval is a bootstrap over questions. A share of questions, one answer each, has
        Wilson's, and so has a share without any variation, which resampling takes for certainty.
        """
        found = self.pooled(clusters).estimate()
        if found.value is None:
            return found.with_(reason=self.nothing, signature=self.signature)
        known = [row for row in self.rows if row is not None]
        one_each = len(known) == found.n and {*known} <= {0.0, 1.0}
        if self.is_share and (one_each or found.ci95 is None):
            found = found.with_(ci95=wilson(found.value * found.n, found.n), interval="wilson")
        return found.with_(signature=self.signature)


def signature(metric: str, **parts: object) -> str:
    """All that decides a figure, in one line, in the manner of sacrebleu's."""
    return "|".join([metric, *(f"{name}:{value}" for name, value in parts.items())])


def library(name: str) -> str:
    """A package with its version, for signatures.

    Raises:
        Unavailable: it is not installed.
    """
    try:
        return f"{name}-{version(name)}"
    except PackageNotFoundError:
        raise Unavailable(f"needs {name}: {INSTALL}") from None
