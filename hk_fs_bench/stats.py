"""Intervals and tests. Every function says its unit and its n, and returns None where a figure
is undefined."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def wilson(successes: float, n: int, z: float = 1.959963984540054) -> tuple[float, float] | None:
    """Wilson's score interval of a proportion (Wilson 1927, JASA 22:209), 95% by default.

    Returns:
        (low, high) as fractions; None for n = 0.
    """
    if n == 0:
        return None
    p = successes / n
    centre = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


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


def bootstrap(
    values: Sequence[T], statistic: Callable[[Sequence[T]], float | None], resamples: int = 2000
) -> tuple[float, float] | None:
    """95% percentile interval of a statistic over resampled values, from a fixed seed.

    Returns:
        (low, high); None if over a twentieth of the resamples leave the statistic undefined.
    """
    if not values:
        return None
    generator = random.Random(20240920)
    drawn = (statistic(generator.choices(values, k=len(values))) for _ in range(resamples))
    found = sorted(value for value in drawn if value is not None)
    if len(found) < 0.95 * resamples:
        return None
    return found[int(0.025 * len(found))], found[int(0.975 * len(found))]
