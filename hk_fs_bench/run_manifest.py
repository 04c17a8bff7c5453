"""What scoring reads of a run.json, whoever wrote it, and whether it is there and of its form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hk_fs_bench.api_models import Price
from hk_fs_bench.errors import UserError
from hk_fs_bench.runs import Run

Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(ge=0)]


class _Part(BaseModel):
    """A part of a manifest: what is not named here may be anything."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)


class _Model(_Part):
    id: Text
    mode: str | None = None
    search: str | None = None
    returned_ids: list[str] | None = None
    model_args: dict[str, Any] | None = None


class _Protocol(_Part):
    dataset_sha256: Text
    dataset_version: Text
    task_versions: dict[str, str]
    prompt_templates_sha256: dict[str, str]
    regime: Literal["paper", "greedy", "custom"]
    samples: Annotated[int, Field(ge=1)] | None = None
    num_fewshot: Count | None = None
    system_instruction_sha: str | None = None
    max_tokens: dict[str, Count | None] | None = None
    parameters_not_applied: dict[str, str] | None = None


class _Timing(_Part):
    total_seconds: Annotated[float, Field(ge=0)] = 0.0
    requests: Count = 0
    seconds_definition: Text = "none"

    @model_validator(mode="after")
    def _whole(self) -> Self:
        whole = {"total_seconds", "requests", "seconds_definition"}
        if "total_seconds" in self.model_fields_set and not whole <= self.model_fields_set:
            raise ValueError(f"{', '.join(sorted(whole))} belong together")
        return self


class _Manifest(_Part):
    tasks: Annotated[list[Text], Field(min_length=1)]
    model: _Model
    protocol: _Protocol
    complete: bool = True
    planned: dict[str, Count] | None = None
    timing: _Timing | None = None
    price: dict[str, Any] | None = None
    software: dict[str, Any] | None = None


def check(run: Run) -> None:
    """UserError unless run.json says whom it asked, and how, in the form that is read here."""
    path, held = run.folder / "run.json", run.manifest
    try:
        json.dumps(held, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise UserError(f"{path} holds half a character (a lone surrogate)") from None
    _validate(path, "", _Manifest, held)
    if held.get("price"):
        _validate(path, "price.", Price, held["price"])
    for name in ("task_versions", "prompt_templates_sha256"):
        if lacking := [task for task in run.tasks if task not in held["protocol"][name]]:
            raise UserError(f"{path} lacks protocol.{name} of {lacking[0]}; run it again")
    if not held.get("complete", True) and not held.get("planned"):
        raise UserError(f"{path} is of an incomplete run and does not say what was planned")


def _validate(path: Path, prefix: str, form: type[BaseModel], held: Any) -> None:
    try:
        form.model_validate(held)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = prefix + ".".join(map(str, first["loc"]))
        if first["type"] == "missing" or first["input"] is None:
            raise UserError(f"{path} lacks {name}; run the evaluation again") from None
        shown = str(first["input"])[:60]
        raise UserError(
            f"{path} has a {name} that can't be read ({shown}: {first['msg']}); run the "
            "evaluation again"
        ) from None
