"""Family E of the cases: what breaks leaderboards, as real files through the commands."""

import json
from pathlib import Path

import pytest

from hk_fs_bench import items, manifest
from hk_fs_bench.leaderboard import entries, export_tables

from .submissions import Board, make_run, repack, score

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "data" / "submission_cases.jsonl")
    .read_text("utf-8")
    .splitlines()
]
# What our own words for an error must hold, where the case names it otherwise.
WORDS = {
    "dataset version 1.1, expected 1.2": "dataset version 1.1.0, expected 1.2.0",
    "schema_version must be integer 2": "schema_version must be the integer 1",
    "stated 95.0, recomputed 75.0": "stated 0.95, recomputed 0.75",
    "not UTF-8 (byte offset shown)": "not UTF-8: byte offset 11",
}
LETTERS = ("hk_fs_mcq_hk",)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "cache" not in path.parts
    }


@pytest.fixture(scope="module")
def clean(tmp_path_factory) -> Board:
    """The cases' edition, q1 to q4, and one clean submission that has three of them right."""
    folder = tmp_path_factory.mktemp("cases")
    path = folder / "edition" / "data" / "mcq" / "test.jsonl"
    path.parent.mkdir(parents=True)
    rows = [
        {"id": name, "question": f"Question {name}?", "choices": list("wxyz"), "answer": key}
        for name, key in CASES[0]["context"]["dataset"]["gold"].items()
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    edition = folder / "edition"
    manifest.write_manifest(edition, "1.2.0", "CANARY", "any", released="2026-10-01")
    return Board(folder, edition)


def run_of(board: Board, case: dict, name: str) -> Path:
    """A scored run with the answers that a case submits."""
    given = {p["id"]: p["answer"] for p in case["predictions"]}
    run = make_run(board.folder / "runs" / name, board.dataset, tasks=LETTERS, skill=1.0)
    path = run / "predictions.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for row in rows:
        row["output"] = json.dumps({"answer": given[row["item_id"]], "reason": "so"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return score(run, board.dataset)


def submitted(board: Board, case: dict, name: str) -> Path:
    done = board(
        "submit", run_of(board, case, name), "--submitter", "alice", "--contamination", "none_known"
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.splitlines()[0].removeprefix("packed "))


def apply(case: dict, content: dict) -> None:
    """A case's fields in a submission's own."""
    content["date"] = case["date"]
    if case["schema_version"] != 2:
        content["schema_version"] = str(entries.SCHEMA_VERSION)
    content["run"]["protocol"]["dataset_version"] = f"{case['dataset_version']}.0"
    content["run"]["model"]["id"] = case["model"]
    accuracy = content["scores"][LETTERS[0]]["accuracy"]
    stated = case["accuracy"]
    if stated != 75.0:
        accuracy["value"] = stated if isinstance(stated, str) else stated / 100
    if "url" in case:
        content["links"]["code"] = case["url"]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict, clean: Board, tmp_path: Path) -> None:
    board = Board(tmp_path, clean.edition)
    given, expected = case["input"], case["expected"]
    base = CASES[0]["input"]
    folder = submitted(board, {**base, **given}, "run")
    assert board("build").returncode == 0
    if "predictions" in given:
        folder = repack(folder, lambda content: apply(given, content))
    else:
        raw = given.get("raw", "").encode() or bytes.fromhex(given.get("bytes_hex", ""))
        if repeat := given.get("raw_repeat"):
            raw = (repeat["unit"] * repeat["times"]).encode()
        (folder / entries.MANIFEST).write_bytes(raw)
    before = snapshot(tmp_path)
    done = board("validate")
    assert "Traceback" not in done.stderr
    accepted = done.returncode == 0
    if expected.get("accept") is False:
        assert done.returncode == 1
        words = WORDS.get(expected.get("error"), expected.get("error", ""))
        assert words in done.stdout, done.stdout
    elif case["context"]["confidence"] == "firm":
        assert accepted, done.stdout
    assert snapshot(tmp_path) == before

    built = board("build")
    if not accepted:
        # A bad submission leaves the board as it was.
        assert built.returncode == 1
        assert snapshot(tmp_path) == before
        return
    assert built.returncode == 0, built.stderr
    (entry,) = board.content["entries"]
    assert entry["tasks"][LETTERS[0]]["accuracy"]["value"] == expected.get("accuracy", 75.0) / 100
    assert entry["model"]["id"] == given["model"]
    assert entry["slug"] != given["model"].lower()
    outside = {name for name in set(snapshot(tmp_path)) - set(before) if "/site/" not in name}
    assert outside <= {"leaderboard/leaderboard.json"}
    pages = (board.root / "site" / "entries").rglob("*.html")
    assert any(expected.get("page_shows", "") in page.read_text("utf-8") for page in pages)


NAMES = [case["input"]["model"] for case in CASES if "/" not in case["input"].get("model", "/")]


@pytest.mark.parametrize("name", [*NAMES, "../../../etc/cron.d/x", "a/../b", "a/b/c", "", "x\n"])
def test_a_hostile_name_is_not_packed_and_makes_no_file(name, clean, tmp_path):
    board = Board(tmp_path, clean.edition)
    run = run_of(board, CASES[0]["input"], "run")
    content = json.loads((run / "run.json").read_text("utf-8"))
    content["model"]["id"] = name
    (run / "run.json").write_text(json.dumps(content), "utf-8")
    before = snapshot(tmp_path)
    done = board("submit", run, "--submitter", "alice", "--contamination", "none_known")
    if name == "CON":
        assert done.returncode == 0
        return
    assert done.returncode == 2, done.stdout
    assert "Traceback" not in done.stderr
    assert snapshot(tmp_path) == before
    assert not list(board.root.glob(".submitting*"))


@pytest.mark.parametrize(
    "name", ['=HYPERLINK("http://x")', "+1", "-1+1", "@SUM(A1)", "\t=1", " =1", "\r=1", "＝1", "|x"]
)
def test_no_cell_of_a_csv_is_a_formula(name):
    import csv
    import io

    assert str(export_tables.safe_cell(name)).startswith("'")
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_NONNUMERIC).writerow([export_tables.safe_cell(name), 1.5])
    assert next(csv.reader(io.StringIO(out.getvalue())))[0][0] == "'"


def test_numbers_and_names_stay_what_they_are_in_a_csv():
    assert export_tables.safe_cell(-0.5) == -0.5
    assert export_tables.safe_cell("org-x/model.v2-chat") == "org-x/model.v2-chat"
    assert items.LETTERS == "ABCD"
