"""Have experts rate open answers, blind: python scripts/human_eval.py COMMAND --help"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from hk_fs_bench import commands
from hk_fs_bench.errors import UserError, run_command

if TYPE_CHECKING:
    from hk_fs_bench.human.candidates import Source
    from hk_fs_bench.items import Dataset


def read_sources(folders: list[Path], dataset: Dataset) -> list[Source]:
    from hk_fs_bench.human import candidates

    runs = [candidates.open_run(folder, dataset) for folder in folders]
    names = candidates.run_names([run.folder for run in runs])
    return [candidates.read_source(run, n, dataset) for run, n in zip(runs, names, strict=True)]


def do_assign(args: argparse.Namespace) -> list[str]:
    from hk_fs_bench import items
    from hk_fs_bench.human import assign, candidates, study, workload

    if not args.run and not args.plan:
        return draw_again(args)
    if args.third or args.keep_sent:
        raise UserError("--third and --keep-sent are for a study that is under way; name no runs")
    dataset = items.load(args.dataset, args.revision)
    raters = workload.read_raters(args.raters) if args.raters else None
    sources = read_sources(args.run, dataset)
    if args.plan:
        asked, notes = assign.chosen_items(dataset, sources, args.questions)
        wanted = Counter(workload.role_of(item.engineering_related) for item in asked)
        # Before there are runs: as many models as one question shows.
        models = len(sources) or study.defaults()["most_candidates"]
        needs = workload.needs(wanted, models, raters, args.raters_per_question)
        return [*notes, *workload.lines(needs, raters is not None)]
    if raters is None or args.seed is None:
        raise UserError("a new study needs --raters FILE and --seed N")
    if (args.expert_answers is None) != args.no_expert_answers:
        raise UserError(
            "every batch holds an expert-written answer, blind: give --expert-answers FILE (one "
            "expert's own answers to some of the questions), or do without: --no-expert-answers"
        )
    given = {"expert": args.expert_answers, "known_bad": args.known_bad}
    texts = {k: candidates.read_answers(path, dataset) for k, path in given.items() if path}
    names = {k: path and path.name for k, path in given.items()}
    controls = assign.Controls(texts.get("expert"), texts.get("known_bad", {}), names)
    return assign.new_study(
        args.study,
        dataset,
        sources,
        raters,
        controls,
        seed=args.seed,
        per_question=args.raters_per_question,
        most=args.questions,
    )


def draw_again(args: argparse.Namespace) -> list[str]:
    from hk_fs_bench.human import assign, ratings, study, workload

    fixed = ("seed", "expert_answers", "known_bad", "raters_per_question", "questions", "dataset")
    if given := [name for name in fixed if getattr(args, name) is not None]:
        raise UserError(
            f"--{given[0].replace('_', '-')} is for a new study, which needs runs; what "
            f"{args.study} asks is fixed"
        )
    held = study.read_study(args.study)
    present = [one for one in held.raters.values() if not one.left]
    raters = workload.read_raters(args.raters) if args.raters else present
    called = assign.disputed(ratings.read_ratings(args.study)) if args.third else set()
    done = ratings.rated_batches(args.study)
    notes = [f"{len(called)} questions call for a third rater"] if args.third else []
    found = assign.extend_study(args.study, raters, done, called, keep_sent=args.keep_sent)
    return [*notes, *found]


def do_forms(args: argparse.Namespace) -> list[str]:
    from hk_fs_bench.human import forms

    if args.mcq:
        from hk_fs_bench import items

        if args.out is None or args.organiser is None:
            raise UserError("--mcq needs --out DIR and --organiser FILE")
        made = forms.write_mcq_forms(
            args.out, items.load(args.dataset), args.seed, args.organiser, args.participant
        )
        return [str(path) for path in made]
    if args.study is None:
        raise UserError("name the study's folder, or give --mcq")
    out = args.out or args.study / "forms"
    made = forms.write_forms(args.study, out, args.format or forms.FORMATS)
    return [f"{len(made)} forms in {out}"]


def do_import(args: argparse.Namespace) -> list[str]:
    if args.mcq:
        from hk_fs_bench import items
        from hk_fs_bench.human import mcq_baseline

        return mcq_baseline.write_baseline(args.study, args.file, items.load(args.dataset))
    from hk_fs_bench.human import importing

    return importing.bring_in(args.study, args.file, emails=args.emails, settle=args.settle)


def do_report(args: argparse.Namespace) -> list[str]:
    from hk_fs_bench.human import candidates, report

    out = args.out or args.study / "report"
    runs = [candidates.open_run(folder).folder for folder in args.run]
    return report.write_report(args.study, runs, out, publish=args.publish)


def do_judge(args: argparse.Namespace) -> list[str]:
    from hk_fs_bench.human import judge

    asked = judge.api_judge(
        args.model,
        service_id=args.judge_id,
        base_url=args.judge_url,
        max_cost=args.max_cost,
        models_file=args.models_file,
    )
    rate = judge.plan if args.dry_run else judge.judge_study
    return rate(args.study, asked, swapped=args.swapped)


def do_withdraw(args: argparse.Namespace) -> list[str]:
    from hk_fs_bench.human import withdrawal

    return withdrawal.withdraw(args.study, args.rater)


def main() -> None:
    args = commands.parse(__file__, globals())
    for line in args.run_command(args):
        print(line)


if __name__ == "__main__":
    run_command(main)
