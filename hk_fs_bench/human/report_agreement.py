"""The report's tables on how far raters agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hk_fs_bench.human.agreement import paper_class
from hk_fs_bench.human.report_cells import DIMENSIONS, Table, figure, label, points, role_label


def agreement(report: Mapping[str, Any]) -> Table:
    held = report["agreement"]

    def row(title: str, of: Any) -> list[str]:
        return [title, *(of(held[name]) for name in DIMENSIONS)]

    rows = [
        row("ICC(1,1), one rating", lambda a: figure(a["single"])),
        row("class of it and of its bounds, the paper's", lambda a: _class(a["single"])),
        row(
            "ICC(1,k), mean of an answer's ratings",
            lambda a: f"{figure(a['average'])}{_k(a['average'])}",
        ),
        row("alpha, ordinal", lambda a: figure(a["alpha"])),
        row("reliability within questions", lambda a: f"{figure(a['within'])}{_k(a['within'])}"),
        row("ICC(A,1), two-way", lambda a: figure(a["two_way"])),
        row("highest correlation over answers", lambda a: figure(a["ceiling"]["answers"])),
        row("highest correlation within questions", lambda a: figure(a["ceiling"]["within"])),
        row("answers by number of ratings", lambda a: _by_count(a["ratings_per_answer"])),
        row(
            "answers, questions",
            lambda a: f"{a['single']['n']}, {a['single'].get('clusters', '–')}",
        ),
    ]
    return Table("Agreement", ["", *map(label, DIMENSIONS)], rows)


def _k(held: Mapping[str, Any]) -> str:
    return "" if held["value"] is None else f", k {held['k']:.2f}"


def _class(held: Mapping[str, Any]) -> str:
    if held["value"] is None:
        return "–"
    if held["ci95"] is None:
        return paper_class(held["value"])
    low, high = map(paper_class, held["ci95"])
    words = paper_class(held["value"])
    return words if low == high else f"{words} ({low} to {high})"


def _by_count(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} with {k}" for k, n in counts.items())


def components(report: Mapping[str, Any]) -> Table:
    rows = []
    names = {
        "items": "answers",
        "raters": "raters (severity)",
        "residual": "single ratings (noise)",
    }
    for part, title in names.items():
        cells = [title]
        for name in DIMENSIONS:
            parts = report["agreement"][name]["components"]
            cells.append(_component(parts[part], [one["value"] for one in parts.values()]))
        rows.append(cells)
    groups = report["agreement"]["accuracy"]["components"]["items"].get("linked_groups")
    note = "Variances, in squared points; in brackets the share of all and the 95% interval."
    if groups and groups > 1:
        note += (
            f" The raters fall into {groups} groups that share no answer; severity is compared "
            "inside them alone."
        )
    return Table("Where the variance comes from", ["", *map(label, DIMENSIONS)], rows, note)


def _component(held: Mapping[str, Any], every: Sequence[float | None]) -> str:
    if held["value"] is None:
        return f"– ({held['reason']})"
    total = sum(max(0.0, value or 0.0) for value in every)
    share = f"{100 * max(0.0, held['value']) / total:.0f}%" if total else "–"
    band = ""
    if held["ci95"] is not None:
        band = "; " + " to ".join(f"{10_000 * bound:z.0f}" for bound in held["ci95"])
    return f"{10_000 * held['value']:z.0f} ({share}{band})"


def roles(report: Mapping[str, Any]) -> Table:
    """ICC(1,1) of each role; without rows where a role is too small to be named."""
    rows = [
        [
            role_label(role),
            str(own["raters"]),
            str(own["questions"]),
            *(figure(own[n]) for n in DIMENSIONS),
        ]
        for role, own in (report["by_role"] or {}).items()
    ]
    note = "" if rows else "Not shown: a role has fewer than five raters."
    return Table(
        "ICC(1,1) by role", ["role", "raters", "questions", *map(label, DIMENSIONS)], rows, note
    )


def repeats(report: Mapping[str, Any]) -> Table:
    held = report["repeats"]
    rows = [
        ["pairs of looks", *(str(held[n]["pairs"]) for n in DIMENSIONS)],
        ["same level, %", *(points(held[n]["same_level"]) for n in DIMENSIONS)],
        ["mean distance, points", *(points(held[n]["mean_gap"]) for n in DIMENSIONS)],
        ["ICC(1,1) of the two looks", *(figure(held[n]["icc"]) for n in DIMENSIONS)],
    ]
    return Table("Raters beside themselves", ["", *map(label, DIMENSIONS)], rows)


def controls(report: Mapping[str, Any]) -> Table:
    titles = {"expert": "expert-written", "known_bad": "known-bad"}
    rows = [
        [
            title,
            points(held["found"]),
            str(held["found"]["n"]),
            str(held["answers"]),
            *(points(held[name]) for name in DIMENSIONS),
        ]
        for kind, title in titles.items()
        for held in [report["controls"][kind]]
    ]
    columns = [
        "",
        "found, % (95%)",
        "ratings",
        "answers",
        *(f"{label(n)} (95%)" for n in DIMENSIONS),
    ]
    return Table("Blind controls", columns, rows)
