"""Doubles are found, pairs that only look alike are not, and a large set is no obstacle."""

import random

import pytest

from hk_fs_bench import dedupe

STEM = (
    "A cinema with 300 seats stands on the first floor of a hotel. Its main entrance opens on a "
    "lobby that leads to two staircases. What is the least width of each gangway beside the seats?"
)
OPTIONS = ["900 mm", "1050 mm", "1200 mm", "1500 mm"]
OTHER = (
    "The manager of a residential home wants to store wheelchairs below a flight of stairs that "
    "residents use every day. Which consideration decides whether the store is acceptable?"
)


def mcq(name, question=STEM, choices=OPTIONS, answer="B", **fields):
    return {"id": name, "question": question, "choices": choices, "answer": answer} | fields


def other(name="far"):
    return mcq(name, OTHER, ["The width", "The lining", "The lift", "The sign"])


BYSTANDER = {"id": "far", "question": "Why do tall towers need a fireman's lift at all?"}


PAIRS = {
    "a copy": (mcq("b"), "near-identical", "the same words"),
    "other numbers": (
        mcq("b", STEM.replace("300", "400")),
        "near-identical",
        "the same but for numbers",
    ),
    "sentences exchanged": (
        mcq("b", ". ".join(reversed(STEM.rstrip("?").split(". "))) + "?"),
        "near-identical",
        "",
    ),
    "an open question with the stem": ({"id": "b", "question": STEM}, "near-identical", ""),
    "one fact": (other("b") | {"fact_id": "B27/gangway"}, "same fact", "B27/gangway"),
    "key in a stem": (
        mcq("b", OTHER + " The store is of a fire rated enclosure without any opening."),
        "give-away",
        "says “A fire rated enclosure without any opening”",
    ),
}


@pytest.mark.parametrize(("second", "kind", "why"), PAIRS.values(), ids=PAIRS)
def test_pairs(second, kind, why):
    first = mcq("a", fact_id="B27/gangway")
    if kind == "give-away":
        key = "A fire rated enclosure without any opening"
        first = mcq("a", choices=["None", key, "A sign", "A curtain"])
    found = dedupe.find_overlaps([first, second, BYSTANDER])
    assert [(o.kind, o.first, o.second) for o in found] == [(kind, "a", "b")]
    assert why in found[0].why


def test_a_number_is_given_away_only_on_the_same_provision():
    telling = STEM.replace("What is", "Each gangway is 1050 mm wide. What is").replace(
        "least width of each gangway beside the seats", "greatest number of seats in a row"
    )
    seats = ["7", "11", "14", "22"]
    for references, expected in ((["B27.5"], ["give-away"]), (["B99.9"], [])):
        rows = [
            mcq("a", references=["B27.5"]),
            mcq("b", telling, seats, references=references),
            other(),
        ]
        found = [o for o in dedupe.find_overlaps(rows) if o.kind == "give-away"]
        assert [o.kind for o in found] == expected


def test_a_short_key_is_given_away_only_on_the_same_provision():
    key = "The Director of Fire Services"
    choices = ["The Building Authority", key, "The owner", "The tenant"]
    for references, count in ((["D1.1"], 1), (["F9.9"], 0), (None, 1)):
        rows = [
            mcq("a", "Who approves a lift?", choices, references=["D1.1"]),
            mcq("b", f"{OTHER} {key} asked.", references=references),
        ]
        assert len([o for o in dedupe.find_overlaps(rows) if o.kind == "give-away"]) == count


def test_candidates_are_compared_with_the_set_and_each_other():
    old = [mcq("a"), mcq("b"), other()]
    found = dedupe.find_overlaps(old, [other("new")])
    assert [(o.first, o.second) for o in found] == [("far", "new")]
    assert dedupe.find_overlaps([mcq("a")]) == []


def test_our_own_items_hold_no_double(dataset):
    rows = [item.model_dump() for split in dataset.splits.values() for item in split]
    kinds = {overlap.kind for overlap in dedupe.find_overlaps(rows)}
    assert not kinds & {"near-identical", "give-away"}


def test_ten_thousand_rows():
    """One template for most of them, so that nearly every pair is a candidate."""
    rng = random.Random(1)
    words = [f"word{n}" for n in range(3_000)]
    rows = []
    for n in range(10_000):
        if n % 3:
            text = f"How wide is door {n} of storey {n % 40} in a hotel with {n % 70} rooms?"
        else:
            text = " ".join(rng.sample(words, 40)) + "?"
        rows.append(mcq(f"q{n}", text, [f"{n + k} mm" for k in range(4)]))
    rows.append(rows[3] | {"id": "copy"})
    found = dedupe.find_overlaps(rows)
    assert any({o.first, o.second} == {"q3", "copy"} for o in found)
