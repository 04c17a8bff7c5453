"""Scored runs as plots: PNG and SVG, the same on every machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hk_fs_bench.comparing import labels
from hk_fs_bench.errors import UserError
from hk_fs_bench.runs import check_writable, write_bytes
from hk_fs_bench.scoring import CONTEXT_TASKS, ScoredRun

# vl-convert brings this font, so that a picture is the same on every machine.
FONT = "Liberation Sans"
COLOURS = ["#1f5a94", "#b5651d", "#5a8f3d", "#7fb0dd", "#8c4a8c"]
_TASK = {CONTEXT_TASKS[0]: "with Hong Kong context", CONTEXT_TASKS[1]: "without"}
_COSTS = {
    "tokens": "output tokens a question",
    "seconds": "seconds a question",
    "usd": "USD a question",
}

Rows = list[dict[str, Any]]


def draw(runs: Sequence[ScoredRun], folder: Path) -> list[Path]:
    """Write every plot for which the runs have figures into `folder`, as .png and .svg.

    Returns:
        The files written.

    Raises:
        UserError: altair or vl-convert is missing, or the folder can't be written.
    """
    alt = prepare(folder)
    names = labels(runs)
    tasks = list(dict.fromkeys(row["name"] for row in _multiple(runs, names)))
    # Of costs and groups one task is drawn: those of several can't be told apart on a plot.
    main = [task for task in (CONTEXT_TASKS[0], *tasks) if task in tasks][:1]
    plots: dict[str, tuple[list[str], Rows, Callable[[Any, Rows], Any]]] = {
        "accuracy": (tasks, _accuracy(runs, names), _draw_accuracy),
        "context": (list(CONTEXT_TASKS), _context(runs, names), _draw_context),
        "cost": (main, _cost(runs, names, main), _draw_cost),
        "groups": (main, _groups(runs, names, main), _draw_groups),
    }
    written = []
    for name, (of, rows, make) in plots.items():
        if not rows:
            continue
        title = alt.TitleParams(
            ", ".join(of),
            subtitle=_about(runs, names, of, rows),
            anchor="start",
            fontSize=12,
            subtitleFontSize=10,
        )
        for ending, content in pictures(make(alt, rows).properties(title=title)).items():
            path = folder / f"{name}.{ending}"
            write_bytes(path, content)
            written.append(path)
    return written


def _about(
    runs: Sequence[ScoredRun], names: Sequence[str], tasks: Sequence[str], rows: Rows
) -> list[str]:
    """What a picture that travels alone has to say: data, regime, n, and what is not whole."""
    shown = {row["run"]: one for name, one in zip(names, runs, strict=True) for row in rows
             if row["run"] == name}  # fmt: skip
    protocols = [one.scores["protocol"] for one in shown.values()]
    data = {f"{p['dataset_version']} ({p['dataset_sha256'][:12]})" for p in protocols}
    known = [one.scores["tasks"].get(task, {}) for one in shown.values() for task in tasks]
    counts = [figures["accuracy"]["n"] for figures in known if figures.get("answered")]
    n = " to ".join(map(str, sorted({min(counts), max(counts)})))
    lines = [
        f"dataset {', '.join(sorted(data))}; regime "
        f"{', '.join(sorted({p['regime'] for p in protocols}))}; n {n} questions a run and task"
    ]
    if cut := [name for name, one in shown.items() if not one.scores["complete"]]:
        lines.append(f"incomplete, over what was answered: {', '.join(cut)}")
    return lines


def prepare(folder: Path) -> Any:
    """altair, and a folder that can be written, or a UserError: before the runs are scored."""
    alt = library()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} can't be made: {error.strerror}") from None
    check_writable(folder)
    return alt


def library() -> Any:
    """altair, or a UserError that says how to get it."""
    try:
        import altair
        import vl_convert  # noqa: F401
    except ImportError:
        raise UserError("plots need altair: pip install 'hk-fs-bench[score]'") from None
    return altair


def pictures(chart: Any) -> dict[str, bytes]:
    """A chart as "png" and "svg"."""
    import vl_convert

    return {"png": vl_convert.vegalite_to_png(_spec(chart), scale=2), "svg": svg(chart)}


def svg(chart: Any) -> bytes:
    """A chart as SVG."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_svg(_spec(chart)).encode())


