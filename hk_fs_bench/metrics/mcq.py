"""Multiple-choice metrics over parsed rows: what `scoring` writes into items.jsonl."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hk_fs_bench.answers import STATUSES
from hk_fs_bench.metrics.common import signature
from hk_fs_bench.stats import Estimate, Pooled, paired_bootstrap, paired_difference, proportion
from hk_fs_bench.stats.estimate import undefined

if TYPE_CHECKING:
    from hk_fs_bench.schema import MCQItem

READABLE = ("valid", "repaired")
RISKS = ("unsafe", "over_provision", "neutral")
NOT_ANNOTATED = "not annotated"
NO_RISK = f"{NOT_ANNOTATED}: no item says what its wrong options would do"
# Options that were right in an earlier edition of the Code: the item format can't say which.
NO_SUPERSEDED = "of these questions no option is marked as the value before an amendment"
VERSION = 1

Row = Mapping[str, Any]
Hit = Callable[[Row], bool]


def by_question(rows: Sequence[Row], hit: Hit) -> dict[str, float]:
    """Each question → the share of its answers that are a hit.

    Samples of one prompt, and the option orders of one question, are no independent answers.
    """
    hits: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        hits[row["item_id"]].append(hit(row))
    return {question: sum(own) / len(own) for question, own in hits.items()}


def share(rows: Sequence[Row], hit: Hit, name: str, reason: str = "no answer to count") -> Estimate:
    """The mean of `by_question` with Wilson's interval; n is the number of questions."""
    shares = by_question(rows, hit)
    found = proportion(sum(shares.values()), len(shares), reason=reason)
    return found.with_(signature=signature(name, invalid="counts as no hit", v=VERSION))


def is_correct(row: Row) -> bool:
    return bool(row["correct"])


def accuracy(rows: Sequence[Row]) -> Estimate:
    """Correct over all answers; one that can't be read is wrong."""
    return share(rows, is_correct, "accuracy")


def accuracy_on_valid(rows: Sequence[Row]) -> Estimate:
    """Correct over the answers that could be read, the paper's figure in brackets."""
    readable = [row for row in rows if row["status"] in READABLE]
    return share(readable, is_correct, "accuracy_on_valid")


def by_sample(rows: Sequence[Row]) -> list[float]:
    """The accuracy of each sample alone, in their order."""
    samples: dict[int, list[bool]] = defaultdict(list)
    for row in rows:
        samples[row.get("sample") or 0].append(row["correct"])
    return [sum(right) / len(right) for _, right in sorted(samples.items())]


def status_counts(rows: Sequence[Row]) -> dict[str, int]:
    """How many answers had each status, in the fixed order of the statuses."""
    counts = Counter(row["status"] for row in rows)
    return {status: counts[status] for status in STATUSES}


def consistency(rows: Sequence[Row], orders: int = 4) -> Estimate:
    """Share of questions whose answers name one option in all option orders.

    `rows` hold the option chosen in the item's own lettering; an order without a readable answer
    makes its question not alike. Questions not asked in every order are left out of n.
    """
    chosen: dict[tuple[str, int], list[str | None]] = defaultdict(list)
    for row in rows:
        chosen[row["item_id"], row.get("sample") or 0].append(row["value"])
    whole = [
        {"item_id": item, "alike": None not in options and len(set(options)) == 1}
        for (item, _), options in chosen.items()
        if len(options) == orders
    ]
    return share(whole, lambda row: bool(row["alike"]), "consistency")


def risk_of(row: Row, items: Mapping[str, MCQItem]) -> str | None:
    """What following the chosen option would do to the building; None for the key, an answer that
    can't be read, and an item without annotation."""
    distractors = items[row["item_id"]].distractors
    if row["value"] is None or distractors is None or row["value"] not in distractors:
        return None
    return distractors[row["value"]].risk


