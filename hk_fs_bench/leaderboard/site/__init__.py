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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hk_fs_bench.errors import UserError

if TYPE_CHECKING:
    from hk_fs_bench.items import Dataset

Answers = Callable[[str], Mapping[tuple[str, str], str]]
"""Slug of an entry → its answers' texts by (task, item id), of sample 0 and the first order of
options: open answers, and the answers to multiple-choice questions that could not be read."""

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
    from hk_fs_bench.leaderboard.site.pages import render

    if leaderboard["dataset"]["sha256"] != dataset.sha256:
        raise UserError(
            f"the board stands on dataset {leaderboard['dataset']['version']}, and "
            f"{dataset.source} is {dataset.version}; build the board again"
        )
    _refuse_foreign(folder)
    count = 0
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as held:
            made = Path(held, "site")
            shutil.copytree(Path(__file__).parent / "static", made / "static")
            for name, text in render(leaderboard, dataset, answers):
                path = made / name
                path.parent.mkdir(exist_ok=True)
                # Half a character has no UTF-8; a question mark stands for it.
                path.write_bytes(text.encode("utf-8", "replace"))
                count += 1
            if folder.exists():
                folder.rename(Path(held, "old"))
            made.rename(folder)
    except OSError as error:
        raise UserError(f"{folder} can't be written: {error.strerror or error}") from None
    return count


def _refuse_foreign(folder: Path) -> None:
    """UserError if a folder holds something that no site of ours has."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; name a folder for the site")
    found = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if foreign := [name for name in found if name not in _OURS]:
        raise UserError(f"{folder} holds {foreign[0]}, which no site has; name another folder")
