"""The raw answers of a submission: every prompt of the edition answered once, and nothing else."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from hk_fs_bench import prompts
from hk_fs_bench.leaderboard import safe_text, strict_json
from hk_fs_bench.leaderboard.editions import Asked
from hk_fs_bench.leaderboard.strict_json import Fault
from hk_fs_bench.runs import Key, key_of, settled
from hk_fs_bench.schema import explain
from hk_fs_bench.sources import HUB_DATASET

# Faults of one kind that are shown; the rest is counted.
SHOWN = 5
# What the model said, and other free texts. The rest of a row is numbers, and names that are known.
_OUTPUTS = ("output", "reasoning", "refusal")
_OURS = ("finish_reason", "cause", "detail", "returned_model", "sources", "shown_ids", "sent_at")

Count = Annotated[int, Field(ge=0, le=1_000_000_000)]
Name = Annotated[str, StringConstraints(max_length=200)]
Short = Annotated[str, StringConstraints(max_length=2000)]
Milliseconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Usage(_Strict):
    input_tokens: Count | None = None
    cached_input_tokens: Count | None = None
    output_tokens: Count | None = None
    reasoning_tokens: Count | None = None


class _Performance(_Strict):
    latency_ms: Milliseconds | None = None
    # Of local runs: the answer's share of its batch, and how many answers that had.
    batch_share_ms: Milliseconds | None = None
    batch: Count | None = None


class _Row(_Strict):
    """A row of predictions.jsonl as both runners write it."""

    task: Name
    item_id: Name
    variant: Literal["", "rot0", "rot1", "rot2", "rot3"] = ""
    sample: Annotated[int, Field(ge=0, le=1000)] = 0
    attempt: Count | None = None
    prompt_sha256: Annotated[str, StringConstraints(pattern=r"\A[0-9a-f]{64}\z")]
    output: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    finish_reason: Name | None = None
    status: Literal["ok", "no_answer", "infra_error"]
    cause: Name | None = None
    detail: Short | None = None
    option_logprobs: (
        Annotated[list[Annotated[float, Field(allow_inf_nan=False)]], Field(max_length=4)] | None
    ) = None
    token_usage: _Usage | None = None
    answer_tokens: Count | None = None
    performance: _Performance | None = None
    returned_model: Name | None = None
    sources_used: Count | None = None
    sources: Annotated[list[Short], Field(max_length=1000)] | None = None
    contaminated: bool | None = None
    shown_ids: Annotated[list[Name], Field(max_length=1000)] | None = None
    in_flight: Count | None = None
    sent_at: Name | None = None


@dataclass
class Faults:
    """Lines, those of one kind counted beyond the first few."""

    lines: list[str] = field(default_factory=list)
    _kinds: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, line: str) -> None:
        self._kinds[kind] += 1
        if self._kinds[kind] <= SHOWN:
            self.lines.append(line)

    def all(self) -> list[str]:
        more = [f"{n - SHOWN} more: {kind}" for kind, n in self._kinds.items() if n > SHOWN]
        return self.lines + more


def read(
    raw: bytes,
    asked: Mapping[str, Asked],
    samples: int,
    released: datetime.date | None,
    today: datetime.date,
    known_prompts: frozenset[str],
    returned_ids: Collection[str] = (),
) -> tuple[dict[Key, dict[str, Any]], list[str]]:
    """The rows that count, by key, and what is wrong with the file.

    In the order in which they were first answered, as `runs.read_run` has them: resampled
    intervals depend on it.

    Args:
        raw: predictions.jsonl.
        asked: task → the prompts that an answer is due to.
        samples: answers due to each prompt.
        released, today: between these an answer was given.
        known_prompts: tasks whose prompts can be rendered here, and are held against the rows.
        returned_ids: by the manifest, what the service called the model.
    """
    faults = Faults()
    sizes = safe_text.settings()
    due = {
        (task, item, variant, sample): sha256
        for task, prompts_ in asked.items()
        for (item, variant), sha256 in prompts_.items()
        for sample in range(samples)
    }
    if raw and not raw.endswith(b"\n"):
        faults.add("end", "the last line has no line feed: was the file cut?")
    if (lines := raw.count(b"\n")) > sizes["rows_per_answer"] * len(due):
        return {}, [f"has {lines:,} rows for {len(due):,} answers"]
    found: dict[Key, dict[str, Any]] = {}
    for number, value in strict_json.parse_lines(raw):
        try:
            row = _row(value)
        except Fault as fault:
            faults.add("broken row", f"line {number}: {fault}")
            continue
        key, where = key_of(row), f"line {number} ({row['item_id'][:40]!r} of {row['task'][:40]})"
        if key not in due:
            faults.add("answer to no prompt", f"{where}: {_why_not_due(key, asked, samples)}")
            continue
        if row["task"] in known_prompts and row["prompt_sha256"] != due[key]:
            faults.add("other prompt", f"{where}: prompt_sha256 is not that of the task's prompt")
        if (model := row.get("returned_model")) is not None and model not in returned_ids:
            named = f"{ascii(model)[:60]} answered, whom run.model.returned_ids does not name"
            faults.add("other model", f"{where}: {named}")
        if _saw_us(row) and not row.get("contaminated"):
            faults.add("contaminated", f"{where}: its sources are this benchmark's own address")
        for what in _private(row):
            faults.add("private", f"{where}: {what}")
        if late := _undated(row, released, today):
            faults.add("date", f"{where}: {late}")
        if key in found and settled(row) and settled(found[key]):
            faults.add("answered twice", f"{where}: answered before; an answer is never asked anew")
        elif key not in found or settled(row):
            found[key] = row
    for line in _missing(due, found):
        faults.add("missing", line)
    return found, faults.all()


def _saw_us(row: Mapping[str, Any]) -> bool:
    """Whether a row's sources hold this benchmark's address, as the runner looks for it."""
    own = HUB_DATASET.split("/")[0].lower()
    return any(own in source.lower() for source in row.get("sources") or ())


def _row(value: Any) -> dict[str, Any]:
    if isinstance(value, Fault):
        raise value
    if not isinstance(value, dict):
        raise Fault("a JSON object is expected")
    try:
        _Row.model_validate(value)
    except ValidationError as error:
        raise Fault(explain(error)[:200]) from None
    return value


def _why_not_due(key: Key, asked: Mapping[str, Asked], samples: int) -> str:
    task, item, variant, sample = key
    if task not in asked:
        return "the manifest does not name this task"
    if not any(item == name for name, _ in asked[task]):
        return "no such item in this edition"
    if (item, variant) not in asked[task]:
        return f"the task has no variant {variant!r}"
    return f"sample {sample}, and protocol.samples is {samples}"


def _missing(due: Mapping[Key, str], found: Mapping[Key, Mapping[str, Any]]) -> Iterator[str]:
    """A line a task: which answers are missing, and which calls only failed."""
    for what, keys in (
        ("missing", [key for key in due if key not in found]),
        ("only failed calls", [k for k, row in found.items() if not settled(row)]),
    ):
        for task in dict.fromkeys(key[0] for key in keys):
            names = list(dict.fromkeys(key[1] for key in keys if key[0] == task))
            more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
            count = sum(key[0] == task for key in keys)
            yield f"{task}: {count} answers {what}: {', '.join(names[:SHOWN])}{more}"


def _private(row: Mapping[str, Any]) -> Iterator[str]:
    """Keys, paths of a machine, and excerpts of the Code in a row."""
    words = safe_text.settings()["quotation_words"]
    for place in _OUTPUTS:
        if not (text := row.get(place)):
            continue
        if what := safe_text.secret(text):
            yield f"{place} holds what looks like a key ({what})"
        if what := safe_text.excerpt(text, words):
            yield f"{place} holds over {words} words of the Code in a row ({what[:60]}…)"
    for place in _OURS:
        for inner, text in safe_text.strings(row.get(place), place):
            if what := _private_text(text):
                yield f"{inner} {what}"


@lru_cache(maxsize=4096)
def _private_text(text: str) -> str | None:
    """What a text must not have that no model wrote; services repeat themselves."""
    if what := safe_text.unprintable(text, lines=True):
        return f"has {what}"
    if what := safe_text.secret(text):
        return f"holds what looks like a key ({what})"
    if what := safe_text.local_path(text):
        return f"holds a path of a machine ({what})"
    if what := safe_text.excerpt(text):
        return f"holds an excerpt of the Code ({what[:60]}…)"
    return None


def _undated(
    row: Mapping[str, Any], released: datetime.date | None, today: datetime.date
) -> str | None:
    if not (sent := row.get("sent_at")):
        return None
    try:
        day = datetime.datetime.fromisoformat(sent).date()
    except ValueError:
        return f"sent_at {sent[:40]!r} is no date"
    return out_of_time(day, released, today)


def out_of_time(
    day: datetime.date, released: datetime.date | None, today: datetime.date
) -> str | None:
    """What is wrong with a day, or None. A day's grace on both sides is for time zones."""
    grace = datetime.timedelta(days=1)
    if day > today + grace:
        return f"{day} lies in the future"
    if released is not None and day < released - grace:
        return f"{day} lies before the edition was released ({released})"
    return None


def all_tasks(tasks: Sequence[str]) -> list[prompts.Task]:
    """The tasks of that name; Fault if one is none."""
    from hk_fs_bench.errors import UserError

    try:
        return [prompts.load_task(task) for task in tasks]
    except UserError as error:
        raise Fault(str(error)) from None
