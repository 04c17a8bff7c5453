"""Score runs: an lm-eval output folder or a run folder.

    python scripts/score.py FOLDER [--model-id org/name] [--dataset FOLDER|org/name] [--json]

Prints one table and writes items.jsonl and scores.json into the run's folder.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hk_fs_bench.errors import run_command


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, nargs="+", help="an lm-eval --output_path or a run")
    parser.add_argument("--model-id", help="org/name of a model that was a local folder")
    parser.add_argument("--tokenizer", help="folder or Hub id, for runs that name none")
    parser.add_argument("--dataset", help="folder or Hub id of the edition that was asked")
    parser.add_argument("--revision", help="commit or tag of that Hub dataset")
    parser.add_argument("--json", action="store_true", help="print scores.json instead of a table")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    from rich.console import Console

    from hk_fs_bench import items, lm_eval_runs, report, runs, scoring

    dataset = items.load(args.dataset, args.revision)
    console = Console(width=None if sys.stdout.isatty() else 160, soft_wrap=True)
    for folder in args.folder:
        if lm_eval_runs.is_lm_eval_output(folder):
            run = lm_eval_runs.convert(folder, model_id=args.model_id, tokenizer=args.tokenizer)
        else:
            run = runs.read_run(folder)
        scores = scoring.score(run, dataset)
        if args.json:
            print((run.folder / "scores.json").read_text("utf-8"), end="")
            continue
        for line in report.first_lines(scores):
            console.print(line, markup=False, highlight=False)
        console.print(report.scores_table(scores))
        for line in [*report.notes(scores), f"files: {run.folder}"]:
            console.print(line, markup=False, highlight=False)


if __name__ == "__main__":
    run_command(main)
