"""A rater withdraws: all that is theirs goes, and what was derived from it is made again."""

from __future__ import annotations

import shutil
from pathlib import Path

from hk_fs_bench.errors import UserError
from hk_fs_bench.human import returns
from hk_fs_bench.human.ratings import rebuild
from hk_fs_bench.human.study import read_study, write_study


def withdraw(folder: Path, rater: str) -> list[str]:
    """As `_withdraw`; UserError where a file can't be deleted."""
    try:
        return _withdraw(folder, rater)
    except OSError as error:
        raise UserError(
            f"{error.filename} can't be deleted: {error.strerror}; close it, make {folder} "
            "writable, and give the same command again"
        ) from None


def _withdraw(folder: Path, rater: str) -> list[str]:
    """Delete a rater's returns, assignment, comments and forms, and rebuild.

    The id alone stays, in study.json, so that their forms can't be brought in again by mistake.

    Returns:
        Lines that say what was deleted and what the organiser still has to delete elsewhere.
    """
    study = read_study(folder)
    again = rater in study.settings["withdrawn"]
    if not again and rater not in study.raters:
        raise UserError(f"{study.name} has no rater {rater}; it has {', '.join(study.raters)}")
    if not again:
        # The mark first: a command that is stopped half-way can't count these rows any more, and
        # the same command ends what it began.
        study.settings["withdrawn"].append(rater)
        study.settings["settled"].pop(rater, None)
        del study.raters[rater]
        study.assignment = [screen for screen in study.assignment if screen.rater != rater]
        write_study(study)
    count = returns.take_out(folder, rater)
    found = rebuild(folder)
    forms = [p for p in (folder / "forms").glob("*") if _is_of(p.stem, rater)]
    for path in forms:
        path.unlink()
    out = [f"{rater}: {count} ratings and {len(forms)} forms deleted; {found.lines()[0]}"]
    if (folder / "report").is_dir():
        shutil.rmtree(folder / "report")
        out.append("the report rested on them and is deleted; make it again with report")
    return [
        *out,
        "their questions lack a rater now: human_eval.py assign draws others",
        "delete by hand what lies outside this folder: the files they sent, their line in the "
        "file of e-mail addresses, their answers at Google Forms, backups, published reports",
    ]


def _is_of(stem: str, rater: str) -> bool:
    name, _, batch = stem.rpartition("-")
    return name == rater and batch.isdigit()