def with_risks(rows: Sequence[Row], items: Mapping[str, MCQItem]) -> list[Row]:
    """The answers to questions whose wrong options say their risk."""
    return [row for row in rows if items[row["item_id"]].distractors is not None]


def non_conservative_difference(
    first: Sequence[Row], second: Sequence[Row], items: Mapping[str, MCQItem]
) -> Estimate:
    """`non_conservative` of `first` less that of `second`, on the questions of both."""
    return difference(
        with_risks(first, items),
        with_risks(second, items),
        lambda row: risk_of(row, items) == "unsafe",
        "non_conservative",
    )


def non_conservative(rows: Sequence[Row], items: Mapping[str, MCQItem]) -> Estimate:
    """Share of answers whose option, followed, leaves the building less safe.

    Over the questions whose wrong options say their risk. An answer that can't be read is no error
    of this kind: nobody would follow it.
    """
    annotated = with_risks(rows, items)
    unsafe = share(
        annotated,
        lambda row: risk_of(row, items) == "unsafe",
        "non_conservative",
        reason=NO_RISK if rows else "no answer to count",
    )
    counts = Counter(risk_of(row, items) for row in annotated)
    errors = {risk: counts[risk] for risk in RISKS}
    left = len({row["item_id"] for row in rows}) - unsafe.n
    return unsafe.with_(more={"errors": errors, "not_annotated": left})


def superseded(rows: Sequence[Row], options: Mapping[str, Collection[str]]) -> Estimate:
    """Share of answers that chose the value of an earlier edition of the Code.

    Args:
        options: question → the letters of its superseded values; questions without any don't count.
    """
    known = [row for row in rows if options.get(row["item_id"])]
    return share(
        known,
        lambda row: row["value"] in options[row["item_id"]],
        "superseded",
        reason=NO_SUPERSEDED if rows else "no answer to count",
    )


def primary_clause(item: MCQItem) -> str:
    """The provision that an item turns on: the first of its references, else the item itself."""
    return item.references[0] if item.references else item.id


def accuracy_by_clause(rows: Sequence[Row], items: Mapping[str, MCQItem]) -> Estimate:
    """Accuracy with a bootstrap over primary clauses: questions on one clause go together.

    Over the questions with references; the others are counted in `not_annotated`.
    """
    shares = {
        question: value
        for question, value in by_question(rows, is_correct).items()
        if items[question].references
    }
    clusters = [primary_clause(items[question]) for question in shares]
    found = Pooled.of_means(list(shares.values()), clusters).estimate("primary clauses")
    if found.value is None and rows:
        found = found.with_(reason=f"{NOT_ANNOTATED}: no item says on which provision it turns")
    left = len({row["item_id"] for row in rows}) - len(shares)
    return found.with_(
        signature=signature("accuracy", by="primary clause", v=VERSION),
        more={"not_annotated": left},
    )


def difference(
    first: Sequence[Row], second: Sequence[Row], hit: Hit = is_correct, name: str = "accuracy"
) -> Estimate:
    """Accuracy, or another share, of `first` less that of `second` on the questions of both.

    With one answer a question: exact McNemar and Newcombe's interval. With several: a paired
    bootstrap over questions.
    """
    one, two = by_question(first, hit), by_question(second, hit)
    shared = [question for question in one if question in two]
    signed = signature(f"{name}_difference", questions="of both", v=VERSION)
    if not shared:
        return undefined("no question has an answer in both").with_(signature=signed)
    if any(own[question] % 1 for own in (one, two) for question in shared):
        left, right = (Pooled.of_means([own[q] for q in shared], shared) for own in (one, two))
        return paired_bootstrap(left, right).with_(signature=signed)
    counts = Counter((bool(one[question]), bool(two[question])) for question in shared)
    return paired_difference(
        both=counts[True, True],
        first_only=counts[True, False],
        second_only=counts[False, True],
        neither=counts[False, False],
    ).with_(signature=signed)
