"""Scores as a table for people: fractions become percentages here and nowhere else."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


def scores_table(scores: Mapping[str, Any]) -> Table:
    """One row a task."""
    from rich.table import Table

    table = Table(title=f"{_who(scores['model'])} · {_edition(scores)}")
    table.add_column("task", overflow="fold")
    for column in ("items", "accuracy % (on valid)", "95% interval"):
        table.add_column(column, justify="right")
    table.add_column("answers by status", overflow="fold")
    for column in ("tokens in / out", "seconds"):
        table.add_column(column, justify="right")
    for name, figures in scores["tasks"].items():
        table.add_row(
            name,
            f"{figures['answered']} of {figures['items'] * figures['samples']}",
            _accuracy(figures),
            _interval(figures.get("accuracy")),
            _statuses(figures),
            f"{_number(figures['tokens']['input'])} / {_number(figures['tokens']['output'])}",
            _number(figures["seconds"], digits=1),
        )
    return table


def notes(scores: Mapping[str, Any]) -> list[str]:
    """What stands below the table: definitions, changes, signatures."""
    tasks = scores["tasks"]
    lines = []
    if changed := sum(figures["changed_by_finish_reason"] for figures in tasks.values()):
        lines.append(
            f"{changed} answers read differently than in lm-eval's own figures, because they "
            "ended at the token limit; the figures above are the ones of record."
        )
    for name, figures in tasks.items():
        if "consistency" in figures:
            share = figures["consistency"]
            lines.append(
                f"{name}: answered alike in all four option orders: {_percent(share['value'])} % "
                f"of {share['n']} questions, 95% interval {_interval(share)}"
            )
        lines += [f"{name}: {text}" for text in _sampling(figures)]
    if all(figures["samples"] == 1 for figures in tasks.values()) and (
        scores["protocol"]["regime"] == "paper"
    ):
        lines.append(
            "one sample a prompt: what the model's own sampling varies is not in the interval."
        )
    for definition in dict.fromkeys(figures["seconds"]["definition"] for figures in tasks.values()):
        lines.append(f"seconds: {definition}.")
    lines.append("accuracy: correct over all answers, in brackets over those that could be read;")
    lines.append("interval: Wilson, 95%, sampling of items only.")
    lines += [f"signature: {figures['signature']}" for figures in tasks.values()]
    return lines


def _sampling(figures: Mapping[str, Any]) -> list[str]:
    lines = []
    by_sample = figures.get("accuracy_by_sample") or []
    if len(by_sample) > 1:
        values = ", ".join(map(_percent, by_sample))
        spread = _percent(statistics.stdev(by_sample))
        lines.append(f"accuracy % of each of {len(by_sample)} samples: {values} (sd {spread})")
    over = figures["over_limit"]
    if over["n"]:
        lines.append(f"{over['n']} answers are longer than {over['limit']} tokens; none was cut")
    return lines


def _who(model: Mapping[str, Any]) -> str:
    parts = [model["id"]]
    if model.get("mode") not in (None, "none"):
        parts.append(f"thinking {model['mode']}")
    if model.get("search") not in (None, "off"):
        parts.append(f"search {model['search']}")
    return " · ".join(parts)


def _edition(scores: Mapping[str, Any]) -> str:
    protocol = scores["protocol"]
    return f"dataset {protocol['dataset_version']} ({protocol['dataset_sha256'][:12]})"


def _accuracy(figures: Mapping[str, Any]) -> str:
    if "accuracy" not in figures:
        return "see OEQ metrics"
    every, valid = figures["accuracy"], figures["accuracy_on_valid"]
    text = _percent(every["value"])
    readable = figures["readable"] == figures["answered"]
    return text if readable else f"{text} ({_percent(valid['value'])})"


def _interval(figure: Mapping[str, Any] | None) -> str:
    if figure is None or figure["ci95"] is None:
        return "–"
    return " to ".join(_percent(bound) for bound in figure["ci95"])


def _statuses(figures: Mapping[str, Any]) -> str:
    return ", ".join(f"{status} {n}" for status, n in figures["statuses"].items() if n) or "–"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f}"


def _number(figure: Mapping[str, Any], digits: int = 0) -> str:
    return "–" if figure["mean"] is None else f"{figure['mean']:.{digits}f}"


def first_lines(scores: Mapping[str, Any]) -> Sequence[str]:
    """Warnings, which stand above everything."""
    return [f"WARNING: {text}" for text in scores["warnings"]]
