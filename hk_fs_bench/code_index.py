"""The user's own PDF of the Code, indexed by provision; and the committed facts about it.

The index holds the Code's text and stays in the user's cache. The facts (`data/code_facts.json`)
hold ids, kinds, pages and numbers, no sentence, and are part of the package.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from hk_fs_bench.code_refs import normalise_ref, resolve, within
from hk_fs_bench.errors import UserError
from hk_fs_bench.quantities import Quantity, quantities

__all__ = [
    "CodeEntry",
    "CodeFact",
    "CodeIndex",
    "build_index",
    "facts_json",
    "load_facts",
    "normalise_ref",
    "numbers_of",
    "resolve",
]

# Raise with every change of the parsing, so that indexes of older versions are built anew.
INDEX_VERSION = 2
TITLE = "Fire Safety in Buildings"
_PREDECESSORS = (
    "Provision of Means of Escape in Case of Fire",
    "Fire Resisting Construction",
    "Means of Access for Firefighting and Rescue",
    "Minimum Fire Service Installations and Equipment",
)
_MIN_ENTRIES = 300
_COVER_CHARACTERS = 60


@dataclass(frozen=True)
class CodeEntry:
    """One provision: `pages` are printed page numbers, `numbers` (value, unit) pairs."""

    id: str
    kind: str
    part: str | None
    pages: tuple[str, ...]
    text: str
    numbers: tuple[Quantity, ...]
    typed_from_page: bool = False


@dataclass(frozen=True)
class CodeFact:
    """What the repository may say about a provision: no word of its text."""

    id: str
    kind: str
    part: str | None
    page: str
    numbers: tuple[Quantity, ...]
    typed_from_page: bool = False


@dataclass(frozen=True)
class CodeIndex:
    """All provisions of one PDF, in printed order. `edition` is "2011", … "2024"."""

    edition: str
    sha256: str
    entries: Mapping[str, CodeEntry]

    def find(self, ref: str) -> tuple[CodeEntry, ...]:
        """The entries a written citation denotes; empty if it denotes none."""
        return tuple(self.entries[name] for name in resolve(ref, self.entries))


def cache_dir() -> Path:
    """Where indexes are kept: $XDG_CACHE_HOME/hk-fs-bench/code, or under ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "hk-fs-bench" / "code"


def build_index(pdf: Path, *, cache: bool = True) -> CodeIndex:
    """Index `pdf`, or read its index from the cache (keyed by the file's sha256).

    Raises UserError when the file is no readable PDF or not the Code, and says what it is.
    """
    pdf = Path(pdf)
    if not pdf.is_file():
        raise UserError(f"{pdf}: no such file; give the path of your PDF of the Code")
    digest = hashlib.sha256(pdf.read_bytes()).hexdigest()
    cached = cache_dir() / f"{digest}-v{INDEX_VERSION}.json"
    if cache and (index := _read_cache(cached)):
        return index
    index = _build(pdf, digest)
    if cache:
        cached.parent.mkdir(parents=True, exist_ok=True)
        half = cached.with_suffix(f".{os.getpid()}.tmp")
        half.write_text(json.dumps(asdict(index), ensure_ascii=False), encoding="utf-8")
        os.replace(half, cached)
    return index


