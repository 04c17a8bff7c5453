"""The Code's PDF → lines → the text of each provision, by the typography of its headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hk_fs_bench.code_refs import kebab
from hk_fs_bench.errors import UserError

# Points. The footer holds the printed page number; footnotes are set in a serif face above it;
# commentaries stand in a box as wide as the text; superscripts are much smaller than any label.
FOOTER_TOP = 795.0
FOOTNOTE_TOP = 700.0
BOX_WIDTH = 380.0
BOX_HEIGHT = 20.0
SUPERSCRIPT_SIZE = 6.6
_SUPERSCRIPT = str.maketrans("0123456789-−o", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻°")


@dataclass(frozen=True)
class Line:
    """One line of a page: where it stands, how it is set (`font` is its commonest face)."""

    sheet: int
    page: str
    top: float
    font: str
    size: float
    bold_start: bool
    boxed: bool
    text: str

    @property
    def black(self) -> bool:
        """Set in the heaviest face, which only headings have."""
        return "Black" in self.font


@dataclass
class Section:
    """A provision as it stands in the PDF; `text` keeps the printed lines."""

    id: str
    kind: str
    pages: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def read_lines(pdf: Path) -> list[Line]:
    """All lines of `pdf` in reading order, printed page numbers taken off.

    Raises UserError for a file that is no readable PDF or has no text layer.
    """
    try:
        import pdfplumber
    except ImportError as error:
        raise UserError(
            "reading a PDF needs pdfplumber: pip install 'hk-fs-bench[data]'"
        ) from error
    if not pdf.is_file():
        raise UserError(f"{pdf}: no such file; give the path of your PDF of the Code")
    try:
        with pdfplumber.open(pdf) as document:
            lines = [
                line for sheet, page in enumerate(document.pages, 1) for line in _page(page, sheet)
            ]
    # pdfminer raises many types of its own, and some bare ones, on a damaged or locked file.
    except Exception as error:
        name = type(error).__name__
        raise UserError(f"{pdf.name}: not a readable PDF ({name}); download it again") from error
    if not lines:
        raise UserError(f"{pdf.name}: no text layer (a scan?); use the Buildings Department's file")
    return lines


def _page(page: object, sheet: int) -> Iterator[Line]:
    from pdfplumber.page import Page

    assert isinstance(page, Page)
    for char in page.chars:
        if char["size"] <= SUPERSCRIPT_SIZE and len(char["text"]) == 1:
            char["text"] = char["text"].translate(_SUPERSCRIPT)
    boxes = [
        shape
        for shape in (*page.rects, *page.curves)
        if shape["width"] > BOX_WIDTH and shape["height"] > BOX_HEIGHT
    ]
    raw = page.extract_text_lines(return_chars=True)
    number = ""
    for line in raw:
        if line["top"] > FOOTER_TOP and re.fullmatch(r"\d+|[ivxl]+", line["text"].strip()):
            number = line["text"].strip()
    for line in raw:
        if line["top"] > FOOTER_TOP:
            continue
        faces: dict[tuple[str, float], int] = {}
        for char in line["chars"]:
            if char["text"].strip():
                face = (char["fontname"].split("+")[-1], round(char["size"], 1))
                faces[face] = faces.get(face, 0) + 1
        if not faces:
            continue
        font, size = max(faces, key=lambda face: faces[face])
        boxed = any(
            box["x0"] - 1 <= line["x0"] and box["top"] - 2 <= line["top"] <= box["bottom"]
            for box in boxes
        )
        first = line["chars"][0]["fontname"]
        yield Line(
            sheet, number, line["top"], font, size, "Bold" in first, boxed, line["text"].strip()
        )
    page.close()


_HEADINGS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("section", re.compile(r"(?:Section \d+\s*[–-]|Reference – List|Contents$)\s*(.*)")),
    ("part", re.compile(r"Part [A-G](?: -)?()$")),
    ("foreword", re.compile(r"Foreword$")),
    ("appendix", re.compile(r"Appendix F1\b")),
    ("annex", re.compile(r"Annex A$")),
    ("subsection", re.compile(r"Subsection\s+([A-G]\d+)\s*[-–]")),
    ("clause", re.compile(r"Clauses?\s+([A-G]\d+\.\d+)\b")),
    ("performance_requirement", re.compile(r"Performance Requirement ([A-F]\d)$")),
    ("functional_statement", re.compile(r"Functional [Ss]tatements? for ")),
    ("commentary", re.compile(r"(?:Commentary:?|Guidance)$")),
    ("table", re.compile(r"(?:Table|TABLE) ([A-G]\d+)(?:\s*[:–-]\s|$)")),
    ("diagram", re.compile(r"Diagram ([A-G]\d+)\s?[:–-]")),
)
_NOTES_HEAD = re.compile(r"Notes?:$")
_NOTE = re.compile(r"(?:\(?(\d{1,2})[.)]|Note ([a-f]):)\s+")
_TERM = re.compile(r"“([^”]+)”")


class _Splitter:
    """Walks the lines and hands each to the provision it belongs to."""

    def __init__(self) -> None:
        self.sections: dict[str, Section] = {}
        self.current: str | None = None
        # The clause or subsection that a commentary explains, and that text after a box resumes.
        self.host: str | None = None
        self.commentary: str | None = None
        self.subsection: str | None = None
        self.table: str | None = None
        self.last_note = ""
        self.in_notes = self.in_definitions = self.box = False

    def open(self, name: str, kind: str) -> None:
        self.sections.setdefault(name, Section(name, kind))
        self.current = name

    def leave_table(self) -> None:
        self.table, self.in_notes, self.last_note = None, False, ""

    def feed(self, line: Line) -> None:
        if line.font.startswith("TimesNewRoman") and line.top > FOOTNOTE_TOP:
            return
        self._box(line)
        if not (self._heading(line) or self._definition(line)):
            self._note(line)
        if self.current is not None and not _NOTES_HEAD.match(line.text):
            self._add(line)

    def _add(self, line: Line) -> None:
        assert self.current is not None
        section = self.sections[self.current]
        section.lines.append(line.text)
        if line.page not in section.pages:
            section.pages.append(line.page)

    def _box(self, line: Line) -> None:
        """Below the box of a commentary its clause goes on."""
        if self.box and not line.boxed and self.current == self.commentary:
            self.current, self.box = self.host, False

    def _heading(self, line: Line) -> bool:
        if "Bold" not in line.font and not line.black:
            return False
        for kind, pattern in _HEADINGS:
            match = pattern.match(line.text)
            if not match:
                continue
            if kind in ("subsection", "clause", "section", "foreword") and not line.black:
                continue
            self._start(kind, match, line)
            return True
        return False

    def _start(self, kind: str, match: re.Match[str], line: Line) -> None:
        if kind == "diagram":
            # Black captions stand over whole pages of drawings, bold ones below a figure in a text.
            self.open(f"Diagram {match[1]}", kind)
            if line.black:
                self.leave_table()
                self.host = None
            else:
                self._add(line)
                self.current = self.host
            return
        if kind == "table":
            self.leave_table()
            self.table = f"Table {match[1]}"
            self.open(self.table, kind)
            return
        if kind == "commentary":
            guidance = match[0] == "Guidance"
            owner = self.subsection if guidance else self.host
            self.leave_table()
            self.commentary = f"{owner}-comm"
            self.open(self.commentary, kind)
            self.box = line.boxed
            return
        self.leave_table()
        self.in_definitions = kind == "section" and match[1] == "Definitions"
        if kind in ("section", "part"):
            self.current = self.host = self.subsection = None
        elif kind in ("foreword", "appendix", "annex"):
            name = {"foreword": "Foreword", "appendix": "Appendix F1", "annex": "Annex A"}[kind]
            self.open(name, kind)
            self.host = name
        elif kind == "functional_statement":
            self.current = self.host = self.subsection
        elif kind == "performance_requirement":
            self.open(f"PR-{match[1]}", kind)
        else:
            self.open(match[1], kind)
            self.host = match[1]
            if kind == "subsection":
                self.subsection = match[1]

    def _definition(self, line: Line) -> bool:
        match = _TERM.match(line.text)
        if not (self.in_definitions and match and line.bold_start):
            return False
        self.open(f"A-def:{kebab(match[1])}", "definition")
        return True

    def _note(self, line: Line) -> None:
        if self.table is None:
            return
        if _NOTES_HEAD.match(line.text):
            self.in_notes, self.current = True, self.table
            return
        match = _NOTE.match(line.text)
        if match and (self.in_notes or match[2]):
            label = match[1] or match[2]
            # Numbers inside a note's own list don't follow on from the last note.
            if match[2] or int(label) == int(self.last_note or 0) + 1:
                self.last_note = label
                self.open(f"{self.table}-note:{label}", "table_note")
        elif line.text == "References used:":
            self.current = self.table


def split(lines: list[Line]) -> list[Section]:
    """The provisions of the Code in printed order. Empty for a text without its headings."""
    splitter = _Splitter()
    for line in lines:
        splitter.feed(line)
    return list(splitter.sections.values())
