"""The cascade for multiple-choice answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from hk_fs_bench.answers.commitments import (
    Commitment,
    asks_another,
    first_question,
    marks_correction,
    marks_final,
    settle,
    takes_back,
)
from hk_fs_bench.answers.objects import Cut, Node, Record, answers_of
from hk_fs_bench.answers.options import Options
from hk_fs_bench.answers.statements import plain_prose, statements
from hk_fs_bench.answers.statuses import Ending, ParsedAnswer
from hk_fs_bench.answers.values import (
    NOTHING,
    REFUSAL,
    SEVERAL,
    Reading,
    agreed,
    read_node,
    read_value,
)
from hk_fs_bench.answers.visible import Visible, read_output

# What is left of the template's name for the reply.
_OWN_TURN = re.compile(r"\Aassistant[ \t]{0,8}:?[ \t]{0,8}\n\s*", re.I)


def parse_mcq(
    text: str | None,
    choices: Sequence[str],
    *,
    finish_reason: str | None = None,
    reasoning_open: bool = False,
) -> ParsedAnswer:
    """Read the answer of a model's output `text` to a question with the options `choices`.

    Args:
        text: the raw output, None if the model sent none.
        choices: the options' texts in the order of their labels A, B, C, ... (at most 26).
        finish_reason: as the provider gave it. "length" and its kin say that the text may have
            been cut, "stop" and its kin that it was not, None that nothing is known.
        reasoning_open: the prompt itself opened the reasoning (its chat template ends in
            `<think>`), so that the output begins inside it.

    Returns a label only if exactly one option is committed to as the final answer; what a
    `reason` says never counts. Never raises, whatever the text; time is linear in its length.
    """
    ending, options = Ending.of(finish_reason), Options.of(choices)
    if ending.overrules:
        return ParsedAnswer(None, "finish_reason", str(ending.status))
    seen = read_output(text, reasoning_open, ending)
    said, tail = _said(seen, options, ending)
    commitments, tail = _weighed(said, tail, options)
    if commitments:
        settled = settle(commitments)
        reading = (
            settled.value if settled and not takes_back(tail[: first_question(tail)]) else SEVERAL
        )
        return ParsedAnswer(reading.label, (settled or commitments[-1]).step, reading.status)
    if seen.unfinished is not None:
        return ParsedAnswer(None, "reasoning", "empty" if ending.finished else "truncated")
    if seen.prose_is_blank and not seen.found_object:
        step = "reasoning" if seen.had_reasoning else "empty"
        return ParsedAnswer(None, step, "truncated" if ending.cut else "empty")
    if REFUSAL.search(seen.prose[:1000]):
        return ParsedAnswer(None, "none", "refused")
    return ParsedAnswer(None, "none", "truncated" if ending.cut else "invalid")


@dataclass(frozen=True)
class _Said:
    """Something that may be an answer; `before` is the prose since the one before it."""

    reading: Reading
    step: str
    before: str
    words: str = ""
    final: bool = False
    weak: bool = False

    @property
    def void(self) -> bool:
        return self.reading.echo or self.reading.status == "truncated"


def _said(seen: Visible, options: Options, ending: Ending) -> tuple[list[_Said], str]:
    """All that may be an answer, in its order, and the prose behind the last."""
    whole = None if seen.records else _whole_text(seen, options, ending)
    if whole and whole.reading.label:
        return [whole], ""
    found: list[_Said] = []
    gap = ""
    for piece in seen.pieces:
        if isinstance(piece, Record):
            reading, step = _of_record(piece, seen, options, ending), seen.step_of(piece)
            found.append(_Said(reading, step, gap, final=marks_final(gap)))
            gap = ""
            continue
        prose, at = plain_prose(piece, options), 0
        for said in statements(prose, options):
            if said.start < at:
                continue  # a weak form of what was said already
            reading = said.reading
            if piece is seen.pieces[-1] and said.end == len(prose) and seen.may_go_on(ending):
                reading = Reading(None, "truncated")
            gap, at, before = "", said.end, gap + prose[at : said.start]
            words = prose[said.start : at]
            found.append(_Said(reading, "statement", before, words, said.final, said.weak))
        gap += prose[at:]
    return (found, gap) if found or not whole else ([whole], "")


def _of_record(record: Record, seen: Visible, options: Options, ending: Ending) -> Reading:
    reading = agreed([_of_node(node, options, ending) for node in answers_of(record)], options)
    asked = seen.step_of(record) == "json" and any(key == "answer" for key, _ in record.pairs)
    return reading if asked or not reading.label else replace(reading, status="repaired")


def _of_node(node: Node, options: Options, ending: Ending) -> Reading:
    reading = read_node(node, options, ending)
    if reading is not NOTHING or not isinstance(node, str) or isinstance(node, Cut):
        return reading
    # No label and no option, but perhaps a sentence that states one: {"answer": "I choose B"}.
    readings = [said.reading for said in statements(plain_prose(node, options), options)]
    return agreed(readings, options) if readings else NOTHING


def _whole_text(seen: Visible, options: Options, ending: Ending) -> _Said | None:
    """The visible text, up to a further question of the model's own, as one bare value."""
    prose = _OWN_TURN.sub("", plain_prose(seen.prose, options).lstrip())
    head = prose[: first_question(prose)]
    if head == prose and seen.may_go_on(ending):
        return None
    reading = read_value(head, options, free=False)
    if not reading.label:
        return _Said(reading, "whole_text", "") if reading is SEVERAL else None
    return _Said(replace(reading, status="repaired"), "whole_text", "")


def _weighed(
    said: list[_Said], tail: str, options: Options
) -> tuple[list[Commitment[Reading]], str]:
    """The commitments among `said`, up to a question of the model's own, and the prose behind.

    Weak statements count only where nothing stronger stands, or where they correct it.
    """
    answered = False
    for place, one in enumerate(said):
        if answered and asks_another(one.before, options.folded.values()):
            said, tail = said[:place], ""
            break
        answered = answered or not one.void
    by_strong = any(not one.weak and not one.void for one in said)
    commitments: list[Commitment[Reading]] = []
    for one in said:
        corrects = bool(commitments) and marks_correction(one.before + one.words)
        if corrects or not (one.weak and by_strong):
            commitments.append(
                Commitment(one.reading.label, one.reading, one.step, corrects, one.final, one.void)
            )
    return commitments, tail
