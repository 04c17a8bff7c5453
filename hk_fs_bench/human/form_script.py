"""A form as a Google Apps Script that builds it; run against a stand-in only, never on Google."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from hk_fs_bench.human.form_content import Asked, Batch, clauses, page_yaml, say
from hk_fs_bench.human.rubric import LANGUAGES, Choice, Dimension
from hk_fs_bench.human.statement import Statement

Item = dict[str, Any]


def script(batch: Batch, statement: Statement) -> str:
    """The script of a batch: its items in both languages, and what builds them."""
    held = {language: _form(batch, statement, language) for language in LANGUAGES}
    template = resources.files(__package__).joinpath("form_page", "form_script.js")
    data = json.dumps(held, ensure_ascii=True, indent=1)
    return template.read_text("utf-8").replace("{{ data }}", data)


def _form(batch: Batch, statement: Statement, language: str) -> Item:
    details = statement.details
    parts = [f"{p['heading'][language]}\n{p['text'][language]}" for p in statement.parts]
    intro = say("statement_intro", language)
    return {
        "title": details["title"][language],
        "description": "\n\n".join([intro, *parts]),
        "thanks": say("all_sent", language),
        "items": list(_items(batch, language)),
    }


def _items(batch: Batch, language: str) -> Iterator[Item]:
    decline = say("decline", language)
    yield {
        "type": "choice",
        "title": f"{say('consent_question', language)} [consent]",
        "options": [say("consent_box", language), decline],
        "ends": decline,
        "required": True,
    }
    for name, value in (("rater", batch.rater), ("batch", str(batch.number))):
        # One choice to tick: nothing to mistype.
        title = f"{say(f'your_{name}', language)} [{name}]"
        yield {"type": "choice", "title": title, "options": [value], "required": True}
    yield _section("page", say("guide_title", language), page_yaml("guide.yaml")["steps"][language])
    for number, one in enumerate(page_yaml("guide.yaml")["examples"], 1):
        lines = [one["question"], "", *_yardstick(one, language), ""]
        lines += [f"{say('example_answer', language)}: {one['candidate']}", ""]
        lines += one["rating"][language]
        yield _section("section", say("example", language, n=number), lines)
    for one in batch.asked:
        yield from _question(one, batch, language)


def _question(asked: Asked, batch: Batch, language: str) -> Iterator[Item]:
    held = vars(asked.question)
    title = say("question_title", language, number=asked.screen.position, all=len(batch.asked))
    yield _section("page", title, [held["question"], "", *_yardstick(held, language)])
    for n, answer in enumerate(asked.answers, 1):
        head = say("candidate", language, n=n, all=len(asked.answers))
        text = answer.answer if answer.answer.strip() else say("empty_answer", language)
        yield _section("section", head, [text])

        def coded(
            key: str, field: str, n: int = n, code: str = answer.candidate, **more: str
        ) -> str:
            return f"{say(key, language, n=n, **more)} [{code} {field}]"

        if asked.question.essential_points:
            points = asked.question.essential_points
            yield {
                "type": "choices",
                "title": coded("missed", "missed"),
                "help": say("missed_leave", language),
                "options": [f"{number}. {point}" for number, point in enumerate(points, 1)],
            }
        for dimension in batch.rubric.dimensions.values():
            yield from _judgement(dimension, coded, language)
        yield {
            "type": "text",
            "title": coded("comment", "comment"),
            "help": say("comment_help", language),
        }


def _judgement(dimension: Dimension, coded: Any, language: str) -> Iterator[Item]:
    label = dimension.label[language]
    yield {
        "type": "choice",
        "title": coded("step1", dimension.id, label=label),
        "help": dimension.about[language],
        "options": _options(dimension.levels, language),
    }
    yield {
        "type": "choices",
        "title": coded("step2", f"{dimension.id}-why", label=label),
        "help": say("step2_only", language, level=dimension.levels["major"].label[language]),
        "options": _options(dimension.descriptors, language),
    }


def _options(choices: Mapping[str, Choice], language: str) -> list[str]:
    return [f"{one.label[language]}: {one.about[language]}" for one in choices.values()]


def _yardstick(held: Mapping[str, Any], language: str) -> list[str]:
    points = [f"{n}. {point}" for n, point in enumerate(held["essential_points"], 1)]
    named = clauses(held["references"])
    return [
        *([f"{say('clauses', language)} {named}"] if named else []),
        *([f"{say('points', language)}:", *points] if points else []),
        f"{say('reference', language)}: {held['reference_answer']}",
    ]


def _section(kind: str, title: str, lines: Sequence[str]) -> Item:
    return {"type": kind, "title": title, "help": "\n".join(lines)}
