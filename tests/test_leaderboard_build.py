"""The board from its submissions: figures, ranks, flags, rebuilds, rescoring and exports."""

import csv
import io
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from hk_fs_bench import items, manifest, runs
from hk_fs_bench.leaderboard import board as boards
from hk_fs_bench.leaderboard import (
    entries,
    export_eval_ever,
    export_tables,
    flags,
    ranking,
    schemas,
)
from hk_fs_bench.stats import Pooled, mcnemar, paired_bootstrap

from .submissions import ROOT, Board, make_run, repack, small_edition

pytestmark = pytest.mark.java
HK = "hk_fs_mcq_hk"
LOCAL = {
    "id": "org/open-1",
    "provider": "hf",
    "deployment": "local",
    "requested_id": "org/open-1",
    "returned_ids": [],
    "endpoint": None,
    "revision": "0123abcd",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Board:
    """Good, bad, a plumbing check, one that searches, one of the drafters, one corrected."""
    folder = tmp_path_factory.mktemp("board")
    board = Board(folder, small_edition(folder / "edition", mcq=40, oeq=6))
    board.submit("good", login="alice", skill=0.95, seed=1)
    board.submit("bad", login="bob", model=LOCAL, skill=0.1, seed=2)
    board.submit("toy", "--plumbing-check", login="bob", model={"id": "org/toy"}, seed=7)
    board.submit("looks", login="carol", model={"id": "acme/seer", "search": "on"}, seed=3)
    board.submit("kin", login="dave", model={"id": "anthropic/claude-x"}, skill=0.99, seed=4)
    old = board.submit("old", login="erin", model={"id": "acme/third"}, seed=5)
    board.submit("new", "--supersedes", old.name, login="erin", model={"id": "acme/third"}, seed=6)
    done = board("build")
    assert done.returncode == 0, done.stdout + done.stderr
    return board


@pytest.fixture
def board(made: Board, tmp_path: Path) -> Board:
    copy = Board.__new__(Board)
    copy.folder = tmp_path
    copy.edition, copy.root = tmp_path / "edition", tmp_path / "leaderboard"
    for name in ("edition", "leaderboard", "cache"):
        shutil.copytree(made.folder / name, tmp_path / name)
    copy.dataset = made.dataset
    return copy


def by_model(board: Board) -> dict[str, dict]:
    return {e["model"]["id"]: e for e in board.content["entries"] if not e["superseded_by"]}


def test_the_board_has_the_form_of_its_schema(made: Board) -> None:
    errors = list(schemas.validator("leaderboard").iter_errors(made.content))
    assert not errors, errors[0].message
    for name in ("leaderboard", "submission"):
        validator = schemas.validator(name)
        validator.check_schema(validator.schema)


def test_figures_are_those_of_the_run(made: Board) -> None:
    scores = json.loads((made.folder / "runs" / "good" / "scores.json").read_text("utf-8"))
    entry = by_model(made)["acme/tiny-1"]
    for task, own in entry["tasks"].items():
        for name in ("accuracy", "accuracy_on_valid", "non_conservative"):
            if name in own:
                assert own[name]["value"] == round(scores["tasks"][task][name]["value"], 6)
                assert own[name]["label"] == "verified"
    metrics = entry["tasks"]["hk_fs_oeq"]["metrics"]
    assert metrics["bleu4"]["value"] == round(
        scores["tasks"]["hk_fs_oeq"]["metrics"]["bleu4"]["value"], 6
    )
    assert metrics["bleu4"]["label"] == "verified"
    assert "meteor" not in metrics or metrics["meteor"]["value"] is None
    assert entry["tasks"][HK]["usd"]["label"] == "self-reported"
    assert entry["context"]["difference"]["n"] == 40
    assert entry["human"] is None


def test_ranks_are_ranges_within_a_league(made: Board) -> None:
    found = by_model(made)
    good, bad = found["acme/tiny-1"]["tasks"][HK], found["org/open-1"]["tasks"][HK]
    assert good["league"] == bad["league"]
    assert good["rank"] == {"best": 1, "worst": 2, "of": 3, "tie_group": 1} or (
        good["rank"]["best"] == 1 and good["rank"]["tie_group"] == 1
    )
    assert bad["rank"]["worst"] == 3
    assert bad["rank"]["tie_group"] > good["rank"]["tie_group"]
    league = made.content["leagues"][good["league"]]
    assert league["entries"][0] == found["acme/tiny-1"]["slug"]
    assert len(league["entries"]) == 3


def test_what_is_not_ranked_says_why(made: Board) -> None:
    found = by_model(made)
    kinds = {name: [f["kind"] for f in entry["flags"]] for name, entry in found.items()}
    assert kinds["acme/seer"] == ["search"]
    assert kinds["anthropic/claude-x"] == ["drafter_family"]
    assert kinds["org/toy"] == ["plumbing_check"]
    for name in ("acme/seer", "anthropic/claude-x", "org/toy"):
        assert not found[name]["ranked"]
        assert found[name]["tasks"][HK]["rank"] is None
    assert found["org/open-1"]["ranked"]
    (old,) = [e for e in made.content["entries"] if e["superseded_by"]]
    assert old["superseded_by"] == found["acme/third"]["slug"]
    assert not old["ranked"]


def test_a_machine_of_ones_own_is_not_free(board: Board) -> None:
    folder = next(iter(sorted((board.root / "submissions").glob("open-1-*"))))

    def free(content: dict) -> None:
        content["run"]["price"] = {"input": 0, "output": 0}
        for claim in content["scores"].values():
            claim["usd"] = claim["usd"] | {"mean": 0.0, "ci95": [0.0, 0.0]}

    repack(folder, free)
    assert board("rescore").returncode == 0
    figures = by_model(board)["org/open-1"]["tasks"][HK]
    assert figures["usd"]["mean"] is None
    assert "a machine of the submitter's own" in figures["usd"]["reason"]
    assert figures["per_correct"]["usd"]["value"] is None
    assert not list(schemas.validator("leaderboard").iter_errors(board.content))


def test_sources_in_the_rows_are_a_search_whatever_the_run_says(board: Board) -> None:
    folder = next(iter(sorted((board.root / "submissions").glob("tiny-1-*"))))
    repack(folder, rows=lambda rows: rows[0].update(sources=["https://example.org/"]))
    assert board("rescore").returncode == 0
    entry = by_model(board)["acme/tiny-1"]
    assert [(f["kind"], f["bars_rank"]) for f in entry["flags"]] == [("search", True)]
    assert not entry["ranked"]


@pytest.mark.parametrize(
    ("model", "family", "kin"),
    [
        ("anthropic/claude-opus-4", "Claude (Anthropic)", True),
        ("us.anthropic.claude-3", "Claude (Anthropic)", True),
        ("org/my-CLAUDE-like", "Claude (Anthropic)", True),
        ("openai/gpt-4.1", "Claude (Anthropic)", False),
        ("openai/o3", "GPT-5 (OpenAI)", True),
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen3", True),
        ("org/v2-it", "V2", False),
    ],
)
def test_families_are_told_by_name(model: str, family: str, kin: bool) -> None:
    assert flags.is_of({"id": model}, family) == kin
    other = {"id": "x/y", "requested_id": None, "returned_ids": [model]}
    assert flags.is_of(other, family) == kin


def test_our_own_record_names_the_family(dataset: items.Dataset) -> None:
    found = flags.families(dataset, items.default_folder())
    assert found["drafters"]
    assert any(flags.is_of({"id": "anthropic/claude"}, name) for name in found["drafters"])
    assert any(flags.is_of({"id": "anthropic/claude"}, name) for name in found["reviewers"])


def test_a_rebuild_elsewhere_has_the_same_bytes(made: Board, tmp_path: Path) -> None:
    shutil.copytree(made.root / "submissions", tmp_path / "elsewhere" / "submissions")
    words = [sys.executable, ROOT / "scripts" / "leaderboard.py", "build"]
    words += ["--root", tmp_path / "elsewhere", "--dataset", made.edition]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, env=ENV(tmp_path, PYTHONHASHSEED="77")
    )
    assert done.returncode == 0, done.stderr
    assert files(tmp_path / "elsewhere") == files(made.root)


