"""report.json as sections of tables, for the terminal and for the page alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

import yaml

from hk_fs_bench.human import report_agreement, report_worth, rubric
from hk_fs_bench.human.report_cells import (
    DIMENSIONS,
    Section,
    Table,
    figure,
    label,
    points,
    role_label,
)
from hk_fs_bench.report import percent

# Rows of a list that the page shows; report.json has all.
SHOWN = 30


@lru_cache(maxsize=1)
def words() -> dict[str, Any]:
    """The content of report.yaml."""
    text = resources.files(__package__).joinpath("report.yaml").read_text("utf-8")
    held: dict[str, Any] = yaml.safe_load(text)
    return held


def sections(report: Mapping[str, Any]) -> list[Section]:
    """The report in its order; parts without data are left out."""
    found = [
        _section("models", [_models(report)], ["models"]) if "models" in report else None,
        _section("choices", list(_choices(report)), ["choices"]) if "models" in report else None,
        _section(
            "agreement",
            [
                report_agreement.agreement(report),
                report_agreement.components(report),
                report_agreement.roles(report),
            ],
        )
        if "agreement" in report
        else None,
        _section("checks", [report_agreement.repeats(report), report_agreement.controls(report)])
        if "repeats" in report
        else None,
        _section("doubts", list(_doubts(report)), gap=100 * report["third_rater_gap"]),
        _section("metrics", list(report_worth.metrics(report)), ["correlations"]),
        _section("judges", list(report_worth.judges(report))) if report["judges"] else None,
        _section("sensitivity", [_sensitivity(report)]) if "exclusions" in report else None,
        _section("method", [_method(report)]),
    ]
    return [one for one in found if one is not None]


def _section(name: str, tables: list[Table], plots: Sequence[str] = (), **filled: Any) -> Section:
    held = words()["sections"][name]
    return Section(name, held["title"], [t.format(**filled) for t in held["text"]], tables, plots)


def lead(report: Mapping[str, Any]) -> list[str]:
    """What was rated, in a few sentences."""
    counts = report["counts"]
    roles = counts["roles"]
    who = (
        "" if roles is None else f" ({', '.join(f'{role_label(k)} {n}' for k, n in roles.items())})"
    )
    lines = [
        f"{counts['raters']} raters{who}, {counts['ratings']} ratings of {counts['answers']} "
        f"answers to {counts['questions']} questions; {counts['unresolved']} rows unresolved.",
        f"Rubric {report['rubric']['version']}. {report['rubric']['rule']}",
        f"Dataset {report['dataset']['version'] or 'without a version'} "
        f"({report['dataset']['sha256'][:12]}).",
    ]
    if report["rubric_of_forms"]["sha256"] != report["rubric"]["sha256"]:
        lines.append("WARNING: the forms were made with another text of the rubric.")
    return lines


def _models(report: Mapping[str, Any]) -> Table:
    rows = []
    for run, held in report["models"].items():
        cells = [report["names"][run]]
        for name in DIMENSIONS:
            low, high = held[name]["ranks"]
            rank = str(low) if low == high else f"{low} to {high}"
            cells += [points(held[name]), f"{rank} {held[name]['ties']}"]
        cells += [points(held["unsafe_share"])]
        cells += [str(held["questions"]), str(held["ratings"]), str(held["raters"])]
        cells += [
            " / ".join(percent(round(held[f"{name}_pooled"]["value"], 12)) for name in DIMENSIONS)
        ]
        rows.append(cells)
    columns = ["model"]
    for name in DIMENSIONS:
        columns += [f"{label(name)} (95%)", "rank, ties"]
    columns += ["unsafe % (95%)", "questions", "ratings", "raters"]
    columns += ["pooled as the paper's: " + " / ".join(map(label, DIMENSIONS))]
    return Table("Mean scores, ×100", columns, rows)


def _choices(report: Mapping[str, Any]) -> Iterator[Table]:
    for name in DIMENSIONS:
        held = rubric.load().dimensions[name]
        labels = [one.label["en"] for one in (*held.levels.values(), *held.descriptors.values())]
        rows = []
        for run, own in report["models"].items():
            counts = {**own["levels"][name], **own["descriptors"][name]}
            rows.append(
                [report["names"][run], *(_share(n, own["ratings"]) for n in counts.values())]
            )
            if name == "accuracy":
                rows[-1].append(_share(own["capped"], own["ratings"]))
        capped = ["capped"] if name == "accuracy" else []
        yield Table(f"{held.label['en']}: % of ratings", ["model", *labels, *capped], rows)


def _share(n: int, total: int) -> str:
    return f"{100 * n / total:.0f}" if total else "–"


def _doubts(report: Mapping[str, Any]) -> Iterator[Table]:
    called = report.get("third_raters", [])
    rows = [
        [
            one["item_id"],
            one["candidate"],
            ", ".join(f"{100 * score:.0f}" for score in one["scores"]),
            "has one" if one["settled"] else "called",
        ]
        for one in sorted(called, key=lambda one: one["settled"])
    ]
    waiting = sum(not one["settled"] for one in called)
    title = f"Third rater: {waiting} answers wait for one, {len(called) - waiting} have one"
    yield Table(
        title, ["question", "answer", "accuracy scores", "third"], rows[:SHOWN], _more(rows)
    )
    rows = [[one["item_id"], one["candidate"], one["reason"]] for one in report["unresolved"]]
    title = f"Unresolved: {len(rows)} ratings, not scored"
    yield Table(title, ["question", "answer", "why"], rows[:SHOWN], _more(rows))


def _more(rows: Sequence[Any]) -> str:
    left = len(rows) - SHOWN
    return f"{left} more are in report.json." if left > 0 else ""


def _sensitivity(report: Mapping[str, Any]) -> Table:
    runs = list(report["models"])
    rows = [
        [
            "none: the headline",
            f"{report['counts']['questions']}, 0",
            *(percent(report["models"][run]["accuracy"]["value"]) for run in runs),
            figure(report["agreement"]["accuracy"]["single"]),
        ]
    ]
    rows += [
        [
            f"differ by {100 * one['gap']:.0f} points or more",
            f"{one['kept']}, {one['left_out']}",
            *(percent(one["accuracy"][run]) for run in runs),
            figure(one["icc"]),
        ]
        for one in report["exclusions"]
    ]
    columns = ["left out if raters", "questions kept, left out"]
    columns += [report["names"][run] for run in runs]
    columns += ["ICC(1,1), conditional on agreement"]
    return Table("Mean accuracy, ×100, conditional on agreement", columns, rows)


def _method(report: Mapping[str, Any]) -> Table:
    rows = [["ratings", report["signature"]]]
    rows += [[name, text] for name, text in sorted(report["metrics"]["signatures"].items())]
    rows += [
        [judge, f"{held['calls']['prompt']}|{report['signature']}"]
        for judge, held in report["judges"].items()
        if held["calls"] is not None
    ]
    return Table("Signatures", ["figure", "what decides it"], rows)
