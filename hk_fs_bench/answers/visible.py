"""What a reader sees of a model's output: prose and objects, without reasoning."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias

from hk_fs_bench.answers.folding import CHAT_TOKEN, FENCE, clean, unescape_html
from hk_fs_bench.answers.objects import (
    REASONING_END,
    REASONING_START,
    RECORD_START,
    Reader,
    Record,
    holders,
    unescape_once,
)
from hk_fs_bench.answers.statuses import Ending

Piece: TypeAlias = "str | Record"

_NEXT = re.compile(
    rf"(?P<end>{REASONING_END})|(?P<start>{REASONING_START})|(?P<record>{RECORD_START})", re.I
)
_END = re.compile(REASONING_END, re.I)
_PACKAGING = re.compile(rf"{CHAT_TOKEN}|{FENCE}")
_BLANK_TAIL = re.compile(rf"(?>(?:\s+|{CHAT_TOKEN}|{FENCE})+)\Z")
_ESCAPED_QUOTE = re.compile(r"\\[\"']")


@dataclass
class Visible:
    """Prose and the objects that hold an answer, in their order; no two pieces of prose adjoin.

    `text` is the whole text outside reasoning, the objects included.
    `unfinished` is the text of reasoning that never ended, None if all of it did.
    `found_object` tells whether there was any object at all, with an answer or without.
    `decoded`: the text had to be unescaped to show them.
    """

    pieces: list[Piece] = field(default_factory=list)
    text: str = ""
    unfinished: str | None = None
    had_reasoning: bool = False
    found_object: bool = False
    decoded: bool = False
    ends_in_word: bool = False

    @property
    def records(self) -> list[Record]:
        return [piece for piece in self.pieces if isinstance(piece, Record)]

    @property
    def prose(self) -> str:
        return "\n".join(piece for piece in self.pieces if isinstance(piece, str))

    @property
    def prose_is_blank(self) -> bool:
        """Whether there is no prose but packaging."""
        return not _PACKAGING.sub("", self.prose).strip()

    def may_go_on(self, ending: Ending) -> bool:
        """Whether the token limit may have cut the very last word."""
        return ending.cut and self.ends_in_word

    def step_of(self, record: Record) -> str:
        if self.decoded:
            return "decoded_json"
        return "json" if record.strict else "repaired_json"


def read_output(text: str | None, reasoning_open: bool, ending: Ending) -> Visible:
    """`text` without reasoning, with its objects, decoded once more if that shows any.

    Whatever is no text, None above all, is read as an empty one.

    `reasoning_open` says that the prompt opened the reasoning. Reasoning that is open at the end is
    in `unfinished`; but where the model ended its reply with one object and nothing else behind
    the opening marker, it only skipped the closing one.
    """
    text = clean(text) if isinstance(text, str) else ""
    seen = _split(text, reasoning_open)
    if not seen.found_object and seen.unfinished is None:
        if "&" in text and _split(unescape_html(text), reasoning_open).records:
            text = unescape_html(text)
            seen = _split(text, reasoning_open)
            seen.decoded = True
        elif _ESCAPED_QUOTE.search(text):
            inner = _split(unescape_once(text), reasoning_open)
            if inner.records:
                seen, seen.decoded = inner, True
    if seen.unfinished is not None and ending.finished and not seen.records:
        inner = _split(seen.unfinished, False)
        if len(inner.records) == 1 and inner.prose_is_blank and inner.unfinished is None:
            seen = inner
    seen.ends_in_word = text[-1:].isalnum()
    return seen


def _split(text: str, reasoning_open: bool) -> Visible:
    """Split clean `text` into prose, objects and reasoning, in one pass.

    Markers of reasoning count only outside objects. A closing one without an opening one ends
    reasoning that the prompt began; behind an answer that follows a closed block it is a leak.
    """
    seen, reader = Visible(had_reasoning=reasoning_open), Reader(text)
    prose: list[str] = []
    shown: list[str] = []
    end_of_text = _visible_end(text)
    at = 0
    if reasoning_open:
        end = _END.search(text)
        if not end:
            seen.unfinished = text
            return seen
        at = end.end()
    while found := _NEXT.search(text, at):
        prose.append(text[at : found.start()])
        shown.append(prose[-1])
        at = found.end()
        if found["record"]:
            record, at = reader.read(found)
            shown.append(text[found.start() : at])
            seen.found_object = True
            held = holders(record)
            if held:
                seen.pieces += ["\n".join(prose), *held]
                prose.clear()
            # An object without an answer is no prose: its reason must not decide.
            continue
        if found["end"] and (at < end_of_text or not seen.had_reasoning):
            for gathered in (seen.pieces, prose, shown):
                gathered.clear()
        elif found["start"]:
            end = _END.search(text, at)
            if not end:
                seen.unfinished = text[at:]
                break
            at = end.end()
        seen.had_reasoning = True
    if seen.unfinished is None:
        prose.append(text[at:])
        shown.append(text[at:])
    seen.pieces.append("\n".join(prose))
    seen.text = "".join(shown)
    return seen


def _visible_end(text: str) -> int:
    """Where the last visible character of `text` ends."""
    tail = _BLANK_TAIL.search(text, max(0, len(text) - 400))
    return tail.start() if tail else len(text)
