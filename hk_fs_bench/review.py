"""Reviews of items: the log, what it decides, and how far reviewers agree.

`reviews.jsonl` is append-only. A row counts for an item while its `item_sha256` is the item's own:
a changed item has lost its reviews. Rows of one `form` on one text replace each other, the last
counts. The log names roles and forms, never a person.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from hk_fs_bench import items
from hk_fs_bench.errors import UserError
from hk_fs_bench.runs import write_jsonl
from hk_fs_bench.schema import MCQItem, explain

FILE = "reviews.jsonl"
Role = Literal["architect", "fire_engineer"]
Kind = Literal["expert", "automated"]
Verdict = Literal["accept", "revise", "reject"]
Judged = Literal["question", "key", "explanation", "references", "distractor"]
NAMES_SOMEBODY = "an e-mail address stands in it; reviews name no person"
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+")


class Review(BaseModel):
    """One reviewer's judgement of one text of an item.

    `form` labels the reviewer's sheet or batch. `faults` names what was found wrong; "distractor":
    a wrong option can be defended. `blind_correct` for an open-ended item: the blind answer had
    every essential point.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    item: str
    item_sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    role: Role
    kind: Kind
    model_family: str | None = None
    form: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
    blind_answer: str | None = None
    blind_correct: bool | None = None
    verdict: Verdict
    faults: list[Judged] = Field(default_factory=list)
    argument: str | None = None
    reason: str | None = None
    date: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\d$")]

    @model_validator(mode="after")
    def _sound(self) -> Review:
        if (self.kind == "automated") != (self.model_family is not None):
            raise ValueError("`model_family` belongs to an automated review, and to no other")
        if self.verdict == "accept" and self.faults:
            raise ValueError(f"accepted with faults: {', '.join(self.faults)}; revise or reject")
        if self.verdict != "accept" and not (self.reason or "").strip():
            raise ValueError(f"verdict {self.verdict} without a reason")
        texts = (self.blind_answer, self.argument, self.reason, self.form, self.model_family)
        if any(map(names_somebody, texts)):
            raise ValueError(NAMES_SOMEBODY)
        return self


def names_somebody(text: str | None) -> bool:
    """Whether an e-mail address stands in a text."""
    return bool(_EMAIL.search(text or ""))


@dataclass(frozen=True)
class Decision:
    """What the reviews say of an item: keep, revise, discard, or waiting for more of them."""

    item: str
    outcome: Literal["keep", "revise", "discard", "waiting"]
    why: list[str]


