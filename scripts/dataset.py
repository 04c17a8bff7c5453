"""Make and guard editions of the dataset: python scripts/dataset.py COMMAND --help"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hk_fs_bench import commands
from hk_fs_bench.errors import UserError, run_command

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = ROOT / "dataset_card"
TODAY = datetime.now(UTC).date().isoformat()


def show(found: Any) -> None:
    """Print lines, a table, or what a mapping holds."""
    if isinstance(found, dict):
        found = [f"{name}: {value}" for name, value in found.items()]
    if isinstance(found, list):
        print("\n".join(map(str, found)))
        return
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else 140).print(found)


def do_index_code(args: argparse.Namespace) -> None:
    from hk_fs_bench import code_index

    index = code_index.build_index(args.pdf)
    print(f"edition {index.edition}, {len(index.entries)} entries, in {code_index.cache_dir()}")
    if args.facts:
        args.facts.write_text(code_index.facts_json(index), "utf-8")


def do_manifest(args: argparse.Namespace) -> None:
    from hk_fs_bench import release

    made = release.refresh(args.folder, TEMPLATES, args.version)
    counts = {split: f"{entry['items']} items" for split, entry in made["splits"].items()}
    show({"version": made["version"], "sha256": made["sha256"], **counts})


def do_validate(args: argparse.Namespace) -> bool:
    from hk_fs_bench import release, validating

    report = validating.validate(args.folder, args.profile, probe=not args.quick)
    show(report.table())
    show([*report.findings, f"{len(report.failures)} failures"])
    if args.save:
        release.save_baselines(args.folder, report)
    return not report.ok


def do_draft(args: argparse.Namespace) -> None:
    from hk_fs_bench import draft_files

    show(draft_files.write_drafts(**{k: v for k, v in vars(args).items() if k != "run_command"}))


def do_import(args: argparse.Namespace) -> None:
    from hk_fs_bench import import_mapping, importing, release

    done = importing.import_file(args.file, import_mapping.read_mapping(args.mapping), args.out)
    release.refresh(args.out, TEMPLATES)
    show([*done.notes, f"{args.out}: {done.count} items as {done.split}"])


def do_dedupe(args: argparse.Namespace) -> bool:
    from hk_fs_bench import dedupe, runs, validating

    new = validating.read_candidates(args.new) if args.new else []
    found = dedupe.find_overlaps(validating.all_rows(args.folder), new)
    show(dedupe.table(found))
    if args.out:
        runs.write_jsonl(args.out, (vars(overlap) for overlap in found))
    return any(overlap.kind == "near-identical" for overlap in found)


def do_review(args: argparse.Namespace) -> None:
    from hk_fs_bench import review_rounds as rounds

    if args.out:
        team = {"architect": args.architects, "fire_engineer": args.fire_engineers}
        show(rounds.open_round(args.folder, args.out, team, TODAY, args.sample))
    elif args.keys:
        show(rounds.hand_out_keys(args.folder, args.keys, args.partial))
    elif args.bring_in:
        show(vars(rounds.bring_in(args.folder, args.bring_in, TODAY)))
    else:
        show(rounds.decisions(args.folder) if args.decide else rounds.figures(args.folder))


def do_errata(args: argparse.Namespace) -> None:
    from hk_fs_bench import correct, items

    how = (args.version, args.reason, TODAY)
    if args.previous:
        show(correct.record_differences(args.folder, items.load(args.previous), *how))
    elif args.remove and args.item:
        show(correct.withdraw(args.folder, args.item, *how))
    elif args.set and len(args.item) == 1:
        show(correct.correct(args.folder, args.item[0], correct.field_values(args.set), *how))
    else:
        raise UserError("name one item and --set, or items and --remove, or --previous FOLDER")


def do_release(args: argparse.Namespace) -> None:
    from hk_fs_bench import release

    made, _ = release.release(args.folder, args.version, TODAY, TEMPLATES)
    show({"released": made["version"], "sha256": made["sha256"]})


def do_publish(args: argparse.Namespace) -> None:
    from hk_fs_bench import publish

    plan = publish.make_plan(args.folder, args.repo, args.gated, preview=args.dry_run)
    show(plan.lines())
    if not args.dry_run:
        if not args.yes:
            raise UserError("nothing was sent; give --yes to publish exactly this")
        show({"published as": publish.publish(plan), "tag": plan.tag})


def main() -> int:
    args = commands.parse(__file__, globals())
    return int(args.run_command(args) or 0)


if __name__ == "__main__":
    run_command(main)
