"""The study folder: what is rated, by whom, and the key that stays with the organiser."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Literal

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


@dataclass(frozen=True)
class _Settings:
    """What commands rely on in study.json."""

    name: str
    seed: int
    dataset: dict[str, Any]
    rubric: dict[str, str]
    raters: list[dict[str, Any]]
    settled: dict[str, str]
    withdrawn: list[str]


@dataclass(frozen=True)
class _Origin:
    item_id: str
    kind: Literal["model", "expert", "known_bad"]
    run: str | None
    repeat_of: str | None


@dataclass(frozen=True)
class _Key:
    """What commands rely on in key.json."""

    runs: dict[str, dict[str, Any]]
    candidates: dict[str, _Origin]


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
    typed(_Settings, settings, folder / SETTINGS)
    raters = typed(list[Rater], settings["raters"], folder / SETTINGS)
    questions = typed(list[Question], _rows(folder, QUESTIONS), folder / QUESTIONS)
    answers = typed(list[Answer], _rows(folder, ANSWERS), folder / ANSWERS)
    screens = typed(list[Screen], _rows(folder, ASSIGNMENT), folder / ASSIGNMENT)
    study = Study(
        folder,
        {k: v for k, v in settings.items() if k != "raters"},
        {one.rater: one for one in raters},
        {one.item_id: one for one in questions},
        {one.candidate: one for one in answers},
        screens,
    )
    _whole(study)
    return study


def typed(kind: Any, value: Any, path: Path, mend: str = "restore it from your backup") -> Any:
    """`value`, read from `path`, as `kind`; UserError where a field is lost or of another type."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(f"{path} was changed: {where}: {first['msg']}; {mend}") from None


def _whole(study: Study) -> None:
    """Refuse a study whose files don't fit each other: its ratings would get lost unseen."""
    for answer in study.answers.values():
        if answer.item_id not in study.questions:
            raise _torn(study, f"{ANSWERS}: {answer.candidate} is of {answer.item_id}", QUESTIONS)
    for screen in study.assignment:
        if screen.rater not in study.raters:
            raise _torn(study, f"{ASSIGNMENT} names the rater {screen.rater!r}", SETTINGS)
        if screen.item_id not in study.questions:
            raise _torn(study, f"{ASSIGNMENT} names {screen.item_id!r}", QUESTIONS)
        for candidate in screen.candidates:
            if candidate not in study.answers:
                raise _torn(study, f"{ASSIGNMENT} names {candidate!r}", ANSWERS)


def _torn(study: Study, what: str, lacking: str) -> UserError:
    return UserError(f"{study.folder}: {what}, which {lacking} lacks; restore the changed file")


def write_study(study: Study) -> None:
    """Write study.json, questions, answers and assignment."""
    made_folder(study.folder)
    write_jsonl(study.folder / QUESTIONS, map(asdict, study.questions.values()))
    write_jsonl(study.folder / ANSWERS, map(asdict, study.answers.values()))
    write_jsonl(study.folder / ASSIGNMENT, map(asdict, study.assignment))
    raters = [asdict(one) for one in study.raters.values()]
    write_json(study.folder / SETTINGS, study.settings | {"raters": raters})


def read_key(folder: Path) -> dict[str, Any]:
    """The organiser's key: `runs` and `candidates`, as docs/human.md describes them."""
    key = _json(folder, KEY)
    typed(_Key, key, folder / KEY)
    origins = key["candidates"]
    shown = {row.get("candidate") for row in _rows(folder, ANSWERS)}
    if lost := sorted(map(str, shown - origins.keys())):
        raise UserError(f"{folder / KEY} lacks {lost[0]}; restore it: no rating of it has a model")
    for name, one in origins.items():
        if one["kind"] == "model" and one["run"] not in key["runs"]:
            raise UserError(
                f"{folder / KEY}: {name} is of the run {one['run']!r}, which `runs` "
                "lacks; restore it"
            )
    return key


def _json(folder: Path, name: str) -> dict[str, Any]:
    path = folder / name
    try:
        held = json.loads(path.read_text("utf-8-sig"))
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
    # Windows' editors may put a mark before the first line.
    return [row for _, row in jsonl_rows(raw.removeprefix(b"\xef\xbb\xbf"), name)]


def made_folder(out: Path) -> None:
    """Make the folder `out`, or say why that can't be."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{out} can't be made a folder: {error.strerror}; name another place"
        ) from None
