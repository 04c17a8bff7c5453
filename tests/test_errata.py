"""Corrections are recorded, and every released version can be rebuilt from what is left."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hk_fs_bench import correct, errata, items, manifest
from hk_fs_bench.errors import UserError

DAY = "2026-11-30"


@pytest.fixture
def released(edition):
    """An edition with 1.0.0 released."""
    manifest.write_manifest(edition, "1.0.0", released=DAY)
    return edition


def ids(folder, split="mcq/test"):
    return list(items.read_manifest(folder)["splits"][split]["ids"])


def add(folder, split, name):
    """A new item, a copy of the first under another id."""
    path = folder / "data" / f"{split}.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    manifest.write_edition(folder, {split: [*rows, rows[0] | {"id": name}]})


def test_three_versions_from_one_folder(released):
    """A key corrected twice, an item withdrawn, one added: 1.0.0 and 1.1.0 are as they were."""
    first = items.load(released)
    name, gone = ids(released)[0], ids(released)[1]
    item = first.by_id[name]
    other = next(letter for letter in "ABCD" if letter != item.answer)
    swapped = {
        "answer": other,
        "distractors": {
            (item.answer if k == other else k): v.model_dump() for k, v in item.distractors.items()
        },
    }
    rows = correct.correct(released, name, swapped, "1.1.0", "the key was wrong", DAY)
    assert [row["field"] for row in rows] == ["answer", "distractors", "revised"]
    assert items.load(released).version == "1.0.0+edited"
    correct.withdraw(released, [gone], "1.1.0", "two keys can be defended", DAY)
    add(released, "mcq/test", "mcq-new")
    manifest.write_manifest(released, "1.1.0", released=DAY)
    second = items.load(released)
    correct.correct(released, name, {"question": "What then?"}, "1.2.0", "clearer", DAY)
    correct.withdraw(released, ["mcq-new"], "1.2.0", "a double", DAY)
    manifest.write_manifest(released, "1.2.0", released=DAY)

    assert items.load(released).by_id[name].question == "What then?"
    for version, was in (("1.0.0", first), ("1.1.0", second)):
        found = items.load(released, version=version)
        assert found.version == version
        assert found.sha256 == was.sha256
        assert found.splits == was.splits
    assert items.load(released, version="1.1.0").by_id[name].answer == other
    assert gone in items.load(released, version="1.0.0").by_id
    assert {row["date"] for row in items.read_errata(released)} == {DAY}


def test_edit_behind_the_errata_is_named(released):
    path = released / "data/mcq/test.jsonl"
    first, rest = path.read_text("utf-8").split("\n", 1)
    path.write_text(json.dumps(json.loads(first) | {"question": "Edited?"}) + "\n" + rest, "utf-8")
    manifest.write_manifest(released)
    name = ids(released)[0]
    with pytest.raises(UserError, match=rf"can't rebuild version 1\.0\.0: .* {name} differ"):
        items.load(released, version="1.0.0")


def test_differences_to_an_older_copy_are_recorded(released, tmp_path):
    before = items.load(released)
    path = released / "data/mcq/test.jsonl"
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[1:]).replace("Which", "What", 1), "utf-8")
    manifest.write_manifest(released)
    rows = correct.record_differences(released, before, "1.1.0", "edited by hand", DAY)
    assert sorted(row["change"] for row in rows) == ["changed", "removed"]
    assert items.load(released, version="1.0.0").splits == before.splits


@pytest.mark.parametrize(
    ("values", "version", "message"),
    [
        ({"id": "mcq-9999"}, "1.1.0", "id of an item can't be changed"),
        ({"canary": "x", "since": "1.1.0"}, "1.1.0", "canary, since of an item can't be changed"),
        ({"question": "Why?"}, "1.1", "1.1 is no version"),
        ({"question": "Why?"}, "0.9.0", r"0\.9\.0 comes before 1\.0\.0"),
        ({"answer": "E"}, "1.1.0", r"field `answer`.*; nothing was changed"),
        ({"part": "C", "colour": "red"}, "1.1.0", "colour"),
        ({}, "1.1.0", "nothing to correct"),
        ({"question": "Why?"}, "1.0.0", "1.0.0 is released"),
    ],
)
def test_a_refused_correction_changes_nothing(released, values, version, message):
    before = {p: p.read_bytes() for p in released.rglob("*") if p.is_file()}
    with pytest.raises(UserError, match=message):
        correct.correct(released, ids(released)[0], values, version, "because", DAY)
    assert {p: p.read_bytes() for p in released.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("reason", ["", " "])
def test_no_change_without_a_reason(released, reason):
    before = {p: p.read_bytes() for p in released.rglob("*") if p.is_file()}
    name = ids(released)[0]
    with pytest.raises(UserError, match="no reason is given"):
        correct.withdraw(released, [name], "1.1.0", reason, DAY)
    with pytest.raises(UserError, match="no reason is given"):
        correct.record_differences(released, items.load(released), "1.1.0", reason, DAY)
    assert {p: p.read_bytes() for p in released.rglob("*") if p.is_file()} == before


def test_one_pending_version_at_a_time(released):
    first, second = ids(released)[:2]
    correct.withdraw(released, [first], "1.0.1", "two keys", DAY)
    with pytest.raises(UserError, match=r"1\.0\.1 has errata and isn't released yet"):
        correct.withdraw(released, [second], "1.0.2", "two keys", DAY)
    correct.withdraw(released, [second], "1.0.1", "two keys", DAY)
    assert {row["item"] for row in items.read_errata(released)} == {first, second}


def test_unknown_item_and_unknown_version(released):
    with pytest.raises(UserError, match="has no item mcq-9999"):
        correct.withdraw(released, ["mcq-9999"], "1.1.0", "because", DAY)
    with pytest.raises(UserError, match=r"version 0\.9\.0 was never released; there are: 1\.0\.0"):
        items.load(released, version="0.9.0")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"item": "a"}, "line 1: no field version"),
        (dict.fromkeys(errata.FIELDS, "x"), "`change` is 'x'"),
        (dict.fromkeys(errata.FIELDS, "changed") | {"reason": ""}, "no reason"),
    ],
)
def test_faulty_errata(released, row, message):
    (released / "errata.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    with pytest.raises(UserError, match=re.escape(message)):
        items.read_errata(released)


VALUES = st.dictionaries(st.sampled_from("xyz"), st.one_of(st.none(), st.integers()), max_size=3)


@given(st.lists(st.one_of(VALUES, st.none()), min_size=2, max_size=6))
def test_any_history_is_undone(states):
    """Each state is a version of one item (None: withdrawn); every one is rebuilt from the last."""
    history = [None if s is None else {"id": "q"} | s for s in states]
    rows, versions = [], {}
    for number, state in enumerate(history):
        before = history[number - 1] if number else None
        if before is not None:
            rows += [
                {"item": "q", "version": str(number), **change}
                for change in errata.changes(before, state)
            ]
        names = {} if state is None else {"q": ""}
        versions[str(number)] = {"splits": {"mcq/test": {"ids": names}}}
    last = [] if history[-1] is None else [history[-1]]
    for number, state in enumerate(history):
        splits, lost = errata.rebuild(last, rows, {"versions": versions}, str(number))
        assert lost == []
        found = [{k: v for k, v in row.items() if v is not None} for row in splits["mcq/test"]]
        wanted = [] if state is None else [{k: v for k, v in state.items() if v is not None}]
        assert found == wanted
