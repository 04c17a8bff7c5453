"""How far raters agree. Every form is named; one that does not fit the data is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from hk_fs_bench.stats.estimate import Estimate, check_numbers, undefined
from hk_fs_bench.stats.intervals import RESAMPLES, Pooled, bootstrap, cluster_bootstrap

if TYPE_CHECKING:
    from hk_fs_bench.stats.intervals import Floats

Level = Literal["nominal", "ordinal", "interval", "ratio"]
Ratings = Sequence[Sequence[float]]
NO_VARIANCE = "no variance: all ratings are alike, so agreement can't be told from chance"


def cohen_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Agreement of two raters beyond chance (Cohen 1960, EPM 20:37), unweighted.

    Returns:
        At most 1, 0 at chance; None without pairs, or where both used one category alone, so that
        chance can't be told from agreement.
    """
    n = len(pairs)
    if n == 0:
        return None
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    observed = sum(a == b for a, b in pairs) / n
    expected = sum(first[name] * second[name] for name in first) / n**2
    return None if expected == 1 else (observed - expected) / (1 - expected)


def icc_one_way(
    ratings: Ratings,
    *,
    average: bool = False,
    unit: str = "items",
    clusters: Sequence[Hashable] | None = None,
) -> Estimate:
    """ICC(1,1), or ICC(1,k) if `average`: each item rated by raters of its own.

    The form for raters drawn at random from a pool (Shrout and Fleiss 1979, Psychological Bulletin
    86:420). Items may differ in how many ratings they have: k is then the mean of the design
    (Donner 1986, International Statistical Review 54:67), and items with one rating count in the
    variance between items alone. The interval is the F interval; a bound below 0 is right and
    stands. With `clusters` it is a bootstrap over these instead, and there is no p: the items of
    one cluster, such as the answers to one question, depend on each other.

    Args:
        ratings: the ratings of each item, in any order.
        clusters: one for each item.
    """
    import numpy as np

    check_numbers(*ratings)
    groups = [np.asarray(group, dtype=float) for group in ratings if len(group)]
    form, items = f"ICC(1,{'k' if average else '1'})", len(groups)
    total = sum(map(len, groups))
    if items < 2:
        return undefined("needs at least two items with ratings", items, unit, form=form)
    if total == items:
        return undefined("needs at least two raters for some item", items, unit, form=form)
    sizes = np.array([len(group) for group in groups], dtype=float)
    means = np.array([group.mean() for group in groups])
    grand = float((sizes * means).sum()) / total
    df1, df2 = items - 1, total - items
    between = float((sizes * (means - grand) ** 2).sum()) / df1
    within = float(sum(((g - g.mean()) ** 2).sum() for g in groups)) / df2
    k = (total - float((sizes**2).sum()) / total) / df1
    more = {"form": form, "k": k, "ratings": total}
    found = _of_squares(between, within, df1, df2, k, average, items, unit, grand, more)
    if clusters is None or found.value is None:
        return found
    of = [cluster for cluster, group in zip(clusters, ratings, strict=True) if len(group)]
    interval = cluster_bootstrap(Pooled(_sums(groups, grand), of, _icc_of_sums(average)))
    how = f"bootstrap over clusters, {RESAMPLES} draws" if interval else "none: too few to resample"
    facts = {**found.more, "clusters": len(set(of))}
    return found.with_(ci95=interval, interval=how, p=None, test=None, more=facts)


def _sums(groups: Sequence[Floats], grand: float) -> Floats:
    """Of each item what a one-way analysis of variance adds up, (items, 6)."""
    import numpy as np

    rows = []
    for group in groups:
        n, total = len(group), float((group - grand).sum())
        spread = float(((group - group.mean()) ** 2).sum())
        rows.append((1.0, n, n * n, total, total * total / n, spread))
    return np.array(rows)


def _icc_of_sums(average: bool) -> Callable[[Floats], Floats]:
    def icc(sums: Floats) -> Floats:
        items, n, squares, total, means, spread = (sums[..., i] for i in range(6))
        k = (n - squares / n) / (items - 1)
        between = (means - total * total / n) / (items - 1)
        within = spread / (n - items)
        if average:
            return 1 - within / between
        return (between - within) / (between + (k - 1) * within)

    return icc


