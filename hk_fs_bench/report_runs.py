"""Several runs as tables for people: comparisons, and items through all runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from hk_fs_bench.report import SHARES, interval, percent
from hk_fs_bench.report_notes import difference, p_value

if TYPE_CHECKING:
    from rich.table import Table

# Hardest items and pairs of runs that a table shows; the files have all.
SHOWN = 20


def comparison_tables(comparison: Mapping[str, Any]) -> list[Table]:
    """A table for each task and metric."""
    return [
        _comparison(f"{task}: {SHARES.get(metric, metric)}", table, comparison["baseline"])
        for task, metrics in comparison["tasks"].items()
        for metric, table in metrics.items()
    ]


def _comparison(title: str, table: Mapping[str, Any], baseline: str | None) -> Table:
    from rich.table import Table

    out = Table(title=escape(title), title_justify="left")
    columns = ["%, ×100", "95% interval", "n"]
    columns += ["less the baseline's", "p by Holm"] if baseline else ["rank", "ties"]
    out.add_column("run", overflow="fold")
    for column in columns:
        out.add_column(column, justify="right")
    values = table["values"]
    against = {pair["first"]: pair for pair in table["pairs"]}
    sign = 1 if table["lower_is_better"] else -1
    if table["lower_is_better"]:
        out.title = escape(f"{title} (lower is better)")
    for name in sorted(values, key=lambda n: sign * (values[n]["value"] or 0)):
        figure = values[name]
        cells = [percent(figure["value"]), interval(figure), str(figure["n"])]
        if baseline:
            cells += _against(against.get(name))
        else:
            low, high = table["ranks"].get(name, ("–", "–"))
            groups = [chr(ord("a") + i) for i, g in enumerate(table["ties"]) if name in g]
            cells += [str(low) if low == high else f"{low} to {high}", "".join(groups)]
        out.add_row(escape(name), *cells)
    return out


def _against(pair: Mapping[str, Any] | None) -> list[str]:
    if pair is None:
        return ["baseline", ""]
    return [difference(pair), p_value(pair["p_holm"]) + (" *" if pair["separated"] else "")]


def comparison_notes(comparison: Mapping[str, Any]) -> list[str]:
    """How to read the tables."""
    lines = []
    if not comparison["tasks"]:
        lines.append("nothing to compare: no task has answers in two of these runs.")
    elif comparison["baseline"]:
        lines.append(f"*: told apart from the baseline at {comparison['level']} after Holm.")
    else:
        lines.append(
            "rank: from best to worst that the data allow; runs that share a letter under `ties` "
            f"are not told apart at {comparison['level']} (paired tests, Holm's correction)."
        )
    if any("non_conservative" in metrics for metrics in comparison["tasks"].values()):
        lines.append("unsafe: a run that answers nothing has none, so read it beside accuracy.")
    return lines


def item_table(analysis: Mapping[str, Any]) -> Table:
    """The hardest items."""
    from rich.table import Table

    title = f"{analysis['task']}: the hardest items over {analysis['runs']} runs"
    table = Table(title=escape(title), title_justify="left")
    table.add_column("item")
    for column in ("difficulty: right %", "item-total r", "A %", "B %", "C %", "D %", "none %"):
        table.add_column(column, justify="right")
    for item in analysis["items"][:SHOWN]:
        rates = [
            f"{percent(rate)} *" if letter == item["key"] else percent(rate)
            for letter, rate in item["choices"].items()
        ]
        total = "–" if item["item_total"] is None else f"{item['item_total']:.2f}"
        table.add_row(item["id"], percent(item["difficulty"]), total, *rates, percent(item["none"]))
    return table


def item_notes(analysis: Mapping[str, Any]) -> list[str]:
    """What to read again, and why."""
    lines = []
    if left := len(analysis["items"]) - SHOWN:
        lines += [f"{left} more items: --json has all"] if left > 0 else []
    if analysis["reason"]:
        lines.append(f"discrimination and agreement of the best: {analysis['reason']}")
    reasons: dict[str, list[str]] = {}
    for one in analysis["review"]:
        reasons.setdefault(one["id"], []).append(one["why"])
    lines += [f"to review again: {name}: {'; '.join(why)}" for name, why in reasons.items()]
    lines.append(
        "*: the key; nothing is rekeyed by vote. A correlation over few runs is mostly noise."
    )
    return lines
