"""What every figure is: a value with all that it takes to believe it."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast


@dataclass(frozen=True)
class Estimate:
    """A figure.

    `value` is None exactly where the figure is undefined, and `reason` then says why. `n` counts
    `unit` ("questions", "pairs"). `ci95` was made by `interval`, `p` by `test`. `more` holds what
    belongs to one kind of figure alone, such as degrees of freedom.

    Raises:
        ValueError: a value that is no finite number, or neither value nor reason.
    """

    value: float | None
    n: int
    unit: str
    ci95: tuple[float, float] | None = None
    interval: str | None = None
    p: float | None = None
    test: str | None = None
    reason: str | None = None
    signature: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        held = (self.value, self.p, *(self.ci95 or ()))
        if any(number is not None and not math.isfinite(number) for number in held):
            raise ValueError(f"a figure that is no finite number: {self}")
        if self.value is None and not self.reason:
            raise ValueError("an undefined figure says why")

    def with_(self, **changes: Any) -> Estimate:
        """A copy with some fields changed."""
        return replace(self, **changes)

    def to_json(self) -> dict[str, Any]:
        """The fields for a file: value, n, unit and ci95 always, the others where they are set."""
        out: dict[str, Any] = {"value": self.value, "n": self.n, "unit": self.unit}
        out["ci95"] = None if self.ci95 is None else list(self.ci95)
        for name in ("interval", "p", "test", "reason", "signature"):
            if (value := getattr(self, name)) is not None:
                out[name] = value
        return out | dict(self.more)


def check_numbers(*groups: Iterable[object], finite: bool = True) -> None:
    """ValueError for a value that is no number, or NaN: nothing that is missing counts as one."""
    for value in (value for group in groups for value in group):
        known = isinstance(value, numbers.Real) and not math.isnan(value)
        if not known or (finite and math.isinf(cast(float, value))):
            raise ValueError(f"{value!r} is no number to reckon with: leave out what is missing")


def undefined(reason: str, n: int = 0, unit: str = "questions", **more: Any) -> Estimate:
    """No value, and why."""
    return Estimate(None, n, unit, reason=reason, more=more)
