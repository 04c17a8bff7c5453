"""Gates 1, 2 and 10: the form of items, where their content comes from, and whose words it is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from hk_fs_bench.code_grams import shared_run
from hk_fs_bench.code_index import CodeFact
from hk_fs_bench.code_refs import resolve, within
from hk_fs_bench.gates.arithmetic import CheckError, derived, holds
from hk_fs_bench.gates.base import (
    Item,
    all_scales,
    asked,
    citations,
    growth_factors,
    is_mcq,
    key_of,
    numbers_in,
    settings,
    texts,
)
from hk_fs_bench.gates.report import Finding
from hk_fs_bench.quantities import Quantity, quantities

# Null in the strict profile only where there is nothing to say.
_MAY_BE_NULL = {"revised"}
_MAY_BE_EMPTY = {"check"}


def schema(items: Sequence[Item], subset: str, topics: Collection[str] | None) -> Iterator[Finding]:
    """Gate 1: valid, every field filled, ids unique, topics known."""
    from pydantic import ValidationError

    from hk_fs_bench.schema import MODELS, explain

    model = MODELS[subset]
    for item in items:
        name = item.get("id")
        try:
            model.model_validate(dict(item))
        except ValidationError as error:
            yield Finding("1 schema", name, explain(error))
            continue
        empty = [
            field
            for field in model.model_fields
            if (item.get(field) is None and field not in _MAY_BE_NULL)
            or (item.get(field) in ([], {}, "") and field not in _MAY_BE_EMPTY)
        ]
        if empty:
            yield Finding("1 schema", name, f"empty in the strict profile: {', '.join(empty)}")
        if topics is not None and item.get("topic") not in topics:
            yield Finding("1 schema", name, f"unknown topic {item.get('topic')!r}")
        points = item.get("key_points")
        if points and not 3 <= len(points) <= 8:
            yield Finding("1 schema", name, f"{len(points)} key points, 3 to 8 are wanted")
        if points and not any(point["essential"] for point in points):
            yield Finding("1 schema", name, "no key point is essential")
        if item.get("level") == "calculation" and not item.get("check"):
            yield Finding("1 schema", name, "a calculation without an assertion in `check`")
    for name, count in Counter(item.get("id") for item in items).items():
        if count > 1:
            yield Finding("1 schema", name, f"{count} items have this id")


def order(items: Sequence[Item], subset: str) -> Iterator[Finding]:
    """Gate 1: the fixed stratified shuffle."""
    from hk_fs_bench.manifest import stratified_order

    ids = [item["id"] for item in items]
    wanted = [row["id"] for row in stratified_order(items)]
    if ids != wanted:
        place = next(
            n for n, pair in enumerate(zip(ids, wanted, strict=True)) if len(set(pair)) > 1
        )
        message = f"{subset}: item {place + 1} is {ids[place]}, the fixed order has {wanted[place]}"
        yield Finding("1 order", None, message)


def canary(items: Sequence[Item]) -> Iterator[Finding]:
    """Gate 1: one canary in every row, in nothing that a model is shown."""
    values = {item.get("canary") for item in items}
    if len(values) > 1:
        yield Finding("1 canary", None, f"{len(values)} different canaries")
    for item in items:
        mark = item.get("canary")
        if not mark:
            yield Finding("1 canary", item["id"], "no canary")
        elif any(mark in text for _, text in texts(item)):
            yield Finding("1 canary", item["id"], "the canary stands in a text")


def references(item: Item, facts: Mapping[str, CodeFact]) -> Iterator[Finding]:
    """Gate 2: every reference exists."""
    for ref in dict.fromkeys(citations(item)):
        if not resolve(ref, facts):
            yield Finding("2 references", item["id"], f"the Code has no {ref}")


def checks(item: Item) -> Iterator[Finding]:
    """Gate 2: every assertion is arithmetic and true."""
    for assertion in item.get("check") or ():
        try:
            if not holds(assertion):
                yield Finding("2 check", item["id"], f"false: {assertion}")
        except CheckError as error:
            yield Finding("2 check", item["id"], str(error))


def cited_quantities(item: Item, facts: Mapping[str, CodeFact]) -> list[Quantity]:
    """What is printed in the provisions the item cites, notes of a cited table included."""
    return [
        number
        for ref in dict.fromkeys(citations(item))
        for name in resolve(ref, facts)
        for inner in within(name, facts)
        for number in facts[inner].numbers
    ]


def numbers(item: Item, facts: Mapping[str, CodeFact]) -> Iterator[Finding]:
    """Gate 2: numbers of key, reference answer, key points and explanation have a source.

    Sources are the cited provisions, the question, and what follows from them by `check`; for the
    explanation the options too (it may say why another option fails), and for the key of a question
    that offers cases to choose from.
    """
    cited = cited_quantities(item, facts)
    stem = quantities(item["question"], words=True)
    given = item.get("check") or []
    constants = {float(value) for value in settings()["numbers"]["constants"]}
    helpers = constants | growth_factors([*cited, *stem])
    known = all_scales([*cited, *stem])
    options = numbers_in(*item["choices"]) if is_mcq(item) else set()
    used = helpers & numbers_in(*given)
    strict = known | derived(given, known | helpers)
    lenient = known | options | used | derived(given, known | helpers | options)
    parts = [("explanation", item.get("explanation") or "", lenient)]
    if is_mcq(item):
        cases = options if _offers_cases(item["question"]) else set()
        parts.append(("key", key_of(item), strict | cases))
    else:
        strict |= used
        parts.append(("reference answer", item["reference_answer"], strict))
        for place, point in enumerate(item.get("key_points") or (), 1):
            parts.append((f"key point {place}", point["text"], strict))
    for where, text, allowed in parts:
        lost = [n.plain for n in quantities(text) if not all_scales([n]) & allowed]
        if lost:
            shown = ", ".join(str(value) for value in dict.fromkeys(lost))
            yield Finding("2 numbers", item["id"], f"{where}: no source for {shown}")
    if is_mcq(item) and item.get("level") == "calculation" and quantities(key_of(item)):
        asserted = numbers_in(*given)
        if not numbers_in(key_of(item)) & asserted:
            message = "the key's number is in no assertion of `check`"
            yield Finding("2 numbers", item["id"], message, "report")


def _offers_cases(question: str) -> bool:
    """Whether the options are cases to choose from, so that their numbers are data."""
    return bool(re.search(settings()["numbers"]["cases"], asked(question), re.IGNORECASE))


def runs(item: Item) -> Iterator[Finding]:
    """Gate 10: no 12 words in a row that the Code has; names of documents apart."""
    names = re.compile("|".join(map(re.escape, settings()["runs"]["names"])), re.IGNORECASE)
    for field, text in texts(item):
        for piece in names.split(text):
            if run := shared_run(piece):
                yield Finding("10 runs", item["id"], f"{field} shares with the Code: “{run}”")
                break
