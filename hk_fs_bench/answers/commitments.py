"""Several answers in one output: which of them is the final one?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from hk_fs_bench.answers.folding import fold
from hk_fs_bench.answers.statuses import CASCADE
from hk_fs_bench.answers.words import any_of, words

T = TypeVar("T")


@dataclass(frozen=True)
class Commitment(Generic[T]):
    """One answer of an output.

    `key` is equal for equal answers, None if the answer can't be read; `step` names the step of
    the cascade that found it. It `corrects` the ones before it, or is announced as `final`. One
    that is `void` (an echo of the prompt, a value that was cut) counts only if there is no other.
    """

    key: str | None
    value: T
    step: str
    corrects: bool = False
    final: bool = False
    void: bool = False


_OPENS = r"(?:^|[.!?,;:\n(-])\s*(?:(?:oh|hmm|but|no|well|and|ah|hold on)[\s,.-]+)?"
_CORRECTION = re.compile(
    rf"{_OPENS}{any_of(words('corrections', 'opening'))}|{any_of(words('corrections', 'anywhere'))}"
    r"|(?<!\w)actually\W{0,3}\Z"
    # Behind an answer, "no, C" denies it.
    r"|(?<=[\s.,;-])no,\s(?:it(?:'s|\sis)\s)?(?:rather\s)?(?:option\s)?\W{0,3}[A-Z]?\Z",
    re.I,
)
_REJECTION = re.compile(
    rf"\W{{0,20}}(?:(?:oh|hmm|but|no)[\s,.-]{{1,8}})?{any_of(words('rejections'))}", re.I
)
_RETRACTION = re.compile(
    rf"(?:^|[.!?\n])\s*(?:(?:oh|hmm|but|no)[\s,.-]+)?{any_of(words('retractions'))}", re.I
)
# In fire safety a final exit is a door.
FINAL = re.compile(any_of(words("finals")) + r"(?!\s(?:exits?|discharge|doors?|place))", re.I)
_ASKS = re.compile(
    r"(?:^|\n)\W{0,6}(?:(?:next|new|another|follow-?up|practice|example|sample)\s)?"
    r"(?:question|problem|exercise|quiz|q|frage|pregunta|问题|問題|题目|題目|例题|例題)"
    r"\s?(?:no\.?\s?|#)?\d{0,3}\s?[:.)\n]"
    r"|(?:^|\n)\W{0,6}(?:user|human|instruction|input)\s?:"
    # The name of a turn, alone on its line
    r"|\n[ \t]{0,8}(?:user|human|assistant)[ \t]{0,8}(?=\n|\Z)"
    r"|\b(?:next|new|another)\s(?:question|problem)\b"
    r"|You are (?:given|answering) a |Choose ONE most"
    # A list of options
    r"|(?:^|[\n ])\(?A[).:]\s(?s:.{1,300}?)[\n ]\(?B[).:]\s(?s:.{1,300}?)[\n ]\(?C[).:]\s",
    re.I,
)


def asks_another(prose: str, options: Iterable[str] = ()) -> bool:
    """Whether a question of the model's own begins in `prose`, the text between two answers.

    If `prose` repeats all of our `options` (folded texts), the question is ours again.
    """
    if not _ASKS.search(prose):
        return False
    ours, folded = list(options), fold(prose)
    return not (ours and all(text in folded for text in ours))


def first_question(prose: str) -> int:
    """Where in `prose` a further question begins, or its length."""
    found = _ASKS.search(prose)
    return found.start() if found else len(prose)


def marks_correction(prose: str) -> bool:
    """Whether `prose`, the text before an answer, says that it replaces the answer before."""
    return bool(_CORRECTION.search(prose))


def marks_final(prose: str) -> bool:
    """Whether `prose`, the text before an answer, announces it as the final one."""
    return bool(FINAL.search(prose[-120:]))


def takes_back(prose: str) -> bool:
    """Whether `prose` behind the last answer retracts it without giving another."""
    return bool(_REJECTION.match(prose) or _RETRACTION.search(prose))


def settle(commitments: list[Commitment[T]]) -> Commitment[T] | None:
    """The one answer that the output ends with; None if several stand.

    A marked correction replaces everything before it, one announced as final everything that was
    not; the rest must agree. `commitments` must not be empty.
    """
    real = [c for c in commitments if not c.void] or commitments[-1:]
    start = max((place for place, c in enumerate(real) if place and c.corrects), default=0)
    standing = real[start:]
    final = next((place for place, c in enumerate(standing) if c.final), 0)
    standing = standing[final:]
    if len({c.key for c in standing}) > 1:
        return None
    return min(standing, key=lambda c: CASCADE.index(c.step))
