"""Where things stand on a plot, as percentages of its width and height.

The templates draw with these, so that a plot fits any width without being distorted, and its bytes
are the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Tick:
    """A line of the grid: where it stands, and what it says."""

    at: str
    label: str


@dataclass(frozen=True)
class Scale:
    """Values from `low` to `high`, laid out evenly or by their logarithm."""

    low: float
    high: float
    log: bool = False

    def at(self, value: float) -> str:
        """A value's place from 0% to 100%; outside the scale it stands at the edge."""
        low, high, value = map(self._place, (self.low, self.high, value))
        share = (value - low) / (high - low)
        return f"{100 * min(1.0, max(0.0, share)):.2f}%"

    def up(self, value: float) -> str:
        """The same from the bottom, as SVG counts from the top."""
        return f"{100 - float(self.at(value)[:-1]):.2f}%"

    def within(self, value: float) -> str | None:
        """A value's place, or None where the scale does not reach it."""
        return self.at(value) if self.low <= value <= self.high else None

    def _place(self, value: float) -> float:
        return math.log10(max(value, 1e-12)) if self.log else value


def share_scale(values: Iterable[float]) -> Scale:
    """A scale for fractions, from and to a tenth, not narrower than three tenths."""
    found = list(values) or [0.0, 1.0]
    low = math.floor(min(found) * 10 + 1e-9) / 10
    high = math.ceil(max(found) * 10 - 1e-9) / 10
    while high - low < 0.3 - 1e-9:
        low, high = max(0.0, low - 0.1), min(1.0, high + 0.1)
    return Scale(low, high)


def share_ticks(scale: Scale) -> list[tuple[float, str]]:
    """Every tenth of a scale of fractions, or every fifth of it where it is wide, in percent."""
    step = 2 if scale.high - scale.low > 0.55 else 1
    first, last = round(scale.low * 10), round(scale.high * 10)
    return [(n / 10, f"{n * 10}") for n in range(first, last + 1) if n % step == 0]


def log_scale(values: Sequence[float]) -> Scale:
    """A logarithmic scale around positive values, with a little room at both ends."""
    return Scale(min(values) / 1.6, max(values) * 1.6, log=True)


def log_ticks(scale: Scale) -> list[tuple[float, str]]:
    """1, 2 and 5 times powers of ten within a scale; powers alone where these are many."""
    powers = range(math.floor(math.log10(scale.low)), math.ceil(math.log10(scale.high)) + 1)
    found = [(m, p) for p in powers for m in (1, 2, 5) if scale.low <= m * 10.0**p <= scale.high]
    if len(found) > 6 and len(tens := [(m, p) for m, p in found if m == 1]) > 1:
        found = tens
    return [(m * 10.0**p, f"{m * 10**p}" if p >= 0 else f"{m / 10**-p:.{-p}f}") for m, p in found]


def ticks(scale: Scale, values: Sequence[tuple[float, str]]) -> list[Tick]:
    """Grid lines at values of a scale."""
    return [Tick(scale.at(value), label) for value, label in values]
