"""leaderboard.json → a static site: one folder that needs no server, no network and no script.

    words.yaml, columns.yaml   what the pages say, and the columns of the table
    shown                      figures as a reader sees them
    columns                    an entry → its cells
    plots, charts              where things stand on a plot
    entry_page, question_page  what a page of each shows
    templates/, static/        HTML by Jinja2, CSS, one script

Everything that a submission says is data: the templates escape it, links are http or https, and a
content security policy forbids what is not a file of the site.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hk_fs_bench.errors import UserError
from hk_fs_bench.leaderboard import processes

if TYPE_CHECKING:
    from hk_fs_bench.items import Dataset

Answers = Callable[[str], Mapping[tuple[str, str], str]]
"""Slug of an entry → its answers' texts by (task, item id), of sample 0 and the first order of
options: open answers, and the answers to multiple-choice questions that could not be read.
A function that another process can call."""

# Entries from which on more than one process writes the pages, and into how many parts.
_MANY, _MOST = 10, 8
# What the folder of a site holds; anything else in it is somebody's, and is not replaced.
_OURS = ("index.html", "plots.html", "questions.html", "entries", "questions", "static")


def build(
    leaderboard: Mapping[str, Any], dataset: Dataset, folder: Path, answers: Answers | None = None
) -> int:
    """Write the site whole, in place of the one that was there.

    Args:
        leaderboard: the content of leaderboard.json.
        dataset: the edition on which that board stands.
        folder: the site's; made, or replaced if it holds a site.
        answers: texts to show beside the keys; read entry by entry, kept by none.

    Returns:
        how many pages.

    Raises:
        UserError: another edition, a folder that holds something else, or can't be written.
    """
    if leaderboard["dataset"]["sha256"] != dataset.sha256:
        raise UserError(
            f"the board stands on dataset {leaderboard['dataset']['version']}, and "
            f"{dataset.source} is {dataset.version}; build the board again"
        )
    _refuse_foreign(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as held:
            made = Path(held, "site")
            shutil.copytree(Path(__file__).parent / "static", made / "static")
            for name in ("entries", "questions"):
                (made / name).mkdir()
            count = _write_pages(leaderboard, dataset, answers, made)
            if folder.exists():
                folder.rename(Path(held, "old"))
            made.rename(folder)
    except shutil.Error as error:
        raise UserError(f"{folder} can't be written: {error.args[0][0][-1]}") from None
    except OSError as error:
        raise UserError(f"{folder} can't be written: {error.strerror or error}") from None
    return count


def _write_pages(
    leaderboard: Mapping[str, Any], dataset: Dataset, answers: Answers | None, folder: Path
) -> int:
    """Write every page, those of a large board in as many processes as there are cores."""
    parts = processes.cores(_MOST) if len(leaderboard["entries"]) >= _MANY else 1
    work = partial(_write_part, leaderboard, dataset, answers, folder, parts)
    return sum(processes.each(work, range(parts)))


def _write_part(
    leaderboard: Mapping[str, Any],
    dataset: Dataset,
    answers: Answers | None,
    folder: Path,
    parts: int,
    part: int,
) -> int:
    from hk_fs_bench.leaderboard.site.pages import render

    count = 0
    for name, text in render(leaderboard, dataset, answers, part, parts):
        # Half a character has no UTF-8; a question mark stands for it.
        (folder / name).write_bytes(text.encode("utf-8", "replace"))
        count += 1
    return count


def _refuse_foreign(folder: Path) -> None:
    """UserError if a folder holds something that no site of ours has."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; name a folder for the site")
    found = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if foreign := [name for name in found if name not in _OURS]:
        raise UserError(f"{folder} holds {foreign[0]}, which no site has; name another folder")
