"""Intervals, tests and agreement.

    estimate      what every figure is: a value with its n, unit, interval, or why there is none
    intervals     proportions, and the bootstrap over clusters
    paired        two and more runs on the same questions: tests, corrections, ties, ranks
    agreement     raters: ICC, alpha, kappa
    components    where the variance of ratings comes from
    correlation   Spearman, over all and within groups

Undefined is None with a reason, never 0, 1 or NaN. Nothing here prints.
"""

from hk_fs_bench.stats.agreement import cohen_kappa, icc_one_way, icc_two_way, krippendorff_alpha
from hk_fs_bench.stats.components import reliability_within, variance_components
from hk_fs_bench.stats.correlation import smallest_rho, spearman, spearman_within
from hk_fs_bench.stats.estimate import Estimate
from hk_fs_bench.stats.intervals import (
    RESAMPLES,
    Pooled,
    bootstrap,
    cluster_bootstrap,
    proportion,
    upper_bound,
    wilson,
)
from hk_fs_bench.stats.paired import (
    holm,
    mcnemar,
    paired_bootstrap,
    paired_difference,
    rank_ranges,
    tie_groups,
)

__all__ = [
    "RESAMPLES",
    "Estimate",
    "Pooled",
    "bootstrap",
    "cluster_bootstrap",
    "cohen_kappa",
    "holm",
    "icc_one_way",
    "icc_two_way",
    "krippendorff_alpha",
    "mcnemar",
    "paired_bootstrap",
    "paired_difference",
    "proportion",
    "rank_ranges",
    "reliability_within",
    "smallest_rho",
    "spearman",
    "spearman_within",
    "tie_groups",
    "upper_bound",
    "variance_components",
    "wilson",
]
