"""The mapping of an import: which column of somebody else's table is which field of ours.

type: mcq                      # or oeq
columns:
  id: No.
  question: Stem
  options: [Choice 1, Choice 2, Choice 3, Choice 4]   # or one column that holds a list
  key: Correct                 # for oeq: reference_answer
  explanation: Rationale       # this and what follows is optional
encoding: big5                 # only for a text file that isn't UTF-8
key_is: letter                 # letter, number (1 to 4), zero_based (0 to 3), text
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hk_fs_bench.errors import UserError

_OPTIONAL = (
    "explanation",
    "references",
    "part",
    "topic",
    "level",
    "engineering_related",
    "jurisdiction_cue",
    "edition_sensitive",
    "fact_id",
    "check",
)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Columns(_Strict):
    """Field → name of its column; `options` names four columns, or one that holds a list."""

    id: str
    question: str
    options: list[str] | str | None = None
    key: str | None = None
    reference_answer: str | None = None
    explanation: str | None = None
    references: str | None = None
    part: str | None = None
    topic: str | None = None
    level: str | None = None
    engineering_related: str | None = None
    jurisdiction_cue: str | None = None
    edition_sensitive: str | None = None
    fact_id: str | None = None
    check: str | None = None


class ImportMapping(_Strict):
    """A whole mapping.

    `separator` divides cells that hold several values; `values` translates cells, by field;
    `constants` are fields that are the same in every row.
    """

    type: Literal["mcq", "oeq"]
    columns: Columns
    key_is: Literal["letter", "number", "zero_based", "text"] = "letter"
    split: Literal["test", "dev"] = "test"
    sheet: str | None = None
    encoding: str | None = None
    separator: str = Field(default=";", min_length=1)
    version: str = "1.0.0"
    values: dict[str, dict[str, Any]] = Field(default_factory=dict)
    constants: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _complete(self) -> ImportMapping:
        wanted = {"mcq": ("options", "key"), "oeq": ("reference_answer",)}[self.type]
        if lost := [name for name in wanted if getattr(self.columns, name) is None]:
            raise ValueError(f"{self.type} needs columns.{' and columns.'.join(lost)}")
        if isinstance(self.columns.options, list) and len(self.columns.options) != 4:
            raise ValueError("columns.options must name four columns, or one that holds a list")
        return self

    def optional_columns(self) -> dict[str, str]:
        """Field → column of the optional fields that are mapped."""
        found = {name: getattr(self.columns, name) for name in _OPTIONAL}
        return {name: column for name, column in found.items() if column is not None}

    def field_columns(self) -> dict[str, str]:
        """Field of the item → column, for messages; the first column for the options."""
        options = self.columns.options
        choices = options[0] if isinstance(options, list) else options
        found = {"id": self.columns.id, "question": self.columns.question, "choices": choices}
        found |= {"answer": self.columns.key, "reference_answer": self.columns.reference_answer}
        return {k: v for k, v in found.items() if v is not None} | self.optional_columns()

    def columns_used(self) -> list[str]:
        """Every column that the mapping names."""
        options = self.columns.options
        several = options if isinstance(options, list) else []
        return list(dict.fromkeys([*self.field_columns().values(), *several]))


def read_mapping(path: Path) -> ImportMapping:
    """The mapping of a YAML file; UserError that names the faulty field."""
    import yaml

    from hk_fs_bench.schema import explain

    try:
        return ImportMapping.model_validate(_plain(path.read_text("utf-8")))
    except FileNotFoundError:
        raise UserError(f"no such file: {path}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path.name} is no YAML: {error}") from None
    except ValidationError as error:
        raise UserError(f"{path.name}: {explain(error)}") from None


def _plain(text: str) -> Any:
    """The YAML with every name as it is written: YAML reads a column called No as false.

    Only what stands for a value of ours, under `constants` and `values`, keeps YAML's types.
    """
    import yaml

    written = yaml.load(text, yaml.BaseLoader)
    typed = yaml.safe_load(text)
    if not isinstance(written, dict):
        return typed
    if "constants" in written:
        written["constants"] = typed["constants"]
    values = written.get("values")
    if isinstance(values, dict):
        for (field, table), meant in zip(values.items(), typed["values"].values(), strict=True):
            if isinstance(table, dict) and len(table) == len(meant):
                values[field] = dict(zip(table, meant.values(), strict=True))
    return written
