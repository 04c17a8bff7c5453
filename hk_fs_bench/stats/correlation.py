"""Rank correlation, with what it is over."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from hk_fs_bench.stats.estimate import Estimate, check_numbers, undefined
from hk_fs_bench.stats.intervals import RESAMPLES, SEED, Pooled, cluster_bootstrap, percentiles

if TYPE_CHECKING:
    from hk_fs_bench.stats.intervals import Floats

# Up to here every order of the ranks is looked at; 9! is 362,880.
_EXACT = 9
_RESAMPLES = 2000
_PERMUTATIONS = 10_000
# Weights held at a time, in numbers.
_BLOCK = 400_000
POWER = 0.8


def spearman(
    x: Sequence[float],
    y: Sequence[float],
    *,
    unit: str = "pairs",
    clusters: Sequence[Hashable] | None = None,
) -> Estimate:
    """Spearman's rho, the correlation of mean ranks, so that ties are right.

    p is exact (all orders of the ranks) for up to nine pairs without ties, else by the t
    approximation. Neither holds where pairs of one cluster depend on each other: p is then by t
    with a degree of freedom less than there are clusters, from the bootstrap's spread of Fisher's
    z. The interval is a bootstrap over pairs, or over whole `clusters`. `more` has `se_z`, the
    standard error on the scale of Fisher's z (Fieller, Hartley and Pearson 1957, Biometrika
    44:470, without clusters), for `smallest_rho`.

    Raises:
        ValueError: `x` and `y` of different lengths, or a value that is no number.
    """
    import numpy as np
    from scipy.stats import rankdata

    if len(x) != len(y):
        raise ValueError(f"{len(x)} values of x and {len(y)} of y")
    check_numbers(x, y, finite=False)
    n = len(x)
    if n < 3:
        return undefined("needs at least three pairs", n, unit)
    if len(set(x)) == 1 or len(set(y)) == 1:
        return undefined("constant input: one side has a single value", n, unit)
    ranks = np.stack([rankdata(x), rankdata(y)])
    rho = _pearson(ranks)
    names = list(range(n)) if clusters is None else list(clusters)
    drawn = _resampled(np.array([x, y], dtype=float), names)
    interval = None if drawn is None else percentiles(drawn)
    p: float | None
    test: str | None
    if clusters is None:
        p, test = _p(x, y, ranks, rho)
        se = math.sqrt(1.06 / (n - 3)) if n > 3 else None
        over, more = unit, {"se_z": se}
    else:
        groups = len(set(names))
        p, test, se = _cluster_p(rho, drawn, groups)
        over, more = "clusters", {"se_z": se, "clusters": groups}
    how = f"bootstrap over {over}, {_RESAMPLES} draws" if interval else "none: too few to resample"
    if interval and interval[1] - interval[0] < 1e-9:
        # Resampling takes what is alike for certain.
        interval, how = None, f"none: all {over} alike"
    return Estimate(rho, n, unit, interval, how, p, test, more=more)


def spearman_within(
    groups: Sequence[tuple[Sequence[float], Sequence[float]]], *, unit: str = "questions"
) -> Estimate:
    """Spearman's rho inside groups: whether x orders the members of a group as y does.

    The ranks are taken, and centred, within each group, and pooled (a stratified rank
    correlation), so that what all members of a group share does not count. Groups in which x or
    y is constant say nothing and are counted in `constant`. p is by permutation of x within groups
    (10,000 draws), the interval a bootstrap over groups; `more` as in `spearman`.

    Args:
        groups: x and y of each group's members.
    """
    import numpy as np
    from scipy.stats import rankdata

    told = [(x, y) for x, y in groups if len(set(x)) > 1 and len(set(y)) > 1]
    pairs = sum(len(x) for x, _ in told)
    facts: dict[str, object] = {"pairs": pairs, "constant": len(groups) - len(told)}
    if len(told) < 3:
        reason = f"needs at least three {unit} in which neither side is constant"
        return undefined(reason, len(told), unit, **facts)
    ranks = [(rankdata(x) - (len(x) + 1) / 2, rankdata(y) - (len(y) + 1) / 2) for x, y in told]
    sums = np.array([(a @ b, a @ a, b @ b) for a, b in ranks])
    pooled = Pooled(sums, range(len(sums)), _of_products)
    rho = pooled.value
    assert rho is not None
    generator = np.random.default_rng(SEED)
    crossed = np.zeros(_PERMUTATIONS)
    for a, b in ranks:
        crossed += generator.permuted(np.tile(a, (_PERMUTATIONS, 1)), axis=1) @ b
    null = crossed / math.sqrt(sums[:, 1].sum() * sums[:, 2].sum())
    p = float(((np.abs(null) >= abs(rho) - 1e-9).sum() + 1) / (_PERMUTATIONS + 1))
    interval = cluster_bootstrap(pooled)
    how = f"bootstrap over {unit}, {RESAMPLES} draws" if interval else "none: too few to resample"
    if interval and interval[1] - interval[0] < 1e-9:
        # Resampling takes what is alike for certain.
        interval, how = None, f"none: all {unit} alike"
    facts["se_z"] = float(null.std())
    test = f"permutation within {unit}, {_PERMUTATIONS} draws"
    return Estimate(max(-1.0, min(1.0, rho)), len(told), unit, interval, how, p, test, more=facts)


def smallest_rho(se_z: float | None, alpha: float = 0.05) -> float | None:
    """The smallest true rho that a two-sided test at `alpha` finds four times in five.

    Args:
        se_z: the standard error on the scale of Fisher's z; None gives None.
    """
    if se_z is None:
        return None
    from scipy.stats import norm

    return math.tanh(float(norm.ppf(1 - alpha / 2) + norm.ppf(POWER)) * se_z)


def _of_products(sums: Floats) -> Floats:
    import numpy as np

    return sums[..., 0] / np.sqrt(sums[..., 1] * sums[..., 2])


def _pearson(ranks: Floats) -> float:
    import numpy as np

    centred = ranks - ranks.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred**2).sum(axis=1)).prod()
    if spread == 0:
        return math.nan
    rho = float((centred[0] * centred[1]).sum() / spread)
    return math.copysign(1.0, rho) if abs(rho) > 1 - 1e-12 else rho


def _p(x: Sequence[float], y: Sequence[float], ranks: Floats, rho: float) -> tuple[float, str]:
    from scipy.stats import spearmanr

    if len(x) <= _EXACT and len(set(x)) == len(x) == len(set(y)):
        return _exact_p(ranks, rho), "exact, all orders"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        p = float(spearmanr(x, y).pvalue)
    # No test of n ranks can say less than that all but two of their orders are less far from 0.
    return max(p, 2 / math.factorial(min(len(x), 20))), "t approximation"


def _cluster_p(
    rho: float, drawn: Floats | None, clusters: int
) -> tuple[float | None, str | None, float | None]:
    """p, its test, and the standard error of Fisher's z by the bootstrap."""
    import numpy as np
    from scipy.stats import t

    found = np.array([]) if drawn is None else drawn[np.abs(drawn) < 1]
    if drawn is None or len(found) < 0.95 * len(drawn) or abs(rho) >= 1:
        return None, None, None
    se = float(np.arctanh(found).std())
    if se < 1e-9:
        return None, None, None
    p = float(2 * t.sf(abs(math.atanh(rho)) / se, clusters - 1))
    return p, f"t of Fisher's z, bootstrap over {clusters} clusters", se


