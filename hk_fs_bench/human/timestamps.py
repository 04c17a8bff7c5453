"""Time stamps of survey exports, which come in the language and order of the sheet."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo

_DATE = re.compile(r"(\d{1,4})\s*([./-]|年)\s*(\d{1,2})\s*(?:[./-]|月)\s*(\d{1,4})\s*日?")
_TIME = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")
_ZONE = re.compile(r"(?:GMT|UTC)\s*([+-])(\d{1,2})(?::?(\d\d))?|(Z)$", re.I)
_AFTERNOON = re.compile(r"\b[ap]\.?\s?m\b|上午|下午", re.I)


def read_time(text: str | None) -> str | None:
    """An ISO time of a time stamp; None where it can't be read without doubt.

    Month before day or day before month is not guessed: "3/11/2026" has no time. Words of months
    are not read either. A stamp without a time of day is a date.
    """
    whole = " ".join((text or "").split())
    found = _DATE.search(whole)
    if not found:
        return None
    first, sign, second, third = found.groups()
    if len(first) == 4:
        year, month, day = first, second, third
    elif len(third) == 4 and (sign == "." or int(first) > 12):
        day, month, year = first, second, third
    elif len(third) == 4 and (int(second) > 12 or first == second):
        month, day, year = first, second, third
    else:
        return None
    rest = whole[found.end() :]
    time = _TIME.search(rest)
    try:
        if time is None:
            return datetime(int(year), int(month), int(day)).date().isoformat()
        hour = int(time[1])
        if half := _AFTERNOON.search(rest):
            if not 1 <= hour <= 12:
                return None
            late = half[0][0] in "pP" or half[0] == "下午"
            hour = hour % 12 + (12 if late else 0)
        clock = (hour, int(time[2]), int(time[3] or 0))
        zone = _zone(rest)
        return datetime(int(year), int(month), int(day), *clock, tzinfo=zone).isoformat()
    except ValueError:
        return None


def _zone(text: str) -> tzinfo | None:
    found = _ZONE.search(text)
    if found is None:
        return None
    if found[4]:
        return UTC
    shift = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
    return timezone(-shift if found[1] == "-" else shift)
