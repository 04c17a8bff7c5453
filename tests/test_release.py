"""A release: refused while anything is wrong, then whole; changelog, card, older versions."""

import json
import re

import pytest
import yaml

from hk_fs_bench import card, changelog, correct, items, manifest, release, review
from hk_fs_bench.errors import UserError
from hk_fs_bench.validating import validate

DAY = "2026-12-01"
TEMPLATES = items.default_folder().parent / "dataset_card"


@pytest.fixture
def folder(releasable):
    return releasable


def accept(folder):
    """Two accepts of every item as it stands."""
    rows = [
        {
            "item": item.id,
            "item_sha256": items.item_sha256(item),
            "role": role,
            "kind": "automated",
            "model_family": "m",
            "form": role,
            "verdict": "accept",
            "date": DAY,
        }
        for split in items.load(folder).splits.values()
        for item in split
        for role in ("architect", "fire_engineer")
    ]
    review.append(folder, [("row", row) for row in rows])


def cut(folder, version, day=DAY, accepted=True):
    if accepted:
        accept(folder)
    made, _ = release.release(folder, version, day, TEMPLATES, probe=False)
    return made


def state(folder):
    return {str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def first(folder, split="mcq/test"):
    return next(iter(items.read_manifest(folder)["splits"][split]["ids"]))


def flag(folder):
    return items.load(folder).by_id[first(folder)].edition_sensitive


def edit(folder, change, split="mcq/test"):
    path = folder / "data" / f"{split}.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    change(rows[0])
    manifest.write_edition(folder, {split: rows})


def test_a_release_is_whole(folder):
    made = cut(folder, "1.0.0")
    assert made["version"] == "1.0.0"
    assert made["versions"]["1.0.0"]["date"] == DAY
    assert items.load(folder, version="1.0.0").sha256 == made["sha256"]
    names = set(release.edition_files(folder))
    assert names >= {"README.md", "manifest.json", "CHANGELOG.md", "errata.jsonl", "gates.json"}
    assert names >= {"eval.yaml", "composition.png", "topics.yaml", "data/mcq/test.jsonl"}
    assert f"## 1.0.0 ({DAY})" in (folder / "CHANGELOG.md").read_text("utf-8")
    readme = (folder / "README.md").read_text("utf-8")
    assert f"| 1.0.0 | {DAY} |" in readme
    assert made["canary"] in readme
    assert validate(folder, probe=False).ok


def test_a_second_release_says_what_changed_and_keeps_the_first(folder):
    cut(folder, "1.0.0")
    was = items.load(folder)
    name, gone = first(folder), list(was.by_id)[1]
    correct.correct(folder, name, {"edition_sensitive": None}, "1.0.1", "not known", DAY)
    with pytest.raises(UserError, match="gates fail") as caught:
        cut(folder, "1.0.1")
    assert any(f"{name}: empty in the strict profile" in line for line in caught.value.details)
    flag = was.by_id[name].edition_sensitive
    correct.correct(folder, name, {"edition_sensitive": not flag}, "1.0.1", "amended", DAY)
    correct.withdraw(folder, [gone], "1.0.1", "two keys", DAY)
    cut(folder, "1.0.1", "2026-12-09")
    text = (folder / "CHANGELOG.md").read_text("utf-8")
    assert text.index("## 1.0.1 (2026-12-09)") < text.index("## 1.0.0")
    assert f"- removed (1): {gone}" in text
    assert f"- changed (1): {name}" in text
    assert f"  - {name} (edition_sensitive): amended" in text
    assert f"  - {gone} (withdrawn): two keys" in text
    assert items.load(folder, version="1.0.0").splits == was.splits
    assert re.search(
        r"\| 1\.0\.1 \| 2026-12-09 \|.*\n\| 1\.0\.0 ", (folder / "README.md").read_text()
    )


REFUSALS = {
    "a failing gate": (
        lambda f: edit(f, lambda r: r.update(references=["B99.9"])),
        "1.0.1",
        r"gates fail .*mend them first",
        "the Code has no B99.9",
    ),
    "an edit without an erratum": (
        lambda f: edit(f, lambda r: r.update(edition_sensitive=not r["edition_sensitive"])),
        "1.0.1",
        r"can't rebuild version 1\.0\.0: no erratum explains how",
        None,
    ),
    "an item that is gone": (
        lambda f: manifest.write_edition(f, {"oeq/dev": []}),
        "1.0.1",
        "gates fail",
        "was released and is gone; withdraw it in the errata",
    ),
    "a version that never was": (
        lambda f: edit(f, lambda r: r.update(revised="7.0.0")),
        "1.0.1",
        "items' versions are wrong",
        "revised is 7.0.0, which was never released",
    ),
    "errata of another version": (
        lambda f: correct.withdraw(f, [first(f)], "1.0.2", "two keys", DAY),
        "1.0.1",
        "errata are of another version",
        "changed for 1.0.2, which is neither released nor this",
    ),
    "an item whose text nobody accepted": (
        lambda f: correct.correct(
            f, first(f), {"edition_sensitive": not flag(f)}, "1.0.1", "amended", DAY
        ),
        "1.0.1",
        r"lack two accepts of their present text \(1\)",
        "0 of 2",
    ),
    "a manifest that was deleted": (
        lambda f: (f / "manifest.json").unlink(),
        "1.0.0",
        r"CHANGELOG\.md names 1\.0\.0 as released, manifest\.json doesn't",
        None,
    ),
    "the same version again": (lambda f: None, "1.0.0", r"1\.0\.0 is released already", None),
    "an older version": (lambda f: None, "0.9.9", r"comes before 1\.0\.0", None),
    "no version": (lambda f: None, "1.0", r"1\.0 is no version", None),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "version", "message", "detail"), REFUSALS.values(), ids=REFUSALS)