def ENV(folder: Path, **more: str) -> dict[str, str]:
    from .api_command import environment

    return environment(XDG_CACHE_HOME=str(folder / "no-cache"), TZ="Asia/Hong_Kong", **more)


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_one_bad_file_leaves_the_board_as_it_was(board: Board) -> None:
    before = files(board.root)
    bad = board.root / "submissions" / "tiny-1-0123456789"
    bad.mkdir()
    (bad / entries.MANIFEST).write_text('{"entries":[\n<<<<<<< HEAD\n', "utf-8")
    (bad / entries.PREDICTIONS).write_bytes(b"")
    done = board("build")
    assert done.returncode == 1
    assert "conflict markers" in done.stdout
    assert "stays as it was" in done.stdout
    shutil.rmtree(bad)
    assert files(board.root) == before


def test_an_erratum_changes_figures_only_by_rescore(board: Board) -> None:
    before = board.content
    path = board.edition / "data" / "mcq" / "test.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    key = rows[0]["answer"]
    wrong = "ABCD"[("ABCD".index(key) + 1) % 4]
    change = {"answer": wrong, "distractors": None}
    errata = [
        {
            "item": rows[0]["id"],
            "version": "1.0.1",
            "change": "changed",
            "field": field,
            "old": rows[0].get(field),
            "new": value,
            "reason": "the key was wrong",
            "date": "2026-11-20",
        }
        for field, value in change.items()
    ]
    rows[0] |= change
    gone = rows.pop(1)
    errata.append(
        {
            "item": gone["id"],
            "version": "1.0.1",
            "change": "removed",
            "field": None,
            "old": gone,
            "new": None,
            "reason": "withdrawn",
            "date": "2026-11-20",
        }
    )
    runs.write_jsonl(path, rows)
    runs.write_jsonl(board.edition / "errata.jsonl", errata)
    manifest.write_manifest(board.edition, "1.0.1", released="2026-11-20")
    # The submissions are still whole on the edition that they were asked on.
    assert board("validate").returncode == 0
    done = board("build")
    assert done.returncode == 2
    assert "`rescore` changes them" in done.stderr
    assert board.content == before
    submissions = files(board.root / "submissions")
    done = board("rescore")
    assert done.returncode == 0, done.stderr
    assert files(board.root / "submissions") == submissions
    after = board.content
    assert after["dataset"]["version"] == "1.0.1"
    entry, old = by_model(board)["acme/tiny-1"], before["entries"]
    assert entry["tasks"][HK]["accuracy"]["n"] == 39
    assert [f["kind"] for f in entry["flags"]] == ["other_edition"]
    assert entry["asked_on"] == "1.0.0"
    log = [json.loads(line) for line in (board.root / "rescored.jsonl").read_text().splitlines()]
    assert {row["entry"] for row in log} <= {e["slug"] for e in old}
    assert log[0]["from"]["dataset"] == "1.0.0"
    assert log[0]["to"]["dataset"] == "1.0.1"
    assert f"{len(log)} figures changed, logged in rescored.jsonl" in done.stdout
    assert any(f"{row['entry']}: {row['task']}" in done.stdout for row in log)
    assert board("build").returncode == 0
    done = board("rescore")
    assert "0 figures changed" in done.stdout


