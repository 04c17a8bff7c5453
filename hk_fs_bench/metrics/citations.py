"""Clause grounding: do the provisions that an answer cites exist, and are they the item's own?

Every citation is looked up in the facts about the Code (`data/code_facts.json`). That a cited
clause exists says nothing about whether the answer is right; one that doesn't was made up.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import yaml

from hk_fs_bench.code_refs import normalise_ref, resolve
from hk_fs_bench.metrics.common import Scored, signature
from hk_fs_bench.stats.intervals import mean_of_sums

VERSION = 1
_TAIL = r"(?:\s?\((?:[a-z]{1,4}|\d{1,2})\))*"
_ID = rf"[A-Z]?\s?\d{{1,3}}(?:\.\d{{1,3}})*{_TAIL}"
_NEXT_ID = rf"[A-G]\s?\d{{1,2}}(?:\.\d{{1,3}})*{_TAIL}"
_LIST = r"(?:\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or|to)\s+|\s*[&/–-]\s*)"
_KINDS = {
    "clause": r"clauses?|cls?\.|sub-?sections?|sections?|paragraphs?|paras?\.?|§§?",
    "Table": r"tables?",
    "Diagram": r"diagrams?|figures?|figs?\.?",
    "PR": r"performance\s+requirements?",
}
_ANY_KIND = "|".join(_KINDS.values())
_CITATION = re.compile(
    rf"""
    # Forms that say more than kind and number, as code_refs reads them.
    (?P<whole>
        notes?\s+\(?(?:[a-z]|\d{{1,2}})\)?\s+(?:to|of|in|under|below)\s+table\s+[A-G]\s?\d{{1,2}}
      | table\s+[A-G]\s?\d{{1,2}}[\s,-]*\(?\s*notes?\s*:?\s*\(?(?:[a-z]|\d{{1,2}})\b\)?\)?
      | commentary\s+(?:to|on|of|under|in|after)\s+(?:the\s+)?(?:sub-?section\s+|clause\s+)?
        [A-G]\s?\d{{1,2}}(?:\.\d{{1,2}})?
      | (?:sub-?section|clause)\s+\d{{1,2}}(?:\.\d{{1,2}})?{_TAIL}\s+(?:of|in)\s+part\s+[A-G]\b
      | \bPR-[A-G]\d{{1,2}}\b
      | \b[A-G]\d{{1,2}}(?:\.\d{{1,2}})?-comm\b
      | \bappendix\s+[A-Z]\s?\d{{1,2}}\b | \bannex\s+[A-Z]\b
    )
  | (?<!\w)(?P<kind>{_ANY_KIND})\s?(?:no\.?\s*)?(?P<ids>{_ID}(?!\w)(?:{_LIST}{_NEXT_ID}(?!\w))*)
  | (?<![\w.-])(?P<bare>(?-i:[A-H])\d{{1,2}}(?:\.\d{{1,3}})+{_TAIL})(?![\w%°])
    """,
    re.IGNORECASE | re.VERBOSE,
)
_READS = {"clause": "{}", "Table": "Table {}", "Diagram": "Diagram {}", "PR": "PR-{}"}
# How far round a citation the name of another document is looked for.
_BEFORE, _AFTER = 30, 80


@dataclass(frozen=True)
class Citation:
    """A provision as an answer names it; `entries` are what it denotes in the Code, if anything."""

    text: str
    id: str | None
    entries: tuple[str, ...]


def cited(text: str, ids: Container[str] | None = None) -> list[Citation]:
    """Every provision of the Code that `text` names, each once, in the order of first mention.

    Clauses, subsections, tables and their notes, diagrams, commentaries, Performance Requirements,
    appendices; a number without a keyword counts where it has the form of a clause ("B6.1").
    Citations of other documents, as "section 4 of the Buildings Ordinance", are left out.
    """
    found: dict[str, Citation] = {}
    for match in _CITATION.finditer(text):
        if _of_another_document(text, match):
            continue
        for name in _names(match):
            known = normalise_ref(name)
            found.setdefault(known or name, Citation(name, known, resolve(name, ids)))
    return list(found.values())


def _names(match: re.Match[str]) -> list[str]:
    """What a match cites, one text a provision."""
    if match["kind"]:
        kind = next(k for k, words in _KINDS.items() if re.fullmatch(words, match["kind"], re.I))
        ids = re.findall(_ID, match["ids"], re.IGNORECASE)
        return [_READS[kind].format(name.strip()) for name in ids]
    return [match["whole"] or match["bare"]]


def _of_another_document(text: str, match: re.Match[str]) -> bool:
    after, before = _other_documents()
    tail = text[match.end() : match.end() + _AFTER]
    head = text[max(0, match.start() - _BEFORE) : match.start()]
    return bool(after.match(tail) or before.search(head))


@cache
def _other_documents() -> tuple[re.Pattern[str], re.Pattern[str]]:
    data = resources.files("hk_fs_bench").joinpath("data/citations.yaml").read_text("utf-8")
    words = yaml.safe_load(data)
    after, before = (
        "|".join(
            re.escape(word).replace(r"\ ", r"\s+") for word in words[f"other_documents_{side}"]
        )
        for side in ("after", "before")
    )
    return (
        re.compile(rf"\s+(?:of|in|under|to)\s[^.;,\n]{{0,60}}?\b(?:{after})\b", re.IGNORECASE),
        re.compile(rf"\b(?:{before})\b[\s\w.()-]{{0,20}},?\s*\Z", re.IGNORECASE),
    )


def grounding(
    answers: Sequence[str | None],
    references: Sequence[Collection[str] | None],
    ids: Container[str] | None = None,
) -> dict[str, Scored]:
    """Three metrics over answers: `cites`, `citations_exist`, `citations_hit`.

    The share of answers that cite at all; of all citations, those that exist in the Code; of the
    citations in answers to items with references (`references` not None), those that are one of
    the item's own. A clause with its commentary, and a table with its notes, are one place.
    """
    import numpy as np

    names = ("cites", "citations_exist", "citations_hit")
    table = np.zeros((3, len(answers), 2))
    for i, (answer, own) in enumerate(zip(answers, references, strict=True)):
        citations = cited(answer or "", ids)
        exist = sum(bool(citation.entries) for citation in citations)
        table[:, i] = (bool(citations), 1), (exist, len(citations)), (0, 0)
        if own is not None:
            places = {_place(reference) for reference in own}
            hits = sum(any(_place(e) in places for e in c.entries) for c in citations)
            table[2, i] = hits, len(citations)
    signed = {"code": "2024", "text": "answer+reason", "v": VERSION}
    return {
        name: Scored(
            signature(name, **signed),
            _ratios(sums.tolist()),
            sums,
            mean_of_sums,
            is_share=True,
            nothing="no answer to count" if name == "cites" else "no citation to count",
        )
        for name, sums in zip(names, table, strict=True)
    }


def _place(entry: str) -> str:
    return re.sub(r"-(?:comm|note:\w+)$", "", entry)


def _ratios(sums: Sequence[Sequence[float]]) -> list[float | None]:
    return [part / whole if whole else None for part, whole in sums]