def _exact_p(ranks: Floats, rho: float) -> float:
    """The share of all orders whose rho is as far from 0."""
    import numpy as np

    n = ranks.shape[1]
    first, mean = ranks[0], (n + 1) / 2
    orders = np.array(list(itertools.permutations(range(1, n + 1))), dtype=np.int8)
    rhos = (orders - mean) @ (first - mean) / ((first - mean) ** 2).sum()
    return float((np.abs(rhos) >= abs(rho) - 1e-9).mean())


def _resampled(values: Floats, clusters: Sequence[Hashable]) -> Floats | None:
    """Rho over each resample of clusters; None with fewer than three."""
    import numpy as np

    place = {cluster: i for i, cluster in enumerate(dict.fromkeys(clusters))}
    if len(place) < 3:
        return None
    of = np.array([place[cluster] for cluster in clusters])
    generator = np.random.default_rng(SEED)
    drawn = generator.integers(len(place), size=(_RESAMPLES, len(place)))
    found = []
    for block in np.array_split(drawn, max(1, _RESAMPLES * len(of) // _BLOCK)):
        counts = np.array([np.bincount(row, minlength=len(place)) for row in block])
        weights = counts[:, of].astype(float)
        x, y = (_mid_ranks(side, weights) for side in values)
        total = weights.sum(axis=1, keepdims=True)
        x, y = (side - (weights * side).sum(axis=1, keepdims=True) / total for side in (x, y))
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.sqrt((weights * x * x).sum(axis=1) * (weights * y * y).sum(axis=1))
            found.append((weights * x * y).sum(axis=1) / spread)
    return np.concatenate(found)


def _mid_ranks(values: Floats, weights: Floats) -> Floats:
    """The mean ranks of `values`, each there as often as its weight says: (draws, values)."""
    import numpy as np

    distinct, inverse = np.unique(values, return_inverse=True)
    starts = np.searchsorted(np.sort(values), distinct)
    there = np.add.reduceat(weights[:, np.argsort(values, kind="stable")], starts, axis=1)
    ranks: Floats = (np.cumsum(there, axis=1) - (there - 1) / 2)[:, inverse]
    return ranks
