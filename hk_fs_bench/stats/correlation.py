"""Rank correlation, with what it is over."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from hk_fs_bench.stats.estimate import Estimate, undefined
from hk_fs_bench.stats.intervals import SEED, percentiles

if TYPE_CHECKING:
    from hk_fs_bench.stats.intervals import Floats

# Up to here every order of the ranks is looked at; 9! is 362,880.
_EXACT = 9
_RESAMPLES = 2000


def spearman(
    x: Sequence[float],
    y: Sequence[float],
    *,
    unit: str = "pairs",
    clusters: Sequence[Hashable] | None = None,
) -> Estimate:
    """Spearman's rho, the correlation of mean ranks, so that ties are right.

    p is exact (all orders of the ranks) for up to nine pairs without ties, else by the t
    approximation; neither holds where pairs of one cluster depend on each other, and p is then
    left out. The interval is a bootstrap over pairs, or over whole `clusters`.

    Raises:
        ValueError: `x` and `y` of different lengths.
    """
    import numpy as np
    from scipy.stats import rankdata, spearmanr

    if len(x) != len(y):
        raise ValueError(f"{len(x)} values of x and {len(y)} of y")
    n = len(x)
    if n < 3:
        return undefined("needs at least three pairs", n, unit)
    if len(set(x)) == 1 or len(set(y)) == 1:
        return undefined("constant input: one side has a single value", n, unit)
    ranks = np.stack([rankdata(x), rankdata(y)])
    rho = _pearson(ranks)
    p: float | None = None
    test: str | None = None
    if clusters is None:
        if n <= _EXACT and len(set(x)) == n == len(set(y)):
            p, test = _exact_p(ranks, rho), "exact, all orders"
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                p, test = float(spearmanr(x, y).pvalue), "t approximation"
    names = list(range(n)) if clusters is None else list(clusters)
    interval = _interval(np.array([x, y], dtype=float), names)
    over = unit if clusters is None else "clusters"
    how = f"bootstrap over {over}, {_RESAMPLES} draws" if interval else "none: too few to resample"
    more = {} if clusters is None else {"clusters": len(set(names))}
    return Estimate(rho, n, unit, interval, how, p, test, more=more)


def _pearson(ranks: Floats) -> float:
    import numpy as np

    centred = ranks - ranks.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred**2).sum(axis=1)).prod()
    return (
        math.nan if spread == 0 else float(np.clip((centred[0] * centred[1]).sum() / spread, -1, 1))
    )


def _exact_p(ranks: Floats, rho: float) -> float:
    """The share of all orders whose rho is as far from 0."""
    import numpy as np

    n = ranks.shape[1]
    first, mean = ranks[0], (n + 1) / 2
    orders = np.array(list(itertools.permutations(range(1, n + 1))), dtype=np.int8)
    rhos = (orders - mean) @ (first - mean) / ((first - mean) ** 2).sum()
    return float((np.abs(rhos) >= abs(rho) - 1e-9).mean())


def _interval(values: Floats, clusters: Sequence[Hashable]) -> tuple[float, float] | None:
    import numpy as np
    from scipy.stats import rankdata

    members: dict[Hashable, list[int]] = {}
    for i, cluster in enumerate(clusters):
        members.setdefault(cluster, []).append(i)
    groups = [np.array(group) for group in members.values()]
    if len(groups) < 3:
        return None
    generator = np.random.default_rng(SEED)
    found = []
    for drawn in generator.integers(len(groups), size=(_RESAMPLES, len(groups))):
        rows = np.concatenate([groups[i] for i in drawn])
        found.append(_pearson(rankdata(values[:, rows], axis=1)))
    return percentiles(np.array(found))
