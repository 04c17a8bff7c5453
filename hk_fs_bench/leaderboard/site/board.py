"""leaderboard.json as the pages read it: names, groups, and every outcome of every question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

from hk_fs_bench.items import LETTERS, Dataset
from hk_fs_bench.leaderboard.site import shown
from hk_fs_bench.leaderboard.site.columns import Cell, Column, cell, columns, settings
from hk_fs_bench.schema import MCQItem, OEQItem

Json = Mapping[str, Any]
MAIN = "hk_fs_mcq_hk"
"""The task by whose accuracy entries are ranked."""
# The tasks whose outcomes are shown question by question, in this order.
CHOICE_TASKS = (MAIN, "hk_fs_mcq_nohk", "hk_fs_mcq_hk_ll", "hk_fs_mcq_hk_rotated")
OPEN_TASK = "hk_fs_oeq"
OUTCOMES = ("right", "unsafe", "wrong", "unreadable")


@dataclass(frozen=True)
class Badge:
    """A mark beside a name."""

    text: str
    about: str


@dataclass(frozen=True)
class Outcome:
    """What an entry answered to a multiple-choice question: one of OUTCOMES, or "none"."""

    kind: str
    letter: str
    status: str


@dataclass
class Row:
    """An entry as the tables show it."""

    entry: Json
    name: str
    below: str
    badges: list[Badge]
    filters: dict[str, list[str]] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)

    @property
    def slug(self) -> str:
        return str(self.entry["slug"])


@dataclass(frozen=True)
class Group:
    """Entries that stand together: those of one protocol, ranked, or those kept apart."""

    kind: str
    title: str
    about: str
    rows: list[Row]


@dataclass(frozen=True)
class Board:
    """A board and the edition that it stands on."""

    content: Json
    dataset: Dataset

    @cached_property
    def words(self) -> dict[str, Any]:
        return settings("words")

    @cached_property
    def columns(self) -> list[Column]:
        return columns(self.content["entries"])

    @cached_property
    def rows(self) -> dict[str, Row]:
        """Slug → the entry's row."""
        names = Counter(entry["name"] for entry in self.content["entries"])
        return {e["slug"]: self._row(e, names[e["name"]] > 1) for e in self.content["entries"]}

    def _row(self, entry: Json, shared: bool) -> Row:
        words = self.words["flags"]
        badges = [Badge(words[flag["kind"]], flag["text"]) for flag in entry["flags"]]
        parts = [str(entry["protocol"].get("regime") or ""), entry["date"]]
        if shared:
            parts.append(entry["slug"][-10:])
        row = Row(entry, entry["name"], " · ".join(filter(None, parts)), badges)
        row.cells = [cell(column, entry) for column in self.columns]
        for own in settings("columns")["filters"]:
            if "at" in own:
                value = shown.at(entry, own["at"])
                row.filters[own["name"]] = [] if value is None else [_token(value)]
        row.filters["mark"] = [badge.text for badge in badges] or ["none"]
        return row

    @cached_property
    def groups(self) -> list[Group]:
        """Ranked entries protocol by protocol, the largest group first; then those kept apart."""
        leagues: dict[str, list[Row]] = {}
        apart, without = [], []
        for row in self.rows.values():
            figures = row.entry["tasks"].get(MAIN)
            if not row.entry["ranked"]:
                apart.append(row)
            elif figures is None or figures.get("rank") is None:
                without.append(row)
            else:
                leagues.setdefault(figures["league"], []).append(row)
        order = sorted(leagues, key=lambda name: (-len(leagues[name]), name))
        found = [
            self._league(name, order[0], sorted(leagues[name], key=_by_rank)) for name in order
        ]
        words = self.words["groups"]
        task = self.words["tasks"][MAIN]
        if without:
            about = words["without_about"].format(task=task)
            rows = sorted(without, key=_by_accuracy)
            found.append(Group("without", words["without"], about, rows))
        if apart:
            rows = sorted(apart, key=_by_accuracy)
            found.append(Group("apart", words["apart"], words["apart_about"], rows))
        for number, group in enumerate(found, 1):
            for row in group.rows:
                row.filters["league"] = [f"{number}. {_token(group.title)}"]
        return found

    def _league(self, name: str, first: str, rows: list[Row]) -> Group:
        leagues, words = self.content["leagues"], self.words["groups"]
        own, other = leagues[name]["protocol"], leagues[first]["protocol"]
        parts = self.words["protocol"]
        told = [
            key for key in parts if key in own and (name == first or own[key] != other.get(key))
        ]
        differs = ", ".join(f"{parts[key]} {own[key]}" for key in told if key != "task")
        task = self.words["tasks"][MAIN]
        if name == first:
            about = words["first_about"].format(task=task, differs=differs)
            return Group("ranked", words["ranked"], about, rows)
        about = words["another_about"].format(task=task, differs=differs)
        return Group("ranked", f"{words['another']}: {differs}", about, rows)

    @cached_property
    def ordered(self) -> list[Row]:
        """Every row, in the order of the table."""
        return [row for group in self.groups for row in group.rows]

    @cached_property
    def counted(self) -> list[Row]:
        """The rows over which shares of right answers are: the ranked ones, or all if none is."""
        ranked = [row for g in self.groups if g.kind == "ranked" for row in g.rows]
        return ranked or self.ordered

    @cached_property
    def place(self) -> dict[str, dict[str, int]]:
        """Task → id of a question → its place in every `outcomes`."""
        return {
            task: {name: n for n, name in enumerate(ids)}
            for task, ids in self.content["questions"].items()
        }

    def questions(self, open_ones: bool) -> list[str]:
        """The ids of multiple-choice or of open questions, in the board's order."""
        tasks = (OPEN_TASK,) if open_ones else CHOICE_TASKS
        held = (name for task in tasks for name in self.content["questions"].get(task, ()))
        return list(dict.fromkeys(held))

    def choice(self, name: str) -> MCQItem:
        """The multiple-choice item of an id."""
        item = self.dataset.by_id[name]
        assert isinstance(item, MCQItem)
        return item

    def open(self, name: str) -> OEQItem:
        """The open item of an id."""
        item = self.dataset.by_id[name]
        assert isinstance(item, OEQItem)
        return item

    @cached_property
    def choice_tasks(self) -> list[str]:
        """The multiple-choice tasks that some entry ran."""
        ran = {task for entry in self.content["entries"] for task in entry["tasks"]}
        return [task for task in CHOICE_TASKS if task in ran and task in self.place]

    def outcome(self, entry: Json, task: str, name: str) -> Outcome:
        """What an entry answered to a multiple-choice question."""
        figures, n = entry["tasks"].get(task), self.place[task].get(name)
        if figures is None or n is None or figures["outcomes"]["status"][n] == " ":
            return _NOT_ASKED
        letter = figures["outcomes"]["chosen"][n]
        status = self.content["status_letters"][figures["outcomes"]["status"][n]]
        return self._outcomes[name].get(letter) or Outcome("unreadable", "", status)

    def kinds(self, name: str) -> dict[str, str]:
        """Letter → what choosing it is, for a multiple-choice question."""
        return {letter: outcome.kind for letter, outcome in self._outcomes[name].items()}

    def chosen(self, task: str, name: str) -> Counter[str]:
        """Letter → how many of the counted entries chose it; "." is what could not be read."""
        n = self.place[task].get(name)
        if n is None:
            return Counter()
        found = Counter(letters[n] for letters in self._chosen[task])
        del found[" "]
        return found

    @cached_property
    def _chosen(self) -> dict[str, list[str]]:
        ran = {
            task: [row.entry["tasks"][task] for row in self.counted if task in row.entry["tasks"]]
            for task in CHOICE_TASKS
        }
        return {task: [f["outcomes"]["chosen"] for f in own] for task, own in ran.items()}

    @cached_property
    def _outcomes(self) -> dict[str, dict[str, Outcome]]:
        """Id of a question → letter → what choosing it is."""
        found = {}
        for name in self.questions(open_ones=False):
            item = self.choice(name)
            risks: dict[str, str] = {
                letter: own.risk for letter, own in (item.distractors or {}).items()
            }
            found[name] = {
                letter: Outcome("unsafe" if risks.get(letter) == "unsafe" else "wrong", letter, "")
                for letter in LETTERS
            }
            found[name][item.answer] = Outcome("right", item.answer, "")
        return found


_NOT_ASKED = Outcome("none", "", "")


def _token(value: object) -> str:
    """A value as a filter holds it: the bar separates values there."""
    return str(value).replace("|", " ")


def _accuracy(row: Row) -> float:
    figures = row.entry["tasks"].get(MAIN) or {}
    value = (figures.get("accuracy") or {}).get("value")
    return -1.0 if value is None else float(value)


def _by_accuracy(row: Row) -> tuple[float, str]:
    return -_accuracy(row), row.slug


def _by_rank(row: Row) -> tuple[int, float, str]:
    return row.entry["tasks"][MAIN]["rank"]["best"], -_accuracy(row), row.slug


def page_of(name: str) -> str:
    """The file's name of a question's page, without its ending: an id may hold anything."""
    return name if shown.is_plain(name) else f"q-{sha256(name.encode()).hexdigest()[:16]}"
