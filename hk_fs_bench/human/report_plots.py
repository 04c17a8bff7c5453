"""The report's pictures: means and unsafe shares, what raters chose, what metrics are worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hk_fs_bench import plots
from hk_fs_bench.human import rubric
from hk_fs_bench.human.figures import FIELDS
from hk_fs_bench.human.report_worth import LEVEL_TITLES
from hk_fs_bench.report import SHARES

_WIDTH = 340
_COLOURS = (*plots.COLOURS[:2], "#8c1d18")
Rows = list[dict[str, Any]]
# From the best choice of a rubric's dimension to its worst.
_SCALE = ("#1f5a94", "#7fb0dd", "#f0d9b0", "#e8a860", "#c8641e", "#6e2a0c")


def draw(report: Mapping[str, Any]) -> dict[str, bytes]:
    """Name → SVG of every picture for which the report has figures; UserError without altair."""
    alt = plots.library()
    made: dict[str, tuple[Rows, Callable[[Any, Rows], Any]]] = {
        "models": (_means(report), _draw_means),
        "choices": (_chosen(report), _draw_chosen),
        "correlations": (_rhos(report), _draw_rhos),
    }
    return {n: plots.svg(make(alt, rows)) for n, (rows, make) in made.items() if rows}


def _label(dimension: str) -> str:
    return str(rubric.load().dimensions[dimension].label["en"])


def _means(report: Mapping[str, Any]) -> Rows:
    rows = []
    for run, held in report.get("models", {}).items():
        for name in (*FIELDS, "unsafe_share"):
            value, band = held[name]["value"], held[name]["ci95"] or [held[name]["value"]] * 2
            rows.append(
                {
                    "model": report["names"][run],
                    "what": _label(name) if name in FIELDS else "unsafe",
                    "value": 100 * value,
                    "low": 100 * band[0],
                    "high": 100 * band[1],
                }
            )
    return rows


def _draw_means(alt: Any, rows: Rows) -> Any:
    order = list(dict.fromkeys(row["model"] for row in rows))
    titles = {"unsafe": "unsafe answers, %"}

    def panel(what: str, colour: str) -> Any:
        title = titles.get(what, f"{what}, mean ×100") + ", 95% interval"
        return plots.intervals(
            alt,
            [row for row in rows if row["what"] == what],
            lambda field: alt.X(f"{field}:Q", title=title, scale=alt.Scale(domain=[0, 100])),
            alt.value(colour),
            y=alt.Y("model:N", title=None, sort=order, axis=alt.Axis(labelLimit=300)),
        ).properties(width=_WIDTH, height=alt.Step(20))

    kinds = dict.fromkeys(row["what"] for row in rows)
    return alt.vconcat(*(panel(what, c) for what, c in zip(kinds, _COLOURS, strict=True)))


def _chosen(report: Mapping[str, Any]) -> Rows:
    rows = []
    for run, held in report.get("models", {}).items():
        for name in FIELDS:
            own = rubric.load().dimensions[name]
            labels = {k: v.label["en"] for k, v in {**own.levels, **own.descriptors}.items()}
            for place, (chosen, n) in enumerate(held["deciding"][name].items()):
                rows.append(
                    {
                        "model": report["names"][run],
                        "dimension": own.label["en"],
                        "choice": labels[chosen],
                        "place": place,
                        "share": 100 * n / held["ratings"],
                    }
                )
    return rows


def _draw_chosen(alt: Any, rows: Rows) -> Any:
    order = list(dict.fromkeys(row["model"] for row in rows))

    def panel(dimension: str) -> Any:
        own = [row for row in rows if row["dimension"] == dimension]
        names = list(dict.fromkeys(row["choice"] for row in own))
        colour = alt.Color(
            "choice:N",
            title=None,
            sort=names,
            scale=alt.Scale(domain=names, range=list(_SCALE)),
            legend=alt.Legend(orient="bottom", columns=2, labelLimit=260),
        )
        bars = alt.Chart(alt.Data(values=own)).mark_bar()
        return bars.encode(
            x=alt.X("share:Q", title="% of ratings", scale=alt.Scale(domain=[0, 100])),
            y=alt.Y("model:N", title=dimension, sort=order, axis=alt.Axis(labelLimit=300)),
            color=colour,
            order=alt.Order("place:Q"),
        ).properties(width=_WIDTH, height=alt.Step(20))

    panels = [panel(name) for name in dict.fromkeys(row["dimension"] for row in rows)]
    return alt.vconcat(*panels).resolve_scale(color="independent")


def _rhos(report: Mapping[str, Any]) -> Rows:
    return [
        {
            "metric": SHARES.get(row["metric"], row["metric"]),
            "level": LEVEL_TITLES[row["level"]],
            "dimension": _label(row["dimension"]),
            "value": row["value"],
            "low": row["ci95"][0],
            "high": row["ci95"][1],
        }
        for row in report["metrics"]["correlations"]
        if row["ci95"] is not None
    ]


def _draw_rhos(alt: Any, rows: Rows) -> Any:
    metrics = list(dict.fromkeys(row["metric"] for row in rows))
    dimensions = list(dict.fromkeys(row["dimension"] for row in rows))
    legend = alt.Legend(orient="bottom")
    colour = alt.Color(
        "dimension:N",
        title=None,
        scale=alt.Scale(domain=dimensions, range=plots.COLOURS),
        legend=legend,
    )

    def panel(level: str) -> Any:
        own = [row for row in rows if row["level"] == level]
        chart = plots.intervals(
            alt,
            own,
            lambda f: alt.X(
                f"{f}:Q", title=f"rho {level}, 95% interval", scale=alt.Scale(domain=[-1, 1])
            ),
            colour,
            y=alt.Y("metric:N", title=None, sort=metrics, axis=alt.Axis(labelLimit=300)),
            yOffset=alt.YOffset("dimension:N", sort=dimensions, scale=alt.Scale(paddingOuter=0.5)),
        )
        zero = alt.Chart(alt.Data(values=[{"zero": 0}])).mark_rule(color="#888888")
        return (zero.encode(x="zero:Q") + chart).properties(width=_WIDTH, height=alt.Step(14))

    levels = dict.fromkeys(row["level"] for row in rows)
    return alt.vconcat(*(panel(level) for level in levels))
