"""hk_fs_bench.items: what it reads, and one clear line for what it can't."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hk_fs_bench import items, manifest
from hk_fs_bench.errors import UserError


def rewrite(folder: Path, change, split: str = "mcq/test", line: int = 1) -> None:
    """Apply `change` to one row of a data file."""
    path = folder / "data" / f"{split}.jsonl"
    lines = path.read_text("utf-8").splitlines()
    row = json.loads(lines[line])
    lines[line] = json.dumps(change(row) or row)
    path.write_text("\n".join(lines) + "\n", "utf-8")


def test_packaged_dataset(dataset):
    assert dataset.version
    assert set(dataset.splits) == set(items.SPLITS)
    assert len(dataset.items("mcq")) >= 60
    assert len(dataset.items("oeq")) >= 15
    assert {item.part for item in dataset.items("mcq")} == set("ABCDEFG")


def test_from_any_working_directory(monkeypatch, tmp_path, dataset):
    monkeypatch.chdir(tmp_path)
    assert items.load().sha256 == dataset.sha256


def test_sha256_names_the_content(edition):
    before = items.load(edition).sha256
    rewrite(edition, lambda row: row.update(explanation="Another reason."))
    assert items.load(edition).sha256 != before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.pop("answer"), "field `answer` is missing"),
        (lambda r: r.update(answer="E"), "field `answer`"),
        (lambda r: r.update(answer=None), "field `answer`"),
        (lambda r: r.update(choices=r["choices"][:3]), "field `choices`"),
        (lambda r: r.update(choices=[r["choices"][0]] * 4), "same text"),
        (lambda r: r.update(choices=[*r["choices"][:3], ""]), "field `choices.3`"),
        (lambda r: r.update(question="  "), "field `question`"),
        (lambda r: r.update(question="Which door? "), "field `question`"),
        (lambda r: r.update(colour="red"), "field `colour` is not one of the format"),
        (lambda r: r.update(engineering_related="yes"), "field `engineering_related`"),
        (lambda r: r.update(part="H"), "field `part`"),
        (lambda r: r.update(id="../../etc"), "field `id`"),
        (lambda r: r.pop("id"), "field `id` is missing"),
        (lambda r: r.update(distractors={}), "three letters"),
    ],
)
def test_faulty_item_is_named(edition, change, message):
    rewrite(edition, lambda row: change(row) and None)
    with pytest.raises(UserError, match=r"mcq/test.jsonl line 2") as caught:
        items.load(edition)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_only_the_required_fields_are_required(edition):
    keep = {"id", "question", "choices", "answer"}
    rewrite(edition, lambda row: {k: v for k, v in row.items() if k in keep})
    assert items.load(edition).items("mcq")[1].part is None


def test_duplicate_id_is_named(edition):
    first = items.load(edition).items("mcq")[0].id
    rewrite(edition, lambda row: row.update(id=first))
    with pytest.raises(UserError, match=f"line 2: id {first} stands in line 1"):
        items.load(edition)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"id": "a"\n', "no JSON"),
        (b"[1, 2]\n", "a JSON object is expected"),
        (b'{"id": "caf\xe9"}\n', "byte 12 is no UTF-8"),
        (b"[" * 200_000 + b"\n", "line 1"),
    ],
)
def test_no_jsonl(edition, raw, message):
    (edition / "data/mcq/test.jsonl").write_bytes(raw)
    with pytest.raises(UserError, match=r"mcq/test\.jsonl line 1") as caught:
        items.load(edition)
    assert message in str(caught.value)


def test_edited_file_fails_its_manifest_until_that_is_made_anew(edition):
    manifest.write_manifest(edition, "9.9.9")
    assert items.load(edition).version == "9.9.9"
    rewrite(edition, lambda row: row.update(explanation="Another reason."))
    with pytest.raises(UserError, match=r"fails the sha256 .* scripts/dataset.py manifest"):
        items.load(edition)
    manifest.write_manifest(edition)
    assert items.load(edition).version == "9.9.9"


def test_missing_split_of_the_manifest(edition):
    manifest.write_manifest(edition, "1.0.0")
    (edition / "data/oeq/test.jsonl").unlink()
    with pytest.raises(UserError, match=r"oeq/test\.jsonl is missing"):
        items.load(edition)


def test_faulty_data_leaves_the_old_manifest(edition):
    manifest.write_manifest(edition, "1.0.0")
    before = (edition / "manifest.json").read_bytes()
    rewrite(edition, lambda row: row.update(answer="E"))
    with pytest.raises(UserError):
        manifest.write_manifest(edition)
    assert (edition / "manifest.json").read_bytes() == before


@pytest.mark.parametrize(
    ("source", "revision", "message"),
    [
        ("nowhere", None, "no dataset folder nowhere"),
        ("/nowhere/at/all", None, "no dataset folder"),
        (".", "v1", "is a folder, which has no revision"),
    ],
)
def test_unknown_source(tmp_path, monkeypatch, source, revision, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=message):
        items.load(source, revision)


def test_empty_folder_says_what_is_expected(tmp_path):
    with pytest.raises(UserError, match=r"data/mcq/test.jsonl"):
        items.load(tmp_path)


def test_edition_without_open_questions(edition):
    for split in ("test", "dev"):
        (edition / f"data/oeq/{split}.jsonl").unlink()
    with pytest.raises(UserError, match="has no oeq test split"):
        items.load(edition).items("oeq")


def test_rotations_move_the_key_with_its_option(dataset):
    docs = items.docs(dataset, subset="mcq", context=True, rotations=4)
    for doc in docs:
        item = dataset.by_id[doc["id"]]
        assert (
            doc["choices"]["ABCD".index(doc["answer"])] == item.choices["ABCD".index(item.answer)]
        )
        assert items.unrotate(doc["answer"], doc["variant"]) == item.answer
    assert [d["variant"] for d in docs[:4]] == ["rot0", "rot1", "rot2", "rot3"]
    assert len({d["id"] for d in docs[:4]}) == 1


@given(st.lists(st.sampled_from("ABCDEFG"), min_size=8, max_size=200))
def test_any_prefix_of_the_order_holds_each_part_in_its_share(parts):
    rows = [{"id": f"q{i}", "part": part} for i, part in enumerate(parts)]
    ordered = manifest.stratified_order(rows)
    assert sorted(r["id"] for r in ordered) == sorted(r["id"] for r in rows)
    for n in range(1, len(rows) + 1):
        for part in set(parts):
            share = sum(r["part"] == part for r in ordered[:n])
            assert abs(share - n * parts.count(part) / len(parts)) <= 3


def test_file_order_is_the_fixed_one(dataset):
    for split, found in dataset.splits.items():
        rows = [item.model_dump() for item in found]
        assert [r["id"] for r in rows] == [r["id"] for r in manifest.stratified_order(rows)], split
