"""What came back: every returned form in one shape, kept in the study folder.

returns/<form>-<hash of the file>.json holds what a file said, without its e-mail addresses. All
else is derived from these (`ratings.rebuild`), so that a rater can be taken out again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from hk_fs_bench.answers.folding import well_formed
from hk_fs_bench.errors import UserError
from hk_fs_bench.runs import write_json

FOLDER = "returns"
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_DIMENSIONS = ("accuracy", "clarity")


@dataclass(frozen=True)
class Chosen:
    """What was chosen on one dimension: ids of the rubric; level None where none was chosen."""

    level: str | None = None
    descriptors: Sequence[str] = ()

    @property
    def empty(self) -> bool:
        return self.level is None and not self.descriptors


@dataclass(frozen=True)
class Given:
    """One rating as it was given. `faults` say what in it could not be understood.

    `rated_at` is an ISO time; `seconds` the time on the question with all its candidates; `where`
    the place in the file.
    """

    rater: str
    candidate: str
    accuracy: Chosen
    clarity: Chosen
    missed_essential: Sequence[int] = ()
    comment: str | None = None
    batch: int | None = None
    rated_at: str | None = None
    seconds: float | None = None
    where: str = ""
    faults: Sequence[str] = ()

    @property
    def blank(self) -> bool:
        """Whether nothing was rated; a comment alone is no rating."""
        chosen = (self.accuracy, self.clarity)
        return all(c.empty for c in chosen) and not self.missed_essential and not self.faults

    def judgement(self) -> tuple[Any, ...]:
        """What makes two ratings of one answer different."""
        parts = [
            (c.level, tuple(sorted(set(c.descriptors)))) for c in (self.accuracy, self.clarity)
        ]
        return (*parts, tuple(sorted(set(self.missed_essential))), tuple(self.faults))

    def unfinished_state_of(self, later: Given) -> bool:
        """Whether all that was filled in here stands in `later` too, and that has more."""
        for mine, other in zip(self.judgement()[:2], later.judgement()[:2], strict=True):
            if mine != other and mine != (None, ()):
                return False
        fewer = set(self.missed_essential) <= set(later.missed_essential)
        return fewer and not self.faults and self.judgement() != later.judgement()


@dataclass(frozen=True)
class Unused:
    """A row that is no rating of the study, and why."""

    source: str
    reason: str
    rater: str | None = None
    candidate: str | None = None


@dataclass(frozen=True)
class Return:
    """A returned form: `source` is its file's name, `sha256` of its bytes."""

    kind: Literal["expert", "model"]
    form: str
    source: str
    sha256: str
    ratings: Sequence[Given] = ()
    unused: Sequence[Unused] = ()
    notes: Sequence[str] = field(default_factory=tuple)


def without_email(text: str) -> str:
    """The text with e-mail addresses taken out."""
    return _EMAIL.sub("[e-mail removed]", text)


def store(folder: Path, returned: Return) -> bool:
    """Keep a return in the study folder; False if the same file was brought in before.

    Rows of raters who withdrew are not kept.
    """
    from hk_fs_bench.human.study import made_folder, read_study

    gone = set(read_study(folder).settings["withdrawn"])
    if refused := [one for one in returned.ratings if one.rater in gone]:
        kept = [one for one in returned.ratings if one.rater not in gone]
        reason = f"{len(refused)} ratings of somebody who withdrew; not kept"
        listed = [*returned.unused, Unused(without_email(returned.source), reason)]
        returned = replace(returned, ratings=kept, unused=listed)
    path = folder / FOLDER / f"{returned.form}-{returned.sha256[:16]}.json"
    # Half a character (a lone surrogate) in a comment would make a file that nobody can read.
    held = json.loads(well_formed(json.dumps(asdict(returned), ensure_ascii=False)))
    held["source"] = without_email(held["source"])
    if path.exists():
        # Read without the file of addresses this time, it must not lose what it gave before.
        fewer = len(returned.ratings) < len(read(path).ratings)
        if fewer or path.read_text("utf-8") == _text(held):
            return False
    made_folder(path.parent)
    write_json(path, held)
    return True


def _text(held: Mapping[str, Any]) -> str:
    return json.dumps(held, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def read_all(folder: Path) -> list[Return]:
    """Every return of a study, in the order of their files' names."""
    return [read(path) for path in sorted((folder / FOLDER).glob("*.json"))]


def read(path: Path) -> Return:
    """One stored return; UserError if it is broken."""
    try:
        held = json.loads(path.read_text("utf-8"))
        ratings = [_given(one) for one in held.pop("ratings")]
        unused = [Unused(**one) for one in held.pop("unused")]
        return Return(**held, ratings=ratings, unused=unused)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{path} is broken; delete it and import its form again") from None


def _given(held: Mapping[str, Any]) -> Given:
    return Given(**{**held, **{name: Chosen(**held[name]) for name in _DIMENSIONS}})


def take_out(folder: Path, rater: str) -> int:
    """Delete a rater's rows from every return; returns how many there were."""
    count = 0
    for path in sorted((folder / FOLDER).glob("*.json")):
        held = read(path)
        mine = [one for one in held.ratings if one.rater == rater]
        named = [one for one in held.unused if one.rater == rater]
        if not mine and not named:
            continue
        count += len(mine)
        kept = [one for one in held.ratings if one.rater != rater]
        unused = [one for one in held.unused if one.rater != rater]
        if kept:
            write_json(path, asdict(replace(held, ratings=kept, unused=unused)))
        else:
            path.unlink()
    return count


def places(returns: Iterable[Return]) -> list[tuple[Return, Given, str]]:
    """Every rating with its return and its place in words."""
    return [
        (one, given, f"{one.source}, {given.where}" if given.where else one.source)
        for one in returns
        for given in one.ratings
    ]
