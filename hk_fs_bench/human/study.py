"""The study folder: what is rated, by whom, and the key that stays with the organiser."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from hk_fs_bench.errors import UserError
from hk_fs_bench.items import jsonl_rows
from hk_fs_bench.runs import write_json, write_jsonl

FORMAT = 1
SETTINGS, QUESTIONS, ANSWERS = "study.json", "questions.jsonl", "answers.jsonl"
ASSIGNMENT, KEY = "assignment.jsonl", "key.json"


@dataclass(frozen=True)
class Rater:
    """A rater: an id that names nobody, a role, and the questions that they will rate at most.

    `left`: no longer asked; what they rated counts.
    """

    rater: str
    role: str
    capacity: int
    left: bool = False


@dataclass(frozen=True)
class Question:
    """What a rater sees of an item; `essential_points` are texts, numbered from 1 in forms."""

    item_id: str
    question: str
    references: Sequence[str]
    essential_points: Sequence[str]
    reference_answer: str
    engineering_related: bool | None


@dataclass(frozen=True)
class Answer:
    """A candidate answer behind its opaque id."""

    candidate: str
    item_id: str
    answer: str


@dataclass(frozen=True)
class Screen:
    """A question of a rater's batch with its candidates, in the order shown."""

    rater: str
    batch: int
    position: int
    item_id: str
    candidates: Sequence[str]
    repeat: bool = False
    superseded: bool = False


@dataclass
class Study:
    """A study without its key. `settings` is the rest of study.json."""

    folder: Path
    settings: dict[str, Any]
    raters: dict[str, Rater]
    questions: dict[str, Question]
    answers: dict[str, Answer]
    assignment: list[Screen] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.settings["name"])

    def batches(self) -> dict[tuple[str, int], list[Screen]]:
        """The batches that forms are made of: (rater, number) → screens in order."""
        found: dict[tuple[str, int], list[Screen]] = {}
        for screen in self.assignment:
            if not screen.superseded and not self.raters[screen.rater].left:
                found.setdefault((screen.rater, screen.batch), []).append(screen)
        return found


@lru_cache(maxsize=1)
def defaults() -> Mapping[str, Any]:
    """The content of study.yaml."""
    text = resources.files(__package__).joinpath("study.yaml").read_text("utf-8")
    held: dict[str, Any] = yaml.safe_load(text)
    return held


def read_study(folder: Path) -> Study:
    """Read a study folder.

    Raises:
        UserError: no study there, or a file of it is broken.
    """
    settings = _json(folder, SETTINGS)
    if settings.get("format") != FORMAT:
        raise UserError(f"{folder / SETTINGS} has format {settings.get('format')}, not {FORMAT}")
    try:
        return Study(
            folder,
            {k: v for k, v in settings.items() if k != "raters"},
            {one["rater"]: Rater(**one) for one in settings["raters"]},
            {row["item_id"]: Question(**row) for row in _rows(folder, QUESTIONS)},
            {row["candidate"]: Answer(**row) for row in _rows(folder, ANSWERS)},
            [Screen(**row) for row in _rows(folder, ASSIGNMENT)],
        )
    except (KeyError, TypeError) as error:
        raise UserError(
            f"{folder}: a file of this study has lost or gained a field ({error}); restore it"
        ) from None


def write_study(study: Study) -> None:
    """Write study.json, questions, answers and assignment."""
    study.folder.mkdir(parents=True, exist_ok=True)
    write_jsonl(study.folder / QUESTIONS, map(asdict, study.questions.values()))
    write_jsonl(study.folder / ANSWERS, map(asdict, study.answers.values()))
    write_jsonl(study.folder / ASSIGNMENT, map(asdict, study.assignment))
    raters = [asdict(one) for one in study.raters.values()]
    write_json(study.folder / SETTINGS, study.settings | {"raters": raters})


def read_key(folder: Path) -> dict[str, Any]:
    """The organiser's key: `runs` and `candidates`, as docs/human.md describes them."""
    key = _json(folder, KEY)
    if not isinstance(key.get("candidates"), dict) or not isinstance(key.get("runs"), dict):
        raise UserError(f"{folder / KEY} is no key; restore it: without it no rating has a model")
    return key


def _json(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    try:
        held = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(
            f"{folder} holds no study: it has no {name}; make one with human_eval.py assign"
        ) from None
    except (OSError, ValueError, RecursionError):
        raise UserError(f"{path} can't be read; restore it") from None
    if not isinstance(held, dict):
        raise UserError(f"{path} is broken; restore it")
    return held


def _rows(folder: Path, name: str) -> list[dict[str, Any]]:
    path = folder / name
    try:
        raw = path.read_bytes()
    except OSError:
        raise UserError(f"{path} can't be read; restore it") from None
    return [row for _, row in jsonl_rows(raw, name)]