def _spec(chart: Any) -> str:
    chart = chart.properties(background="white", padding=10)
    return str(chart.configure(font=FONT).configure_view(stroke="#dddddd").to_json())


def _point(figure: Mapping[str, Any]) -> dict[str, Any] | None:
    """A figure in percent with its interval; None where it is undefined."""
    if figure.get("value") is None or figure.get("ci95") is None:
        return None
    low, high = figure["ci95"]
    return {"value": 100 * figure["value"], "low": 100 * low, "high": 100 * high, "n": figure["n"]}


def _multiple(runs: Sequence[ScoredRun], names: Sequence[str]) -> Rows:
    """One row a run and multiple-choice task: its figures."""
    return [
        {"run": name, "name": task, "task": _TASK.get(task, task), "figures": figures}
        for name, one in zip(names, runs, strict=True)
        for task, figures in one.scores["tasks"].items()
        if "accuracy" in figures
    ]


def _accuracy(runs: Sequence[ScoredRun], names: Sequence[str]) -> Rows:
    return [
        {"run": row["run"], "task": row["task"]} | point
        for row in _multiple(runs, names)
        if (point := _point(row["figures"]["accuracy"]))
    ]


def _context(runs: Sequence[ScoredRun], names: Sequence[str]) -> Rows:
    """With and without context and the difference, for the runs that have both."""
    both = set(_TASK.values())
    rows = [row for row in _accuracy(runs, names) if row["task"] in both]
    having = [row["run"] for row in rows]
    differences = {
        name: _difference(one.scores["context"]["difference"])
        for name, one in zip(names, runs, strict=True)
        if one.scores["context"]
    }
    return [
        row | {"difference": differences.get(row["run"], "")}
        for row in rows
        if having.count(row["run"]) == 2
    ]


def _difference(figure: Mapping[str, Any]) -> str:
    if figure["value"] is None or figure["ci95"] is None:
        return ""
    low, high = figure["ci95"]
    return f"{100 * figure['value']:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"


def _cost(runs: Sequence[ScoredRun], names: Sequence[str], tasks: Sequence[str]) -> Rows:
    """Accuracy and costs of each run."""
    rows = []
    for row in _multiple(runs, names):
        if row["name"] not in tasks:
            continue
        figures = row["figures"]
        costs = {"tokens": figures["tokens"]["output"]}
        costs |= {name: figures[name] for name in ("seconds", "usd")}
        for kind, figure in costs.items():
            if figure["mean"] and (point := _point(figures["accuracy"])):
                cost = {"cost": figure["mean"], "kind": _COSTS[kind]}
                rows.append({"run": row["run"]} | point | cost)
    return rows


def _groups(runs: Sequence[ScoredRun], names: Sequence[str], tasks: Sequence[str]) -> Rows:
    return [
        # Of few questions the interval alone, as in the tables.
        {"run": row["run"], "field": title, "group": group}
        | point
        | ({"value": None} if figure["small"] else {})
        for row in _multiple(runs, names)
        if row["name"] in tasks
        for field, title in (("part", "Part"), ("level", "level"))
        for group, figure in row["figures"]["by"][field]["groups"].items()
        if (point := _point(figure))
    ]


def intervals(alt: Any, rows: Rows, x: Any, colour: Any, **place: Any) -> Any:
    """Points with their intervals: `rows` have `value` (null draws no point), `low`, `high`."""
    base = alt.Chart(alt.Data(values=rows)).encode(color=colour, **place)
    rule = base.mark_rule(strokeWidth=2).encode(x=x("low"), x2="high:Q")
    dots = base.transform_filter("datum.value != null")
    return rule + dots.mark_point(filled=True, size=60, opacity=1).encode(x=x("value"))


