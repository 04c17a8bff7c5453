"""Scores as a table for people: fractions become percentages here and nowhere else."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from hk_fs_bench.comparing import label

if TYPE_CHECKING:
    from rich.table import Table


# Figures of open answers that are shares, not scores.
SHARES = {
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
    """One row a task."""
    table = _table(f"{label(scores['model'])} · {_edition(scores)}", "task")
    for column in ("answers", "accuracy % (on valid)", "95% interval", "unsafe %"):
        table.add_column(column, justify="right")
    table.add_column("answers by status", overflow="fold")
    for column in ("tokens in / out", "seconds", "USD"):
        table.add_column(column, justify="right")
    for name, figures in scores["tasks"].items():
        table.add_row(
            escape(name),
            f"{figures['answered']} of {figures['items'] * figures['samples']}",
            _accuracy(figures),
            interval(figures.get("accuracy")),
            percent((figures.get("non_conservative") or {"value": None})["value"]),
            _statuses(figures),
            f"{_number(figures['tokens']['input'])} / {_number(figures['tokens']['output'])}",
            _number(figures["seconds"], digits=1),
            _number(figures["usd"], digits=5),
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
                f"{name}: answered alike in all four option orders: {percent(share['value'])} % "
                f"of {share['n']} questions, 95% interval {interval(share)}"
            )
        lines += [f"{name}: {text}" for text in _sampling(figures)]
    if all(figures["samples"] == 1 for figures in tasks.values()) and (
        scores["protocol"]["regime"] == "paper"
    ):
        lines.append(
            "one sample a prompt: what the model's own sampling varies is not in the interval."
        )
    lines += _context(scores.get("context"))
    for name, figures in tasks.items():
        lines += [
            f"{name}: {text}" for text in (*_risks(figures), *_texts(figures), *_cost(figures))
        ]
    for definition in dict.fromkeys(figures["seconds"]["definition"] for figures in tasks.values()):
        lines.append(f"seconds: {definition}.")
    lines.append("accuracy: correct over all answers, in brackets over those that could be read;")
    lines.append("interval: Wilson, 95%, sampling of items only.")
    lines.append("unsafe: the chosen option, followed, leaves the building less safe.")
    lines += [f"signature: {figures['signature']}" for figures in tasks.values()]
    metrics = [m for figures in tasks.values() for m in figures.get("metrics", {}).values()]
    lines += dict.fromkeys(f"signature: {m['signature']}" for m in metrics if m.get("signature"))
    return lines


def _context(context: Mapping[str, Any] | None) -> list[str]:
    if context is None:
        return []
    found = context["difference"]
    if found["value"] is None:
        return [f"with less without Hong Kong context: {found['reason']}"]
    lines = [f"accuracy with less without Hong Kong context: {difference(found)}"]
    for cue, own in context["by_jurisdiction_cue"]["groups"].items():
        lines.append(f"  jurisdiction cue {cue}: {difference(own)}")
    return lines


def difference(figure: Mapping[str, Any]) -> str:
    """A difference in points, with its interval and p."""
    if figure["value"] is None:
        return str(figure["reason"])
    text = f"{100 * figure['value']:+.2f} points"
    if figure["ci95"] is not None:
        low, high = figure["ci95"]
        text += f" (95% {100 * low:+.2f} to {100 * high:+.2f})"
    if figure.get("p") is not None:
        text += f", p {p_value(figure['p'])} ({figure['test']})"
    return f"{text}, n {figure['n']}"


def p_value(p: float | None) -> str:
    return "–" if p is None else "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def _risks(figures: Mapping[str, Any]) -> list[str]:
    if "non_conservative" not in figures:
        return []
    unsafe, clause = figures["non_conservative"], figures["accuracy_by_clause"]
    lines = []
    if unsafe["value"] is None:
        lines.append(f"unsafe: {unsafe['reason']}")
    else:
        counts = ", ".join(f"{risk} {n}" for risk, n in unsafe["errors"].items())
        lines.append(
            f"unsafe % {percent(unsafe['value'])}, 95% {interval(unsafe)}; errors: {counts}"
        )
    if clause["ci95"] is not None:
        lines.append(f"accuracy's 95% interval over {clause['n']} clauses: {interval(clause)}")
    superseded = figures["superseded"]
    if superseded["value"] is not None:
        lines.append(
            f"chose a superseded value: {percent(superseded['value'])} % of {superseded['n']}"
        )
    return lines


def _texts(figures: Mapping[str, Any]) -> list[str]:
    counts = figures.get("texts") or {}
    said = {
        "empty": "without a word, score 0",
        "empty_reference": "left out: their reference has no word",
        "cut": "longer than the overlap metrics read",
        "too_short_for_bleu4": "of fewer than four words, which have no 4-gram",
        "beyond_encoder": "longer than the encoder reads",
        "unjudged": "without a readable verdict of the judge, left out of its figures",
    }
    return [f"{counts[name]} answers {text}" for name, text in said.items() if counts.get(name)]


def _cost(figures: Mapping[str, Any]) -> list[str]:
    lines = []
    if price := figures["usd"].get("price"):
        lines.append(
            f"USD at {price['input']}/{price['output']} per million tokens in/out, "
            f"{price['date'] or 'undated'} ({price['source'] or 'no source'})"
        )
    each = figures.get("per_correct") or {}
    known = {name: own["value"] for name, own in each.items() if own["value"] is not None}
    if known:
        said = ", ".join(f"{value:.5g} {name}" for name, value in known.items())
        lines.append(f"per correct answer: {said}")
    return lines


def _sampling(figures: Mapping[str, Any]) -> list[str]:
    lines = []
    by_sample = figures.get("accuracy_by_sample") or []
    if len(by_sample) > 1:
        values = ", ".join(map(percent, by_sample))
        spread = percent(statistics.stdev(by_sample))
        lines.append(f"accuracy % of each of {len(by_sample)} samples: {values} (sd {spread})")
    over = figures["over_limit"]
    if over["n"]:
        lines.append(f"{over['n']} answers are longer than {over['limit']} tokens; none was cut")
    return lines


def _edition(scores: Mapping[str, Any]) -> str:
    protocol = scores["protocol"]
    return f"dataset {protocol['dataset_version']} ({protocol['dataset_sha256'][:12]})"


def _accuracy(figures: Mapping[str, Any]) -> str:
    if "accuracy" not in figures:
        return "see below"
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


def _number(figure: Mapping[str, Any], digits: int = 0) -> str:
    return "–" if figure["mean"] is None else f"{figure['mean']:.{digits}f}"


def first_lines(scores: Mapping[str, Any]) -> Sequence[str]:
    """Warnings, which stand above everything."""
    return [f"WARNING: {text}" for text in scores["warnings"]]
