"""A form as one page that works from a file, without a network: survey-core, our scripts, the data.

A content security policy lets nothing run or load but what is inlined here, by its hash, and the
study's texts travel as JSON that no parser takes for markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any

from hk_fs_bench.human import rubric
from hk_fs_bench.human.form_content import Batch, clauses, page_yaml, slug
from hk_fs_bench.human.statement import Statement

_LIBRARY = ("survey.core.min.js", "traditional-chinese.min.js", "survey-js-ui.min.js")
_STYLE = "survey-core.fontless.min.css"


def rating_page(batch: Batch, statement: Statement) -> str:
    """The page of a batch."""
    guide = page_yaml("guide.yaml")
    content = {
        "questions": [
            {
                "position": one.screen.position,
                "item_id": one.question.item_id,
                **_asked(vars(one.question)),
                "candidates": [
                    {"candidate": answer.candidate, "answer": answer.answer}
                    for answer in one.answers
                ],
            }
            for one in batch.asked
        ],
        "dimensions": [
            {
                "id": dimension.id,
                "label": dimension.label,
                "about": dimension.about,
                "levels": _choices(dimension.levels),
                "descriptors": _choices(dimension.descriptors),
            }
            for dimension in batch.rubric.dimensions.values()
        ],
        "major": rubric.MAJOR,
        "rule": batch.rubric.rule,
        "guide": guide["steps"],
        "examples": [
            {**_asked(one), "candidate": one["candidate"], "rating": one["rating"]}
            for one in guide["examples"]
        ],
    }
    result = {
        "format": "hk-fs-human-result",
        "version": 1,
        "study": batch.study,
        "rubric": batch.rubric.version,
        "rater": batch.rater,
        "batch": batch.number,
        "form": "html",
    }
    return page("rating", content, result, statement, batch.stem)


def page(
    kind: str,
    content: Mapping[str, Any],
    result: Mapping[str, Any],
    statement: Statement,
    stem: str,
) -> str:
    """A page whose pages of questions <kind>.js makes of `content`.

    Args:
        result: the fields of the result file that don't depend on what is entered.
        stem: names the form within its study.
    """
    texts = dict(page_yaml("texts.yaml")) | dict(page_yaml(f"texts_{kind}.yaml"))
    shown = {
        **content,
        "kind": kind,
        "title": statement.details["title"],
        "return_to": statement.details["return_to"],
        "statement": statement.parts,
        "statement_version": statement.version,
        "result": result,
        "rater": result["rater"],
        "batch": result.get("batch"),
    }
    digest = hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()
    data = {
        **shown,
        "texts": texts,
        # Entries that were kept for another content don't fit this one.
        "key": f"hk-fs-bench/{result['study']}/{stem}/{digest[:16]}",
        "file_name": f"{slug(result['study'])}-{stem}.json",
    }
    scripts = [*(_read(f"vendor/{name}") for name in _LIBRARY), _read("page.js")]
    scripts += [_read(f"{kind}.js"), "window.startForm();"]
    styles = [_read(f"vendor/{_STYLE}"), _read("page.css")]
    policy = {
        "default-src": "'none'",
        "script-src": " ".join(map(_hash, scripts)),
        "style-src": " ".join(map(_hash, styles)),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    rendered: str = _template().render(
        policy="; ".join(f"{name} {value}" for name, value in policy.items()),
        title=statement.details["title"]["en"],
        noscript=texts["noscript"],
        styles=styles,
        scripts=scripts,
        # "<" only inside strings, where JSON can say it in other words.
        data=json.dumps(data).replace("<", "\\u003c"),
    )
    return rendered


def _asked(question: Mapping[str, Any]) -> dict[str, Any]:
    names = ("question", "essential_points", "reference_answer")
    return {name: question[name] for name in names} | {"clauses": clauses(question["references"])}


def _choices(choices: Mapping[str, rubric.Choice]) -> list[dict[str, Any]]:
    return [{"id": one.id, "label": one.label, "about": one.about} for one in choices.values()]


@lru_cache(maxsize=16)
def _read(name: str) -> str:
    return resources.files(__package__).joinpath("form_page", name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _template() -> Any:
    from jinja2 import Environment

    return Environment(autoescape=True, keep_trailing_newline=True).from_string(_read("page.html"))