def _read_cache(path: Path) -> CodeIndex | None:
    """The cached index, or None where there is none or another program spoiled it."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        entries = {
            name: CodeEntry(
                **entry
                | {
                    "pages": tuple(entry["pages"]),
                    "numbers": tuple(Quantity(**number) for number in entry["numbers"]),
                }
            )
            for name, entry in data["entries"].items()
        }
        return CodeIndex(data["edition"], data["sha256"], entries)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _build(pdf: Path, digest: str) -> CodeIndex:
    from hk_fs_bench.code_pdf import read_lines, split

    lines = read_lines(pdf)
    front = [line.text for line in lines if line.sheet == lines[0].sheet]
    edition = _edition(pdf, front)
    typed = _typed_pages(edition)
    entries = {}
    for section in split(lines):
        text = "\n".join(section.lines)
        page = typed.get(section.id)
        if page:
            text = f"{text}\n{page['text']}"
            numbers = {Quantity(float(v), u) for u, vs in page["numbers"].items() for v in vs}
        else:
            numbers = set(quantities(text, words=True, rows=section.kind == "table"))
        entries[section.id] = CodeEntry(
            section.id,
            section.kind,
            _part(section.id),
            tuple(section.pages),
            text,
            tuple(sorted(numbers)),
            page is not None,
        )
    if len(entries) < _MIN_ENTRIES:
        raise UserError(
            f"{pdf.name}: only {len(entries)} provisions found in it; the file is cut short,"
            " take it from the Buildings Department's site"
        )
    return CodeIndex(edition, digest, entries)


def _edition(pdf: Path, front: list[str]) -> str:
    """The year of the edition, from the cover; UserError names another document."""
    cover = " ".join(front)
    title = re.search(rf"Code of Practice\s+for\s+{TITLE}\s+2011\b", cover)
    # A circular about the Code names it too, but further down.
    if not title or title.start() > _COVER_CHARACTERS:
        named = next((name for name in _PREDECESSORS if name in cover[: 2 * _COVER_CHARACTERS]), "")
        what = f"the Code of Practice for {named}" if named else f"“{cover[:_COVER_CHARACTERS]}…”"
        raise UserError(
            f"{pdf.name}: this is {what}, not the Code of Practice for {TITLE} 2011;"
            " take that from the Buildings Department's site"
        )
    later = re.match(r"\s*\((?:\w+\s+)?(\d{4})\s+(?:Edition|[Vv]ersion)\)", cover[title.end() :])
    return later[1] if later else "2011"


def _typed_pages(edition: str) -> dict[str, Any]:
    """Entries typed from the page, for the edition whose pages they were typed from."""
    import yaml

    data = yaml.safe_load(_data("code_pages.yaml"))
    entries: dict[str, Any] = data["entries"]
    return entries if data["edition"] == edition else {}


def _part(name: str) -> str | None:
    """The Part in which a provision is printed: Performance Requirements stand in Part A."""
    if name.startswith(("PR-", "A-def:")):
        return "A"
    match = re.match(r"(?:Table |Diagram |Appendix )?([A-G])\d", name)
    return match[1] if match else None


def _data(name: str) -> str:
    return resources.files("hk_fs_bench").joinpath("data", name).read_text(encoding="utf-8")


def facts_json(index: CodeIndex) -> str:
    """The facts of an index as the committed file's text: sorted, one provision a line."""
    lines = []
    for name in sorted(index.entries, key=_natural):
        entry = index.entries[name]
        fact: dict[str, object] = {
            "kind": entry.kind,
            "part": entry.part,
            "page": entry.pages[0],
            "numbers": [{"value": n.plain, "unit": n.unit} for n in entry.numbers],
        }
        if entry.typed_from_page:
            fact["typed_from_page"] = True
        lines.append(f" {json.dumps(name)}: {json.dumps(fact, ensure_ascii=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _natural(name: str) -> list[tuple[int, str]]:
    """Sort key that puts B2.2 before B2.10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


@lru_cache(maxsize=1)
def load_facts() -> Mapping[str, CodeFact]:
    """The committed facts by id (2024 edition)."""
    return {
        name: CodeFact(
            name,
            fact["kind"],
            fact["part"],
            fact["page"],
            tuple(Quantity(float(n["value"]), n["unit"]) for n in fact["numbers"]),
            fact.get("typed_from_page", False),
        )
        for name, fact in json.loads(_data("code_facts.json")).items()
    }


def numbers_of(ref: str, facts: Mapping[str, CodeFact] | None = None) -> frozenset[float]:
    """Values printed in the provision that `ref` denotes, a table's notes included."""
    known = load_facts() if facts is None else facts
    return frozenset(
        number.value
        for name in resolve(ref, known)
        for inner in within(name, known)
        for number in known[inner].numbers
    )
