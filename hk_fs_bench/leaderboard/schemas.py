"""The schemas of leaderboard/schema, and what they say against a file in one line."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any


def schema_folder() -> Path:
    """leaderboard/schema: in the package where that was copied, else in this checkout."""
    package = Path(__file__).resolve().parent.parent
    copied = package / "leaderboard_schema"
    return copied if copied.is_dir() else package.parent / "leaderboard" / "schema"


@cache
def validator(name: str) -> Any:
    """The validator of leaderboard/schema/<name>.schema.json."""
    from jsonschema import Draft202012Validator

    path = schema_folder() / f"{name}.schema.json"
    return Draft202012Validator(json.loads(path.read_text("utf-8")))


# Patterns say nothing to people.
_WORDS = {
    "modelName": "illegal model name: org/name is expected, letters, digits, dot, dash",
    "link": "only http(s) links, without quotes, blanks or a password",
    "slug": "no slug as submit makes it",
    "login": "no account name",
}


def explain(error: Any) -> str:
    """A schema's complaint in one line: place, and what was expected."""
    place = ".".join(map(str, error.absolute_path)) or "the file"
    value = repr(error.instance)
    shown = value if len(value) <= 60 else value[:60] + "…"
    shown = shown.encode("ascii", "backslashreplace").decode()
    if error.validator == "pattern":
        for name, words in _WORDS.items():
            definition = validator("submission").schema["$defs"].get(name, {})
            if definition.get("pattern") == error.validator_value:
                return f"{place}: {words}, not {shown}"
    if error.validator == "type":
        wanted = error.validator_value
        wanted = [wanted] if isinstance(wanted, str) else [w for w in wanted if w != "null"]
        return f"{place}: {' or '.join(wanted)} expected, not {shown}"
    if error.validator in ("required", "additionalProperties"):
        return f"{place}: {error.message[:160]}"
    if error.context:
        # Of the alternatives the one that fits best fails furthest inside; "or null" says nothing.
        return explain(
            max(error.context, key=lambda one: (len(one.absolute_path), one.validator != "type"))
        )
    if error.validator in ("enum", "const"):
        return f"{place}: one of {error.validator_value} expected, not {shown}"
    return f"{place}: {shown} breaks {error.validator} {str(error.validator_value)[:80]}"
