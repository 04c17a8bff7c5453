"""Validation of editions: ours by everything, others' by what they have."""

import json

import pytest

from hk_fs_bench import manifest
from hk_fs_bench.errors import UserError
from hk_fs_bench.validating import validate

BARE_MCQ = {"question": "How wide is it?", "choices": ["1 m", "2 m", "3 m", "4 m"], "answer": "A"}


def edit(folder, split, change):
    path = folder / "data" / f"{split}.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    change(rows)
    manifest.write_edition(folder, {split: rows})
    manifest.write_manifest(folder)


def failures(folder, profile=None):
    return [str(finding) for finding in validate(folder, profile, probe=False).failures]


def test_a_sound_edition_passes(releasable):
    assert failures(releasable) == []


SPOILT = {
    "in the dev split": ("mcq/dev", lambda r: r[0].update(references=["B99.9"]), "no B99.9"),
    "a topic of another Part": (
        "mcq/test",
        lambda r: r[0].update(part="F", topic="doors"),
        "topic doors isn't one of Part F",
    ),
    "a topic that is none": (
        "mcq/test",
        lambda r: r[0].update(topic="gardening"),
        "unknown topic 'gardening'",
    ),
}


@pytest.mark.parametrize(("split", "change", "message"), SPOILT.values(), ids=SPOILT)
def test_spoilt_editions_fail(releasable, split, change, message):
    edit(releasable, split, change)
    assert any(message in line for line in failures(releasable)), failures(releasable)


def test_one_id_in_two_splits(releasable):
    for split in ("mcq/dev", "oeq/dev"):
        edit(releasable, split, lambda rows: rows[0].update(id="same"))
    assert any("2 items of the edition have this id" in line for line in failures(releasable))


def test_a_stale_manifest_is_said(releasable):
    path = releasable / "data/oeq/test.jsonl"
    path.write_text(path.read_text("utf-8") + "\n", "utf-8")
    assert any("isn't the file of manifest.json" in line for line in failures(releasable))


@pytest.fixture
def bare(tmp_path):
    """Somebody else's edition: nothing but what is required."""
    mcq = [{"id": f"q{n}", **BARE_MCQ} for n in range(8)]
    oeq = [{"id": "o1", "question": "Why?", "reference_answer": "Because."}]
    manifest.write_edition(tmp_path, {"mcq/test": mcq, "oeq/test": oeq})
    manifest.write_manifest(tmp_path, "3.1.4", profile="any")
    return tmp_path


def test_a_bare_edition_passes_its_own_profile_alone(bare):
    report = validate(bare, probe=True)
    assert report.ok
    assert {figure.gate for figure in report.figures} >= {"3 keys", "4 give-aways", "4 probe"}
    assert not any(figure.gate in ("quotas", "7 cue") for figure in report.figures)
    assert all(finding.gate != "1 canary" for finding in report.findings)
    assert not validate(bare, "strict", probe=False).ok


FAULTS = {
    "a key outside the options": (lambda r: r[0].update(answer="E"), "field `answer`"),
    "a doubled id": (lambda r: r[1].update(id="q0"), "2 items of the edition have this id"),
    "a reference that is none": (lambda r: r[0].update(references=["Z9"]), "the Code has no Z9"),
    "a false assertion": (lambda r: r[0].update(check=["1 + 1 == 3"]), "false: 1 + 1 == 3"),
}


@pytest.mark.parametrize(("change", "message"), FAULTS.values(), ids=FAULTS)
def test_faults_of_any_edition(bare, change, message):
    path = bare / "data/mcq/test.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    change(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (bare / "manifest.json").unlink()
    (found,) = failures(bare)
    assert message in found


def test_no_edition(tmp_path):
    with pytest.raises(UserError, match="name an edition"):
        validate(tmp_path)
