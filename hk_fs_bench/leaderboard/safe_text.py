"""Names, links and texts of strangers: data, and nothing that must not be published."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

import yaml

from hk_fs_bench import code_grams

_SLUG_PART = 40
# Letters and marks that show nothing, which no category of Unicode says.
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_FOLD = re.compile(r"[^a-z0-9]+")


@cache
def settings() -> dict[str, Any]:
    """Sizes, tolerances and patterns: data/leaderboard.yaml."""
    text = resources.files("hk_fs_bench").joinpath("data/leaderboard.yaml").read_text("utf-8")
    found: dict[str, Any] = yaml.safe_load(text)
    return found


_SECRET_FIELD = re.compile(
    r"(?:x-)?(?:api[_-]?key|authorization|password|secret|access[_-]?token)", re.I
)
_ADDRESS = re.compile(r"https?://\S*", re.I)


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in settings()[name]))


def strings(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """(place, text) of every text in a JSON value, the keys of its objects among them."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield f"{place}, a name", key
            yield from strings(inner, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from strings(inner, f"{place}[{number}]")


def unprintable(text: str, lines: bool = False, edges: bool = False) -> str | None:
    """What in a text would deceive a reader's eye, or None.

    Control and direction characters, invisible ones, halves of characters, letters in a form that
    looks like another spelling (NFC is expected), blanks at an end. `lines`: line feeds may stand.
    `edges`: blanks may stand at an end.
    """
    for char in text:
        kind = unicodedata.category(char)
        if char == " " or (lines and char == "\n"):
            continue
        if kind in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs") or _UNSEEN.match(char):
            return f"control or direction characters, or invisible ones (U+{ord(char):04X})"
    if not edges and text != text.strip():
        return "a blank at its beginning or end"
    if not unicodedata.is_normalized("NFC", text):
        return "letters that are not in Unicode's form NFC"
    return None


def mixed(text: str) -> str | None:
    """A word whose letters are of two alphabets that look alike, or None."""
    for word in text.split():
        scripts = {unicodedata.name(c, "").split(" ")[0] for c in word if c.isalpha()}
        if len(scripts & {"LATIN", "CYRILLIC", "GREEK", "CHEROKEE", "ARMENIAN"}) > 1:
            return f"letters of two alphabets in one word ({ascii(word)[:60]})"
    return None


def secret(text: str) -> str | None:
    """The beginning of what looks like a key or a password, or None."""
    lower = text.lower()
    if not any(hint in lower for hint in settings()["secret_hints"]):
        return None
    found = _pattern("secrets").search(text)
    return None if found is None else f"{found[0][:8]}…"


def names_a_secret(place: str) -> bool:
    """Whether a field's name says that it holds a key or a password."""
    return _SECRET_FIELD.fullmatch(place.rsplit(".", 1)[-1]) is not None


def local_path(text: str) -> str | None:
    """The first path of a machine in a text, or None. Web addresses are none."""
    found = _pattern("paths").search(_ADDRESS.sub(" ", text))
    return None if found is None else found[0][:60]


def excerpt(text: str, words: int = code_grams.RUN - 1) -> str | None:
    """A run of more than `words` words that a text shares with the Code, or None."""
    return code_grams.shared_run_beyond(text, words)


def slug_part(model: str) -> str:
    """The readable part of a slug: the model's last name in letters, digits and dashes."""
    plain = unicodedata.normalize("NFKD", model.rsplit("/", 1)[-1]).encode("ascii", "ignore")
    return _FOLD.sub("-", plain.decode().lower()).strip("-")[:_SLUG_PART].strip("-") or "model"
