"""scripts/dataset.py: the commands as people type them, their statuses and what they print."""

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest
import yaml

from hk_fs_bench import items, manifest
from tests.fault_server import FaultServer, ok
from tests.test_drafting import GOOD, TEXTS
from tests.test_importing import COLUMNS, HEAD, ROW, as_csv
from tests.test_importing import row as table_row
from tests.test_release import accept
from tests.test_review import answer_all, fill, judged_sound, row, write

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "dataset.py"


@pytest.fixture
def folder(releasable):
    return releasable


@pytest.fixture
def dataset_py(monkeypatch, capsys):
    """Run a command; returns (status, stdout, stderr)."""
    spec = importlib.util.spec_from_file_location("dataset_script", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["dataset.py", *map(str, arguments)])
        with pytest.raises(SystemExit) as done:
            module.run_command(module.main)
        shown = capsys.readouterr()
        return done.value.code, shown.out, shown.err

    return run


def test_every_command_of_the_specification_has_help(dataset_py):
    for name in yaml.safe_load(SCRIPT.with_suffix(".yaml").read_text("utf-8")):
        status, out, _ = dataset_py(name, "--help")
        assert status == 0
        assert name in out


def test_validate(dataset_py, folder):
    status, out, _ = dataset_py("validate", folder, "--quick", "--save")
    assert status == 0
    assert out.rstrip().endswith("0 failures")
    assert "4 give-aways" in out
    saved = json.loads((folder / "gates.json").read_text("utf-8"))
    assert saved["sha256"] == items.load(folder).sha256

    def spoil(references):
        path = folder / "data/mcq/test.jsonl"
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        rows[0]["references"] = references
        manifest.write_edition(folder, {"mcq/test": rows})
        manifest.write_manifest(folder)

    spoil(["B99.9"])
    status, out, _ = dataset_py("validate", folder, "--quick")
    assert status == 1
    assert "the Code has no B99.9" in out
    spoil(None)
    assert dataset_py("validate", folder, "--quick", "--profile", "any")[0] == 0
    assert dataset_py("validate", folder, "--quick", "--profile", "strict")[0] == 1
    status, _, err = dataset_py("validate", folder.parent / "nowhere")
    assert status == 2
    assert err.count("\n") == 1


def test_import_makes_a_folder_that_every_command_takes(dataset_py, tmp_path):
    source, mapping, out = tmp_path / "theirs.csv", tmp_path / "map.yaml", tmp_path / "theirs"
    mapping.write_text(yaml.safe_dump({"type": "mcq", "columns": COLUMNS}), "utf-8")
    source.write_text(as_csv([HEAD, ROW, table_row(No="8"), table_row(No="9", Right="")]), "utf-8")
    status, _, err = dataset_py("import", source, "--mapping", mapping, "--out", out)
    assert status == 2
    assert err.splitlines() == [
        "error: theirs.csv: 1 faults, nothing was written",
        "  theirs.csv row 4, column Right: is empty",
    ]
    source.write_text(as_csv([HEAD, ROW, table_row(No="8", Stem="How high?")]), "utf-8")
    status, text, _ = dataset_py("import", source, "--mapping", mapping, "--out", out)
    assert (status, text) == (0, f"{out}: 2 items as mcq/test\n")
    readme = (out / "README.md").read_text("utf-8")
    assert "An imported edition" in readme
    assert "Claude" not in readme
    assert dataset_py("validate", out, "--quick")[0] == 0
    assert dataset_py("manifest", out)[0] == 0
    assert dataset_py("dedupe", out)[0] == 0
    assert dataset_py("review", out)[0] == 0
    assert dataset_py("review", out, "--out", tmp_path / "round")[0] == 0


