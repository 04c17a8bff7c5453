"""Score runs: tables with intervals, and items.jsonl and scores.json in each run's folder.

    python scripts/score.py RUN... [--metrics bleu,meteor,rouge,bertscore,citations]
        [--bertscore-model MODEL] [--judge MODEL] [--baseline RUN] [--items] [--plots DIR] [--json]

RUN is an lm-eval --output_path or a run folder. Several runs are compared.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hk_fs_bench import commands
from hk_fs_bench.errors import UserError, run_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from hk_fs_bench.items import Dataset
    from hk_fs_bench.judging import ApiJudge
    from hk_fs_bench.runs import Run


def read(folder: Path, args: argparse.Namespace, dataset: Dataset) -> Run:
    from hk_fs_bench import lm_eval_runs, run_parts, runs

    if parts := run_parts.folders(folder):
        return run_parts.merge(folder, [read(part, args, dataset) for part in parts])
    if lm_eval_runs.is_lm_eval_output(folder):
        return lm_eval_runs.convert(
            folder, model_id=args.model_id, tokenizer=args.tokenizer, dataset=dataset
        )
    return runs.read_run(folder)


def judge_of(args: argparse.Namespace) -> ApiJudge | None:
    if args.judge is None:
        return None
    from hk_fs_bench.judging import ApiJudge

    return ApiJudge(
        args.judge,
        service_id=args.judge_id,
        base_url=args.judge_url,
        max_cost=args.max_cost,
        models_file=args.models_file,
    )


def check(args: argparse.Namespace) -> None:
    """UserError for options that would be ignored."""
    from hk_fs_bench import lm_eval_runs

    for_judge = ("judge_id", "judge_url", "max_cost", "models_file")
    if args.judge is None and (vain := [n for n in for_judge if getattr(args, n) is not None]):
        raise UserError(f"--{vain[0].replace('_', '-')} is of the judge: name it with --judge")
    if args.brief and args.json:
        raise UserError("--json has everything; leave --brief out")
    if args.model_id or args.tokenizer:
        given = [*args.run, *([args.baseline] if args.baseline else [])]
        if not any(map(lm_eval_runs.is_lm_eval_output, given)):
            raise UserError("--model-id and --tokenizer are for an --output_path of lm_eval")


def main() -> None:
    args = commands.parse(__file__, globals())
    check(args)
    from rich.console import Console

    from hk_fs_bench import comparing, item_analysis, items, open_metrics, plots, scoring

    judge = judge_of(args)
    wanted = open_metrics.wanted(args.metrics, args.bertscore_model, args.bertscore_layers, judge)
    dataset = items.load(args.dataset, args.revision)
    folders = [*args.run, *([args.baseline] if args.baseline else [])]
    read_runs = [read(folder, args, dataset) for folder in folders]
    places = [run.folder.resolve() for run in read_runs]
    runs = list(dict(zip(places, read_runs, strict=True)).values())
    named = places[: len(args.run)]
    for place in {place: None for place in named if named.count(place) > 1}:
        print(f"note: {place.name} is named more than once, and counts once", file=sys.stderr)
    if args.model_id and len(runs) > 1:
        raise UserError("--model-id is for one run at a time")
    if args.baseline and len(runs) == 1:
        raise UserError("--baseline needs another run to compare with it")
    baseline = list(dict.fromkeys(places)).index(places[-1]) if args.baseline else None
    if args.plots:
        plots.prepare(args.plots)
    scored = scoring.score_runs(runs, dataset, wanted)
    out: dict[str, Any] = {"runs": [one.scores for one in scored]}
    if len(scored) > 1:
        out["comparison"] = comparing.compare(scored, baseline)
    if args.items:
        tasks = dict.fromkeys(
            t for one in scored for t, f in one.scores["tasks"].items() if "by" in f
        )
        out["items"] = [item_analysis.analyse(scored, dataset, task) for task in tasks]
    drawn = plots.draw(scored, args.plots) if args.plots else []
    if args.json:
        if len(scored) == 1:
            # One run: the content of its scores.json, as it always was.
            out = {**out.pop("runs")[0], **out}
        print(json.dumps(out, ensure_ascii=False, indent=2, allow_nan=False))
        return
    console = Console(width=None if sys.stdout.isatty() else 160, soft_wrap=True)
    show(console, out, runs, drawn, args.brief)
    if judge is not None:
        print(judge.summary)


def show(
    console: Console, out: dict[str, Any], runs: list[Run], drawn: list[Path], brief: bool
) -> None:
    from hk_fs_bench import report, report_notes, report_runs

    def say(lines: Sequence[str]) -> None:
        for line in lines:
            # What a file says is data, never a command to the terminal.
            safe = "".join(c if c.isprintable() else "\ufffd" for c in line)
            console.print(safe, markup=False, highlight=False)

    for scores, run in zip(out["runs"], runs, strict=True):
        say(report.first_lines(scores))
        for table in [report.scores_table(scores)] if brief else report.tables(scores):
            console.print(table)
        if brief:
            say(report_notes.brief(scores, run.folder))
        else:
            say([*report_notes.notes(scores), f"files: {run.folder}", ""])
    if comparison := out.get("comparison"):
        say([f"WARNING: {text}" for text in comparison["warnings"]])
        for table in report_runs.comparison_tables(comparison):
            console.print(table)
        say(report_runs.comparison_notes(comparison))
    for analysis in out.get("items", []):
        console.print(report_runs.item_table(analysis))
        say(report_runs.item_notes(analysis))
    if drawn:
        say([f"plots: {', '.join(path.name for path in drawn)} in {drawn[0].parent}"])


if __name__ == "__main__":
    run_command(main)
