"""What the page of a question shows, and the list of all questions: keys, and how models did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hk_fs_bench.leaderboard.site import shown
from hk_fs_bench.leaderboard.site.board import OPEN_TASK, OUTCOMES, Board, page_of
from hk_fs_bench.leaderboard.site.entry_page import row_values
from hk_fs_bench.schema import MCQItem


def context(board: Board, name: str) -> dict[str, Any]:
    """The template's variables."""
    item = board.dataset.by_id[name]
    common = {"id": name, "item": item, "topic": _words_of(item.topic)}
    if isinstance(item, MCQItem):
        return common | _choice(board, name, item)
    return common | _open(board, name)


def _choice(board: Board, name: str, item: MCQItem) -> dict[str, Any]:
    tasks = [task for task in board.choice_tasks if name in board.place[task]]
    rows = [
        (row, tuple(board.outcome(row.entry, task, name) for task in tasks))
        for row in board.ordered
    ]
    # A question that an entry was not asked, as after an erratum, is no row of its.
    asked = [(row, found) for row, found in rows if any(o.kind != "none" for o in found)]
    counts = [board.chosen(task, name) for task in tasks]
    distractors: dict[str, Any] = dict((item.distractors or {}).items())
    letters = [
        {
            "letter": letter,
            "text": text,
            "distractor": distractors.get(letter),
            "chosen": [_chose(chosen, letter) for chosen in counts],
        }
        for letter, text in zip("ABCD", item.choices, strict=True)
    ]
    return {
        "choices": letters,
        "unread": [_chose(chosen, ".") for chosen in counts],
        "tasks": [board.words["short_tasks"][task] for task in tasks],
        "entries": asked,
        "outcomes": [o for o in OUTCOMES if any(x.kind == o for _, found in asked for x in found)],
    }


def _chose(chosen: Counter[str], letter: str) -> str:
    """How many of the counted entries chose an option; "." for what could not be read."""
    return f"{chosen[letter]} of {chosen.total()}"


def _open(board: Board, name: str) -> dict[str, Any]:
    n = board.place[OPEN_TASK][name]
    rows = []
    for row in board.ordered:
        figures = row.entry["tasks"].get(OPEN_TASK)
        if figures is None or figures["outcomes"]["status"][n] == " ":
            continue
        status = board.content["status_letters"][figures["outcomes"]["status"][n]]
        rows.append((row, status, row_values(board, figures, n)))
    metrics = sorted({metric for *_, values in rows for metric in values})
    return {"entries": rows, "metrics": metrics}


def listing(board: Board) -> list[dict[str, Any]]:
    """Every question with how the counted entries did, in the board's order."""
    tasks = board.choice_tasks
    found: list[dict[str, Any]] = []
    for name in board.questions(open_ones=False):
        kinds = board.kinds(name)
        counts = [board.chosen(task, name) for task in tasks]
        shares = [
            _share(chosen, [x for x, kind in kinds.items() if kind == "right"]) for chosen in counts
        ]
        unsafe = [x for x, kind in kinds.items() if kind == "unsafe"]
        first = _share(counts[0], unsafe) if counts else None
        found.append(_listed(board, name, "choice", shares, first))
    for name in board.questions(open_ones=True):
        found.append(_listed(board, name, "open", [None for _ in tasks], None))
    return found


def _share(chosen: Counter[str], letters: Sequence[str]) -> float | None:
    return sum(chosen[letter] for letter in letters) / chosen.total() if chosen else None


def _listed(
    board: Board, name: str, kind: str, shares: list[float | None], unsafe: float | None
) -> dict[str, Any]:
    item = board.dataset.by_id[name]
    return {
        "id": name,
        "page": page_of(name),
        "kind": kind,
        "item": item,
        "topic": _words_of(item.topic),
        "shares": [(shown.percent(share, 0), share) for share in shares],
        "unsafe": (shown.percent(unsafe, 0), unsafe),
    }


def _words_of(topic: str | None) -> str:
    return (topic or "").replace("-", " ")
