"""Intervals and tests. Every function says its unit and its n, and returns None where a figure
is undefined."""

from __future__ import annotations

import math


def wilson(successes: int, n: int, z: float = 1.959963984540054) -> tuple[float, float] | None:
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
