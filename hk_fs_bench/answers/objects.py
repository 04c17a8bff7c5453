"""Objects in model text: strictly where they are JSON, else with the slips that models make.

The tolerant reader goes through the text once, with a stack of its own, and never back, so that
depth and length cost linear time. Values come out as they stand: which of them is the answer, and
whether it is one, is decided elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hk_fs_bench.answers.folding import CHAT_TOKEN, fold_key
from hk_fs_bench.answers.words import any_of, words


class Bare(str):
    """A value without quotes."""


class Cut(str):
    """A value that the text's end interrupted."""


class LastWord(Cut):
    """A bare value at the text's end, nothing left open: only a token limit may have cut it."""


@dataclass
class Record:
    """An object: its pairs in their order, duplicates kept. `strict`: a JSON reader takes it."""

    pairs: list[tuple[str, Node]] = field(default_factory=list)
    strict: bool = False

    def values(self, keys: frozenset[str]) -> list[Node]:
        return [value for key, value in self.pairs if fold_key(key) in keys]


Node: TypeAlias = "str | bool | list[Node] | Record | None"

STRONG = frozenset(words("keys", "strong"))
WEAK = frozenset(words("keys", "weak"))
PARTS = frozenset(words("keys", "parts"))
REASON = frozenset(map(fold_key, words("keys", "reason")))

_DOUBLE = '"“”„‟″＂«»「」『』'
_SINGLE = "'‘’‚‛′＇`´"
_QUOTES = _DOUBLE + _SINGLE
_OPEN, _CLOSE, _COMMA = "{｛", "}｝", ",，,;；、"
# Blanks and the comments of JSON5 and Python.
_SPACE = r"(?>(?:\s+|//[^\n]{0,300}|/\*(?>(?:[^*]|\*(?!/)){0,300})\*/|\#[^\n]{0,300})*)"
_COLON = r"(?::{1,2}|：|﹕|=>|->|=|＝)"
_QUOTED_KEY = "|".join(
    rf"[{quotes}]{{1,3}}[^{quotes}\n{{}}]{{0,200}}[{quotes}]{{1,3}}"
    for quotes in (_DOUBLE, _SINGLE)
)
_KEY = (
    rf"(?:(?:{_QUOTED_KEY}|[{_QUOTES}]?[^\W\d][\w $-]{{0,40}}[{_QUOTES}]?){_SPACE}{_COLON}"
    # A forgotten colon is forgiven where the key is the answer's.
    rf"|[{_QUOTES}]answer[{_QUOTES}]\s+(?=[{_QUOTES}]))"
)
_AFTER_COMMA = rf"(?:[{_CLOSE}]|{_KEY}|[{_QUOTES}]?[\w ]{{0,60}}\Z)"
# What follows the quote that ends a string: a string with quotes inside ends only there.
_ENDS_STRING = (
    rf"(?:\s*\n\s*\n|{_SPACE}(?:[{_CLOSE}\]］]|\Z|[{_COMMA}]{_SPACE}{_AFTER_COMMA}"
    rf"|(?:{_QUOTED_KEY}){_SPACE}{_COLON}|```|</\w|{CHAT_TOKEN}))"
)
_ENDS_ELEMENT = rf"{_SPACE}(?:[{_COMMA}\]］{_CLOSE}]|\Z)"


def _known_key(quotes: str) -> str:
    names = any_of([*STRONG, *WEAK, *REASON, "final_answer", "final answer", "correct_answer"])
    return rf"[{quotes}]{{1,3}}\s?{names}\s?[{quotes}]{{1,3}}\s*{_COLON}"


