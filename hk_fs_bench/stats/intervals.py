"""Intervals of proportions, and the bootstrap over clusters."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from hk_fs_bench.stats.estimate import Estimate, undefined

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

T = TypeVar("T")

Z95 = 1.959963984540054
SEED = 20240920
RESAMPLES = 10_000
# Resamples multiplied at a time.
_BLOCK = 1000


def wilson(successes: float, n: int, z: float = Z95) -> tuple[float, float] | None:
    """Wilson's score interval of a proportion (Wilson 1927, JASA 22:209), 95% by default.

    Returns:
        (low, high) as fractions; None for n = 0.

    Raises:
        ValueError: fewer successes than 0, or more than n.
    """
    if not -1e-9 <= successes <= n + 1e-9:
        raise ValueError(f"{successes} successes of {n}")
    if n == 0:
        return None
    p = successes / n
    centre = p + z * z / (2 * n)
    # Rounding may bring p above 1 where fractions were summed.
    half = z * math.sqrt(max(0.0, p * (1 - p)) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def proportion(
    successes: float, n: int, unit: str = "questions", reason: str = "no answer to count"
) -> Estimate:
    """A share with Wilson's interval; undefined, for `reason`, where n is 0."""
    interval = wilson(successes, n)
    if interval is None:
        return undefined(reason, unit=unit)
    return Estimate(successes / n, n, unit, interval, "wilson")


def upper_bound(successes: int, n: int, confidence: float = 0.95) -> float | None:
    """Exact one-sided upper bound of a proportion (Clopper and Pearson 1934, Biometrika 26:404).

    Returns:
        A fraction, 1.0 if every trial succeeded; None for n = 0.
    """
    if n == 0:
        return None
    if successes == n:
        return 1.0
    from scipy.stats import beta

    return float(beta.ppf(confidence, successes + 1, n - successes))


def bootstrap(
    values: Sequence[T], statistic: Callable[[Sequence[T]], float | None], resamples: int = 2000
) -> tuple[float, float] | None:
    """95% percentile interval of any statistic over resampled values, from a fixed seed.

    Slow, one resample at a time; `cluster_bootstrap` is for statistics of sums.

    Returns:
        (low, high); None if over a twentieth of the resamples leave the statistic undefined.
    """
    if not values:
        return None
    generator = random.Random(SEED)
    drawn = (statistic(generator.choices(values, k=len(values))) for _ in range(resamples))
    found = sorted(value for value in drawn if value is not None)
    if len(found) < 0.95 * resamples:
        return None
    return found[int(0.025 * len(found))], found[int(0.975 * len(found))]


def mean_of_sums(sums: Floats) -> Floats:
    """The statistic of a mean: `sums[..., 0]` over `sums[..., 1]`."""
    return sums[..., 0] / sums[..., 1]


@dataclass(frozen=True)
class Pooled:
    """A statistic of sums over rows, such as a mean or a corpus BLEU, and what it is made of.

    `sums` is (rows, k): what each row adds. `statistic` maps (..., k) sums to (...) values. Rows
    of one cluster are not independent and are drawn together.
    """

    sums: Floats
    clusters: Sequence[Hashable]
    statistic: Callable[[Floats], Floats] = mean_of_sums

    @classmethod
    def of_means(cls, values: Sequence[float], clusters: Sequence[Hashable]) -> Pooled:
        """The mean of `values`."""
        import numpy as np

        return cls(np.array([(value, 1.0) for value in values]).reshape(-1, 2), clusters)

    @property
    def value(self) -> float | None:
        """The statistic over all rows; None where it is undefined."""
        import numpy as np

        if not len(self.sums):
            return None
        with np.errstate(invalid="ignore", divide="ignore"):
            value = float(self.statistic(self.sums.sum(axis=0)))
        return value if math.isfinite(value) else None

    @property
    def n(self) -> int:
        """How many clusters there are that count: rows of zeros add nothing."""
        return len(self.by_cluster())

    def by_cluster(self) -> dict[Hashable, Floats]:
        """The sums of each cluster that counts, in the order of their first rows."""
        found: dict[Hashable, Floats] = {}
        import numpy as np

        for cluster, row, counts in zip(
            self.clusters, self.sums, np.any(self.sums, axis=1).tolist(), strict=True
        ):
            if counts:
                found[cluster] = found[cluster] + row if cluster in found else row
        return found

    def estimate(self, unit: str = "questions", resamples: int = RESAMPLES) -> Estimate:
        """The value with its bootstrap interval over clusters."""
        value = self.value
        if value is None:
            return undefined("no answer to count", self.n, unit)
        interval = cluster_bootstrap(self, resamples)
        if interval is None:
            return Estimate(value, self.n, unit, interval="none: too few to resample")
        if interval[0] == interval[1]:
            return Estimate(value, self.n, unit, interval=f"none: all {unit} alike")
        return Estimate(value, self.n, unit, interval, f"bootstrap over {unit}, {resamples} draws")


def cluster_bootstrap(
    pooled: Pooled, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float] | None:
    """95% percentile interval of a pooled statistic, whole clusters resampled (Efron 1979).

    Returns:
        (low, high); None with fewer than two clusters, or if over a twentieth of the resamples
        leave the statistic undefined.
    """
    import numpy as np

    sums = np.array(list(pooled.by_cluster().values()))
    if len(sums) < 2:
        return None
    return percentiles(resampled(sums, pooled.statistic, resamples, seed))


def resampled(
    sums: Floats, statistic: Callable[[Floats], Floats], resamples: int, seed: int = SEED
) -> Floats:
    """The statistic over each resample of the rows of `sums`, (resamples, ...).

    The draws depend on the seed and the number of rows alone, so that statistics of the same
    questions see the same resamples.
    """
    import numpy as np

    with np.errstate(invalid="ignore", divide="ignore"):
        blocks = _draws(len(sums), resamples, seed)
        return np.concatenate([statistic(np.tensordot(b.astype(float), sums, 1)) for b in blocks])


# Many figures and pairs of runs are over the same number of questions.
@lru_cache(maxsize=4)
def _draws(rows: int, resamples: int, seed: int) -> list[NDArray[np.int16]]:
    """How often each row is drawn in each resample, in blocks of (block, rows)."""
    import numpy as np

    generator = np.random.default_rng(seed)
    blocks = []
    for start in range(0, resamples, _BLOCK):
        block = min(_BLOCK, resamples - start)
        drawn = generator.integers(rows, size=(block, rows))
        drawn += np.arange(block)[:, None] * rows
        counts = np.bincount(drawn.ravel(), minlength=block * rows)
        blocks.append(counts.reshape(block, rows).astype(np.int16))
    return blocks


def percentiles(values: Floats) -> tuple[float, float] | None:
    """The middle 95%; None if over a twentieth of the values are undefined."""
    import numpy as np

    found = values[np.isfinite(values)]
    if len(found) < 0.95 * len(values):
        return None
    low, high = np.percentile(found, (2.5, 97.5))
    return float(low), float(high)
