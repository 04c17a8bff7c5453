"""The item format, as models that validate it.

Every edition of the dataset, ours or an imported one, has these fields and no others. Only the
fields without a default are required in any edition; our own edition is held to the strict
profile by the gates. The format is described in `docs/formats.md`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

Letter = Literal["A", "B", "C", "D"]
Part = Literal["A", "B", "C", "D", "E", "F", "G"]
Level = Literal["recall", "interpretation", "scenario", "calculation"]
Cue = Literal["explicit", "implicit", "none"]
Risk = Literal["unsafe", "over_provision", "neutral"]

# An id becomes a file name, an anchor and a spreadsheet cell: letters, digits, dot, dash.
ItemId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
# Outer blanks would make two texts that look alike unequal, and prompts of unequal bytes.
Text = Annotated[str, StringConstraints(pattern=r"^\S(?s:.*\S)?$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, regex_engine="python-re")


class Distractor(_Strict):
    """Why an option is wrong, and what following it would do to the building."""

    why: Text
    risk: Risk


class KeyPoint(_Strict):
    """One point that a complete answer makes; an essential one can't be left out."""

    text: Text
    references: list[str]
    essential: bool


class Provenance(_Strict):
    """How the item came about: `drafter` names a model or a person's role, never a person."""

    method: str
    drafter: str
    prompt_version: str | None = None
    source_ids: list[str] = Field(default_factory=list)


class Item(_Strict):
    """What multiple-choice and open-ended items share."""

    id: ItemId
    question: Text
    explanation: Text | None = None
    references: list[str] | None = None
    part: Part | None = None
    topic: str | None = None
    level: Level | None = None
    engineering_related: bool | None = None
    jurisdiction_cue: Cue | None = None
    edition_sensitive: bool | None = None
    fact_id: str | None = None
    check: list[str] | None = None
    provenance: Provenance | None = None
    since: str | None = None
    revised: str | None = None
    canary: str | None = None


class MCQItem(Item):
    """A multiple-choice question: four options, one key."""

    choices: list[Text] = Field(min_length=4, max_length=4)
    answer: Letter
    distractors: dict[Letter, Distractor] | None = None

    @model_validator(mode="after")
    def _options_and_distractors(self) -> MCQItem:
        folded = [choice.casefold().rstrip(".") for choice in self.choices]
        if len(set(folded)) < 4:
            raise ValueError("two options of `choices` are the same text")
        if self.distractors is not None and set(self.distractors) != set("ABCD") - {self.answer}:
            raise ValueError("`distractors` must name the three letters that are not the answer")
        return self


class OEQItem(Item):
    """An open-ended question with its reference answer."""

    reference_answer: Text
    key_points: list[KeyPoint] | None = None


MODELS: dict[str, type[MCQItem] | type[OEQItem]] = {"mcq": MCQItem, "oeq": OEQItem}


def explain(error: Exception) -> str:
    """One line for a pydantic error: the first faulty field, what it wants and what it got."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    kind, got = first["type"], first.get("input")
    if kind == "missing":
        text = f"field `{field}` is missing"
    elif kind == "extra_forbidden":
        text = f"field `{field}` is not one of the format"
    elif not field:
        text = first["msg"].removeprefix("Value error, ")
    else:
        shown = repr(got)
        text = f"field `{field}`: {first['msg']}, got {shown[:60]}{'…' if len(shown) > 60 else ''}"
    return text + more