_ANSWER_OBJECT = rf"[{_OPEN}]\s*[{_QUOTES}]{{0,3}}\s?answer\s?[{_QUOTES}]{{0,3}}\s*{_COLON}"
_REASONING = (
    r"(?:\w{1,12}:)?(?:think|thinking|thought|thoughts|reasoning|reason|reasons|explanation"
    r"|rationale|reflection|scratchpad|analysis)"
)
REASONING_START = (
    rf"(?:(?:<|＜|&lt;|◁)[|｜]?\s?{_REASONING}(?:\s[^<>\n]{{0,80}})?[|｜]?\s?(?:>|＞|&gt;|▷)"
    r"|\[THINK(?:ING)?\]|<\|(?:begin_of_thought|START_THINKING|begin_think(?:ing)?)\|>"
    r"|<\|channel>\s?thought|<unused94>thought|<\|channel\|>\s?(?:analysis|commentary)"
    r"|\A\s*(?-i:analysis(?=[A-Z]))|\A\s*Here is my thought process:)"
)
REASONING_END = (
    rf"(?:(?:<|＜|&lt;|◁)[|｜]?\s?/\s?[|｜]?{_REASONING}\s?[|｜]?(?:>|＞|&gt;|▷)"
    r"|\[/THINK(?:ING)?\]|<\|(?:end_of_thought|END_THINKING|end_think(?:ing)?)\|>"
    r"|<channel\|>|<unused95>|<\|channel\|>\s?final[^<]{0,20}<\|message\|>"
    r"|(?-i:assistantfinal(?![a-z]))|\bHere is my response:)"
)
# Inside a string that no quote has ended yet, these begin the real answer.
_BREAKS_STRING = (
    rf"(?:{REASONING_END}(?=\s*(?:```\w*\s*)?[{_OPEN}])|\n\s*(?:```\w*\s*)?(?={_ANSWER_OBJECT}))"
)


def _string_end(quotes: str, follows: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<escape>\\.)|(?P<quote>[{quotes}])(?={follows})|(?P<broken>{_BREAKS_STRING})"
        rf"|(?P<forgotten>[{_COMMA}]\s*(?={_known_key(quotes)}))",
        re.S | re.I,
    )


_STRING_END = {
    (quotes, in_list): _string_end(quotes, _ENDS_ELEMENT if in_list else _ENDS_STRING)
    for quotes in (_DOUBLE, _SINGLE)
    for in_list in (True, False)
}
_BARE_END = re.compile(
    rf"[{_CLOSE}{_OPEN}\]］\[\n]|//|/\*|[{_COMMA}](?={_SPACE}{_AFTER_COMMA})", re.I
)
_BARE_ELEMENT_END = re.compile(rf"[{_COMMA}{_CLOSE}\]］\n]")
_AROUND_KEY = _QUOTES + " \t\n:：﹕=＝>-"
_SPACES = re.compile(_SPACE)
_KEY_AT = re.compile(_KEY, re.I)
_LITERALS: dict[str, bool | None] = {
    **dict.fromkeys(("null", "none", "nil", "undefined", "nan"), None),
    "true": True,
    "false": False,
}

RECORD_START = (
    rf"(?P<brace>[{_OPEN}])(?={_SPACE}{_KEY})"
    # Without its braces an object is recognised by a quoted key that we know.
    rf"|(?<![\w\\])(?P<key>{_known_key(_QUOTES)})"
)


def _skip(text: str, at: int) -> int:
    blanks = _SPACES.match(text, at)
    return blanks.end() if blanks else at


def _strict_record(pairs: list[tuple[str, Any]]) -> Record:
    return Record(pairs, strict=True)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_strict_record, parse_int=Bare, parse_float=Bare, parse_constant=Bare
)


