"""The columns of the leaderboard's table (columns.yaml) and an entry's cells in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

from hk_fs_bench.leaderboard.site import shown

Json = Mapping[str, Any]
NUMBERS = ("rank", "share", "points", "seconds", "tokens", "usd", "study")


@dataclass(frozen=True)
class Cell:
    """A cell: its text, a line below it, the value to sort by, and why there is none."""

    text: str
    below: str = ""
    sort: str = ""
    why: str = ""


@dataclass(frozen=True)
class Column:
    """A column as columns.yaml has it."""

    key: str
    label: str
    at: tuple[str, ...]
    form: str
    about: str
    views: tuple[str, ...]
    first: str
    beside: tuple[str, ...] = ()
    part: str = ""
    study: str = ""
    only_known: bool = False

    @property
    def numeric(self) -> bool:
        return self.form in NUMBERS


@cache
def settings(name: str) -> dict[str, Any]:
    """A YAML file of this package."""
    found: dict[str, Any] = yaml.safe_load(
        resources.files(__package__).joinpath(f"{name}.yaml").read_text("utf-8")
    )
    return found


def columns(entries: Sequence[Json]) -> list[Column]:
    """The columns that these entries need, in the table's order."""
    found = []
    for own in settings("columns")["columns"]:
        given = dict(own)
        every = given.pop("every_suffix", False)
        base = given["at"] = tuple(given["at"])
        given["beside"] = tuple(given.get("beside", ()))
        given["views"] = (*given["views"], "all")
        given.setdefault("first", "desc" if given["form"] in NUMBERS else "asc")
        if given["form"] == "study":
            found += _of_studies(entries, given)
            continue
        names = _with_prefix(entries, base) if every else [base[-1]]
        for name in names:
            suffix = name.removeprefix(base[-1]) if every else ""
            encoder = f" ({suffix.strip('@:_')})" if suffix else ""
            more = {
                "key": given["key"] + suffix,
                "label": given["label"] + encoder,
                "at": (*base[:-1], name),
            }
            column = Column(**(given | more))
            if not column.only_known or any(cell(column, e).sort for e in entries):
                found.append(column)
    return found


def _of_studies(entries: Sequence[Json], given: Json) -> list[Column]:
    """A column for each study: what different people or models rated is never one column."""
    studies = (study for entry in entries for study in shown.at(entry, given["at"]) or ())
    names = sorted({own["study"] for own in studies if own[given["part"]] is not None})
    return [
        Column(
            **{**given, "key": f"{given['key']}{n or ''}", "study": name}
            | ({"label": f"{given['label']} ({name})"} if len(names) > 1 else {})
        )
        for n, name in enumerate(names)
    ]


def _with_prefix(entries: Sequence[Json], path: tuple[str, ...]) -> list[str]:
    """The keys beside a path's last one that begin with it: a metric with its encoders."""
    beside = (shown.at(entry, path[:-1]) or {} for entry in entries)
    return sorted({key for held in beside for key in held if key.startswith(path[-1])})


def cell(column: Column, entry: Json) -> Cell:
    """What an entry shows in a column."""
    found = shown.at(entry, column.at)
    if found is None:
        return Cell(shown.NONE)
    return _FORMS[column.form](found, column, entry)


def _value(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _rank(found: Json, column: Column, entry: Json) -> Cell:
    best, worst = found["best"], found["worst"]
    text = f"{best}" if best == worst else f"{best}–{worst}"
    # Ranges that begin alike: the narrower one first.
    order = f"{best + worst / 1e6:.6f}"
    return Cell(text, f"tie group {found['tie_group']}", order)


def _share(found: Json, column: Column, entry: Json) -> Cell:
    text = shown.percent(found["value"])
    beside = shown.at(entry, column.beside) if column.beside else None
    if beside is not None and beside["value"] is not None and beside["n"] != found["n"]:
        text += f" ({shown.percent(beside['value'])})"
    return Cell(text, shown.span(found["ci95"]), _value(found["value"]), shown.reason(found))


def _points(found: Json, column: Column, entry: Json) -> Cell:
    return Cell(
        shown.points(found["value"]),
        shown.points_span(found["ci95"]),
        _value(found["value"]),
        shown.reason(found),
    )


def _cost(found: Json, column: Column, entry: Json) -> Cell:
    """A mean, or a ratio; money is of a thousand answers, for that of one is too small to read."""
    times = 1000 if column.form == "usd" else 1
    each, bounds = found["mean" if "mean" in found else "value"], found.get("ci95")
    value = None if each is None else times * each
    between = None if bounds is None else [times * bound for bound in bounds]
    return Cell(
        shown.cost(column.form, value),
        shown.cost_span(column.form, between),
        _value(value),
        shown.reason(found),
    )


def _study(found: Sequence[Json], column: Column, entry: Json) -> Cell:
    rated = next((own[column.part] for own in found if own["study"] == column.study), None)
    if rated is None or rated["value"] is None:
        return Cell(shown.NONE)
    bounds = None if None in (rated["low"], rated["high"]) else (rated["low"], rated["high"])
    return Cell(shown.percent(rated["value"]), shown.span(bounds), _value(rated["value"]))


def _text(found: object, column: Column, entry: Json) -> Cell:
    return Cell(str(found), "", str(found))


_FORMS: dict[str, Callable[[Any, Column, Json], Cell]] = {
    "rank": _rank,
    "share": _share,
    "points": _points,
    "seconds": _cost,
    "tokens": _cost,
    "usd": _cost,
    "study": _study,
    "text": _text,
}
