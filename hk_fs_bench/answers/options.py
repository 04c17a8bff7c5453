"""The options of a question, and how a text stands to them."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice

from hk_fs_bench.answers.folding import fold, fold_plain
from hk_fs_bench.answers.words import any_of, words

_DOUBT = re.compile(any_of(words("doubts")), re.I)
BECAUSE = re.compile(
    rf"[\s,.:;(-]{{0,70}}(?:{any_of(words('because'))}|not\s(?:option\s)?\(?(?-i:[A-Z])\b"
    r"|(?:reason|reasoning|explanation|rationale|note)\s?:)",
    re.I,
)
_REFERENCE = re.compile(any_of(words("references")) + r"\s*\Z", re.I)
_LISTS_ANOTHER = re.compile(r"[\s,;.]*(?:and|or|und|oder|et|ou|[&/+和或及与與])(?![a-z])", re.I)
# Another label as a second answer: "possibly C", "C is also correct", "C would be acceptable too".
_RIGHT = any_of(words("rivals", "right"))
_RIVAL = re.compile(
    rf"(?i:{any_of(words('rivals', 'maybe'))}\s(?:also\s|even\s)?(?:option\s|choice\s|answer\s)?)"
    r"[(\[\"']{0,2}(?P<named>[A-Z])(?![\w'])"
    # "but it could be C"
    r"|(?i:\b(?:could|might|may|can)\s(?:(?:also|even|well|equally|possibly|just\sas\swell)\s)?be\s"
    r"(?:(?:option|choice|answer|the\sanswer)\s)?)[(\[\"']{0,2}(?P<doubted>[A-Z])[)\]\"']{0,2}"
    r"(?=\s*(?:[.,;!\n]|\Z)|\s(?:too|as\swell|instead|if|under|depending)\b)"
    r"|(?<![\w'.-])(?P<judged>[A-Z])[)\]\"']{0,2}\s"
    rf"(?:(?:is|are|may|might|could|can|would|seems)\s(?:(?:also|equally|just\sas)\s(?:be\s)?{_RIGHT}"
    rf"|(?:be\s)?(?:also\s|equally\s)?{_RIGHT}\s(?:too|as\swell)\b)"
    r"|(?:may|might|could|can|would)\salso\s(?:be|work|apply|do|fit|qualify)\b"
    r"(?!\s(?:wrong|incorrect|unsafe|excluded|eliminated|rejected|ruled)))"
)
_CONTRASTED = re.compile(r"(?:not|than|over|of)[ (]*\Z", re.I)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_WORD = re.compile(r"[^\W_]{4,}|\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Options:
    """The options of one question; labels are A, B, C, ... (at most 26)."""

    texts: tuple[str, ...]
    labels: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", string.ascii_uppercase[: len(self.texts)])

    @classmethod
    def of(cls, choices: Sequence[str]) -> Options:
        given = choices if isinstance(choices, Iterable) else ()
        return _of_texts(tuple(str(choice) for choice in islice(given, 26)))

    @cached_property
    def folded(self) -> dict[str, str]:
        """Label to folded text; an option without any word is left out."""
        pairs = zip(self.labels, map(fold, self.texts), strict=True)
        return {label: text for label, text in pairs if text}

    @cached_property
    def longest(self) -> int:
        return max(map(len, self.texts), default=0)

    @cached_property
    def label_token(self) -> re.Pattern[str]:
        """A capital label that stands alone. The article "A" is none."""
        labels = self.labels or "A"
        return re.compile(
            rf"(?<![A-Za-z0-9_'.-])(?:[AI](?!\s+(?!(?:and|or|is)\b)[a-z])|(?![AI])[{labels}])"
            r"(?![A-Za-z0-9_']|[.-]\w)"
        )

    def named_by_text(self, value: str, visible: str) -> str:
        """The labels whose whole text `value` is (`visible` when plain); exact spelling decides
        between options that are equal when folded."""
        exact = "".join(
            lab for lab, text in zip(self.labels, self.texts, strict=True) if text == value
        )
        if len(exact) == 1:
            return exact
        folded = fold_plain(visible)
        return "".join(label for label, text in self.folded.items() if text == folded)

    def labels_in(self, text: str) -> set[str]:
        """Labels that stand alone in `text`; "Part B" and "clause C" name places in the Code."""
        return {
            found[0]
            for found in self.label_token.finditer(text)
            if found[0] in self.labels
            and not _REFERENCE.search(text, max(0, found.start() - 20), found.start())
        }

    def beside(self, label: str, text: str) -> str:
        """How `text` stands to the label before it: "own", "against" or "free".

        It is its own option's text or the beginning of that, speaks against it (another option's
        text, another label, a doubt, words shared rather with another option), or is free prose.
        """
        text = text.strip()
        folded, own = fold_plain(text), self.folded.get(label, "")
        others = [other for name, other in self.folded.items() if name != label]
        if own and folded == own:
            return "own"
        if folded in others:
            return "against"
        rival = max((o for o in others if _starts(folded, o)), key=len, default="")
        if own and _starts(folded, own) and len(own) > len(rival):
            return "own" if self._only(label, _after(text, own)) else "against"
        if rival:
            return "against"
        if folded and own and _starts(own, folded.rstrip(". ")):
            return "own"
        if BECAUSE.match(text):
            return "free"
        if any(o.count(" ") >= 2 and o in folded and o not in own for o in others):
            return "against"
        return "free" if self._harmless(label, text) and self._shares(folded, own) else "against"

    def _only(self, label: str, tail: str) -> bool:
        """Whether what follows an option's whole text leaves it the only one."""
        sentence = re.split(r"[.;\n]", tail, maxsplit=1)[0]
        return (
            not _LISTS_ANOTHER.match(tail)
            and self._harmless(label, sentence)
            and not self.lists_another(label, tail)
        )

    def lists_another(self, label: str, text: str) -> bool:
        """Whether `text` goes on with another label as in a list of options ("... C) ...")."""
        return any(
            found[0] != label
            and found[0] in self.labels
            and re.match(r"[).:]\s", text[found.end() : found.end() + 2])
            and not _CONTRASTED.search(text, max(0, found.start() - 10), found.start())
            for found in self.label_token.finditer(text)
        )

    def has_rival(self, label: str, text: str) -> bool:
        """Whether `text` calls another label an answer too ("... and possibly C")."""
        named = (
            found["named"] or found["doubted"] or found["judged"] for found in _RIVAL.finditer(text)
        )
        return any(name != label and name in self.labels for name in named)

    def _harmless(self, label: str, text: str) -> bool:
        if BECAUSE.match(text):
            return True
        return not _DOUBT.search(text) and not self.labels_in(text) - {label}

    def _shares(self, folded: str, own: str) -> bool:
        """Whether the words of `folded` point to no other option as much as to its own."""
        said, numbers = set(_WORD.findall(folded)), set(_NUMBER.findall(own))
        stated = set(_NUMBER.findall(folded))
        if numbers and stated and not numbers & stated:
            return False
        shared, rival = self._shared(said, own)
        return rival < shared or not rival

    def leans_away(self, label: str, text: str) -> bool:
        """Whether `text` has three or more words of another option, and fewer of its own."""
        said = set(_WORD.findall(fold_plain(text)))
        shared, rival = self._shared(said, self.folded.get(label, ""))
        return rival > max(shared, 2)

    def _shared(self, said: set[str], own: str) -> tuple[int, int]:
        """How many of the words `said` an option has, and the most that another one has."""
        rivals = [len(said & set(_WORD.findall(o))) for o in self.folded.values() if o != own]
        return len(said & set(_WORD.findall(own))), max(rivals, default=0)


# The same questions are asked of every model: what an option folds to is found once.
@lru_cache(maxsize=4096)
def _of_texts(texts: tuple[str, ...]) -> Options:
    return Options(texts)


def _starts(text: str, beginning: str) -> bool:
    """Whether `text` begins with `beginning`, ending at a word's end."""
    if not beginning or not text.startswith(beginning):
        return False
    rest = text[len(beginning) :]
    return not (rest[:1].isalnum() and beginning[-1].isalnum()) and not re.match(r"[.,]\d", rest)


def _after(text: str, own: str) -> str:
    """What follows an option's text in `text`, in its own case: labels need their capitals."""
    unfolded = " ".join(text.split()).lstrip("\"'-/ ")
    return unfolded[len(own) :]
