"""What practitioners know of the multiple-choice questions: leaderboard/studies/mcq_baseline.json.

The file is the baseline.json that `scripts/human_eval.py import … --mcq` writes. The result files
behind it hold people's answers and stay with the organiser, so nothing here is recomputed; and
no model is ranked with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hk_fs_bench.leaderboard.studies import BASELINE, Share, load

Number = Annotated[int, Field(ge=0, le=10**9)]
Line = Annotated[str, Field(min_length=1, max_length=500)]


class _Read(BaseModel):
    # The file says more, such as median seconds; the board takes what it shows.
    model_config = ConfigDict(extra="ignore", strict=True)


class Accuracy(_Read):
    """The share of right answers; `n` questions were answered."""

    value: Share | None
    n: Number
    unit: Literal["questions"]
    ci95: Annotated[list[Share], Field(min_length=2, max_length=2)] | None
    interval: Line | None = None
    reason: Line | None = None

    @model_validator(mode="after")
    def _whole(self) -> Accuracy:
        if self.value is None and not (self.n == 0 and self.ci95 is None and self.reason):
            raise ValueError("an accuracy without a value has n 0, no interval, and a reason")
        if self.value is not None and not (self.n > 0 and self.interval and not self.reason):
            raise ValueError("an accuracy has n above 0, says its interval, and needs no reason")
        if self.ci95 and self.ci95[0] > self.ci95[1]:
            raise ValueError("the bounds of the interval stand the wrong way round")
        return self


class Condition(_Read):
    """Closed or open book: the accuracy of all who answered."""

    accuracy: Accuracy
    participants: Number

    @model_validator(mode="after")
    def _somebodys(self) -> Condition:
        if (self.accuracy.value is None) != (self.participants == 0):
            raise ValueError("participants and accuracy do not agree on whether anybody answered")
        return self


class Conditions(_Read):
    """Both, in the order in which they were answered."""

    closed: Condition
    open: Condition


class Baseline(_Read):
    """A whole file; `signature` names the edition of the questions."""

    format: Literal[1]
    signature: Line
    conditions: Conditions


def read(folder: Path) -> dict[str, Any] | None:
    """`signature` and `conditions`; None where nobody has answered yet.

    Args:
        folder: the studies'.

    Raises:
        UserError: a file that is no such baseline.
    """
    path = folder / BASELINE
    if not path.exists():
        return None
    found = load(path, Baseline)
    if not (found.conditions.closed.participants or found.conditions.open.participants):
        return None
    held = found.model_dump(exclude={"format"})
    for one in held["conditions"].values():
        own = one["accuracy"]
        one["accuracy"] = {n: v for n, v in own.items() if v is not None or n in ("value", "ci95")}
    return held
