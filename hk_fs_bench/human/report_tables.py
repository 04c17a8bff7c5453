"""report.json as sections of tables, for the terminal and for the page alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any

import yaml

from hk_fs_bench.human import rubric
from hk_fs_bench.human.agreement import paper_class
from hk_fs_bench.human.figures import FIELDS
from hk_fs_bench.report import interval, p_value, percent

# Rows of a list that the page shows; report.json has all.
SHOWN = 30
DIMENSIONS = tuple(FIELDS)
LEVEL_TITLES = {
    "within": "within questions",
    "answers": "over all answers",
    "models": "over models",
}


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
        _section("agreement", [_agreement(report), _components(report)])
        if "agreement" in report
        else None,
        _section("checks", [_repeats(report), _controls(report)]) if "repeats" in report else None,
        _section("doubts", list(_doubts(report)), gap=100 * report["third_rater_gap"]),
        _section("metrics", list(_metrics(report)), ["correlations"]),
        _section("judges", list(_judges(report))) if report["judges"] else None,
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
    who = "" if roles is None else f" ({', '.join(f'{k} {n}' for k, n in roles.items())})"
    lines = [
        f"{counts['raters']} raters{who}, {counts['ratings']} ratings of {counts['answers']} "
        f"answers to {counts['questions']} questions; {counts['unresolved']} rows unresolved.",
        f"Rubric {report['rubric']['version']}. {report['rubric']['rule']}",
        f"Dataset {report['dataset']['version']}.",
    ]
    if report["rubric_of_forms"]["sha256"] != report["rubric"]["sha256"]:
        lines.append("WARNING: the forms were made with another text of the rubric.")
    return lines


def figure(held: Mapping[str, Any], digits: int = 2) -> str:
    """A coefficient with its interval, or why there is none."""
    if held["value"] is None:
        return f"– ({held['reason']})"
    low_high = held["ci95"]
    band = "" if low_high is None else f" ({low_high[0]:.{digits}f} to {low_high[1]:.{digits}f})"
    return f"{held['value']:.{digits}f}{band}"


def points(held: Mapping[str, Any]) -> str:
    """A share or mean score ×100 with its interval, or why there is none."""
    if held["value"] is None:
        return f"– ({held['reason']})"
    band = "" if held["ci95"] is None else f" ({interval(held)})"
    return f"{percent(held['value'])}{band}"


def _label(dimension: str) -> str:
    return rubric.load().dimensions[dimension].label["en"].lower()


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
        cells += [" / ".join(percent(held[f"{name}_pooled"]["value"]) for name in DIMENSIONS)]
        rows.append(cells)
    columns = ["model"]
    for name in DIMENSIONS:
        columns += [f"{_label(name)} (95%)", "rank, ties"]
    columns += ["unsafe % (95%)", "questions", "ratings", "raters"]
    columns += ["pooled as the paper's: " + " / ".join(map(_label, DIMENSIONS))]
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


def _agreement(report: Mapping[str, Any]) -> Table:
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
    return Table("Agreement", ["", *map(_label, DIMENSIONS)], rows)


def _k(held: Mapping[str, Any]) -> str:
    return "" if held["value"] is None else f", k {held['k']:.2f}"


def _class(held: Mapping[str, Any]) -> str:
    if held["value"] is None:
        return "–"
    if held["ci95"] is None:
        return paper_class(held["value"])
    low, high = map(paper_class, held["ci95"])
    return f"{paper_class(held['value'])} ({low} to {high})"


def _by_count(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} with {k}" for k, n in counts.items())


def _components(report: Mapping[str, Any]) -> Table:
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
    return Table("Where the variance comes from", ["", *map(_label, DIMENSIONS)], rows, note)


def _component(held: Mapping[str, Any], every: Sequence[float | None]) -> str:
    if held["value"] is None:
        return f"– ({held['reason']})"
    total = sum(max(0.0, value or 0.0) for value in every)
    share = f"{100 * max(0.0, held['value']) / total:.0f}%" if total else "–"
    band = ""
    if held["ci95"] is not None:
        band = "; " + " to ".join(f"{10_000 * bound:.0f}" for bound in held["ci95"])
    return f"{10_000 * held['value']:.0f} ({share}{band})"


def _repeats(report: Mapping[str, Any]) -> Table:
    held = report["repeats"]
    rows = [
        ["pairs of looks", *(str(held[n]["pairs"]) for n in DIMENSIONS)],
        ["same level, %", *(points(held[n]["same_level"]) for n in DIMENSIONS)],
        ["mean distance, points", *(points(held[n]["mean_gap"]) for n in DIMENSIONS)],
        ["ICC(1,1) of the two looks", *(figure(held[n]["icc"]) for n in DIMENSIONS)],
    ]
    return Table("Raters beside themselves", ["", *map(_label, DIMENSIONS)], rows)


def _controls(report: Mapping[str, Any]) -> Table:
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
        *(f"{_label(n)} (95%)" for n in DIMENSIONS),
    ]
    return Table("Blind controls", columns, rows)


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


def _metrics(report: Mapping[str, Any]) -> Iterator[Table]:
    held = report["metrics"]["correlations"]
    for level, title in LEVEL_TITLES.items():
        rows = [
            [
                one["metric"],
                _label(one["dimension"]),
                figure(one) if one["value"] is not None else "–",
                f"{one['n']} {one['unit']}",
                p_value(one["p_holm"]),
                "–" if one["smallest_rho"] is None else f"{one['smallest_rho']:.2f}",
                one["says"],
            ]
            for one in held
            if one["level"] == level
        ]
        if rows:
            columns = ["metric", "with", "rho (95%)", "n", "p by Holm", "could be seen", ""]
            yield Table(f"Spearman's rho {title}", columns, rows, _highest(report, level))
    if notes := report["metrics"]["notes"]:
        yield Table("Metrics that are missing", ["why"], [[note] for note in notes])


def _highest(report: Mapping[str, Any], level: str) -> str:
    if level == "models" or "agreement" not in report:
        return ""
    parts = [
        f"{_label(name)} {figure(report['agreement'][name]['ceiling'][level])}"
        for name in DIMENSIONS
    ]
    return f"A metric without fault would reach about: {'; '.join(parts)}."


def _judges(report: Mapping[str, Any]) -> Iterator[Table]:
    for judge, held in report["judges"].items():
        yield _beside(judge, held)
        rows = [
            [
                report["names"][run],
                *(points(own[name]) for name in DIMENSIONS),
                *(points(report["models"][run][name]) for name in DIMENSIONS),
            ]
            for run, own in held["models"].items()
            if run in report.get("models", {})
        ]
        who = [f"{_label(n)}, the judge (95%)" for n in DIMENSIONS]
        who += [f"{_label(n)}, people (95%)" for n in DIMENSIONS]
        yield Table(f"{judge}: means beside people's, ×100", ["model", *who], rows)


def _beside(judge: str, held: Mapping[str, Any]) -> Table:
    beside = held["beside_people"]

    def row(title: str, of: Any) -> list[str]:
        return [title, *(of(beside[name]) for name in DIMENSIONS)]

    rows = [
        row("answers that it and two people rated", lambda b: str(b["answers"])),
        row("ICC(1,1): two people", lambda b: figure(b["people"]["icc"])),
        row("ICC(1,1): judge and a person", lambda b: figure(b["judge"]["icc"])),
        row("same score, %: two people", lambda b: points(b["people"]["same"])),
        row("same score, %: judge and a person", lambda b: points(b["judge"]["same"])),
        row("mean distance, points: two people", lambda b: points(b["people"]["gap"])),
        row("mean distance, points: judge and a person", lambda b: points(b["judge"]["gap"])),
        row("lean, points", lambda b: points(b["lean"])),
        row("rho with people's mean, over answers", lambda b: figure(b["rho_answers"])),
        row("rho with people's mean, within questions", lambda b: figure(b["rho_within"])),
        row("length: rho with the judge", lambda b: figure(b["length"]["judge"])),
        row("length: rho with people", lambda b: figure(b["length"]["people"])),
        row("length beyond people", lambda b: figure(b["length"]["beyond_people"])),
    ]
    if position := held["position"]:
        for name, title in (("earlier", "earlier, points"), ("changed", "changed by order, %")):
            rows.append([title, *(points(position[n][name]) for n in DIMENSIONS)])
    return Table(f"{judge}, beside people", ["", *map(_label, DIMENSIONS)], rows, _calls(held))


def _calls(held: Mapping[str, Any]) -> str:
    calls = held["calls"]
    if calls is None:
        return "Its replies are not in this folder, so cost, time and position bias are not known."
    usd = "no price is known" if calls["usd"] is None else f"{calls['usd']:.4f} USD"
    tokens = calls["tokens"]
    return (
        f"{calls['calls']} calls ({calls['unreadable']} replies unreadable, {calls['unanswered']} "
        f"missing), {tokens['input_tokens']} tokens in, {tokens['output_tokens']} out, {usd}, "
        f"{calls['seconds']:.0f} seconds of calls; {calls['prompt']}."
    )


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
    return Table("Signatures", ["figure", "what decides it"], rows)
