"""What a study asks of its raters: questions, batches and hours by role, and what is missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from hk_fs_bench.errors import UserError
from hk_fs_bench.human.rubric import fold
from hk_fs_bench.human.study import Rater, defaults
from hk_fs_bench.tables import read_table, text_of

ANY = "any role"


@dataclass(frozen=True)
class Need:
    """What one role has to do: `ratings` counts a question once for each of its raters.

    `missing` says what the given raters lack, in words; None where they suffice or none are given.
    """

    role: str
    questions: int
    ratings: int
    batches: int
    hours: float
    raters: int
    capacity: int
    missing: str | None


def role_of(engineering_related: bool | None) -> str:
    """The role that rates such an item; ANY where the edition does not say."""
    for role, held in defaults()["roles"].items():
        if held["engineering_related"] == engineering_related:
            return str(role)
    return ANY


def minutes(questions: int, answers: float) -> float:
    """How long `questions` with so many answers in all take."""
    each = defaults()["minutes"]
    return float(questions * each["question"] + answers * each["answer"])


def needs(
    wanted: Mapping[str, int],
    models: int,
    raters: Iterable[Rater] | None = None,
    per_question: int | None = None,
) -> list[Need]:
    """The needs of a study by role.

    Args:
        wanted: role (or ANY) → its questions.
        models: of the study; a question shows `most_candidates` of them at most.
        raters: those at hand; None: not yet known, nothing is called missing.
    """
    each = per_question or defaults()["raters_per_question"]
    size = defaults()["batch_size"]
    shown = min(models, defaults()["most_candidates"])
    team = [r for r in raters or () if not r.left]
    out = []
    for role, questions in wanted.items():
        ratings = questions * each
        batches = ceil(ratings / size)
        own = [r for r in team if role in (r.role, ANY)]
        capacity = sum(min(r.capacity, questions) for r in own)
        missing = None
        if raters is not None and len(own) < each:
            missing = f"{len(own)} raters, at least {each} are needed"
        elif raters is not None and capacity < ratings:
            missing = f"capacity for {ratings - capacity} questions more"
        hours = minutes(ratings, ratings * shown + 3 * batches) / 60
        out.append(Need(role, questions, ratings, batches, hours, len(own), capacity, missing))
    return out


def lines(found: Sequence[Need], known: bool) -> list[str]:
    """Needs in words, a line a role. `known`: whether raters were given."""
    roles = {name: held["label"] for name, held in defaults()["roles"].items()}
    out = []
    for need in found:
        size = defaults()["batch_size"]
        text = (
            f"{roles.get(need.role, need.role)}: {need.questions} questions, {need.ratings} "
            f"question ratings, {need.batches} batches of {size}, about {need.hours:.0f} hours"
        )
        if known:
            text += f"; {need.raters} raters, capacity {need.capacity}"
            text += f"; MISSING: {need.missing}" if need.missing else "; enough"
        else:
            fewest = max(defaults()["raters_per_question"], ceil(need.ratings / (2 * size)))
            text += f"; {fewest} raters, if each takes two batches"
        out.append(text)
    written = sum(
        ceil(need.batches * need.questions / need.ratings) for need in found if need.ratings
    )
    return [
        *out,
        f"expert-written answers to {written} of the questions at least, for the controls",
    ]


def read_raters(path: Path) -> list[Rater]:
    """The raters of a file with the columns id, role and capacity (questions at most).

    Raises:
        UserError: an e-mail address for an id, two ids alike, an unknown role, no whole capacity.
    """
    table = read_table(path)
    heads = {head.casefold(): head for head in table.columns}
    if "rater" in heads and "id" not in heads:
        heads["id"] = heads["rater"]
    if lacking := {"id", "role", "capacity"} - heads.keys():
        raise UserError(f"{path.name} lacks the column {', '.join(sorted(lacking))}")
    found: dict[str, Rater] = {}
    faults = []
    for row in table.rows:
        values = [_cell(row.cells.get(heads[name])) for name in ("id", "role", "capacity")]
        fault, rater = _rater(values)
        if rater is not None and fold(rater.rater) in found:
            fault = f"the id {rater.rater} stands in an earlier row"
        if fault or rater is None:
            faults.append(f"{table.where(row)}: {fault}")
        else:
            found[fold(rater.rater)] = rater
    if faults:
        raise UserError(f"{path.name}: {len(faults)} rows can't be used", faults)
    return list(found.values())


def _cell(value: Any) -> str:
    return text_of(value) or ""


def _rater(values: Sequence[str]) -> tuple[str | None, Rater | None]:
    import re
    import unicodedata

    name, role, capacity = values
    name = unicodedata.normalize("NFC", name)
    if "@" in name:
        return "an id must not be an e-mail address", None
    if not re.fullmatch(r"\w[\w.-]{0,39}", name):
        return f"the id {name!r} must be up to 40 letters, digits, dots and dashes", None
    known = {
        fold(text): r for r, held in defaults()["roles"].items() for text in (r, held["label"])
    }
    if fold(role) not in known:
        return f"the role {role!r} is none of {', '.join(defaults()['roles'])}", None
    if not re.fullmatch(r"[0-9]{1,4}", capacity):
        return f"the capacity {capacity!r} is no whole number of questions", None
    return None, Rater(name, known[fold(role)], int(capacity))