def test_an_older_signature_is_logged_and_the_recomputed_value_stands(board: Board) -> None:
    folder = next(
        f
        for f in (board.root / "submissions").iterdir()
        if json.loads((f / entries.MANIFEST).read_text())["submitter"]["login"] == "alice"
    )

    def older(content: dict) -> None:
        claim = content["scores"][HK]
        claim["signature"] = claim["signature"].replace("parser:", "parser:0")
        claim["accuracy"]["value"] = 0.5

    repack(folder, older)
    done = board("validate")
    assert done.returncode == 0, done.stdout
    assert "accuracy was 0.5 under an older signature" in done.stdout
    (board.root / "leaderboard.json").unlink()
    assert board("build").returncode == 0
    entry = by_model(board)["acme/tiny-1"]
    assert entry["tasks"][HK]["accuracy"]["value"] > 0.5
    assert entry["differences"][0]["figure"] == "accuracy"


def test_studies_stand_beside_the_very_answers(board: Board) -> None:
    sha256 = by_model(board)["acme/tiny-1"]["predictions"]["sha256"]
    rated = {"value": 0.6, "low": 0.5, "high": 0.7, "n": 68}
    study = {
        "schema_version": 1,
        "study": "spring",
        "rubric_version": "1",
        "dataset_version": "1.0.0",
        "kind": "expert",
        "models": [
            {
                "predictions_sha256": sha256,
                "accuracy": rated,
                "clarity": rated,
                "unsafe_share": None,
                "raters": 3,
            }
        ],
    }
    folder = board.root / "studies"
    folder.mkdir()
    (folder / "spring.json").write_text(json.dumps(study), "utf-8")
    assert board("build").returncode == 0
    found = by_model(board)
    assert found["acme/tiny-1"]["human"][0]["accuracy"]["value"] == 0.6
    assert found["acme/tiny-1"]["judge"] is None
    assert found["org/open-1"]["human"] is None
    assert not list(schemas.validator("leaderboard").iter_errors(board.content))
    (folder / "spring.json").write_text('{"schema_version": NaN}', "utf-8")
    done = board("build")
    assert done.returncode == 2
    assert "NaN is not finite" in done.stderr


