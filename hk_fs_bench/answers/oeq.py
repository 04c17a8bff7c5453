"""The cascade for answers to open questions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hk_fs_bench.answers.commitments import (
    Commitment,
    asks_another,
    marks_correction,
    marks_final,
    settle,
)
from hk_fs_bench.answers.folding import CHAT_TOKEN, FENCE, USER_TURN, fold, plain, well_formed
from hk_fs_bench.answers.objects import (
    REASON,
    STRONG,
    Cut,
    Node,
    Record,
    answers_of,
    inner_records,
)
from hk_fs_bench.answers.statuses import Ending, ParsedOpenAnswer
from hk_fs_bench.answers.values import is_placeholder
from hk_fs_bench.answers.visible import Visible, read_output
from hk_fs_bench.answers.words import any_of, words

_REFUSAL = re.compile(rf"\W{{0,8}}(?:\w+\W+){{0,3}}?{any_of(words('refusals', 'own'))}", re.I)
_LONGEST_REFUSAL = 300
_FENCE_LINE = re.compile(rf"{FENCE}[ \t]*\n")
_CHAT_TOKEN = re.compile(CHAT_TOKEN)
_COLON = r"[*_ ]{0,4}[:：][*_ ]{0,4}"
_ANSWER_LABEL = re.compile(
    rf"[\W_]{{0,6}}(?:final\s)?{any_of(words('keys', 'strong'))}{_COLON}", re.I
)
_REASON_LABEL = re.compile(
    rf"\n[^\w\n]{{0,6}}_{{0,2}}{any_of(words('keys', 'reason'))}{_COLON}", re.I
)
_NO_ANSWERS = frozenset(words("no_answers"))


def parse_oeq(
    text: str | None, *, finish_reason: str | None = None, reasoning_open: bool = False
) -> ParsedOpenAnswer:
    """Read the answer of a model's output `text` to an open question, and its reason.

    Arguments as for `parse_mcq`. Status "valid" is the JSON object asked for. Without any object
    the whole text outside reasoning is the answer, "repaired". An answer that the token limit cut
    is "truncated" and keeps what was written. Refusals, echoes, empties and several different
    answers have no answer. Never raises; time is linear in the text's length.
    """
    ending = Ending.of(finish_reason)
    if ending.overrules:
        return ParsedOpenAnswer(None, None, "finish_reason", str(ending.status))
    seen = read_output(text, reasoning_open, ending)
    commitments = _commitments(seen, ending)
    if commitments:
        settled = settle(commitments)
        if settled is None:
            return ParsedOpenAnswer(None, None, commitments[-1].step, "ambiguous")
        return settled.value
    if seen.unfinished is not None:
        status = "empty" if ending.finished else "truncated"
        return ParsedOpenAnswer(None, None, "reasoning", status)
    if seen.prose_is_blank:
        if seen.found_object:  # an object that says everything but the answer
            status = "truncated" if ending.cut else "invalid"
            return ParsedOpenAnswer(None, None, "none", status)
        step = "reasoning" if seen.had_reasoning else "empty"
        return ParsedOpenAnswer(None, None, step, "truncated" if ending.cut else "empty")
    answer, reason = _labelled(_whole_text(seen))
    cut = ending.cut and reason is None  # a reason that has begun says that the answer was over
    return _judged(answer, reason, "whole_text", "truncated" if cut else "repaired")


def _labelled(text: str) -> tuple[str, str | None]:
    """Answer and reason of a text that names them ("Answer: ...", "Reason: ..." below)."""
    label = _ANSWER_LABEL.match(text)
    if not label:
        return text, None
    below = _REASON_LABEL.search(text, label.end())
    if not below:
        return text[label.end() :], None
    return text[label.end() : below.start()], text[below.end() :].strip() or None


def _whole_text(seen: Visible) -> str:
    """The text outside reasoning, without packaging, up to a user's turn that the model wrote."""
    turns = [turn for turn in USER_TURN.split(seen.text) if _CHAT_TOKEN.sub("", turn).strip()]
    text = _CHAT_TOKEN.sub("", turns[0] if turns else "").strip()
    fence = _FENCE_LINE.match(text)
    return text[fence.end() :].removesuffix("```") if fence else text


def _commitments(seen: Visible, ending: Ending) -> list[Commitment[ParsedOpenAnswer]]:
    found: list[Commitment[ParsedOpenAnswer]] = []
    gap, answered = "", False
    for piece in seen.pieces:
        if not isinstance(piece, Record):
            gap = plain(piece)
            continue
        if answered and asks_another(gap):
            break
        for answer in _answers(piece, seen.step_of(piece), ending):
            found.append(
                Commitment(
                    answer.answer and fold(answer.answer),
                    answer,
                    answer.method,
                    corrects=bool(found) and marks_correction(gap),
                    final=marks_final(gap),
                    void=answer.status in ("invalid", "truncated"),
                )
            )
            gap, answered = "", answered or not found[-1].void
    return found


def _answers(record: Record, step: str, ending: Ending) -> list[ParsedOpenAnswer]:
    """The answers of one object: one for each of its answer keys."""
    found = []
    reason = _reason_of(record)
    for node in answers_of(record):
        inner = next((inner for inner in inner_records(node) if inner.values(STRONG)), None)
        rendered = _render(inner.values(STRONG)[0] if inner else node)
        status = "valid" if step == "json" and type(node) is str and not inner else "repaired"
        if rendered.cut and not ending.finished:
            status = "truncated"
        elif not rendered.text.strip():
            status = "empty"
        reason_here = _reason_of(inner) if inner else reason
        found.append(_judged(rendered.text, reason_here, step, status))
    return found


def _reason_of(record: Record) -> str | None:
    texts = (_render(reason).text.strip() for reason in record.values(REASON))
    return next(filter(None, texts), None)


def _judged(answer: str, reason: str | None, step: str, status: str) -> ParsedOpenAnswer:
    """The parsed answer, unless its text is empty, a placeholder or a refusal."""
    text = well_formed(answer).strip()
    if text and is_placeholder(text):
        text, status = "", "invalid"
    elif len(text) <= _LONGEST_REFUSAL and _REFUSAL.match(text):
        text, status = "", "refused"
    elif status != "truncated" and _says_nothing(text):
        text, status = "", "empty"
    return ParsedOpenAnswer(text or None, reason and well_formed(reason), step, status)


def _says_nothing(text: str) -> bool:
    bare = text[:40].strip(" .!<>[](){}\"'").casefold()
    return not any(map(str.isalnum, text)) or (len(text) <= 40 and bare in _NO_ANSWERS)


@dataclass(frozen=True)
class _Rendered:
    text: str
    cut: bool = False


def _render(node: Node) -> _Rendered:
    """A value as text: lists one element a line, inner objects one "key: value" a line."""
    lines: list[str] = []
    cut = False
    stack: list[tuple[str, Node]] = [("", node)]
    while stack:
        label, child = stack.pop()
        if isinstance(child, list):
            stack += [("", item) for item in reversed(child)]
        elif isinstance(child, Record):
            stack += [(f"{key.strip()}: ", item) for key, item in reversed(child.pairs)]
        else:
            cut = cut or isinstance(child, Cut)
            word = "" if child is None else str(child).lower() if isinstance(child, bool) else child
            lines.append(label + word)
    return _Rendered("\n".join(lines), cut)
