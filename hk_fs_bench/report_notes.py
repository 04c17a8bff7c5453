"""What stands below one run's tables: definitions, changes, counts, signatures."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hk_fs_bench.report import interval, percent, short

_UNITS = {"tokens": "tokens", "seconds": "seconds", "usd": "USD"}
# Below this many questions a bootstrap, which knows no others, makes too narrow intervals.
_ENOUGH_FOR_BOOTSTRAP = 30


def brief(scores: Mapping[str, Any], folder: Path) -> list[str]:
    """What a table that stands alone needs: its terms, and where everything else is."""
    return [
        *_seconds(scores["tasks"]),
        "accuracy: over all answers, in brackets over those that could be read. Interval: Wilson.",
        f"all figures, with their intervals and signatures: {folder / 'scores.json'}",
        f"every answer: {folder / 'items.jsonl'}",
    ]


def _seconds(tasks: Mapping[str, Any]) -> list[str]:
    definitions = (figures["seconds"]["definition"] for figures in tasks.values())
    return [f"seconds: {definition}." for definition in dict.fromkeys(definitions)]


def notes(scores: Mapping[str, Any]) -> list[str]:
    """All lines, in the order in which they are printed."""
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
    lines += _seconds(tasks)
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
            f"unsafe % {percent(unsafe['value'])}, 95% {interval(unsafe)}, n {unsafe['n']}"
            f"{_not_annotated(unsafe)}; errors: {counts}"
        )
    if clause["ci95"] is not None:
        lines.append(
            f"accuracy's 95% interval over {clause['n']} clauses: {interval(clause)}"
            f"{_not_annotated(clause)}"
        )
    superseded = figures["superseded"]
    if superseded["value"] is not None:
        lines.append(
            f"chose the superseded value: {percent(superseded['value'])} %, 95% "
            f"{interval(superseded)}, n {superseded['n']}"
        )
    return lines


def _not_annotated(figure: Mapping[str, Any]) -> str:
    left = figure["not_annotated"]
    return f" ({left} questions not annotated, left out)" if left else ""


def _texts(figures: Mapping[str, Any]) -> list[str]:
    counts = figures.get("texts") or {}
    said = {
        "empty": "have no text to score (empty, refused or unreadable): score 0",
        "truncated": "were cut by the token limit: scored as far as they go",
        "empty_reference": "are left out: their reference has no word",
        "cut": "are longer than the overlap metrics read",
        "too_short_for_bleu4": "have fewer than four words, so no 4-gram",
        "beyond_encoder": "are longer than the encoder reads",
        "unjudged": "have no readable verdict of the judge and are left out of its figures",
    }
    lines = [
        f"of {counts['answers']} answers {counts[name]} {text}"
        for name, text in said.items()
        if counts.get(name)
    ]
    drawn = [m for m in figures.get("metrics", {}).values() if m["ci95"] and m["n"]]
    if any(m["n"] < _ENOUGH_FOR_BOOTSTRAP and m["interval"].startswith("bootstrap") for m in drawn):
        lines.append(
            f"intervals by bootstrap over fewer than {_ENOUGH_FOR_BOOTSTRAP} questions are too "
            "narrow"
        )
    return lines


def _cost(figures: Mapping[str, Any]) -> list[str]:
    lines = []
    if price := figures["usd"].get("price"):
        lines.append(
            f"USD at {price['input']}/{price['output']} per million tokens in/out, "
            f"{price['date'] or 'undated'} ({price['source'] or 'no source'})"
        )
    for name in ("reasoning", "cached_input"):
        spent = figures["tokens"][name]
        if spent["mean"]:
            of = "output" if name == "reasoning" else "input"
            lines.append(
                f"{name.replace('_', ' ')} tokens, part of the {of}: {short(spent['mean'])} an "
                f"answer, n {spent['n']}"
            )
    each = figures.get("per_correct") or {}
    known = {name: own for name, own in each.items() if own["value"] is not None}
    if known:
        said = ", ".join(f"{_ratio(own)} {_UNITS[name]}" for name, own in known.items())
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


def _ratio(figure: Mapping[str, Any]) -> str:
    text = short(figure["value"])
    if figure["ci95"] is not None:
        text += f" (95% {' to '.join(map(short, figure['ci95']))})"
    return text
