"""hf_dataset/ as a Hugging Face dataset, as published: `load_dataset` on the folder."""

import json
import shutil

import pytest
from datasets import load_dataset

from hk_fs_bench import card, items, manifest, validating

FOLDER = items.default_folder()
TEMPLATES = FOLDER.parent / "dataset_card"


@pytest.mark.parametrize("subset", ["mcq", "oeq"])
@pytest.mark.parametrize("split", ["test", "dev"])
def test_load_dataset(tmp_path, dataset, subset, split):
    found = load_dataset(str(FOLDER), subset, split=split, cache_dir=str(tmp_path))
    assert found["id"] == [item.id for item in dataset.items(subset, split)]
    assert found["question"] == [item.question for item in dataset.items(subset, split)]


def test_card_and_manifest_are_those_of_the_data(tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(FOLDER, copy)
    made = manifest.write_manifest(copy)
    assert (copy / "manifest.json").read_bytes() == (FOLDER / "manifest.json").read_bytes()
    for name, content in card.render(copy, made, TEMPLATES).items():
        raw = content if isinstance(content, bytes) else content.encode()
        assert raw == (FOLDER / name).read_bytes(), f"{name}: run scripts/dataset.py manifest"


def test_saved_baselines_are_those_of_the_data(dataset):
    """The probe apart, which takes long: see tests/test_gates.py."""
    saved = json.loads((FOLDER / card.GATES).read_text("utf-8"))
    report = validating.validate(FOLDER, probe=False)
    fresh = validating.baselines(report, dataset.sha256)
    saved["figures"].pop("choices-only probe")
    assert saved == fresh, "run scripts/dataset.py validate --save"


def test_load_dataset_sees_an_edit_of_equal_length(tmp_path):
    """A key corrected from one letter to another changes neither a size nor a count."""
    folder, cache = tmp_path / "edition", str(tmp_path / "cache")
    shutil.copytree(FOLDER, folder)

    def key() -> str:
        return load_dataset(str(folder), "mcq", split="test", cache_dir=cache)[0]["answer"]

    before = key()
    path = folder / "data/mcq/test.jsonl"
    first, rest = path.read_text("utf-8").split("\n", 1)
    row = json.loads(first)
    other = next(letter for letter in "ABCD" if letter != before)
    row["answer"], row["distractors"] = other, None
    path.write_text(json.dumps(row) + "\n" + rest, "utf-8")
    made = manifest.write_manifest(folder)
    card.write(folder, made, TEMPLATES)
    assert key() == other