def icc_two_way(
    table: Mapping[str, Mapping[str, float]],
    *,
    average: bool = False,
    consistency: bool = False,
    unit: str = "items",
) -> Estimate:
    """ICC(A,1), of absolute agreement, and its kin: the same raters rated every item.

    `average` gives ICC(A,k), `consistency` ICC(C,1) and ICC(C,k) (McGraw and Wong 1996,
    Psychological Methods 1:30; Shrout and Fleiss's ICC(2,·) and ICC(3,·)). Undefined, with the
    missing cells as the reason, where the design is not fully crossed: the form then does not
    apply, whatever a program would print.

    Args:
        table: item → rater → rating.
    """
    import numpy as np
    from scipy.stats import f

    form = f"ICC({'C' if consistency else 'A'},{'k' if average else '1'})"
    raters = sorted({rater for row in table.values() for rater in row})
    n, k = len(table), len(raters)
    if n < 2 or k < 2:
        what = "items" if n < 2 else "raters"
        return undefined(f"needs at least two {what}", n, unit, form=form)
    missing = [f"{r} on {item}" for item, row in table.items() for r in raters if r not in row]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        why = f"not fully crossed ({', '.join(missing[:3])}{more} missing): use the one-way form"
        return undefined(why, n, unit, form=form)
    check_numbers(*(row.values() for row in table.values()))
    x = np.array([[row[rater] for rater in raters] for row in table.values()], dtype=float)
    rows, columns, grand = x.mean(axis=1), x.mean(axis=0), float(x.mean())
    df1, df2 = n - 1, (n - 1) * (k - 1)
    msr = k * float(((rows - grand) ** 2).sum()) / df1
    msc = n * float(((columns - grand) ** 2).sum()) / (k - 1)
    mse = float(((x - rows[:, None] - columns + grand) ** 2).sum()) / df2
    facts = {"form": form, "k": k, "ratings": n * k}
    if consistency:
        return _of_squares(msr, mse, df1, df2, k, average, n, unit, grand, facts)
    if msr + msc + mse < _tiny(grand):
        return undefined(NO_VARIANCE, n, unit, **facts)
    single = (msr - mse) / (msr + (k - 1) * mse + k * (msc - mse) / n)
    facts |= {"df1": df1, "df2": df2}
    if mse < _tiny(grand):
        return Estimate(_stepped(single, k, average), n, unit, interval="none: F", more=facts)
    a, b = k * single / (n * (1 - single)), 1 + k * single * (n - 1) / (n * (1 - single))
    v = (a * msc + b * mse) ** 2 / ((a * msc) ** 2 / (k - 1) + (b * mse) ** 2 / df2)
    error = k * msc + (k * n - k - n) * mse
    down, up = float(f.ppf(0.975, df1, v)), float(f.ppf(0.975, v, df1))
    low = n * (msr - down * mse) / (down * error + n * msr)
    high = n * (up * msr - mse) / (error + n * up * msr)
    ci95 = (_stepped(low, k, average), _stepped(high, k, average))
    p = float(f.sf(msr / mse, df1, df2))
    facts |= {"F": msr / mse}
    return Estimate(_stepped(single, k, average), n, unit, ci95, "F", p, "F", more=facts)


def krippendorff_alpha(
    ratings: Ratings,
    *,
    level: Level = "ordinal",
    unit: str = "items",
    clusters: Sequence[Hashable] | None = None,
) -> Estimate:
    """Krippendorff's alpha (Krippendorff 2011), for any number of raters and missing ratings.

    The interval is a bootstrap over items, or over whole `clusters`. Items with one rating can't
    show agreement and don't count in n.

    Args:
        ratings: the ratings of each item, in any order.
        level: what may be said of the distance of two ratings.
        clusters: one for each item.
    """
    if level != "nominal":
        check_numbers(*ratings)
    rated = [list(group) for group in ratings if len(group) > 1]
    if not rated:
        return undefined("needs at least two raters for some item", 0, unit, level=level)
    domain = sorted({value for group in rated for value in group})
    if len(domain) == 1:
        return undefined(NO_VARIANCE, len(rated), unit, level=level)

    import numpy as np
    from krippendorff import alpha

    counts = np.array([[group.count(value) for value in domain] for group in rated])

    def of(drawn: Sequence[Sequence[int]]) -> float | None:
        table = counts[[i for members in drawn for i in members]]
        present = np.flatnonzero(table.sum(axis=0))
        if len(present) == 1:
            return None
        names, table = [domain[i] for i in present], table[:, present]
        return float(alpha(value_counts=table, value_domain=names, level_of_measurement=level))

    names = range(len(ratings)) if clusters is None else clusters
    of_rated = [name for name, group in zip(names, ratings, strict=True) if len(group) > 1]
    members: dict[Hashable, list[int]] = {}
    for i, name in enumerate(of_rated):
        members.setdefault(name, []).append(i)
    value = of(list(members.values()))
    assert value is not None
    interval = bootstrap(list(members.values()), of, resamples=1000)
    more = {"level": level, "ratings": sum(map(len, rated))}
    over = unit if clusters is None else "clusters"
    more |= {} if clusters is None else {"clusters": len(members)}
    how = f"bootstrap over {over}, 1000 draws" if interval else "none: too few to resample"
    return Estimate(value, len(rated), unit, interval, how, more=more)


def _of_squares(
    between: float,
    within: float,
    df1: int,
    df2: int,
    k: float,
    average: bool,
    n: int,
    unit: str,
    grand: float,
    facts: Mapping[str, object],
) -> Estimate:
    """The ICC that is a function of one ratio of mean squares, with its F interval."""
    from scipy.stats import f

    more = {**facts, "df1": df1, "df2": df2}
    if between + within < _tiny(grand):
        return undefined(NO_VARIANCE, n, unit, **more)
    if within < _tiny(grand):
        return Estimate(1.0, n, unit, interval="none: F has no bound", more=more)
    ratio = between / within
    if average and ratio < 1e-12:
        return undefined("all items have one mean, so the mean's ICC has no bound", n, unit, **more)

    def icc(ratio: float) -> float:
        return 1 - 1 / ratio if average else (ratio - 1) / (ratio + k - 1)

    if ratio < 1e-12:
        return Estimate(
            icc(ratio), n, unit, None, "none: F is 0", 1.0, "F", more={**more, "F": 0.0}
        )
    low, high = ratio / float(f.ppf(0.975, df1, df2)), ratio * float(f.ppf(0.975, df2, df1))
    p = float(f.sf(ratio, df1, df2))
    return Estimate(
        icc(ratio), n, unit, (icc(low), icc(high)), "F", p, "F", more={**more, "F": ratio}
    )


def _stepped(single: float, k: int, average: bool) -> float:
    """The reliability of the mean of k ratings (Spearman and Brown 1910), if `average`."""
    return k * single / (1 + (k - 1) * single) if average else single


def _tiny(grand: float) -> float:
    """A mean square that is rounding, not variance, for ratings about `grand`."""
    return 1e-20 + 1e-24 * grand * grand
