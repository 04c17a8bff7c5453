"""The report's tables on what automatic metrics and judges are worth beside people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hk_fs_bench.human.report_cells import DIMENSIONS, Table, figure, label, p_value, points
from hk_fs_bench.report import SHARES

LEVEL_TITLES = {
    "within": "within questions",
    "answers": "over all answers",
    "models": "over models",
}


def metrics(report: Mapping[str, Any]) -> Iterator[Table]:
    held = report["metrics"]["correlations"]
    for level, title in LEVEL_TITLES.items():
        rows = [
            [
                SHARES.get(one["metric"], one["metric"]),
                label(one["dimension"]),
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
            columns = [
                "metric",
                "with",
                "rho (95%)",
                "n",
                "p by Holm",
                "could be seen",
                "what it says",
            ]
            yield Table(f"Spearman's rho {title}", columns, rows, _highest(report, level))
    if notes := report["metrics"]["notes"]:
        yield Table("Metrics that are missing", ["why"], [[note] for note in notes])


def _highest(report: Mapping[str, Any], level: str) -> str:
    if level == "models" or "agreement" not in report:
        return ""
    parts = [
        f"{label(name)} {figure(report['agreement'][name]['ceiling'][level])}"
        for name in DIMENSIONS
    ]
    return f"A metric without fault would reach about: {'; '.join(parts)}."


def judges(report: Mapping[str, Any]) -> Iterator[Table]:
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
        who = [f"{label(n)}, the judge (95%)" for n in DIMENSIONS]
        who += [f"{label(n)}, people (95%)" for n in DIMENSIONS]
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
    return Table(f"{judge}, beside people", ["", *map(label, DIMENSIONS)], rows, _calls(held))


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