class Reader:
    """Reads objects of one text. A strict attempt that fails may have looked far ahead, so their
    number is limited; the tolerant reader takes over."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._strict_attempts = 50

    def read(self, start: re.Match[str]) -> tuple[Record, int]:
        """The object at a match of RECORD_START, and where it ends (always behind the start)."""
        if not start["brace"]:
            record, end = self._tolerant(start.start(), braced=False)
            # A key in quotes of two kinds is none inside an object, and must not be met for ever.
            if end > start.start():
                return record, end
            return self._tolerant(start.end(), braced=False, key=start["key"])
        if self._strict_attempts:
            try:
                record, end = _DECODER.raw_decode(self.text, start.start())
                return record, end
            except (ValueError, RecursionError):
                self._strict_attempts -= 1
        return self._tolerant(start.end())

    def _tolerant(self, at: int, braced: bool = True, key: str | None = None) -> tuple[Record, int]:
        text, root = self.text, Record()
        stack: list[Record | list[Node]] = [root]
        if key is not None:
            value, at = self._value(at, stack, in_list=False)
            root.pairs.append((key.strip(_AROUND_KEY), value))
        while stack:
            at = _skip(text, at)
            if at == len(text):
                break
            top, char = stack[-1], text[at]
            if char in _COMMA:
                at += 1
            elif isinstance(top, Record):
                if char in _CLOSE:
                    stack.pop()
                    at += 1
                else:
                    found = _KEY_AT.match(text, at)
                    if not found:
                        break  # not an object any more
                    name, at = found[0].strip(_AROUND_KEY), found.end()
                    value, at = self._value(at, stack, in_list=False)
                    if type(value) is LastWord and (braced or len(stack) > 1):
                        value = Cut(value)
                    top.pairs.append((name, value))
            elif char in "]］" + _CLOSE:
                stack.pop()
                at += char in "]］"
            else:
                value, at = self._value(at, stack, in_list=True)
                top.append(value)
        return root, at

    def _value(self, at: int, stack: list[Record | list[Node]], in_list: bool) -> tuple[Node, int]:
        text = self.text
        at = _skip(text, at)
        if at == len(text):
            return Cut(""), at
        if text[at] in _OPEN + "[［":
            child: Record | list[Node] = Record() if text[at] in _OPEN else []
            stack.append(child)
            return child, at + 1
        if text[at] in _QUOTES:
            return self._string(at, stack, in_list)
        end = (_BARE_ELEMENT_END if in_list else _BARE_END).search(text, at)
        if not end:
            return LastWord(text[at:].rstrip()), len(text)
        word = text[at : end.start()].strip()
        return _LITERALS.get(word.casefold(), Bare(word)), end.start()

    def _string(self, at: int, stack: list[Record | list[Node]], in_list: bool) -> tuple[str, int]:
        quotes = _DOUBLE if self.text[at] in _DOUBLE else _SINGLE
        for end in _STRING_END[quotes, in_list].finditer(self.text, at + 1):
            if end["broken"] is not None:
                stack.clear()
                return Cut(self.text[at + 1 : end.start()]), end.start()
            if end["quote"] or end["forgotten"]:
                return _unescape(self.text[at + 1 : end.start()]), end.end()
        return Cut(self.text[at + 1 :]), len(self.text)


_ESCAPES = {"n": "\n", "t": "\t", "r": "\n", "b": "\b", "f": "\f"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.S)


def _unescape(text: str) -> str:
    """Resolve JSON's escapes; of an escape that JSON does not know, only the backslash goes."""
    return _ESCAPE.sub(lambda e: chr(int(e[1], 16)) if e[1] else _ESCAPES.get(e[2], e[2]), text)


def unescape_once(text: str) -> str:
    """Text in which quotes were escaped once more, without that escaping."""
    try:
        decoded = json.loads(text)
    except (ValueError, RecursionError):
        decoded = None
    return decoded if isinstance(decoded, str) else _unescape(text)


def inner_records(node: Node) -> Iterator[Record]:
    """The objects that `node` is, holds as a list, or holds as text that was encoded twice."""
    for child in node if isinstance(node, list) else [node]:
        if isinstance(child, Record):
            yield child
        elif isinstance(child, str) and child.lstrip()[:1] in ("{", "｛"):
            start = re.compile(RECORD_START, re.I).match(child.strip())
            if start:
                yield Reader(child.strip()).read(start)[0]


def holders(record: Record) -> list[Record]:
    """The objects that hold an answer: `record` itself, else those one wrapper level below."""
    for keys in (STRONG, WEAK):
        if record.values(keys):
            return [record]
    inner = [
        child
        for key, value in record.pairs
        if fold_key(key) not in REASON
        for child in inner_records(value)
    ]
    return [child for child in inner if child.values(STRONG) or child.values(WEAK)]


def answers_of(record: Record) -> list[Node]:
    """The values of the strongest answer keys that `record` itself has."""
    return record.values(STRONG) or record.values(WEAK)
