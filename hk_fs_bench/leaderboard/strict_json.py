"""JSON from strangers: what a lenient reader takes in silence is a fault here.

No doubled key, no NaN or Infinity (1e999 included), no number of more than 25 digits, no deep
nesting, UTF-8 only. Size is the caller's: nothing is read here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

_CONFLICT = re.compile(rb"^(?:<{7}|>{7}|={7})(?: |$)", re.MULTILINE)
_DIGITS = 25
_DEPTH = 40


class Fault(ValueError):
    """What is wrong with a text, in one line."""


def parse(raw: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        Fault: the first thing that is wrong, with its place.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Fault(
            f"not UTF-8: byte offset {error.start} is 0x{raw[error.start]:02X}; save it as UTF-8"
        ) from None
    if text.startswith("\ufeff"):
        raise Fault("begins with a byte order mark; save it as plain UTF-8")
    try:
        value = _DECODER.decode(text)
        # What a reader can hold, those who walk through it may not.
        if raw.count(b"[") + raw.count(b"{") > _DEPTH and _deeper(value, _DEPTH):
            raise Fault("nesting is too deep")
        return value
    except json.JSONDecodeError as error:
        if _CONFLICT.search(raw):
            raise Fault("holds conflict markers of git; resolve the conflict") from None
        raise Fault(f"no JSON: line {error.lineno} column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise Fault("nesting is too deep") from None


def parse_lines(raw: bytes) -> Iterator[tuple[int, Any]]:
    """(line number, value or `Fault`) of each line; a blank line is a fault, but for the end."""
    lines = raw.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    for number, line in enumerate(lines, 1):
        try:
            yield number, parse(line) if line.strip() else Fault("is empty")
        except Fault as fault:
            yield number, fault


def _deeper(value: Any, depth: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    inner = value.values() if isinstance(value, dict) else value
    return depth == 0 or any(_deeper(one, depth - 1) for one in inner)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        doubled = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise Fault(f"the key {doubled[:60]!r} stands twice in one object")
    return found


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise Fault(f"a number of {len(digits)} digits")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise Fault(f"{digits[:40]} is not finite")
    return value


def _constant(name: str) -> NoReturn:
    raise Fault(f"{name} is not finite")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=_integer,
    parse_float=_float,
    parse_constant=_constant,
)