def test_practitioners_stand_beside_the_models_and_out_of_the_ranks(board: Board) -> None:
    before = board.content
    assert before["human_baseline"] is None
    accuracy = {"value": 0.7, "n": 60, "unit": "questions", "ci95": [0.6, 0.8], "interval": "a"}
    one = {"accuracy": accuracy, "participants": 4}
    held = {"format": 1, "signature": "s", "conditions": {"closed": one, "open": one}}
    path = board.root / "studies" / "mcq_baseline.json"
    path.parent.mkdir()
    path.write_text(json.dumps(held | {"gain": {}}), "utf-8")
    done = board("build")
    assert done.returncode == 0, done.stdout + done.stderr
    del held["format"]
    assert board.content == before | {"human_baseline": held}
    assert not list(schemas.validator("leaderboard").iter_errors(board.content))
    path.write_text('{"format": 1}', "utf-8")
    done = board("build")
    assert done.returncode == 2
    assert "mcq_baseline.json: field `signature` is missing" in done.stderr
    assert board.content["human_baseline"] == held


def test_the_papers_table_stands_apart(made: Board) -> None:
    paper = made.content["paper"]
    assert len(paper["rows"]) == 14
    row = next(r for r in paper["rows"] if r["model"] == "DeepSeek" and r["thinking"])
    assert row["oeq"]["rouge_l"] is None
    ranked = {slug for league in made.content["leagues"].values() for slug in league["entries"]}
    assert ranked <= {entry["slug"] for entry in made.content["entries"]}


def test_ranks_agree_with_the_tests_of_pairs() -> None:
    right = {f"q{i}": 1.0 for i in range(60)}
    wrong = {f"q{i}": float(i >= 20) for i in range(60)}
    near = {f"q{i}": float(i >= 2) for i in range(60)}
    found = ranking.rank({"a": right, "b": near, "c": wrong})
    assert mcnemar(0, 20) < 0.05 < mcnemar(0, 2)
    assert found["a"] == {"best": 1, "worst": 2, "of": 3, "tie_group": 1}
    assert found["b"]["tie_group"] == 1
    assert found["c"] == {"best": 3, "worst": 3, "of": 3, "tie_group": 2}
    # Only questions that both answered tell two apart.
    assert ranking.rank({"a": {"x": 1.0}, "b": {"y": 0.0}})["b"]["best"] == 1
    assert ranking.rank({}) == {}
    assert ranking.rank({"a": {"x": 1.0, "y": 0.5}, "b": {"x": 1.0, "y": 1.0}})["a"]["worst"] == 2


def test_shares_of_several_samples_are_told_apart_as_pairs_are() -> None:
    chance = random.Random(3)
    names = [f"q{i}" for i in range(60)]
    shares = [
        {name: chance.choices((0, 1 / 3, 2 / 3, 1), (4, 1, 1, 1 + k))[0] for name in names}
        for k in range(6)
    ]
    table = np.array([[own[name] for name in names] for own in shares])
    first, second = np.triu_indices(len(shares), 1)
    pooled = [Pooled.of_means(list(own.values()), names) for own in shares]
    pairs = zip(first.tolist(), second.tolist(), strict=True)
    expected = [paired_bootstrap(pooled[i], pooled[j]).p for i, j in pairs]
    assert ranking._bootstrap_of_all(table, first, second) == expected
    assert min(expected) < 0.01 < 0.2 < max(expected)


def test_rounding_is_for_figures_alone() -> None:
    found = boards.rounded({"a": [0.12345678, -0.0, 3, True, None, "x"]})
    assert found == {"a": [0.123457, 0.0, 3, True, None, "x"]}
    assert str(found["a"][1]) == "0.0"