def test_dedupe(dataset_py, folder, tmp_path):
    report, new = tmp_path / "report.jsonl", tmp_path / "new.jsonl"
    assert dataset_py("dedupe", folder)[0] == 0
    copy = json.loads((folder / "data/mcq/test.jsonl").read_text("utf-8").splitlines()[0])
    write(new, [copy | {"id": "candidate"}])
    status, out, _ = dataset_py("dedupe", folder, "--new", new, "--out", report)
    assert status == 1
    assert "near-identical" in out
    rows = [json.loads(line) for line in report.read_text("utf-8").splitlines()]
    assert {rows[0]["first"], rows[0]["second"]} == {copy["id"], "candidate"}
    write(new, [{"question": "No id?"}])
    status, _, err = dataset_py("dedupe", folder, "--new", new)
    assert status == 2
    assert "new.jsonl item 1: no id" in err


def test_a_round_of_review(dataset_py, folder, tmp_path):
    out = tmp_path / "first"
    status, text, _ = dataset_py("review", folder, "--out", out, "--sample", "4")
    assert status == 0
    assert sum(map(int, re.findall(r": (\d+)", text))) == 8
    answer_all(folder, out)
    assert dataset_py("review", folder, "--keys", out)[0] == 0
    for path in out.glob("*.keys.xlsx"):
        fill(path, judged_sound())
    status, text, _ = dataset_py("review", folder, "--in", out)
    assert "new: 8" in text
    status, text, _ = dataset_py("review", folder, "--decide")
    assert text.count("keep ") == 4
    status, text, _ = dataset_py("review", folder)
    assert "reviewed twice as they stand" in text
    assert re.search(r"wrong keys or reference answers found +│ 0 of 4, at most 52\.7% +│ – ", text)
    item = items.load(folder).items("mcq")[0]
    machine = write(tmp_path / "machine.jsonl", [row(item)])
    assert "new: 1" in dataset_py("review", folder, "--in", machine)[1]


def test_release_correct_release(dataset_py, folder):
    assert dataset_py("release", folder, "--version", "1.0.0")[0] == 2
    accept(folder)
    assert dataset_py("release", folder, "--version", "1.0.0")[1].startswith("released: 1.0.0")
    name = items.load(folder).items("mcq")[0].id
    correct = ["errata", name, "--folder", folder, "--version", "1.0.1", "--reason", "amended"]
    status, _, err = dataset_py(*correct)
    assert status == 2
    assert "--set" in err
    flag = not items.load(folder).items("mcq")[0].edition_sensitive
    assert dataset_py(*correct, "--set", f"edition_sensitive={json.dumps(flag)}")[0] == 0
    assert items.load(folder).by_id[name].edition_sensitive is flag
    assert items.load(folder).version == "1.0.0+edited"
    accept(folder)
    assert dataset_py("release", folder, "--version", "1.0.1")[0] == 0
    assert items.load(folder, version="1.0.0").by_id[name].edition_sensitive is not flag
    assert dataset_py("release", folder, "--version", "1.0.1")[0] == 2


def test_index_and_draft(dataset_py, tmp_path, monkeypatch):
    from hk_fs_bench import code_index

    pdf = tmp_path / "code.pdf"
    status, _, err = dataset_py("index-code", pdf)
    assert status == 2
    assert "no such file" in err
    entries = {
        name: code_index.CodeEntry(name, "clause", "B", ("1",), text, ())
        for name, text in TEXTS.items()
    }
    made = code_index.CodeIndex("2024", "0" * 64, entries)
    monkeypatch.setattr(code_index, "build_index", lambda path: made)
    assert "edition 2024, 4 entries" in dataset_py("index-code", pdf)[1]
    replies = [ok(json.dumps(GOOD)), ok("no JSON"), ok(json.dumps(GOOD))]
    out = tmp_path / "drafts" / "b.jsonl"
    with FaultServer(lambda request: replies[len(server.requests) - 1]) as server:
        command = ["draft", "--index", pdf, "--base-url", server.url, "--model", "m", "--out", out]
        status, text, _ = dataset_py(*command, "--count", "3", "--part", "B")
        assert dataset_py(*command)[0] == 2
    assert status == 0
    assert "candidates: 2 in" in text
    assert "fault 1: " in text
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [r["provenance"]["drafter"] for r in rows] == ["m", "m"]
    (fault,) = out.with_suffix(".faults.jsonl").read_text("utf-8").splitlines()
    assert json.loads(fault)["raw"] == "no JSON"
