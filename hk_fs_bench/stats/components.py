"""Where the variance of ratings comes from: items, raters, or neither."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from hk_fs_bench.stats.estimate import Estimate, undefined
from hk_fs_bench.stats.intervals import (
    RESAMPLES,
    Pooled,
    cluster_bootstrap,
    mean_of_sums,
    percentiles,
    resampled,
)

if TYPE_CHECKING:
    from hk_fs_bench.stats.intervals import Floats

# item → rater → rating
Table = Mapping[Any, Mapping[str, float]]
COMPONENTS = ("items", "raters", "residual")
_DRAWS = 2000


def variance_components(
    table: Table, clusters: Mapping[Any, Hashable] | None = None, unit: str = "items"
) -> dict[str, Estimate]:
    """The variance of `items`, of `raters` (their severity) and the `residual` of single ratings.

    Items and raters are crossed at random, with any cells missing: Henderson's method 3 (Henderson
    1953, Biometrics 9:226), unbiased, so that an estimate below 0 is right and stands. Raters are
    compared on the items that they share; `linked_groups` counts the sets of raters that share
    none, between which no severity can be told. The interval is a bootstrap over clusters.

    Args:
        table: item → rater → rating.
        clusters: item → its cluster, such as its question; each item its own without it.

    Returns:
        The three, in squared units of the ratings; all undefined where no two raters share an item
        or nothing is left for the residual.
    """
    import numpy as np

    raters = sorted({rater for row in table.values() for rater in row})
    rated = {item: row for item, row in table.items() if row}
    facts: dict[str, object] = {"raters": len(raters), "ratings": sum(map(len, rated.values()))}
    if all(len(row) < 2 for row in rated.values()):
        reason = "no two raters rated the same item, so the design does not link them"
        return dict.fromkeys(COMPONENTS, undefined(reason, len(rated), unit, **facts))
    grand = sum(v for row in rated.values() for v in row.values()) / sum(map(len, rated.values()))
    sums = np.array([_item_sums(row, raters, grand) for row in rated.values()])
    links = _parts(sums.sum(axis=0), len(raters))[3]
    rank = int(np.linalg.matrix_rank(links))
    facts["linked_groups"] = len(raters) - rank
    value = _components(sums.sum(axis=0), len(raters))
    if not np.isfinite(value).all():
        reason = "too few ratings are left over for the residual"
        return dict.fromkeys(COMPONENTS, undefined(reason, len(rated), unit, **facts))
    of = [item if clusters is None else clusters[item] for item in rated]
    drawn = _resampled(sums, of, len(raters))
    found = {}
    for i, name in enumerate(COMPONENTS):
        interval = None if drawn is None else percentiles(drawn[:, i])
        how = f"bootstrap over clusters, {_DRAWS} draws" if interval else "none: too few clusters"
        found[name] = Estimate(float(value[i]), len(rated), unit, interval, how, more=facts)
    return found


def _item_sums(row: Mapping[str, float], raters: list[str], grand: float) -> Floats:
    """What one item adds: scalars, its ratings by rater, and its part of the normal equations."""
    import numpy as np

    own = np.array([rater in row for rater in raters], dtype=float)
    y = np.array([row.get(rater, grand) - grand for rater in raters])
    n, mean = len(row), y.sum() / len(row)
    scalars = [1.0, n, float((y * y).sum()), float((own * (y - mean) ** 2).sum())]
    return np.concatenate(
        [scalars, own, y, own * (y - mean), (np.diag(own) - np.outer(own, own) / n).ravel()]
    )


def _parts(sums: Floats, k: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Scalars; ratings and their sum by rater (2, k); the right side; the matrix of the links."""
    return (
        sums[:4],
        sums[4 : 4 + 2 * k].reshape(2, k),
        sums[4 + 2 * k : 4 + 3 * k],
        sums[4 + 3 * k :].reshape(k, k),
    )


def _components(sums: Floats, k: int) -> Floats:
    """The three components of summed items; NaN where they can't be told."""
    import numpy as np

    (items, n, squares, within), (counts, totals), right, links = _parts(sums, k)
    present = counts > 0
    rank = int(np.linalg.matrix_rank(links))
    freedom = n - items - rank
    if rank == 0 or freedom <= 0 or n <= present.sum():
        return np.full(3, math.nan)
    by_raters = float(right @ np.linalg.pinv(links, hermitian=True) @ right)
    residual = (within - by_raters) / freedom
    raters = (by_raters - rank * residual) / np.trace(links)
    beside_raters = squares - float((totals[present] ** 2 / counts[present]).sum())
    of_items = beside_raters - (within - by_raters)
    of_items -= (items + rank - present.sum()) * residual
    return np.array([of_items / (n - present.sum()), raters, residual])


def _resampled(sums: Floats, clusters: list[Hashable], k: int) -> Floats | None:
    """The components over each resample of clusters, (draws, 3); None with fewer than three."""
    import numpy as np

    by_cluster = np.array(list(Pooled(sums, clusters).by_cluster().values()))
    if len(by_cluster) < 3:
        return None

    def statistic(block: Floats) -> Floats:
        return np.array([_components(row, k) for row in block])

    return resampled(by_cluster, statistic, _DRAWS)


def reliability_within(
    blocks: Mapping[Any, Table],
    unit: str = "blocks",
    clusters: Mapping[Any, Hashable] | None = None,
) -> Estimate:
    """ICC(C,k) of the items inside a block, pooled over blocks that raters rated in full.

    How far the mean rating tells the items of one block apart, such as the answers to one question:
    what all items of a block share, and what a rater adds to all of them, does not count (Shrout
    and Fleiss 1979; the mean squares are pooled over blocks). `k` is the mean number of raters. Of
    a block, the raters who rated all of its items count; blocks with fewer than two of them, or
    fewer than two items, are left out and counted in `left_out`.

    Args:
        blocks: block → item → rater → rating.
        clusters: block → its cluster, for the interval; each block its own without it.
    """
    import numpy as np

    rows, of = [], []
    for block, table in blocks.items():
        own = [row for row in table.values() if row]
        raters = sorted(set.intersection(*(set(row) for row in own))) if own else []
        if len(own) < 2 or len(raters) < 2:
            continue
        x = np.array([[row[rater] for rater in raters] for row in own])
        m, k = x.shape
        of.append(block if clusters is None else clusters[block])
        effects = x.mean(axis=1) - x.mean()
        left = x - x.mean(axis=1, keepdims=True) - x.mean(axis=0) + x.mean()
        rows.append(
            (k * (effects**2).sum(), m - 1, (left**2).sum(), (m - 1) * (k - 1), k * (m - 1))
        )
    facts: dict[str, object] = {
        "form": "ICC(C,k) within blocks",
        "left_out": len(blocks) - len(rows),
    }
    if not rows:
        reason = "no block was rated in full by the same two raters"
        return undefined(reason, 0, unit, **facts)
    sums = np.array(rows, dtype=float)
    facts["k"] = float(mean_of_sums(sums.sum(axis=0)[[4, 1]]))
    pooled = Pooled(sums, of, _within_of_sums)
    n = len(set(of))
    value = pooled.value
    if value is None:
        return undefined("the items of every block are rated alike", n, unit, **facts)
    interval = cluster_bootstrap(pooled)
    how = f"bootstrap over {unit}, {RESAMPLES} draws" if interval else "none: too few to resample"
    return Estimate(value, n, unit, interval, how, more=facts)


def _within_of_sums(sums: Floats) -> Floats:
    return 1 - (sums[..., 2] / sums[..., 3]) / (sums[..., 0] / sums[..., 1])
