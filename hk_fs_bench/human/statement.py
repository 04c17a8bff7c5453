"""The statement that stands before every form: what Hong Kong's privacy law has a person told.

The wording is in statement.yaml; the details come from a file of the organiser's, organiser.yaml.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from hk_fs_bench import yaml_lines
from hk_fs_bench.errors import UserError
from hk_fs_bench.human.rubric import LANGUAGES, Texts

FILE = "organiser.yaml"


@dataclass(frozen=True)
class Statement:
    """The organiser's details in both languages, and the statement made with them.

    `version` names the wording and the details, so that a result tells what was agreed to.
    """

    details: Mapping[str, Texts]
    parts: tuple[Mapping[str, Texts], ...]
    version: str


@lru_cache(maxsize=1)
def wording() -> Mapping[str, Any]:
    """The content of statement.yaml."""
    text = resources.files(__package__).joinpath("statement.yaml").read_text("utf-8")
    held: dict[str, Any] = yaml.safe_load(text)
    return held


def read_statement(path: Path, kind: str, medium: str = "file") -> Statement:
    """The statement of a form with the details in `path`.

    Args:
        kind: "rating" or "mcq".
        medium: "file", or "google" for a form that Google shows and keeps.

    Raises:
        UserError: the file, or a detail of it, is missing, still a placeholder, or unknown.
    """
    if not path.exists():
        raise UserError(
            f"{path} is missing: no form without a privacy statement; write it with "
            f"{', '.join(wording()['details'])} (docs/human.md has an example)"
        )
    held, lines = yaml_lines.read(path)
    if not isinstance(held, dict):
        raise UserError(f"{path} must be a mapping of details, as in docs/human.md")
    if unknown := [str(name) for name in held if name not in wording()["details"]]:
        line = yaml_lines.line_of(lines, [unknown[0]])
        raise UserError(f"{path} line {line}: {unknown[0]} is no detail of the statement")
    missing = []
    for name, about in wording()["details"].items():
        texts = _texts(held.get(name))
        if texts is None:
            missing.append(f"{name}: {about}")
        else:
            held[name] = texts
    if missing:
        raise UserError(
            f"{path} lacks {len(missing)} details of the privacy statement; write "
            f"{'; '.join(missing)}",
        )
    return _fill(held, kind, medium)


def _texts(value: Any) -> dict[str, str] | None:
    """One text a language; None where one is missing, empty or a placeholder in <brackets>."""
    if isinstance(value, str | int | date):
        value = dict.fromkeys(LANGUAGES, str(value))
    if not isinstance(value, dict) or set(value) != set(LANGUAGES):
        return None
    texts = {name: " ".join(text.split()) for name, text in value.items() if isinstance(text, str)}
    sound = len(texts) == len(LANGUAGES) and all(
        t and not t.startswith("<") for t in texts.values()
    )
    return texts if sound else None


def _fill(details: Mapping[str, Texts], kind: str, medium: str) -> Statement:
    own = {"collected": wording()["collected"][kind], "medium": wording()["medium"][medium]}
    parts = tuple(
        {
            "heading": part["heading"],
            "text": {
                language: text.format(
                    **{name: texts[language] for name, texts in (own | dict(details)).items()}
                )
                for language, text in part["text"].items()
            },
        }
        for part in wording()["parts"]
    )
    content = json.dumps([details, parts], ensure_ascii=False, sort_keys=True)
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    return Statement(details, parts, f"{wording()['version']}-{digest}")
