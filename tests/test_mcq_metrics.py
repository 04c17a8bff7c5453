"""Multiple-choice figures over rows that a test makes up."""

import pytest

from hk_fs_bench.metrics import breakdowns, mcq
from hk_fs_bench.schema import Distractor, MCQItem
from hk_fs_bench.superseded import superseded_options

RISK = {"B": "unsafe", "C": "over_provision", "D": "neutral"}


def item(name: str, annotated: bool = True, **fields) -> MCQItem:
    distractors = {k: Distractor(why="why", risk=risk) for k, risk in RISK.items()}
    return MCQItem(
        id=name,
        question="q",
        choices=["one", "two", "three", "four"],
        answer="A",
        distractors=distractors if annotated else None,
        **fields,
    )


def row(name: str, value: str | None, sample: int = 0, variant: str = "") -> dict:
    return {
        "item_id": name,
        "value": value,
        "correct": value == "A",
        "status": "invalid" if value is None else "valid",
        "sample": sample,
        "variant": variant,
    }


def rows(*values: str | None) -> list[dict]:
    return [row(f"q{i}", value) for i, value in enumerate(values)]


ITEMS = {f"q{i}": item(f"q{i}") for i in range(10)}


def test_accuracy_counts_what_can_not_be_read_as_wrong():
    found = rows("A", "A", "B", None)
    assert mcq.accuracy(found).value == 2 / 4
    assert mcq.accuracy_on_valid(found).value == 2 / 3
    assert mcq.accuracy([]).reason == "no answer to count"


def test_samples_and_orders_of_a_question_are_no_independent_answers():
    found = [row("q0", value, sample) for sample, value in enumerate("AABB")]
    found += [row("q1", value, variant=f"rot{turn}") for turn, value in enumerate("AAAA")]
    estimate = mcq.accuracy(found)
    assert (estimate.value, estimate.n) == ((0.5 + 1) / 2, 2)
    assert mcq.by_sample(found) == [5 / 5, 1 / 1, 0.0, 0.0]


def test_non_conservative_errors_are_those_that_leave_the_building_less_safe():
    found = mcq.non_conservative(rows("A", "B", "B", "C", "D", None), ITEMS)
    assert (found.value, found.n) == (2 / 6, 6)
    assert found.ci95 is not None
    assert found.more["errors"] == {"unsafe": 2, "over_provision": 1, "neutral": 1}


def test_non_conservative_is_over_annotated_items_only():
    items = {"q0": item("q0"), "q1": item("q1", annotated=False)}
    found = mcq.non_conservative(rows("B", "B"), items)
    assert (found.value, found.n, found.more["not_annotated"]) == (1.0, 1, 1)
    none = mcq.non_conservative(rows("B")[:1], {"q0": items["q1"]})
    assert none.value is None
    assert "not annotated" in none.reason


def test_superseded_value_is_known_or_not():
    found = mcq.superseded(rows("B", "A", "C"), {"q0": ["B"], "q1": ["B"], "q2": []})
    assert (found.value, found.n) == (1 / 2, 2)
    unknown = mcq.superseded(rows("B"), {})
    assert (unknown.value, unknown.reason) == (None, mcq.NO_SUPERSEDED)


def test_consistency_is_by_sample_and_leaves_half_asked_questions_out():
    orders = [row("q0", "A", sample, f"rot{turn}") for sample in (0, 1) for turn in range(4)]
    orders += [row("q1", value, 0, f"rot{turn}") for turn, value in enumerate("ABAA")]
    orders += [row("q2", "A", 0, "rot0")]
    found = mcq.consistency(orders)
    assert (found.value, found.n) == (0.5, 2)


def test_clauses_are_the_clusters():
    items = {f"q{i}": item(f"q{i}", references=[f"B{i // 5}.1"]) for i in range(10)}
    found = mcq.accuracy_by_clause(rows(*"AAAAABBBBB"), items)
    assert (found.value, found.n, found.unit) == (0.5, 2, "primary clauses")
    assert found.ci95 == (0.0, 1.0)
    assert mcq.primary_clause(item("q")) == "q"


@pytest.mark.parametrize(
    ("first", "second", "p", "only_first"),
    [("AAAAAAAA", "BBBBBBBB", 2 / 256, 8), ("AABB", "AABB", 1.0, 0), ("AB", "BA", 1.0, 1)],
)
def test_difference_pairs_questions(first, second, p, only_first):
    found = mcq.difference(rows(*first), rows(*second))
    assert found.p == pytest.approx(p)
    assert found.more["only_first"] == only_first


def test_difference_of_several_samples_is_a_bootstrap():
    first = [row(f"q{i}", "A", s) for i in range(5) for s in (0, 1)]
    second = [row(f"q{i}", "AB"[s], s) for i in range(5) for s in (0, 1)]
    found = mcq.difference(first, second)
    assert found.value == 0.5
    assert "bootstrap" in found.test


def test_difference_is_over_the_questions_that_both_answered():
    found = mcq.difference(rows("A", "A"), [row("q1", "B"), row("q9", "B")])
    assert (found.value, found.n) == (1.0, 1)
    assert mcq.difference(rows("A"), []).value is None


def test_groups():
    items = {
        "q0": item("q0", part="B", edition_sensitive=True),
        "q1": item("q1", part="B", edition_sensitive=False),
        "q2": item("q2"),
    }
    found = breakdowns.by_field(rows("A", "B", "A"), items, "part", mcq.accuracy)
    assert found["not_annotated"] == 1
    assert found["groups"]["B"]["value"] == 0.5
    assert found["groups"]["B"]["small"]
    by_edition = breakdowns.by_field(rows("A", "B"), items, "edition_sensitive", mcq.accuracy)
    assert set(by_edition["groups"]) == {"yes", "no"}
    nobody = breakdowns.by_field(rows("A", "B"), items, "topic", mcq.accuracy)
    assert nobody == {"groups": {}, "not_annotated": 2, "reason": "not annotated"}


def test_superseded_options_are_wrong_ones_of_items_that_did_not_change(dataset):
    found = superseded_options(dataset.by_id)
    assert len(found) == 12
    for name, letters in found.items():
        item = dataset.by_id[name]
        assert item.edition_sensitive
        assert item.answer not in letters
        changed = item.model_copy(update={"question": item.question + "?"})
        assert superseded_options({name: changed}) == {}
