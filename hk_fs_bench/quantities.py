"""Numbers with their units in English technical prose; what counts as a number and what doesn't."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

# Labels are names that hold digits, not quantities: ids of the Code, its Use Classifications,
# chapters of the laws, numbered notes, floors. They are cut before numbers are looked for.
_ONE = r"\d+(?:\.\d+)*[A-Za-z]?\b(?!\s?(?:mm|m[²³23]?|%|per|min\w*|persons|storeys)(?!\w))"
_LIST = rf"{_ONE}(?:\s*(?:,|/|&|and|or|to|–|-)\s*{_ONE})*"
_LABELS = re.compile(
    r"(?<![\w°])(?:PR-)?[A-G]\d+(?:\.\d+)*(?:-(?:comm|note:\w+))?(?:\s?\([a-z]+\))*"
    r"|\b(?i:Use\s+Classif\w+|UC|Cap\.?|Chapter|Reg(?:ulation)?s?\.?|Sections?|Subsections?|Clauses?"
    rf"|Notes?|Equation|Sub-system|Items?|Example)\s*\(?{_LIST}\)?(?:\(\w{{1,4}}\))*"
    r"|\bStep\s\d"
    r"|\b(?i:uses?)\s\d[a-d]?\b"
    r"|\b\d[a-d]\b"
    r"|\b\d{1,3}/F\b"
    r"|(?<![\w)])\(\d{1,2}\)",
)
_ENUMERATOR = re.compile(r"^\s*\d{1,2}[.)](?=\s)", re.MULTILINE)
# Years of the Code's own editions and amendments, and of the codes that it replaced.
_YEARS = re.compile(r"1996|2004|201[1-5]|2023|2024")
_SPACED_THOUSANDS = re.compile(r"\b(\d{1,3}) (\d{3})(?=\s?mm\b)")


@dataclass(frozen=True, order=True)
class Quantity:
    """A number and its unit ("" where none is written beside it)."""

    value: float
    unit: str

    @property
    def plain(self) -> int | float:
        """The value as JSON should show it: 2, not 2.0."""
        return int(self.value) if self.value.is_integer() else self.value


@dataclass(frozen=True)
class _Lexicon:
    units: dict[str, str]
    numerals: dict[str, int]
    digits: re.Pattern[str]
    words: re.Pattern[str]


@lru_cache(maxsize=1)
def _lexicon() -> _Lexicon:
    import yaml

    text = resources.files("hk_fs_bench").joinpath("data", "quantities.yaml").read_text("utf-8")
    data = yaml.safe_load(text)
    units = {spelling: unit for unit, spellings in data["units"].items() for spelling in spellings}
    longest_first = sorted(units, key=len, reverse=True)
    # A single letter after a number that is no unit makes a label of it, as in Regulation 41A.
    no_label = r"(?![A-Za-z](?![A-Za-z⁻]))"
    unit = rf"(?:\s?(?P<unit>{'|'.join(map(re.escape, longest_first))})(?![\w²³⁻/])|{no_label})"
    value = r"(?P<value>(?>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+))(?:st|nd|rd|th)?"
    word = rf"\b(?P<value>{'|'.join(data['numerals'])})\b"
    return _Lexicon(
        units,
        data["numerals"],
        re.compile(rf"(?<![\w.])(?<!\d,){value}{unit}", re.IGNORECASE),
        re.compile(word + unit, re.IGNORECASE),
    )


def quantities(text: str, *, words: bool = False, rows: bool = False) -> list[Quantity]:
    """Numbers written in digits in `text`, in order; with `words`, written numerals too.

    Thousands separators are understood, ids, Use Classifications and edition years are no numbers,
    ranges and ratings such as 120/120/120 give each of their numbers. "2." at the head of a line
    is a number only with `rows`, where it names the row of a table.
    """
    lexicon = _lexicon()
    clean = text.replace("\N{FIGURE DASH}", "-").replace("−", "-")
    # A dash, slash or multiplication sign joins numbers; in this field none of them is a minus.
    clean = re.sub(r"(?<=[\d²³a-z%°\s])\s*[-–—×/](?=\s*\d)", " ", clean)
    clean = re.sub(r"(?<=\d)\s?x\s?(?=\d)", " x ", clean)
    clean = _SPACED_THOUSANDS.sub(r"\1\2", clean)
    clean = _LABELS.sub(" ", clean)
    if not rows:
        clean = _ENUMERATOR.sub(" ", clean)
    found = []
    for match in lexicon.digits.finditer(clean):
        unit = lexicon.units.get((match["unit"] or "").lower(), "")
        if unit or not _YEARS.fullmatch(match["value"]):
            found.append(Quantity(float(match["value"].replace(",", "")), unit))
    if words:
        for match in lexicon.words.finditer(clean):
            unit = lexicon.units.get((match["unit"] or "").lower(), "")
            found.append(Quantity(float(lexicon.numerals[match["value"].lower()]), unit))
    return found


def words_of(text: str) -> list[str]:
    """Lower-case words of `text`: letters and digits, with an inner apostrophe kept."""
    plain = unicodedata.normalize("NFKC", text).replace("’", "'").lower()
    return re.findall(r"[a-z0-9]+(?:'[a-z]+)?", plain)
