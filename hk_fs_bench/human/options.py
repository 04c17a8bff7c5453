"""Which options a cell of a survey export names.

Survey programs join the chosen options by commas, and options hold commas themselves, so a cell is
never split: known labels are matched whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from hk_fs_bench.human.rubric import Choice, fold

LONGEST = 5000


def labels_of(choices: Mapping[str, Choice]) -> dict[str, tuple[str, ...]]:
    """Option id → its labels in all languages, each alone and with its explanation."""
    out = {}
    for name, one in choices.items():
        pairs = [(label, one.about[language]) for language, label in one.label.items()]
        texts = [f"{label}: {about}" for label, about in pairs] + [label for label, _ in pairs]
        both = " / ".join(label for label, _ in pairs), " ".join(label for label, _ in pairs)
        out[name] = (*texts, *both)
    return out


def matched(cell: str, options: Mapping[str, str | tuple[str, ...]]) -> tuple[list[str], str]:
    """The options that `cell` names, in its order, and what of it is none of them.

    Args:
        options: id → its labels (one text or several). A label counts with anything behind a
            colon: forms show "label: explanation".
    """
    if len(cell) > LONGEST:
        return [], cell
    known = tuple(
        (_folded(text), name)
        for name, texts in options.items()
        for text in ((texts,) if isinstance(texts, str) else texts)
    )
    found, rest = _parse(_folded(cell), tuple(sorted(known, key=lambda k: (-len(k[0]), k))))
    return list(dict.fromkeys(found)), rest


def _folded(text: str) -> str:
    """Case, widths and blanks folded; a line feed joins options as a semicolon does."""
    return re.sub(r"\s*:\s*", ":", fold(re.sub(r"\s*\n\s*", "; ", text.strip())))


@lru_cache(maxsize=4096)
def _parse(text: str, known: tuple[tuple[str, str], ...]) -> tuple[tuple[str, ...], str]:
    """Option ids and the unknown rest. The longest label that fits is taken; where what follows
    it fits nothing, a shorter one is tried."""
    text = text.strip(" ,;")
    if not text:
        return (), ""
    best: tuple[tuple[str, ...], str] | None = None
    for label, name in known:
        if not text.startswith(label):
            continue
        for rest in _behind(text[len(label) :], known):
            found, strange = _parse(rest, known)
            if not strange:
                return (name, *found), ""
            if best is None or len(strange) < len(best[1]):
                best = (name, *found), strange
    if best is not None:
        return best
    # Free text ("Other: …"): skip to where a label begins.
    for joint in re.finditer(r"[,;、]\s*", text):
        if any(text.startswith(label, joint.end()) for label, _ in known):
            found, strange = _parse(text[joint.end() :], known)
            return found, f"{text[: joint.start()]} {strange}".strip()
    return (), text


def _behind(tail: str, known: Iterable[tuple[str, str]]) -> Iterable[str]:
    """What may follow a label: nothing, a joint and more, or a colon and an explanation."""
    if not tail:
        yield ""
        return
    if tail[0] in ",;、 ":
        yield tail
    if tail[0] == ":":
        # The explanation ends where another label begins, or with the cell.
        for joint in re.finditer(r"[,;、]\s*", tail):
            if any(tail.startswith(label, joint.end()) for label, _ in known):
                yield tail[joint.end() :]
        yield ""
