"""Candidate items from a language model, prompted with requirements and excerpts of the Code.

A draft is only a candidate: gates, dedupe and two reviews stand between it and the dataset.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hk_fs_bench.code_grams import shared_run
from hk_fs_bench.code_index import CodeEntry, CodeIndex
from hk_fs_bench.code_refs import normalise_ref
from hk_fs_bench.errors import UserError
from hk_fs_bench.items import item_sha256
from hk_fs_bench.schema import MODELS, Letter, Level, explain

if TYPE_CHECKING:
    from openai import OpenAI

Type = Literal["mcq", "oeq"]
_NAMED = re.compile(r"\b(?:(?:Clause|Subsection) )?[A-G]\d+(?:\.\d+)?\b|\bTable [A-G]\d+\b")
# So many answers in a row that never came, and the server is at fault, not the question.
_GIVE_UP = 3


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


class MCQDraft(_Answer):
    """What a model is asked to write for a multiple-choice item."""

    question: str
    choices: list[str] = Field(min_length=4, max_length=4)
    answer: Letter
    explanation: str


class PointDraft(_Answer):
    """A key point of an open-ended item."""

    text: str
    references: list[str]
    essential: bool


class OEQDraft(_Answer):
    """What a model is asked to write for an open-ended item."""

    question: str
    reference_answer: str
    key_points: list[PointDraft]
    explanation: str


ANSWERS: dict[str, type[_Answer]] = {"mcq": MCQDraft, "oeq": OEQDraft}


@dataclass(frozen=True)
class Draft:
    """One try: the `item` if the answer is one, else None and the `fault`; `raw` as it came."""

    sources: list[str]
    item: dict[str, Any] | None
    fault: str | None
    raw: str | None


@lru_cache(maxsize=1)
def prompts() -> Mapping[str, Any]:
    """The prompts of `data/drafting.yaml`."""
    import yaml

    text = resources.files("hk_fs_bench").joinpath("data", "drafting.yaml").read_text("utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def pick_sources(
    index: CodeIndex, part: str | None, count: int, seed: int
) -> list[list[CodeEntry]]:
    """`count` groups of provisions: one drawn from the Part, then those that it names.

    Raises:
        UserError: the index has no provision of that Part, a count below 1.
    """
    if count < 1:
        raise UserError(f"{count} candidates can't be drafted; name a count of 1 or more")
    pool = [
        entry
        for entry in index.entries.values()
        if part in (None, entry.part)
        and entry.kind != "diagram"  # a drawing's lettering is no text to ask about
        and len(entry.text.split()) > 25
    ]
    if not pool:
        raise UserError(f"the index has no provision of Part {part}; Parts are A to G")
    generator = random.Random(seed)
    drawn: list[CodeEntry] = []
    while len(drawn) < count:
        drawn += generator.sample(pool, min(len(pool), count - len(drawn)))
    groups = []
    for entry in drawn:
        names = [normalise_ref(match[0]) for match in _NAMED.finditer(entry.text)]
        others = [n for n in dict.fromkeys(names) if n in index.entries and n != entry.id]
        group = [entry, *(index.entries[name] for name in others if name)]
        groups.append(group[: prompts()["excerpts"]])
    return groups


def messages(kind: Type, level: Level, sources: Sequence[CodeEntry]) -> list[dict[str, str]]:
    """The prompt of one candidate, as chat messages."""
    texts = prompts()
    limit = texts["excerpt_characters"]
    excerpts = "\n\n".join(f"[{entry.id}] {entry.text[:limit]}" for entry in sources)
    task = texts[kind].format(level=f"{level}: {texts['levels'][level]}")
    ask = texts["ask"].format(excerpts=excerpts)
    return [
        {"role": "system", "content": texts["system"].strip()},
        {"role": "user", "content": "\n".join([task, texts["requirements"], ask]).strip()},
    ]


def draft(
    client: OpenAI,
    model: str,
    groups: Sequence[Sequence[CodeEntry]],
    kind: Type = "mcq",
    levels: Sequence[Level] = ("scenario", "calculation", "interpretation", "recall"),
) -> Iterator[Draft]:
    """One try for each group of provisions, levels in turn; each is yielded as it comes.

    Raises:
        UserError: the server can't be reached, refuses the key or the model, or gives no answer
            several times in a row.
    """
    lost = 0
    for number, sources in enumerate(groups):
        level = levels[number % len(levels)]
        raw, fault = _ask(client, model, kind, messages(kind, level, sources))
        lost = lost + 1 if raw is None else 0
        names = [entry.id for entry in sources]
        if fault is None and raw is not None:
            item, fault = _read(raw, kind, level, names, sources[0].part, model)
            yield Draft(names, item, fault, raw)
        else:
            yield Draft(names, None, fault, raw)
        if lost == min(_GIVE_UP, len(groups)):
            raise UserError(f"no answer {lost} times in a row, stopped; the last: {fault}")


def _ask(
    client: OpenAI, model: str, kind: Type, prompt: Sequence[Mapping[str, str]]
) -> tuple[str | None, str | None]:
    """(text, fault): the text is None where no answer came at all."""
    import openai

    schema = {"name": kind, "schema": ANSWERS[kind].model_json_schema(), "strict": True}
    request: dict[str, Any] = {
        "model": model,
        "messages": list(prompt),
        "temperature": prompts()["temperature"],
        "max_tokens": prompts()["max_tokens"],
        "response_format": {"type": "json_schema", "json_schema": schema},
    }
    try:
        response = client.chat.completions.create(**request)
    except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as no:
        raise UserError(
            f"{client.base_url} refuses ({no.status_code}): {no.message}; check --base-url, "
            "--model and the key in the environment variable that --key-from names"
        ) from None
    except openai.APITimeoutError:
        return None, "no answer in time"
    except openai.APIConnectionError as error:
        raise UserError(
            f"{client.base_url} can't be reached ({error.__cause__ or error}); is the server "
            "running, and does --base-url end in /v1?"
        ) from None
    except openai.APIError as error:
        return None, f"no answer: {error.message}"
    if not response.choices:
        return None, "no answer: the reply has no choice"
    choice = response.choices[0]
    text = choice.message.content
    if not text:
        return None, f"an empty answer (finish_reason {choice.finish_reason})"
    if choice.finish_reason == "length":
        return text, "cut off at the token limit"
    return text, None


def _read(
    raw: str, kind: Type, level: Level, names: list[str], part: str | None, model: str
) -> tuple[dict[str, Any] | None, str | None]:
    """The item that an answer makes, or what is wrong with it."""
    from pydantic import ValidationError

    try:
        fields: dict[str, Any] = ANSWERS[kind].model_validate_json(raw).model_dump()
        row = {
            "id": "draft",
            **{k: v.strip() if isinstance(v, str) else v for k, v in fields.items()},
            "references": names,
            "part": part,
            "level": level,
            "provenance": {
                "method": "drafted from excerpts",
                "drafter": model,
                "prompt_version": prompts()["version"],
                "source_ids": names,
            },
        }
        choices = [choice.strip() for choice in fields.get("choices", [])]
        if choices:
            row["choices"] = choices
        item = MODELS[kind].model_validate(row)
    except ValidationError as error:
        return None, explain(error)
    prose = [fields[k] for k in ("question", "explanation", "reference_answer") if k in fields]
    for text in [*prose, *choices]:
        if run := shared_run(text):
            return None, f"copies the Code: “{run}”"
    name = f"draft-{kind}-{item_sha256(item)[:10]}"
    return item.model_copy(update={"id": name}).model_dump(), None
