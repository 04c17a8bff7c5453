"""What of the ratings may be published: screened comments, no times, no role of a small group."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from hk_fs_bench.errors import UserError
from hk_fs_bench.human.study import Study, defaults
from hk_fs_bench.runs import write_text
from hk_fs_bench.tables import read_table, text_of

COMMENTS, FOLDER = "comments.csv", "published"
_HEAD = ("rater", "candidate", "item_id", "comment", "publish")
_KEPT_BACK = ("comment", "rated_at", "source")
_YES = ("yes", "y", "x", "1", "true", "是")


def order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """The order of rows in every file of ratings."""
    place = (row["batch"] or 0, row["position"] or 0, row["candidate"], row.get("source", ""))
    return (row["kind"], row["rater"], *place)


def published(
    rows: Sequence[Mapping[str, Any]],
    study: Study,
    key: Mapping[str, Any],
    screened: Mapping[tuple[str, str], str],
) -> list[dict[str, Any]]:
    """The rows as they may be published.

    People get numbers in an order that says nothing; the role is left out where fewer than five of
    it rated; a comment stands only if the organiser screened it; times and sources are left out.

    Args:
        screened: (rater, candidate) → a comment that may be published.
    """
    people = {(r["rater"], r["role"]) for r in rows if r["kind"] == "expert"}
    sizes = Counter(role for _, role in people)
    least = defaults()["smallest_published_group"]

    def drawn(name: str) -> bytes:
        return sha256(f"{study.settings['seed']}/{name}".encode()).digest()

    mixed = sorted((name for name, _ in people), key=drawn)
    number = {name: f"R{n}" for n, name in enumerate(mixed, 1)}
    out = []
    for row in rows:
        one = {k: v for k, v in row.items() if k not in _KEPT_BACK}
        about = key["candidates"][row["candidate"]]
        one |= {"run": about["run"], "answer_kind": about["kind"], "repeat_of": about["repeat_of"]}
        if row["kind"] == "expert":
            one["rater"] = number[row["rater"]]
            one["role"] = row["role"] if sizes[row["role"]] >= least else None
        one["comment"] = screened.get((row["rater"], row["candidate"]))
        out.append(one)
    return sorted(out, key=order)


def write_comments(path: Path, rows: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """Write the organiser's sheet of comments; what was marked before stays marked.

    Returns:
        (rater, candidate) → the comment, where the organiser wrote "yes" beside it.
    """
    marks = _marks(path)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEAD)
    screened = {}
    for row in rows:
        if row["comment"] and row["kind"] == "expert":
            who, shown = (row["rater"], row["candidate"]), _plain(row["comment"])
            mark = marks.get((*who, shown), "")
            writer.writerow([*who, row["item_id"], shown, mark])
            if mark.lower() in _YES:
                screened[who] = row["comment"]
    write_text(path, "\ufeff" + text.getvalue())
    return screened


def _plain(comment: str) -> str:
    """A comment that no spreadsheet takes for a formula."""
    return f"'{comment}" if comment.startswith(("=", "+", "-", "@")) else comment


def _marks(path: Path) -> dict[tuple[str, str, str], str]:
    """(rater, candidate, comment) → what the organiser wrote beside it."""
    if not path.is_file():
        return {}
    table = read_table(path)
    if lacking := set(_HEAD) - set(table.columns):
        raise UserError(f"{path} lacks the column {', '.join(sorted(lacking))}; delete the file")
    cells = [[text_of(row.cells.get(head)) or "" for head in _HEAD] for row in table.rows]
    return {(rater, candidate, text): mark for rater, candidate, _, text, mark in cells}
