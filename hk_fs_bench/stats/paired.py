"""Two and more runs on the same questions: differences, corrections, ties, ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from hk_fs_bench.stats.estimate import Estimate, undefined
from hk_fs_bench.stats.intervals import RESAMPLES, Pooled, percentiles, resampled, wilson

if TYPE_CHECKING:
    from hk_fs_bench.stats.intervals import Floats

Name = TypeVar("Name", bound=str)

# Shares of three samples don't sum exactly; a difference below this is none.
_ZERO = 1e-12


def mcnemar(first_only: int, second_only: int) -> float:
    """Exact two-sided p of McNemar's test (McNemar 1947, Psychometrika 12:153).

    Under the null each discordant pair falls to either side like a coin; without any, p is 1.
    """
    n = first_only + second_only
    tail, ways = 0, 1
    for k in range(min(first_only, second_only) + 1):
        tail += ways
        ways = ways * (n - k) // (k + 1)
    return min(1.0, 2 * tail / (1 << n))


def paired_difference(
    both: int, first_only: int, second_only: int, neither: int, unit: str = "questions"
) -> Estimate:
    """The difference of two proportions of the same questions, first less second.

    The interval is Newcombe's method 10 (Newcombe 1998, Statistics in Medicine 17:2635), p is
    `mcnemar`'s.
    """
    n = both + first_only + second_only + neither
    if n == 0:
        return undefined("no question has an answer in both", unit=unit)
    p1, p2 = (both + first_only) / n, (both + second_only) / n
    one, two = wilson(both + first_only, n), wilson(both + second_only, n)
    assert one is not None
    assert two is not None
    phi = _phi(both, first_only, second_only, neither)
    down = _square_and_add(p1 - one[0], two[1] - p2, phi)
    up = _square_and_add(one[1] - p1, p2 - two[0], phi)
    difference = (first_only - second_only) / n
    return Estimate(
        difference,
        n,
        unit,
        (difference - down, difference + up),
        "newcombe, method 10",
        mcnemar(first_only, second_only),
        "mcnemar, exact",
        more={"only_first": first_only, "only_second": second_only},
    )


def _phi(both: int, first_only: int, second_only: int, neither: int) -> float:
    """The correlation of the pairs, continuity-corrected towards 0 where it is positive."""
    margins = (both + first_only) * (second_only + neither)
    margins *= (both + second_only) * (first_only + neither)
    if margins == 0:
        return 0.0
    product = both * neither - first_only * second_only
    half = (both + first_only + second_only + neither) / 2
    corrected = product if product < 0 else max(0.0, product - half)
    return corrected / math.sqrt(margins)


def _square_and_add(one: float, two: float, phi: float) -> float:
    return math.sqrt(max(0.0, one * one - 2 * phi * one * two + two * two))


def paired_bootstrap(
    first: Pooled, second: Pooled, unit: str = "questions", resamples: int = RESAMPLES
) -> Estimate:
    """The difference of one statistic between two runs, first less second.

    Whole clusters are resampled, the same for both (Koehn 2004, EMNLP); those that only one run
    has are left out. p is twice the smaller share of resamples on either side of 0, and no smaller
    than the number of resamples can tell, nor than n clusters could by their signs alone,
    2 / 2**n: a bootstrap of five questions knows no others than these five.
    """
    import numpy as np

    one, two = first.by_cluster(), second.by_cluster()
    shared = [cluster for cluster in one if cluster in two]
    if not shared:
        return undefined("no question has an answer in both", unit=unit)
    k = first.sums.shape[1]

    def difference(sums: Floats) -> Floats:
        return first.statistic(sums[..., :k]) - second.statistic(sums[..., k:])

    sums = np.array([np.concatenate([one[c], two[c]]) for c in shared])
    with np.errstate(invalid="ignore", divide="ignore"):
        value = float(difference(sums.sum(axis=0)))
    if not math.isfinite(value):
        return undefined("undefined in one of the runs", len(shared), unit)
    drawn = resampled(sums, difference, resamples) if len(shared) > 1 else np.array([])
    interval = percentiles(drawn) if len(drawn) else None
    if interval is None:
        return Estimate(value, len(shared), unit, interval="none: too few to resample")
    sides = min((drawn <= _ZERO).sum(), (drawn >= -_ZERO).sum())
    p = min(1.0, max(2 * (int(sides) + 1) / (len(drawn) + 1), 2.0 ** (1 - len(shared))))
    how = f"paired bootstrap over {unit}, {resamples} draws"
    if interval[1] - interval[0] < 1e-12:
        # Resampling takes what is alike for certain.
        return Estimate(value, len(shared), unit, None, f"none: all {unit} alike", p, how)
    return Estimate(value, len(shared), unit, interval, how, p, how)


def holm(p_values: Sequence[float]) -> list[float]:
    """p values corrected for being many (Holm 1979, Scandinavian Journal of Statistics 6:65)."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected, largest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, p_values[i] * (len(p_values) - rank)))
        corrected[i] = largest
    return corrected


def rank_ranges(
    values: Mapping[Name, float], separated: Callable[[Name, Name], bool]
) -> dict[Name, tuple[int, int]]:
    """The ranks that each may have: (best, worst), 1 for the highest value.

    One is above another only where `separated` says that the data tell them apart.
    """
    ranges = {}
    for name, value in values.items():
        others = [n for n in values if n != name and separated(name, n)]
        above = sum(values[n] > value for n in others)
        below = sum(values[n] < value for n in others)
        ranges[name] = (1 + above, len(values) - below)
    return ranges


def tie_groups(
    values: Mapping[Name, float], separated: Callable[[Name, Name], bool]
) -> list[tuple[Name, ...]]:
    """The largest sets in which no two are told apart, best first; one may stand in several.

    A compact letter display (Piepho 2004, JCGS 13:456): begin with all in one set, and for each
    pair that is told apart split every set that holds both.
    """
    ordered = sorted(values, key=lambda n: -values[n])
    groups = [frozenset(ordered)] if ordered else []
    for i, one in enumerate(ordered):
        for two in ordered[i + 1 :]:
            if not separated(one, two):
                continue
            split = [g - {x} for g in groups if {one, two} <= g for x in (one, two)]
            groups = [g for g in groups if not {one, two} <= g] + split
            groups = [g for g in set(groups) if not any(g < other for other in groups)]
    found = (tuple(name for name in ordered if name in group) for group in groups)
    return sorted(found, key=lambda group: [ordered.index(name) for name in group])
