"""Submissions → leaderboard.json and the site: all of it, or nothing."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hk_fs_bench import answers
from hk_fs_bench.errors import UserError
from hk_fs_bench.leaderboard import board, entries, site, strict_json, validating
from hk_fs_bench.leaderboard.changes import changes
from hk_fs_bench.leaderboard.checking import How
from hk_fs_bench.leaderboard.editions import Editions
from hk_fs_bench.leaderboard.recompute import UNREADABLE
from hk_fs_bench.leaderboard.validating import Report
from hk_fs_bench.runs import write_text

FILE = "leaderboard.json"
_FIRST = (None, "", "rot0")


@dataclass
class Built:
    """What a build found and did."""

    report: Report
    done: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """All of it, for people."""
        return [*self.report.lines(), *self.done]


def build(root: Path, how: How, base: str | None = None) -> Built:
    """Check all submissions and write the board anew; a fault leaves it as it was.

    Raises:
        UserError: figures of entries would change, which `rescore` does and logs; a file that
            can't be written; this machine lacks what the check needs.
    """
    made, content = prepare(root, how, base)
    if content is None:
        return made
    with telling_of(root / FILE):
        changed = changes(read(root), content)
    if changed:
        slugs = dict.fromkeys(one["entry"] for one in changed)
        raise UserError(
            f"{len(changed)} figures of {len(slugs)} entries differ from {FILE}; `rescore` "
            "changes them, and logs what changed",
            [f"{c['entry']}: {c['task']}: {c['figure']}: {c['old']} → {c['new']}" for c in changed],
        )
    write(root, how, content, made)
    return made


def prepare(root: Path, how: How, base: str | None) -> tuple[Built, dict[str, Any] | None]:
    """The check of all submissions, and the board that follows; None where there is a fault."""
    report = validating.validate(root, how=how, base=base)
    made = Built(report)
    if not report.ok:
        made.done.append(f"{FILE} stays as it was")
        return made, None
    return made, board.assemble(report.checked, Editions(how.source), root)


def read(root: Path) -> dict[str, Any] | None:
    """The board of record; None where there is none.

    Raises:
        UserError: a file that is none, as after a merge with conflicts.
    """
    path = root / FILE
    if not path.is_file():
        return None
    with telling_of(path):
        found = strict_json.parse(path.read_bytes())
        str(found["dataset"]["version"])
        for entry in found["entries"]:
            entry["slug"], entry["key"], entry["tasks"].items()
        return dict(found)


@contextlib.contextmanager
def telling_of(path: Path) -> Iterator[None]:
    """One line for whatever a board that somebody broke does to its reader."""
    try:
        yield
        return
    except (OSError, strict_json.Fault) as error:
        why = str(error)
    except (KeyError, TypeError, AttributeError, IndexError):
        why = "it holds no entries as `build` writes them"
    raise UserError(f"{path} is no board ({why}); delete it, and build it from the submissions")


def write(root: Path, how: How, content: Mapping[str, Any], made: Built) -> None:
    """leaderboard.json and the site."""
    dataset = Editions(how.source).current

    text = board.to_text(content)
    board_of_record = json.loads(text)
    pages = site.build(board_of_record, dataset, root / "site", Texts(root, board_of_record))
    write_text(root / FILE, text)
    made.done.append(f"{FILE}: {len(content['entries'])} entries; site: {pages} pages")


@dataclass(frozen=True)
class Texts:
    """What models said, for the pages of a board.

    Args:
        root: the leaderboard folder.
        content: of leaderboard.json.
    """

    root: Path
    content: Mapping[str, Any]

    def __call__(self, slug: str) -> dict[tuple[str, str], str]:
        """(task, item id) → what an entry's model said there: see `site.Answers`."""
        entry = next(one for one in self.content["entries"] if one["slug"] == slug)
        return answers_of(self.root / "submissions" / slug, entry, self.content["questions"])


def answers_of(
    folder: Path, entry: Mapping[str, Any], questions: Mapping[str, Sequence[str]]
) -> dict[tuple[str, str], str]:
    """(task, item id) → what a model said there, for pages: sample 0, first order of options.

    Open answers, and the answers to multiple-choice questions that could not be read.

    Args:
        entry, questions: as leaderboard.json has them.
    """
    try:
        raw = entries.read_predictions(folder)
    except strict_json.Fault:
        return {}
    wanted: dict[tuple[str, str], bool] = {}
    for task, figures in entry["tasks"].items():
        outcomes = figures["outcomes"]
        shown = outcomes.get("chosen") or UNREADABLE * len(outcomes["status"])
        for item, letter in zip(questions[task], shown, strict=True):
            if letter == UNREADABLE:
                wanted[task, item] = "chosen" not in outcomes
    found: dict[tuple[str, str], str] = {}
    for line in filter(None, raw.split(b"\n")):
        # The check, which went before, has read the same bytes with all its care.
        row = json.loads(line)
        key, output = (row["task"], row["item_id"]), row.get("output")
        if key not in wanted or not output or row.get("sample") or row.get("variant") not in _FIRST:
            continue
        parsed = answers.parse_oeq(output, finish_reason=row.get("finish_reason"))
        found[key] = (wanted[key] and parsed.answer) or output
    return found
