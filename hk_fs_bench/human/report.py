"""The report of a study: report.json, one page that needs nothing else, tables for the terminal."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from hk_fs_bench.errors import UserError
from hk_fs_bench.human import judge_figures, published_scores, ratings, report_plots
from hk_fs_bench.human.metric_values import read_metrics
from hk_fs_bench.human.report_cells import Section
from hk_fs_bench.human.report_data import collect
from hk_fs_bench.human.report_tables import lead, sections, words
from hk_fs_bench.human.study import read_key, read_study
from hk_fs_bench.items import jsonl_rows
from hk_fs_bench.runs import write_json, write_text

DATA, PAGE = "report.json", "report.html"
_WIDTH = 150


def write_report(
    study: Path, runs: Sequence[Path], out: Path, *, publish: Path | None = None
) -> list[str]:
    """Write report.json and report.html into `out`, and with `publish` the study's scores there.

    Args:
        runs: the rated runs, scored by scripts/score.py; without one its metrics are missing.
        publish: the folder leaderboard/studies; needs every rated run.

    Returns:
        The tables as lines for the terminal, and the files written.

    Raises:
        UserError: no ratings, a broken study, a run that is not of it, a place that can't be
            written.
    """
    held, key = read_study(study), read_key(study)
    rows = ratings.read_ratings(study)
    path = study / ratings.UNRESOLVED
    raw = path.read_bytes() if path.is_file() else b""
    unresolved = [row for _, row in jsonl_rows(raw, path.name)]
    metrics = read_metrics(held, key, runs)
    summaries = judge_figures.read_summaries(study)
    report = collect(held, key, rows, unresolved, metrics, summaries)
    if "models" not in report and not report["judges"]:
        raise UserError(f"{study} has no rating of a model's answer yet: nothing to report")
    parts = sections(report)
    page = render(report, parts)
    if publish is not None and metrics.changed:
        raise UserError(
            f"--publish: the run of {', '.join(sorted(metrics.changed))} was answered again since "
            "its answers were rated; give the run as it was"
        )
    made = published_scores.of_study(report, metrics.folders) if publish is not None else {}
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{out} can't be made: {error.strerror}") from None
    write_json(out / DATA, report)
    write_text(out / PAGE, page)
    files = [out / PAGE, out / DATA]
    if publish is not None:
        files += published_scores.write(made, publish)
    return [*lines(report, parts), *(f"written: {file}" for file in files)]


def render(report: Mapping[str, Any], parts: Sequence[Section]) -> str:
    """The page: no script, no request, every text escaped."""
    folder = resources.files(__package__).joinpath("report_page")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    template = environment.from_string(folder.joinpath("page.html").read_text("utf-8"))
    alts = words()["pictures"]
    pictures = {
        name: {
            "source": f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}",
            "alt": alts[name],
        }
        for name, svg in report_plots.draw(report).items()
    }
    return template.render(
        title=words()["title"].format(study=report["study"]),
        css=Markup(folder.joinpath("page.css").read_text("utf-8")),
        lead=lead(report),
        sections=parts,
        plots=pictures,
    )


def lines(report: Mapping[str, Any], parts: Sequence[Section]) -> list[str]:
    """The tables as lines of text; what explains them stands in the page."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    text = io.StringIO()
    console = Console(file=text, width=_WIDTH, no_color=True, highlight=False)
    for part in parts:
        for held in part.tables:
            if not held.rows:
                console.print(f"{held.title}: {held.note or 'none'}", markup=False)
                continue
            table = Table(title=escape(held.title), title_justify="left")
            for column in held.columns:
                table.add_column(escape(column), overflow="fold")
            for row in held.rows:
                table.add_row(*map(escape, row))
            console.print(table)
            if held.note:
                console.print(held.note, markup=False)
    return [*lead(report), *text.getvalue().splitlines()]