def _percent_axis(alt: Any, title: str) -> Callable[[str], Any]:
    scale = alt.Scale(domain=[0, 100])
    return lambda field: alt.X(f"{field}:Q", title=title, scale=scale)


def _by_task(alt: Any) -> Any:
    legend = alt.Legend(orient="bottom", columns=2, labelLimit=400)
    return alt.Color("task:N", title=None, sort=None, scale=alt.Scale(range=COLOURS), legend=legend)


def _by_run(alt: Any) -> Any:
    legend = alt.Legend(orient="bottom", columns=3, labelLimit=400)
    scale = alt.Scale(scheme="tableau20")
    return alt.Color("run:N", title=None, sort=None, scale=scale, legend=legend)


def _draw_accuracy(alt: Any, rows: Rows) -> Any:
    x = _percent_axis(alt, "accuracy %, 95% interval")
    best = alt.EncodingSortField("value", op="max", order="descending")
    y = alt.Y("run:N", title=None, sort=best, axis=alt.Axis(labelLimit=400))
    offset = alt.YOffset("task:N", sort=None, scale=alt.Scale(paddingOuter=0.4))
    chart = intervals(alt, rows, x, _by_task(alt), y=y, yOffset=offset)
    return chart.properties(width=460, height=alt.Step(14))


def _draw_context(alt: Any, rows: Rows) -> Any:
    x = _percent_axis(alt, "accuracy %; at the edge: difference in points, 95% interval")
    best = alt.EncodingSortField("value", op="max", order="descending")
    y = alt.Y("run:N", title=None, sort=best, axis=alt.Axis(labelLimit=400))
    base = alt.Chart(alt.Data(values=rows)).encode(y=y)
    line = base.mark_line(color="#bbbbbb", strokeWidth=3).encode(x=x("value"), detail="run:N")
    dots = base.mark_point(filled=True, size=90, opacity=1)
    # Points on the plot, the paired difference and its interval at its edge.
    once = base.transform_filter(alt.datum.task == _TASK[CONTEXT_TASKS[0]])
    words = once.mark_text(align="left").encode(x=alt.value(470), text="difference:N")
    chart = line + dots.encode(x=x("value"), color=_by_task(alt)) + words
    return chart.properties(width=460, height=alt.Step(26))


def _draw_cost(alt: Any, rows: Rows) -> Any:
    colour = _by_run(alt)

    def one(kind: str) -> Any:
        own = [row for row in rows if row["kind"] == kind]
        axis = alt.Axis(labelOverlap="greedy", labelSeparation=8, grid=False, format=".3~g")
        scale = alt.Scale(type="log", nice=False, padding=25)
        x = alt.X("cost:Q", title=f"{kind}, logarithmic", scale=scale, axis=axis)
        y = alt.Scale(domain=[0, 100])
        base = alt.Chart(alt.Data(values=own)).encode(x=x, color=colour)
        rule = base.mark_rule(strokeWidth=2).encode(
            y=alt.Y("low:Q", title="accuracy %, 95% interval", scale=y), y2="high:Q"
        )
        dots = base.mark_point(filled=True, size=70, opacity=1)
        dots = dots.encode(y=alt.Y("value:Q", scale=y))
        return (rule + dots).properties(width=280, height=280)

    known = {row["kind"] for row in rows}
    return alt.hconcat(*(one(kind) for kind in _COSTS.values() if kind in known))


def _draw_groups(alt: Any, rows: Rows) -> Any:
    x = _percent_axis(alt, "accuracy %, 95% interval (of few questions alone)")

    def one(field: str) -> Any:
        own = [row for row in rows if row["field"] == field]
        y = alt.Y("group:N", title=field, axis=alt.Axis(labelLimit=200))
        offset = alt.YOffset("run:N", sort=None, scale=alt.Scale(paddingOuter=0.3))
        chart = intervals(alt, own, x, _by_run(alt), y=y, yOffset=offset)
        return chart.properties(width=400, height=alt.Step(8))

    return alt.vconcat(*(one(field) for field in dict.fromkeys(row["field"] for row in rows)))
