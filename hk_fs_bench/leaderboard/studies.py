"""What people and judge models found in a run's answers: leaderboard/studies/<study>.json.

A study names a run by the sha256 of its predictions.jsonl, so its figures can stand beside that
very run and no other.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from hk_fs_bench.errors import UserError
from hk_fs_bench.leaderboard import strict_json
from hk_fs_bench.schema import explain

# Practitioners' own answers: of no run, and read by `human_baseline`.
BASELINE = "mcq_baseline.json"

Model = TypeVar("Model", bound=BaseModel)
Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Rated(_Strict):
    """A mean rating as a share, with its 95% interval; `n` answers were rated."""

    value: Share | None
    low: Share | None
    high: Share | None
    n: Count


class Rating(_Strict):
    """What a study says of one run."""

    predictions_sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
    accuracy: Rated | None
    clarity: Rated | None
    unsafe_share: Rated | None
    raters: Count


class Study(_Strict):
    """A whole file. `kind`: experts or a judge model; they never share a column."""

    schema_version: Literal[1]
    study: str
    rubric_version: str | int
    dataset_version: str
    kind: Literal["expert", "model"]
    models: list[Rating]


def read(folder: Path) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """kind → sha256 of predictions → what each study says of them, by study.

    Raises:
        UserError: a file that is no study.
    """
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for path in sorted(folder.glob("*.json")):
        if path.name == BASELINE:
            continue
        study = load(path, Study)
        of_kind = found.setdefault(study.kind, defaultdict(list))
        about = study.model_dump(include={"study", "rubric_version", "dataset_version"})
        for rating in study.models:
            figures = rating.model_dump(exclude={"predictions_sha256"})
            of_kind[rating.predictions_sha256].append(about | figures)
    return found


def load(path: Path, model: type[Model]) -> Model:
    """A file of the folder.

    Raises:
        UserError: a file that can't be read, or is no such model; one line.
    """
    try:
        return model.model_validate(strict_json.parse(path.read_bytes()))
    except ValidationError as error:
        raise UserError(f"{path}: {explain(error)}") from None
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror or error}") from None
    except strict_json.Fault as error:
        raise UserError(f"{path}: {error}") from None
