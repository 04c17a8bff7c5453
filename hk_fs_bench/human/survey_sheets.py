"""The sheet of a survey export: its columns by what they mean, and whose row is whose."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hk_fs_bench.errors import UserError
from hk_fs_bench.human import rubric
from hk_fs_bench.human.results import rater_of
from hk_fs_bench.human.returns import without_email
from hk_fs_bench.human.study import Study
from hk_fs_bench.tables import read_cells, read_table, text_of

TAG = re.compile(r"\[([^\[\]]+)\]\s*$")
_HEADS = {
    "time": ("timestamp", "time", "時間戳記", "时间戳记", "submitted at", "completion time"),
    "rater": ("rater", "rater id", "your rater id", "評核員編號", "评核员编号"),
    "consent": ("consent",),
    "batch": ("batch",),
    "candidate": ("candidate", "candidate id", "answer id"),
    "item": ("qid", "item", "item_id", "item id", "question id"),
    "accuracy": ("accuracy", "準確性"),
    "clarity": ("clarity", "清晰度"),
    "comment": ("comment", "comments", "意見"),
}
_MEANS = {head: name for name, heads in _HEADS.items() for head in heads}
# Consent is what says so and takes nothing back; doubt is none.
_AGREES = re.compile(
    r"\b(?:yes|agree[ds]?|consent(?:ed|s)?|accept(?:ed|s)?|true|ok|okay)\b|^(?:y|x|1|✓|✔|☑)$"
    r"|同意|接受|願意|愿意|^是"
)
_REFUSES = re.compile(
    r"\b(?:no|not|non|none|never|cannot|unable|without|false|unsure|maybe|perhaps|unless|until)\b"
    r"|n['’]t\b|\b(?:dis|un)agree|\b(?:declin|refus|withdr|reject|revok|undecided)"
    r"|不|拒|否|未|沒|没|無|无|撤|暫|暂"
)
# A question of consent in a form made by hand, whose title bears no tag.
_ASKS = re.compile(
    r"\bconsent\b|\bagree to (?:take part|participate)\b"
    r"|同意(?:書|书|聲明|声明)|同意.{0,4}(?:參與|参与)"
)
_EMAIL = re.compile(r"\s*[^\s@]+@[^\s@]+\.[^\s@]+\s*")


@dataclass(frozen=True)
class Sheet:
    """An export: titles by place, numbered rows of as many cells, notes on what was guessed."""

    name: str
    titles: Sequence[str]
    rows: Sequence[tuple[int, Sequence[str]]]
    notes: Sequence[str]

    @cached_property
    def meanings(self) -> list[str | None]:
        """What each column is: by its tag, its title, or, for addresses, by what stands in it."""
        return [self._meaning(place, title) for place, title in enumerate(self.titles)]

    def places(self, meaning: str) -> list[int]:
        """The columns that mean "time", "rater", "email", "consent" and so on."""
        return [n for n, held in enumerate(self.meanings) if held == meaning]

    def _meaning(self, place: int, title: str) -> str | None:
        if tag := TAG.search(title):
            return " ".join(tag[1].split())
        cells = [row[place] for _, row in self.rows if row[place].strip()]
        if cells and sum(bool(_EMAIL.fullmatch(cell)) for cell in cells) * 2 > len(cells):
            return "email"
        folded = rubric.fold(title)
        if re.search(r"\be-?mail|電郵|電子郵件|电子邮件", folded):
            return "email"
        return _MEANS.get(folded) or ("consent" if _ASKS.search(folded) else None)


def read_sheet(path: Path) -> Sheet:
    """Read an export; rows without anything in them are left out.

    Raises:
        UserError: no such file, or no text table.
    """
    big5 = _is_big5(path)
    cells, notes = read_cells(path, "big5hkscs" if big5 else None)
    if big5:
        notes = [*notes, "no UTF-8, read as Big5"]
    full = [(number, [c.strip("\ufeff") for c in row]) for number, row in cells]
    full = [(number, row) for number, row in full if any(c.strip() for c in row)]
    if not full:
        raise UserError(f"{path.name} is empty")
    titles = [" ".join(title.split()) for title in full[0][1]]
    width = max(len(row) for _, row in full)
    rows = [(number, [*row, *[""] * (width - len(row))]) for number, row in full[1:]]
    return Sheet(path.name, [*titles, *[""] * (width - len(titles))], rows, notes)


def _is_big5(path: Path) -> bool:
    """Whether a file holds the rubric's Chinese words in Big5, as Hong Kong's spreadsheets save."""
    try:
        text = path.read_bytes().decode("big5hkscs")
    except (OSError, UnicodeDecodeError):
        return False
    held = rubric.load().dimensions.values()
    return any(level.label["zh-Hant"] in text for d in held for level in d.levels.values())


def read_emails(path: Path, study: Study) -> dict[str, str]:
    """E-mail address (folded) → rater, of a file with the columns email and rater.

    Raises:
        UserError: a file inside the study or a repository, where addresses must not lie.
    """
    place = path.resolve()
    if any((parent / ".git").exists() for parent in place.parents):
        raise UserError(f"{path} lies inside a repository; keep addresses outside of it")
    if place.is_relative_to(study.folder.resolve()):
        raise UserError(f"{path} lies inside the study folder; keep addresses outside of it")
    table = read_table(path)
    heads = {head.casefold().replace("-", ""): head for head in table.columns}
    if not {"email", "rater"} <= heads.keys():
        raise UserError(f"{path.name} needs the columns email and rater")
    found: dict[str, str] = {}
    for row in table.rows:
        address, rater = (text_of(row.cells.get(heads[name])) for name in ("email", "rater"))
        if address and rater and found.setdefault(rubric.fold(address), rater) != rater:
            raise UserError(f"{table.where(row)}: this address stands beside two raters")
    return found


def agrees(cell: str) -> bool:
    """Whether the answer to a question of consent says yes, and nothing that takes it back."""
    folded = rubric.fold(cell)
    return bool(_AGREES.search(folded)) and not _REFUSES.search(folded)


def refusal(cells: Sequence[str]) -> str | None:
    """Why the answers to a sheet's questions of consent are none; blank ones don't speak.

    A question that was deleted and made again leaves several columns.
    """
    said = [cell.strip() for cell in cells if cell.strip()]
    if said and all(map(agrees, said)):
        return None
    doubtful = next((cell for cell in said if not agrees(cell)), None)
    if doubtful is None:
        return "no consent was given"
    return f"no consent was given, but {without_email(doubtful)[:60]!r}"


def rater_of_row(
    sheet: Sheet, cells: Sequence[str], study: Study, emails: Mapping[str, str] | None
) -> tuple[str | None, str | None]:
    """The rater of a row, or why there is none. Addresses appear in neither."""
    named = [cells[p].strip() for p in sheet.places("rater") if cells[p].strip()]
    if named and not _EMAIL.fullmatch(named[0]):
        return rater_of(study, named[0]), None
    addresses = [cells[p] for p in sheet.places("email")] + named
    addresses = [a for a in addresses if a.strip()]
    if not addresses:
        return None, "neither a rater id nor an e-mail address"
    if emails is None:
        return None, "an e-mail address and no rater id; give --emails FILE"
    known = [emails[rubric.fold(a)] for a in addresses if rubric.fold(a) in emails]
    if not known:
        return None, "its e-mail address is not in the file of addresses"
    return rater_of(study, known[0]), None