def test_refusals_write_nothing(folder, spoil, version, message, detail):
    cut(folder, "1.0.0")
    spoil(folder)
    before = state(folder)
    with pytest.raises(UserError, match=message) as caught:
        cut(folder, version, accepted=False)
    if detail:
        assert any(detail in line for line in caught.value.details)
    assert state(folder) == before


def test_reviews_that_send_an_item_back_refuse_the_release(folder):
    item = items.load(folder).items("mcq")[0]
    row = {
        "item": item.id,
        "item_sha256": items.item_sha256(item),
        "role": "architect",
        "kind": "expert",
        "form": "a",
        "verdict": "reject",
        "faults": ["key"],
        "reason": "B is right too",
        "date": DAY,
    }
    review.append(folder, [("row 1", row)])
    with pytest.raises(UserError, match="reviews send items back") as caught:
        cut(folder, "1.0.0")
    assert caught.value.details == [f"{item.id}: architect (expert) reject: B is right too"]
    review.append(folder, [("row 1", row | {"verdict": "accept", "faults": [], "reason": None})])
    cut(folder, "1.0.0")
    readme = (folder / "README.md").read_text("utf-8")
    assert "**Registered professionals: 0 of" in readme
    assert "In the 1 item that registered professionals reviewed they found\n0 wrong keys" in readme
    assert "| wrong keys or reference answers found | 0 of 1, at most 95.0% | 0 |" in readme
    assert "so at most 95.0% of keys" in readme


def test_a_version_is_three_numbers(folder):
    before = state(folder)
    with pytest.raises(UserError, match=r"1\.0 is no version; three numbers are expected"):
        release.refresh(folder, TEMPLATES, "1.0")
    assert state(folder) == before


def test_front_matter_is_what_the_hub_reads(folder):
    cut(folder, "1.0.0")
    _, head, _ = (folder / "README.md").read_text("utf-8").split("---\n", 2)
    block = yaml.safe_load(head)
    assert block["license"] == "cc-by-4.0"
    assert block["size_categories"] == ["n<1K"]
    assert [c["config_name"] for c in block["configs"]] == ["mcq", "oeq"]
    spec = yaml.safe_load((folder / "eval.yaml").read_text("utf-8"))
    assert set(spec) == {"name", "description", "evaluation_framework", "tasks"}
    (task,) = spec["tasks"]
    row = json.loads((folder / "data/mcq/test.jsonl").read_text("utf-8").splitlines()[0])
    assert set(task["field_spec"].values()) <= set(row)


def test_figures_of_the_card_are_those_of_this_content(folder):
    """Baselines are printed while the gates measured these very items, and no longer."""
    made = cut(folder, "1.0.0")
    measured = json.loads((folder / "gates.json").read_text("utf-8"))
    shown = card.render(folder, made, TEMPLATES)["README.md"]
    assert f"| the longest option | {100 * measured['figures']['longest']:.1f} |" in shown
    assert shown == (folder / "README.md").read_text("utf-8")
    measured["figures"] = dict.fromkeys(measured["figures"], 0.25)
    for value, outside in ((0.25, False), (0.174, True)):
        measured["figures"]["least like the others"] = value
        (folder / "gates.json").write_text(json.dumps(measured), "utf-8")
        shown = card.render(folder, made, TEMPLATES)["README.md"]
        assert ("enforced:\nleast like the other options. Such" in shown) is outside
    other = made | {"sha256": "0" * 64}
    assert "Not measured for this content." in card.render(folder, other, TEMPLATES)["README.md"]


def test_the_plot_is_the_same_every_time(folder):
    made = cut(folder, "1.0.0")
    assert card.render(folder, made, TEMPLATES)[card.PLOT] == (folder / card.PLOT).read_bytes()


def test_spans():
    names = ["mcq-0003", "mcq-0001", "mcq-0002", "oeq-0002", "odd", "mcq-0005"]
    assert changelog.spans(names) == ["mcq-0001 to mcq-0003", "mcq-0005", "odd", "oeq-0002"]


@pytest.mark.parametrize(
    ("count", "name"), [(0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (10_000, "10K<n<100K")]
)
def test_size_category(count, name):
    assert card.size_category(count) == name


def test_somebody_elses_edition_is_released_by_its_own_profile(tmp_path):
    """Prose that somebody wrote into its README stays; the figures of the head are renewed."""
    row = {"id": "q1", "question": "How wide?", "choices": ["1", "2", "3", "4"], "answer": "A"}
    manifest.write_edition(tmp_path, {"mcq/test": [row]})
    manifest.write_manifest(tmp_path, "0.1.0", profile="any")
    release.refresh(tmp_path, TEMPLATES)
    readme = tmp_path / "README.md"
    assert "An imported edition" in readme.read_text("utf-8")
    _, head, _ = readme.read_text("utf-8").split("---\n", 2)
    readme.write_text(f"---\nlicense: mit\n{head}---\n# Ours\n", "utf-8")
    manifest.write_edition(tmp_path, {"mcq/test": [row, row | {"id": "q2", "question": "Why?"}]})
    cut(tmp_path, "1.0.0", accepted=False)
    _, head, body = readme.read_text("utf-8").split("---\n", 2)
    assert body == "# Ours\n"
    block = yaml.safe_load(head)
    assert block["license"] == "mit"
    assert block["dataset_info"][0]["splits"][0]["num_examples"] == 2
    assert not (tmp_path / "eval.yaml").exists()
    assert items.load(tmp_path, version="1.0.0").version == "1.0.0"
