"""Scores as a table for people: fractions become percentages here and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from hk_fs_bench.comparing import label

if TYPE_CHECKING:
    from rich.table import Table


# Figures that are shares, not scores.
SHARES = {
    "non_conservative": "unsafe",
    "cites": "answers that cite the Code",
    "citations_exist": "citations that exist in the Code",
    "citations_hit": "citations that are one of the item's own",
    "key_points": "key points made, by the judge",
    "essential_points": "essential points made, by the judge",
    "complete": "answers with all essential points, by the judge",
}
# Below this many questions a table of topics has a question or two a line.
_ENOUGH_FOR_TOPICS = 100


def scores_table(scores: Mapping[str, Any]) -> Table:
    """One row a task: everything that fits a line."""
    table = _table(f"{label(scores['model'])} · {_edition(scores)}", "task")
    for column in ("answers", "accuracy % (on valid)", "95% interval", "unsafe %"):
        table.add_column(column, justify="right")
    table.add_column("answers by status", overflow="fold")
    for column in ("tokens in / out", "seconds", "USD"):
        table.add_column(column, justify="right")
    for name, figures in scores["tasks"].items():
        table.add_row(
            escape(name),
            _answers(figures),
            _accuracy(figures),
            interval(figures.get("accuracy")),
            percent((figures.get("non_conservative") or {"value": None})["value"]),
            _statuses(figures),
            " / ".join(_whole(figures["tokens"][name]["mean"]) for name in ("input", "output")),
            short(figures["seconds"]["mean"]),
            short(figures["usd"]["mean"]),
        )
    return table


def tables(scores: Mapping[str, Any]) -> list[Table]:
    """Every table of one run's report."""
    found = [scores_table(scores)]
    tasks = scores["tasks"]
    found += [_open_table(name, tasks[name]) for name in tasks if "metrics" in tasks[name]]
    multiple = {name: figures for name, figures in tasks.items() if "by" in figures}
    if any(figures["answered"] for figures in multiple.values()):
        found.append(_breakdown(multiple))
    return found


def _open_table(name: str, figures: Mapping[str, Any]) -> Table:
    table = _table(f"{name}: answers against their references, ×100", "metric")
    table.add_column("value", justify="right")
    table.add_column("95% interval", justify="right")
    table.add_column("questions", justify="right")
    table.add_column("", overflow="fold")
    for metric, figure in figures["metrics"].items():
        note = figure.get("reason", "")
        if (rescaled := figure.get("rescaled")) is not None:
            note = f"raw; on the scale where unrelated texts have 0: {percent(rescaled)}"
        table.add_row(
            escape(SHARES.get(metric, metric)),
            percent(figure["value"]),
            interval(figure),
            str(figure["n"]),
            escape(note),
        )
    return table


def _breakdown(tasks: Mapping[str, Any]) -> Table:
    """Accuracy by what the items say of themselves: a small group shows its interval alone."""
    table = _table("accuracy % by group (of few questions: the interval alone)", "group")
    for task in tasks:
        table.add_column(escape(task), justify="right")
    fields = list(next(iter(tasks.values()))["by"])
    if max(figures["answered"] for figures in tasks.values()) < _ENOUGH_FOR_TOPICS:
        fields.remove("topic")
    for field in fields:
        by = [figures["by"][field] for figures in tasks.values()]
        title = field.replace("_", " ")
        if reasons := [own["reason"] for own in by if "reason" in own]:
            table.add_row(title, *(reasons[0] for _ in by))
            continue
        for group in dict.fromkeys(group for own in by for group in own["groups"]):
            cells = [_group(own["groups"].get(group)) for own in by]
            table.add_row(escape(f"{title}: {group}"), *cells)
    return table


def _group(figure: Mapping[str, Any] | None) -> str:
    if figure is None or figure["value"] is None:
        return "–"
    value = "" if figure["small"] else f"{percent(figure['value'])}  "
    return f"{value}{interval(figure)}  n {figure['n']}"


def _table(title: str, first: str) -> Table:
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left")
    table.add_column(first, overflow="fold")
    return table


def _edition(scores: Mapping[str, Any]) -> str:
    protocol = scores["protocol"]
    return f"dataset {protocol['dataset_version']} ({protocol['dataset_sha256'][:12]})"


def _accuracy(figures: Mapping[str, Any]) -> str:
    if "accuracy" not in figures:
        return "open answers"
    every, valid = figures["accuracy"], figures["accuracy_on_valid"]
    text = percent(every["value"])
    readable = figures["readable"] == figures["answered"]
    return text if readable else f"{text} ({percent(valid['value'])})"


def interval(figure: Mapping[str, Any] | None) -> str:
    if figure is None or figure["ci95"] is None:
        return "–"
    return " to ".join(percent(bound) for bound in figure["ci95"])


def _statuses(figures: Mapping[str, Any]) -> str:
    return ", ".join(f"{status} {n}" for status, n in figures["statuses"].items() if n) or "–"


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f}"


def _answers(figures: Mapping[str, Any]) -> str:
    text = f"{figures['answered']} of {figures['items'] * figures['samples']}"
    questions = figures.get("accuracy", {"n": figures["answered"]})["n"]
    return text if questions == figures["answered"] else f"{text} ({questions} questions)"


def _whole(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}"


def short(value: float | None) -> str:
    """Two digits that count, and all of a whole number's."""
    if value is None:
        return "–"
    digits = 0 if value == 0 else max(0, 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{digits}f}"


def first_lines(scores: Mapping[str, Any]) -> Sequence[str]:
    """Warnings, which stand above everything."""
    return [f"WARNING: {text}" for text in scores["warnings"]]
