"""The leaderboard: python scripts/leaderboard.py COMMAND --help"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hk_fs_bench import commands
from hk_fs_bench.errors import UserError, run_command

if TYPE_CHECKING:
    from hk_fs_bench.leaderboard.checking import How


def how(args: argparse.Namespace) -> How:
    from hk_fs_bench.leaderboard import checking, validating

    return checking.How(args.dataset, validating.today())


def do_submit(args: argparse.Namespace) -> None:
    from hk_fs_bench.leaderboard import submitting

    if len(args.run) > 1 and args.supersedes:
        raise UserError("--supersedes is for one run at a time")
    links = {n: url for n in ("model", "code", "paper") if (url := getattr(args, f"{n}_link"))}
    declared = submitting.Declaration(
        login=args.submitter,
        contamination=args.contamination,
        name=args.name,
        statement=args.statement,
        notes=args.notes,
        kind="plumbing_check" if args.plumbing_check else "result",
        supersedes=args.supersedes,
        links=links,
    )
    for run in args.run:
        folder, notes = submitting.submit(run, args.root, declared, how(args))
        print("\n".join([f"packed {folder}", *notes]))
    print(
        "Now commit that folder, and nothing else, on a branch of its own, push it to your fork, "
        "and open a pull request (with ?template=submission.md at the end of its address):\n"
        f"    git checkout -b submission && git add {args.root / 'submissions'} && "
        "git commit -m 'Submit a run'\n"
        "CI runs `python scripts/leaderboard.py validate` on it, as anybody can."
    )


def do_validate(args: argparse.Namespace) -> int:
    from dataclasses import replace

    from hk_fs_bench import open_metrics
    from hk_fs_bench.leaderboard import validating

    wanted = how(args)
    if args.full or args.bertscore_model:
        metrics = open_metrics.wanted("all", args.bertscore_model, args.bertscore_layers)
        wanted = replace(wanted, wanted=metrics)
    report = validating.validate(args.root, args.path, how=wanted, base=args.base, login=args.login)
    print("\n".join(report.lines()))
    return int(not report.ok)


def do_build(args: argparse.Namespace) -> int:
    from hk_fs_bench.leaderboard import building

    made = building.build(args.root, how(args), args.base)
    print("\n".join(made.lines()))
    return int(not made.report.ok)


def do_export(args: argparse.Namespace) -> None:
    from hk_fs_bench.leaderboard import exporting

    for path in exporting.export(args.root, args.out):
        print(path)


def do_rescore(args: argparse.Namespace) -> int:
    from hk_fs_bench.leaderboard import rescoring

    made = rescoring.rescore(args.root, how(args), args.base)
    print("\n".join(made.lines()))
    return int(not made.report.ok)


def main() -> int:
    args = commands.parse(__file__, globals())
    return int(args.run_command(args) or 0)


if __name__ == "__main__":
    run_command(main)
