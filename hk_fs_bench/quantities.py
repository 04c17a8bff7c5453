"""Numbers with their units in English technical prose; what counts as a number and what doesn't."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

# Labels are names that hold digits, not quantities: ids of the Code, its Use Classifications,
# chapters of the laws, numbered notes. They are cut before numbers are looked for.
_LIST = r"\d+[a-z]?(?:\s*(?:,|/|&|and|or|to|–|-)\s*\d+[a-z]?\b)*"
_LABELS = re.compile(
    r"(?<![\w°])(?:PR-)?[A-G]\d+(?:\.\d+)*(?:-(?:comm|note:\w+))?(?:\s?\([a-z]+\))*"
    r"|\b(?i:Use\s+Classif\w+|UC|Cap\.?|Chapter|Reg(?:ulation)?s?\.?|Sections?|Subsections?|Clauses?"
    rf"|Notes?|Equation|Sub-system|Items?|Example)\s*\(?{_LIST}\)?(?:[A-Z]\b)?"
    r"|\bStep\s\d"
    r"|\b\d[a-d]\b"
    r"|^\s*\(?\d{1,2}[.)](?=\s)",
    re.MULTILINE,
)
# Years of the Code's own editions and amendments, and of the codes that it replaced.
_YEARS = re.compile(r"\b(?:1996|2004|201[1-5]|2023|2024)\b(?![\d.,]*\d)")

_UNITS = {
    "mm": "mm",
    "cm": "cm",
    "m": "m",
    "metre": "m",
    "metres": "m",
    "m²": "m2",
    "m2": "m2",
    "mm²": "mm2",
    "mm2": "mm2",
    "m³": "m3",
    "m3": "m3",
    "kg": "kg",
    "kg/m²": "kg/m2",
    "kg/m2": "kg/m2",
    "kg/s": "kg/s",
    "kw": "kW",
    "kw/m²": "kW/m2",
    "kw/m2": "kW/m2",
    "mw": "MW",
    "lux": "lux",
    "ppm": "ppm",
    "%": "%",
    "per cent": "%",
    "°c": "°C",
    "°": "°",
    "degrees": "°",
    "minutes": "min",
    "minute": "min",
    "mins": "min",
    "hours": "h",
    "hour": "h",
    "seconds": "s",
    "s": "s",
    "years": "years",
    "year": "years",
    "months": "months",
    "month": "months",
    "persons": "persons",
    "person": "persons",
    "people": "persons",
    "occupants": "persons",
    "storeys": "storeys",
    "storey": "storeys",
    "floors": "storeys",
    "seats": "seats",
}
_UNIT = "|".join(re.escape(unit) for unit in sorted(_UNITS, key=len, reverse=True))
_DIGITS = re.compile(
    r"(?<![\w.])(?<!\d,)(?P<value>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"(?:st|nd|rd|th)?"
    rf"(?:\s?(?P<unit>{_UNIT})(?![\w²³⁻/]))?",
    re.IGNORECASE,
)
_SPACED_THOUSANDS = re.compile(r"\b(\d{1,3}) (\d{3})(?=\s?mm\b)")
_WORDS = {
    word: value
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
        ]
    )
} | {"twenty": 20, "thirty": 30, "twice": 2, "double": 2, "single": 1}
_WORD = re.compile(rf"\b(?P<word>{'|'.join(_WORDS)})\b(?:\s?(?P<unit>{_UNIT})(?!\w))?", re.I)


@dataclass(frozen=True, order=True)
class Quantity:
    """A number and its unit ("" where none is written beside it)."""

    value: float
    unit: str

    @property
    def plain(self) -> int | float:
        """The value as JSON should show it: 2, not 2.0."""
        return int(self.value) if self.value.is_integer() else self.value


def quantities(text: str, *, words: bool = False) -> list[Quantity]:
    """Numbers written in digits in `text`, in order; with `words`, written numerals too.

    Thousands separators are understood, ids, Use Classifications and edition years are no numbers,
    ranges and ratings such as 120/120/120 give each of their numbers.
    """
    clean = text.replace("\N{FIGURE DASH}", "-").replace("−", "-")
    # A dash, slash or multiplication sign joins numbers; in this field none of them is a minus.
    clean = re.sub(r"(?<=[\d²³a-z%°\s])\s*[-–—×/](?=\s*\d)", " ", clean)
    clean = re.sub(r"(?<=\d)\s?x\s?(?=\d)", " x ", clean)
    clean = _SPACED_THOUSANDS.sub(r"\1\2", clean)
    clean = _LABELS.sub(" ", clean)
    found = []
    for match in _DIGITS.finditer(clean):
        unit = _UNITS.get((match["unit"] or "").lower(), "")
        if not unit and _YEARS.fullmatch(match["value"]):
            continue
        found.append(Quantity(float(match["value"].replace(",", "")), unit))
    if words:
        for match in _WORD.finditer(clean):
            unit = _UNITS.get((match["unit"] or "").lower(), "")
            found.append(Quantity(float(_WORDS[match["word"].lower()]), unit))
    return found


def values(text: str, *, words: bool = False) -> set[float]:
    """The distinct values of `quantities`."""
    return {quantity.value for quantity in quantities(text, words=words)}


def words_of(text: str) -> list[str]:
    """Lower-case words of `text`: letters and digits, with an inner apostrophe kept."""
    plain = unicodedata.normalize("NFKC", text).replace("’", "'").lower()
    return re.findall(r"[a-z0-9]+(?:'[a-z]+)?", plain)
