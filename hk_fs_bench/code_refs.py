"""Ids of the Code's provisions: the ways they are written, brought to one form."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

_NOTE = r"(?:\(?(?P<note>[a-z]|\d{1,2})\)?)"
_FORMS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), form)
    for pattern, form in (
        (r"A-?def\s*:\s*(?P<term>.+)", "A-def:{term}"),
        (r"definitions?\s+of\s+(?P<term>.+)", "A-def:{term}"),
        (r"(?:PR|performance\s+requirements?)[\s-]*(?P<part>[A-G])\s?(?P<n>\d+)", "PR-{part}{n}"),
        (
            rf"table\s+(?P<part>[A-G])\s?(?P<n>\d+)[\s,-]*(?:\(?\s*)notes?\s*:?\s*{_NOTE}\)?",
            "Table {part}{n}-note:{note}",
        ),
        (
            rf"notes?\s*{_NOTE}\s*(?:to|of|in|under|below)\s+table\s+(?P<part>[A-G])\s?(?P<n>\d+)",
            "Table {part}{n}-note:{note}",
        ),
        (r"table\s+(?P<part>[A-G])\s?(?P<n>\d+)", "Table {part}{n}"),
        (r"diagrams?\s+(?P<part>[A-G])\s?(?P<n>\d+)", "Diagram {part}{n}"),
        (r"appendix\s+(?P<part>F)\s?(?P<n>1)", "Appendix F1"),
        (r"annex\s+A", "Annex A"),
        (r"foreword", "Foreword"),
        (
            r"commentary\s+(?:to|on|of|under|in|after)\s+(?:the\s+)?(?:sub-?section|clause)?\s*"
            r"(?P<part>[A-G])[\s.]?(?P<n>\d+(?:\.\d+)?)",
            "{part}{n}-comm",
        ),
        (
            r"(?:(?:sub-?section|clause|cl\.?|§)s?\s*)?(?P<part>[A-G])[\s.]?(?P<n>\d+(?:\.\d+)?)"
            r"(?:\s?\([a-z0-9]+\))*[\s,-]*(?:\(?comm(?:entary)?\)?)",
            "{part}{n}-comm",
        ),
        (
            r"(?:part\s+[A-G],?\s+)?(?:(?:sub-?section|clause|cl\.?|§)s?\s*)?"
            r"(?P<part>[A-G])[\s.]?(?P<n>\d+(?:\.\d+)?)(?:\s?\([a-z0-9]+\))*",
            "{part}{n}",
        ),
        (
            r"(?:sub-?section|clause|cl\.?)s?\s*(?P<n>\d+(?:\.\d+)?)(?:\s?\([a-z0-9]+\))*"
            r"\s+(?:of|in)\s+part\s+(?P<part>[A-G])",
            "{part}{n}",
        ),
    )
)


def kebab(term: str) -> str:
    """`term` as the tail of a definition's id: travel-distance."""
    plain = term.replace("’", "'").lower().replace("'", "")
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"\([^)]*\)", " ", plain)).strip("-")


def normalise_ref(text: str) -> str | None:
    """The id that a written citation names, or None when it has no form of one.

    "Clause B11.6(a)" and "Subsection B 11.6" give "B11.6"; "Note 7 to Table B1" gives
    "Table B1-note:7". Says nothing about existence: `resolve` does.
    """
    plain = " ".join(text.replace("–", "-").split()).strip(" .,;:[]\"'“”")
    plain = re.sub(r"^(?:the\s+)?(?:code(?:'s)?\s+)?", "", plain, flags=re.IGNORECASE)
    for pattern, form in _FORMS:
        match = pattern.fullmatch(plain)
        if not match:
            continue
        parts = {name: value or "" for name, value in match.groupdict().items()}
        if "part" in parts:
            parts["part"] = parts["part"].upper()
        if "note" in parts:
            parts["note"] = parts["note"].lower()
        if "term" in parts:
            parts["term"] = kebab(parts["term"])
        return form.format(**parts)
    return None


def resolve(ref: str, ids: Container[str] | None = None) -> tuple[str, ...]:
    """Ids of the entries that `ref` denotes among `ids` (the committed facts by default).

    One id as a rule. "A3-comm" denotes every commentary printed in Subsection A3. Empty when there
    is no such provision.
    """
    if ids is None:
        from hk_fs_bench.code_index import load_facts

        ids = load_facts()
    wanted = ref if ref in ids else normalise_ref(ref)
    if wanted is None:
        return ()
    if wanted in ids:
        return (wanted,)
    subsection = re.fullmatch(r"([A-G]\d+)-comm", wanted)
    if subsection and isinstance(ids, Iterable):
        inner = re.compile(rf"{subsection[1]}\.\d+-comm")
        return tuple(sorted(name for name in ids if inner.fullmatch(name)))
    return ()


def within(entry: str, ids: Iterable[str]) -> tuple[str, ...]:
    """`entry` and what is printed inside it: a table's notes, a subsection's clauses and tables."""
    if re.fullmatch(r"Table [A-G]\d+", entry):
        return (entry, *(name for name in ids if name.startswith(f"{entry}-note:")))
    if entry == "Appendix F1":
        return (entry, *(name for name in ids if name.split("-note:")[0] == "Table F1"))
    if re.fullmatch(r"[A-G]\d+", entry):
        inner = re.compile(rf"{entry}\.\d+")
        return (entry, *(name for name in ids if inner.fullmatch(name)))
    return (entry,)