def test_exports(made: Board, tmp_path: Path) -> None:
    done = made("export", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    out = tmp_path / "out"
    table = list(csv.DictReader(io.StringIO((out / "leaderboard.csv").read_text("utf-8"))))
    assert len(table) == 7 * 3
    assert {row["model"] for row in table} >= {"acme/tiny-1", "org/open-1"}
    tex, text = ((out / f"leaderboard.{kind}").read_text("utf-8") for kind in ("tex", "md"))
    assert "acme/seer · search on*" in tex
    assert "| Qwen Plus | 79.5 |" in text
    assert "null" not in tex + text
    (path,) = (out / "eval_results").iterdir()
    (entry, _) = found = yaml.safe_load(path.read_text("utf-8"))
    assert [e["dataset"]["task_id"] for e in found] == [HK, "hk_fs_mcq_nohk"]
    assert 0 <= entry["value"] <= 100
    assert path.read_text("utf-8").startswith("# For org/open-1:")
    logs = sorted((out / "every_eval_ever").rglob("*.json"))
    assert len(logs) == 7
    first = json.loads(logs[0].read_text("utf-8"))
    assert first["schema_version"] == export_eval_ever.SCHEMA
    assert all(
        result["score_details"]["score"] is not None
        for r in [first]
        for result in r["evaluation_results"]
    )
    again = files(out)
    assert made("export", out).returncode == 0
    assert files(out) == again
    assert made("export", tmp_path / "out" / "leaderboard.csv").returncode == 2


HOSTILE = {
    "<script>alert(1)</script>": (
        r"\<script\>alert(1)\</script\>",
        r"\textless{}script\textgreater{}alert(1)\textless{}/script\textgreater{}",
    ),
    "a|b": (r"a\|b", r"a\textbar{}b"),
    "[x](http://y)": (r"\[x\](http&#58;//y)", "{[}x{]}(http://y)"),
    "`x`": (r"\`x\`", r"\textasciigrave{}x\textasciigrave{}"),
    r"\input{/etc/passwd}": (r"\\input{/etc/passwd}", r"\textbackslash{}input\{/etc/passwd\}"),
    "$x$ 5% #1": (r"\$x\$ 5% \#1", r"\$x\$ 5\% \#1"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_becomes_markup_or_a_command(made: Board, name: str) -> None:
    content = made.content
    for entry in content["entries"]:
        entry["name"] = entry["model"]["id"] = name
    markdown, tex = HOSTILE[name]
    assert f"| {markdown} | " in export_tables.to_markdown(content)
    assert f"\n{tex} & " in export_tables.to_latex(content)
    for path, _ in export_eval_ever.files(content):
        assert ".." not in path.parts
        assert len(path.parts) == 5
        assert not path.is_absolute()


def test_what_no_board_is_can_not_be_exported(tmp_path: Path, made: Board) -> None:
    board = Board(tmp_path, made.edition)
    assert board("export", tmp_path / "out").returncode == 2
    (board.root / "leaderboard.json").write_text("[]", "utf-8")
    assert board("export", tmp_path / "out").returncode == 2
    assert make_run


def test_a_metric_that_is_not_recomputed_is_labelled_so(board: Board) -> None:
    folder = next(iter(sorted((board.root / "submissions").glob("open-1-*"))))
    figure = {"value": 0.5, "n": 6, "unit": "questions", "ci95": [0.4, 0.6]}

    def record(content: dict) -> None:
        claim = content["scores"]["hk_fs_oeq"]
        claim["metrics"] |= {
            "meteor": figure | {"signature": "meteor|x"},
            "bertscore_f1:tiny-L6": figure | {"signature": "bertscore_f1|model:tiny@1|layer:6"},
        }
        rows = [0.45, 0.55, 0.5, 0.5, 0.4, 0.6]
        claim["recorded_rows"] = {"meteor": rows, "bertscore_f1:tiny-L6": rows}

    repack(folder, record)
    assert board("validate").returncode == 0
    assert board("rescore").returncode == 0
    entry = by_model(board)["org/open-1"]
    metrics = entry["tasks"]["hk_fs_oeq"]["metrics"]
    assert entry["label"] == "partly recorded"
    assert metrics["bertscore_f1:tiny-L6"]["label"] == metrics["meteor"]["label"] == "recorded"
    assert metrics["bleu4"]["label"] == "verified"
    assert by_model(board)["acme/tiny-1"]["label"] == "verified"
