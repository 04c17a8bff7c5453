"""What a rating form holds, whatever it is made into: a rater's batch, and no model's name."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import yaml

from hk_fs_bench.errors import UserError
from hk_fs_bench.human import rubric
from hk_fs_bench.human.rubric import Rubric, Texts
from hk_fs_bench.human.study import Answer, Question, Screen, Study


@dataclass(frozen=True)
class Asked:
    """A screen with its question and the candidates' texts in the order shown."""

    screen: Screen
    question: Question
    answers: Sequence[Answer]


@dataclass(frozen=True)
class Batch:
    """A rater's batch: all that a form of it may show."""

    study: str
    rater: str
    number: int
    asked: Sequence[Asked]
    rubric: Rubric

    @property
    def stem(self) -> str:
        """The form's file name without its ending."""
        return f"{self.rater}-{self.number}"


def batches(study: Study) -> list[Batch]:
    """The batches that forms are made of: not of raters who left or withdrew.

    Raises:
        UserError: the study was drawn for another rubric, or names what it does not hold.
    """
    held = rubric.load()
    wanted = study.settings.get("rubric", {}).get("version")
    if wanted != held.version:
        raise UserError(
            f"{study.folder} was drawn for rubric {wanted}, this package has {held.version}; "
            "use the package's version that it was drawn with"
        )
    gone = {one.rater for one in study.raters.values() if one.left}
    gone |= set(study.settings.get("withdrawn", ()))
    found = []
    for (rater, number), screens in study.batches().items():
        if rater in gone:
            continue
        try:
            asked = [
                Asked(s, study.questions[s.item_id], [study.answers[c] for c in s.candidates])
                for s in screens
            ]
        except KeyError as error:
            raise UserError(
                f"{study.folder}: the assignment names {error}, which is neither question nor "
                "answer of the study; restore its files"
            ) from None
        found.append(Batch(study.name, rater, number, asked, held))
    return found


@lru_cache(maxsize=8)
def page_yaml(name: str) -> Mapping[str, Any]:
    """A YAML file of form_page/: texts, guide."""
    folder = resources.files(__package__).joinpath("form_page")
    held: dict[str, Any] = yaml.safe_load(folder.joinpath(name).read_text("utf-8"))
    return held


def say(key: str, language: str, **values: object) -> str:
    """A text of the rating form in `language`, with its {names} filled in."""
    files = ("texts.yaml", "texts_rating.yaml", "texts_files.yaml")
    text: Texts = next(page_yaml(name)[key] for name in files if key in page_yaml(name))
    return text[language].format(**values)


# How the dataset names provisions, and how a reader of the Code would.
_NAMES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"A-def:(.+)"), lambda m: f"Part A, definition of {m[1].replace('-', ' ')}"),
    (re.compile(r"PR-(.+)"), lambda m: f"Performance Requirement {m[1]}"),
    (re.compile(r"(.+)-comm"), lambda m: f"{m[1]} (commentary)"),
    (re.compile(r"(.+)-note:(.+)"), lambda m: f"{m[1]}, note {m[2]}"),
)


def clauses(references: Sequence[str]) -> str:
    """Provisions as a reader of the Code names them, from the dataset's ids."""
    named = []
    for reference in references:
        found = ((pattern.fullmatch(reference), name) for pattern, name in _NAMES)
        named.append(next((name(match) for match, name in found if match), reference))
    return "; ".join(named)


def slug(text: str) -> str:
    """`text` as part of a file name."""
    return re.sub(r"[^\w.-]+", "-", text).strip("-.") or "form"
