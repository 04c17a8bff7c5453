"""Figures as a reader sees them: percent, intervals, money; a dash for what is not known."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

NONE = "–"
_LINK = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~:/?#@!$&()*+,;=%-]*)?")
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

Json = Mapping[str, Any]


def percent(value: float | None, digits: int = 2) -> str:
    """A fraction as a percentage, without its sign."""
    return NONE if value is None else f"{100 * value:.{digits}f}"


def span(bounds: Sequence[float] | None) -> str:
    """An interval of fractions, in percent."""
    return "" if bounds is None else "–".join(percent(bound, 1) for bound in bounds)


def points(value: float | None, digits: int = 2) -> str:
    """A difference of fractions in percentage points, with its sign."""
    if value is None:
        return NONE
    # Rounded first, so that a little less than nothing has no sign of its own.
    rounded = round(100 * value, digits) + 0.0
    return f"{rounded:+.{digits}f}".replace("-", "−") if rounded else f"{0:.{digits}f}"


def points_span(bounds: Sequence[float] | None) -> str:
    """An interval of differences, in percentage points."""
    return "" if bounds is None else " to ".join(points(bound, 1) for bound in bounds)


def number(value: float | None, digits: int = 0) -> str:
    """A number with thousands set apart."""
    return NONE if value is None else f"{value:,.{digits}f}"


def usd(value: float | None) -> str:
    """Money, small or large, to two significant digits at least."""
    if value is None:
        return NONE
    if value <= 0:
        return "0"
    digits = max(2, 1 - math.floor(math.log10(value)))
    return f"{value:,.{digits}f}"


def cost(kind: str, value: float | None) -> str:
    """A cost by its kind: money, seconds to a tenth, tokens whole."""
    if kind == "usd":
        return usd(value)
    return number(value, 1 if kind == "seconds" else 0)


def cost_span(kind: str, bounds: Sequence[float] | None) -> str:
    """An interval of a cost."""
    return "" if bounds is None else "–".join(cost(kind, bound) for bound in bounds)


def link(url: object) -> str | None:
    """A web address that may become a link, or None."""
    return url if isinstance(url, str) and _LINK.fullmatch(url) else None


def is_plain(name: str) -> bool:
    """Whether a name can be a file's: lower-case letters, digits, single dashes."""
    return _NAME.fullmatch(name) is not None and len(name) <= 80


def at(entry: Json, path: Sequence[str]) -> Any:
    """What stands at a path of keys; None where it breaks off."""
    found: Any = entry
    for key in path:
        if not isinstance(found, Mapping) or key not in found:
            return None
        found = found[key]
    return found


def reason(figure: Json | None) -> str:
    """Why a figure has no value."""
    return "" if figure is None else str(figure.get("reason") or "")
