"""The plots: what is drawn where, from the board's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hk_fs_bench.leaderboard.site import shown
from hk_fs_bench.leaderboard.site.board import MAIN, Board, Group, Row
from hk_fs_bench.leaderboard.site.plots import (
    Scale,
    Tick,
    log_scale,
    log_ticks,
    share_scale,
    share_ticks,
    ticks,
)

Json = Mapping[str, Any]
MOST = 40
"""Entries that a plot shows of each group; the table has them all."""
CHANCE = 0.25
_NOHK = "hk_fs_mcq_nohk"


@dataclass(frozen=True)
class Mark:
    """A value and its interval on a scale; no value is shown for a small group."""

    at: str | None
    low: str | None
    high: str | None
    text: str


@dataclass(frozen=True)
class Chart:
    """Rows of marks under one scale."""

    ticks: list[Tick]
    chance: str | None
    groups: list[tuple[str, list[tuple[Row, list[Mark]]]]]
    left_out: int


@dataclass(frozen=True)
class Point:
    """An entry on a plane."""

    row: Row
    x: str
    y: str
    low: str | None
    high: str | None
    text: str


@dataclass(frozen=True)
class Plane:
    """Accuracy against a cost."""

    x: list[Tick]
    y: list[Tick]
    chance: str | None
    points: list[Point]
    unknown: int


def context(board: Board) -> dict[str, Any]:
    """The template's variables."""
    return {
        "accuracy": _chart(board, lambda row: [_figure(row, MAIN)]),
        "both": _chart(board, lambda row: [_figure(row, MAIN), _figure(row, _NOHK)]),
        "usd": _plane(board, "usd", 1000),
        "seconds": _plane(board, "seconds", 1),
        "fields": [_by_field(board, field) for field in ("part", "level")],
    }


def _figure(row: Row, task: str) -> Json | None:
    found: Json | None = shown.at(row.entry, ("tasks", task, "accuracy"))
    return found if found is not None and found["value"] is not None else None


def _mark(scale: Scale, figure: Json) -> Mark:
    bounds = figure["ci95"] or (None, None)
    low, high = (None if bound is None else scale.at(bound) for bound in bounds)
    span = shown.span(figure["ci95"])
    if figure.get("small"):
        return Mark(None, low, high, span)
    text = shown.percent(figure["value"], 1)
    return Mark(scale.at(figure["value"]), low, high, f"{text} ({span})" if span else text)


def _chart(board: Board, figures: Any) -> Chart | None:
    """The entries that have every one of the figures, group by group."""
    chosen: list[tuple[Group, list[tuple[Row, list[Json]]]]] = []
    left_out = 0
    for group in board.groups:
        rows = [(row, figures(row)) for row in group.rows]
        having = [(row, found) for row, found in rows if None not in found]
        left_out += len(having[MOST:])
        if having:
            chosen.append((group, having[:MOST]))
    values = [v for _, rows in chosen for _, found in rows for f in found for v in _extent(f)]
    if not values:
        return None
    scale = share_scale(values)
    groups = [
        (group.title, [(row, [_mark(scale, f) for f in found]) for row, found in rows])
        for group, rows in chosen
    ]
    return Chart(ticks(scale, share_ticks(scale)), scale.within(CHANCE), groups, left_out)


def _extent(figure: Json) -> Sequence[float]:
    return [figure["value"], *(figure["ci95"] or ())]


def _plane(board: Board, cost: str, times: int) -> Plane:
    held = []
    for row in board.ordered:
        figure = _figure(row, MAIN)
        if figure is not None:
            held.append((row, figure, shown.at(row.entry, ("tasks", MAIN, cost, "mean"))))
    # Nothing has no logarithm; an answer that cost nothing has no price worth comparing.
    known = [(row, figure, times * mean) for row, figure, mean in held if mean]
    if not known:
        return Plane([], [], None, [], len(held))
    x = log_scale([mean for *_, mean in known])
    y = share_scale([v for _, figure, _ in known for v in _extent(figure)])
    known.sort(key=lambda own: (-own[1]["value"], own[0].slug))
    points = []
    for row, figure, mean in known:
        low, high = map(y.up, figure["ci95"]) if figure["ci95"] else (None, None)
        value, span = shown.percent(figure["value"], 1), shown.span(figure["ci95"])
        text = f"{value} ({span}) at {shown.cost(cost, mean)}"
        points.append(Point(row, x.at(mean), y.up(figure["value"]), low, high, text))
    upward = [Tick(y.up(value), label) for value, label in share_ticks(y)]
    across = ticks(x, log_ticks(x))
    chance = None if y.within(CHANCE) is None else y.up(CHANCE)
    return Plane(across, upward, chance, points, len(held) - len(known))


def _by_field(board: Board, field: str) -> dict[str, Any] | None:
    """Accuracy by the value of a field: a column for each, a row for each entry."""
    rows = [
        (row, by)
        for group in board.groups
        for row in group.rows[:MOST]
        if (by := shown.at(row.entry, ("tasks", MAIN, "by", field)))
    ]
    if not rows:
        return None
    values = sorted({value for _, by in rows for value in by})
    scale = Scale(0.0, 1.0)
    named = board.words["parts"] if field == "part" else {}
    return {
        "title": board.words["fields"][field],
        "heads": [(value, named.get(value, "")) for value in values],
        "ticks": ticks(scale, [(0.0, "0"), (0.5, "50"), (1.0, "100")]),
        "chance": scale.at(CHANCE),
        "rows": [
            (row, [_mark(scale, by[value]) if value in by else None for value in values])
            for row, by in rows
        ],
    }
