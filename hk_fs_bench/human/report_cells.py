"""What the report's tables are made of, and how figures are written in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hk_fs_bench.human import rubric
from hk_fs_bench.human.figures import FIELDS
from hk_fs_bench.human.study import defaults
from hk_fs_bench.report import interval, percent

DIMENSIONS = tuple(FIELDS)


@dataclass(frozen=True)
class Table:
    """Cells are text; the first column names the row. `note` stands below."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass
class Section:
    """A part of the report; `plots` are names of pictures."""

    id: str
    title: str
    text: Sequence[str]
    tables: list[Table] = field(default_factory=list)
    plots: Sequence[str] = ()


def role_label(role: str) -> str:
    """A role as people read it."""
    held = defaults()["roles"].get(role)
    return str(held["label"]) if held else role


def figure(held: Mapping[str, Any], digits: int = 2) -> str:
    """A coefficient with its interval, or why there is none."""
    if held["value"] is None:
        return f"– ({held['reason']})"
    low_high = held["ci95"]
    band = "" if low_high is None else f"{low_high[0]:z.{digits}f} to {low_high[1]:z.{digits}f}"
    return f"{held['value']:z.{digits}f}{_bracket(held, band)}"


def points(held: Mapping[str, Any]) -> str:
    """A share or mean score ×100 with its interval, or why there is none."""
    if held["value"] is None:
        return f"– ({held['reason']})"
    band = "" if held["ci95"] is None else interval(held)
    # One value is written alike, however its sum was rounded.
    return f"{percent(round(held['value'], 12))}{_bracket(held, band)}"


def p_value(p: float | None) -> str:
    return "–" if p is None else "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def _bracket(held: Mapping[str, Any], band: str) -> str:
    """An interval in brackets, or why there is none."""
    if band:
        return f" ({band})"
    why = str(held.get("interval") or "").removeprefix("none").lstrip(": ")
    return f" (no interval: {why})" if why else ""


def label(dimension: str) -> str:
    return rubric.load().dimensions[dimension].label["en"].lower()