@lru_cache(maxsize=1)
def settings() -> Mapping[str, Any]:
    """The routing and wording of `data/review.yaml`."""
    import yaml

    text = resources.files("hk_fs_bench").joinpath("data", "review.yaml").read_text("utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def read_reviews(path: Path) -> list[Review]:
    """The rows of a log or of an import; none where there is no file. UserError names a line."""
    raw = path.read_bytes() if path.is_file() else b""
    return [parse(row, f"{path.name} line {n}") for n, row in items.jsonl_rows(raw, path.name)]


def parse(row: Mapping[str, Any], where: str) -> Review:
    """A row as a review, or a UserError that says where and what."""
    from pydantic import ValidationError

    try:
        return Review.model_validate(row)
    except ValidationError as error:
        raise UserError(f"{where}: {explain(error)}") from None


@dataclass(frozen=True)
class Appended:
    """How many reviews were `new`, how many stood in the log (`known`), and `foreign` items.

    Reviews of items that the edition doesn't have are kept: what was dropped before a release
    counts in the figures, which are taken before any discard. `waiting`: places of a sheet that
    have no verdict yet.
    """

    new: int
    known: int
    foreign: list[str]
    waiting: list[str] = field(default_factory=list)


def import_reviews(folder: Path, path: Path) -> Appended:
    """Append a JSONL file of reviews to an edition's log, whole or not at all.

    `form` may be left out: the file's name stands in for it. `blind_correct` of an MCQ is worked
    out while the item still has the text that was reviewed.
    """
    if not path.is_file():
        raise UserError(f"no such file: {path}")
    form = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._")
    rows = []
    for number, row in items.jsonl_rows(path.read_bytes(), path.name):
        rows.append((f"{path.name} line {number}", {"form": form, **row}))
    return append(folder, rows)


def append(folder: Path, rows: Iterable[tuple[str, dict[str, Any]]]) -> Appended:
    """Append reviews, as (place, row), to the log of an edition; all faults in one UserError."""
    dataset = items.load(folder)
    known = {i.id: i for split in dataset.splits.values() for i in split}
    log = read_reviews(folder / FILE)
    fresh: list[Review] = []
    faults = []
    last = {(r.item, r.item_sha256, r.form): r for r in log}
    count = 0
    foreign = []
    for where, row in rows:
        count += 1
        try:
            review = _complete(parse(row, where), known, where)
        except UserError as error:
            faults.append(str(error))
            continue
        if review.item not in known:
            foreign.append(review.item)
        key = (review.item, review.item_sha256, review.form)
        # The same judgement brought in on another day is no second one.
        if key not in last or last[key] != review.model_copy(update={"date": last[key].date}):
            fresh.append(review)
            last[key] = review
    if faults:
        raise UserError(f"{len(faults)} faulty reviews, nothing was recorded", faults)
    if fresh:
        write_jsonl(folder / FILE, [review.model_dump() for review in [*log, *fresh]])
    return Appended(len(fresh), count - len(fresh), list(dict.fromkeys(foreign)))


def _complete(review: Review, known: Mapping[str, Any], where: str) -> Review:
    item = known.get(review.item)
    if not isinstance(item, MCQItem) or items.item_sha256(item) != review.item_sha256:
        return review
    if review.blind_answer is None:
        return review
    right = review.blind_answer == item.answer
    if review.blind_correct not in (None, right):
        raise UserError(
            f"{where}: blind answer {review.blind_answer} and key {item.answer}, but "
            f"blind_correct is {review.blind_correct}"
        )
    return review.model_copy(update={"blind_correct": right})


def last_of_forms(reviews: Iterable[Review]) -> list[Review]:
    """One review for each form, item and text: the last."""
    return list({(r.item, r.item_sha256, r.form): r for r in reviews}.values())


def current(dataset: items.Dataset, reviews: Iterable[Review]) -> dict[str, list[Review]]:
    """The reviews that count, for every item of the edition."""
    found: dict[str, list[Review]] = {
        item.id: [] for split in dataset.splits.values() for item in split
    }
    hashes = {i.id: items.item_sha256(i) for split in dataset.splits.values() for i in split}
    for review in last_of_forms(reviews):
        if hashes.get(review.item) == review.item_sha256:
            found[review.item].append(review)
    return found


def decide(dataset: items.Dataset, reviews: Iterable[Review]) -> list[Decision]:
    """One decision an item, in file order."""
    return [_decide(item, found) for item, found in current(dataset, reviews).items()]


def _decide(item: str, reviews: Sequence[Review]) -> Decision:
    why = [f"{r.role} ({r.kind}) {r.verdict}: {r.reason}" for r in reviews if r.verdict != "accept"]
    verdicts = {review.verdict for review in reviews}
    if "reject" in verdicts:
        return Decision(item, "discard", why)
    if "revise" in verdicts:
        return Decision(item, "revise", why)
    if len(reviews) < 2:
        return Decision(item, "waiting", [f"{len(reviews)} of 2 reviews"])
    missed = [r for r in reviews if r.blind_correct is False]
    notes = [f"{r.role} answered {r.blind_answer} blind" for r in missed]
    # Whoever missed the key and accepts it was persuaded; all of them together are too many.
    if len(missed) == len(reviews):
        return Decision(item, "revise", ["accepted, but nobody found the key blind", *notes])
    return Decision(item, "keep", notes)


def of_items(reviews: Iterable[Review]) -> dict[tuple[str, str], list[Review]]:
    """Reviews by item and text."""
    found: dict[tuple[str, str], list[Review]] = defaultdict(list)
    for review in last_of_forms(reviews):
        found[review.item, review.item_sha256].append(review)
    return found
