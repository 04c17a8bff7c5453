"""scripts/score.py and what it calls: lm-eval's folder in, figures of record out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hk_fs_bench import items, lm_eval_runs, runs, scoring
from hk_fs_bench.errors import UserError
from tests.lm_eval_output import STAMP, write

ROOT = Path(__file__).resolve().parent.parent


def score_command(*args: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "score.py"), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120)


def keys(n: int) -> list[str]:
    return [item.answer for item in items.load().items("mcq")[:n]]


def answer(letter: str) -> str:
    return json.dumps({"answer": letter, "reason": "r"})


def wrong(letter: str) -> str:
    return answer("ABCD"[("ABCD".index(letter) + 1) % 4])


def test_figures(tmp_path, dataset):
    a, b, _, d = keys(4)
    texts = [answer(a), wrong(b), "no idea", answer(d)]
    run = lm_eval_runs.convert(write(tmp_path, {"hk_fs_mcq_hk": texts, "hk_fs_oeq": ["Prose."]}))
    scores = scoring.score(run, dataset)
    mcq = scores["tasks"]["hk_fs_mcq_hk"]
    assert mcq["accuracy"]["value"] == 2 / 4
    assert mcq["accuracy"]["ci95"] == pytest.approx([0.1500, 0.8500], abs=1e-4)
    assert mcq["accuracy_on_valid"] | {"ci95": None} == {
        "value": 2 / 3,
        "n": 3,
        "unit": "questions",
        "ci95": None,
        "interval": "wilson",
        "signature": "accuracy_on_valid|invalid:counts as no hit|v:1",
    }
    assert sum(mcq["statuses"].values()) == 4
    assert mcq["seconds"]["mean"] == 12.0 / 5
    assert "run-level" in mcq["seconds"]["definition"]
    # The model "some/model" has no tokenizer here: unknown is null and says so.
    assert mcq["tokens"]["output"] == {"mean": None, "n": 0, "reason": "not known for any answer"}
    assert scores["tasks"]["hk_fs_oeq"]["answered"] == 1
    assert json.loads((run.folder / "scores.json").read_text()) == json.loads(json.dumps(scores))
    rows = [json.loads(line) for line in (run.folder / "items.jsonl").read_text().splitlines()]
    assert [row.get("correct") for row in rows] == [True, False, False, True, None]


def test_scoring_twice_and_scoring_the_run_folder_agree(tmp_path, dataset):
    folder = write(tmp_path, {"hk_fs_mcq_hk": [answer(k) for k in keys(3)]})
    first = scoring.score(lm_eval_runs.convert(folder), dataset)
    assert scoring.score(lm_eval_runs.convert(folder), dataset) == first
    home = folder / "some__model"
    for path in home.glob("*_20*"):
        path.unlink()
    assert scoring.score(runs.read_run(home), dataset) == first


@pytest.mark.model
def test_an_answer_cut_by_the_limit_is_truncated(tmp_path, dataset, small_model_folder):
    (key,) = keys(1)
    cut = "Let me think about it. " + "The fire door is rated. " * 200
    args = {"model_args": {"pretrained": str(small_model_folder)}}
    folder = write(tmp_path, {"hk_fs_mcq_hk": [cut, answer(key)], "hk_fs_oeq": [cut]}, config=args)
    run = lm_eval_runs.convert(folder)
    scores = scoring.score(run, dataset)
    rows = run.of_task("hk_fs_mcq_hk")
    assert [row["finish_reason"] for row in rows] == ["length", "stop"]
    assert rows[0]["answer_tokens"] >= 512
    for figures in scores["tasks"].values():
        assert figures["statuses"]["truncated"] == 1
        assert figures["changed_by_finish_reason"] == 1
    assert scores["model"]["id"] == f"local/{small_model_folder.name}"
    assert len(scores["model"]["weights_sha256"]) == 64
    for path in run.folder.glob("*.json*"):
        if STAMP not in path.name:
            assert str(small_model_folder) not in path.read_text("utf-8"), path.name


@pytest.mark.model
def test_missing_chat_template_is_the_first_line(tmp_path, small_model_folder):
    args = {"model_args": {"pretrained": str(small_model_folder)}}
    texts = {"hk_fs_mcq_hk": [answer(k) for k in keys(2)]}
    folder = write(tmp_path, texts, config=args, chat_template=None)
    done = score_command(folder, "--model-id", "org/name")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("WARNING: this model has a chat template and ran without it")
    assert "org/name" in done.stdout


def test_infrastructure_failures_are_no_answers(tmp_path, dataset):
    run = lm_eval_runs.convert(write(tmp_path, {"hk_fs_mcq_hk": [answer(k) for k in keys(3)]}))
    rows = list(run.rows.values())
    rows[0] = {**rows[0], "status": "infra_error", "cause": "http_429"}
    rows[1] = {**rows[1], "status": "no_answer", "cause": "reasoning_budget", "output": None}
    runs.write_jsonl(run.folder / "predictions.jsonl", rows)
    scores = scoring.score(runs.read_run(run.folder), dataset)
    mcq = scores["tasks"]["hk_fs_mcq_hk"]
    assert (mcq["asked"], mcq["answered"]) == (3, 2)
    assert mcq["accuracy"]["value"] == 1 / 2
    assert mcq["statuses"]["truncated"] == 1
    assert any("1 of 3 prompts have no answer yet" in line for line in scores["warnings"])


def test_last_answer_counts_and_a_torn_line_does_not(tmp_path):
    run = lm_eval_runs.convert(write(tmp_path, {"hk_fs_mcq_hk": ["first"]}))
    path = run.folder / "predictions.jsonl"
    row = json.loads(path.read_text())
    later = [
        row | {"output": "second"},
        row | {"output": None, "status": "infra_error", "cause": "timeout"},
    ]
    with path.open("a") as file:
        file.write("".join(json.dumps(r) + "\n" for r in later) + '{"task": "hk_fs_mcq')
    (found,) = runs.read_run(run.folder).rows.values()
    assert found["output"] == "second"


def two_runs(folder: Path) -> Path:
    write(folder, {"hk_fs_mcq_hk": ["x"]})
    return write(folder, {"hk_fs_mcq_hk": ["x"]}, stamp="2026-12-01T00-00-00.000000")


def no_samples(folder: Path) -> Path:
    write(folder, {"hk_fs_mcq_hk": ["x"]})
    next(folder.glob("*/samples_*")).unlink()
    return folder


def no_results(folder: Path) -> Path:
    write(folder, {"hk_fs_mcq_hk": ["x"]})
    next(folder.glob("*/results_*")).unlink()
    return folder


def not_utf8(folder: Path) -> Path:
    write(folder, {"hk_fs_mcq_hk": ["x"]})
    next(folder.glob("*/samples_*")).write_bytes(b'{"doc": "\xff"}\n')
    return folder


def broken_results(folder: Path) -> Path:
    write(folder, {"hk_fs_mcq_hk": ["x"]})
    next(folder.glob("*/results_*")).write_text("{}")
    return folder


def other_edition(folder: Path) -> Path:
    write(folder, {"hk_fs_mcq_hk": ["x"]})
    path = next(folder.glob("*/samples_*"))
    path.write_text(path.read_text().replace(items.load().sha256, "0" * 64))
    return folder


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder, "has no run.json"),
        (lambda folder: folder / "nowhere", "is no run folder"),
        (two_runs, "holds 2 runs"),
        (no_samples, "run lm_eval with --log_samples and --output_path, both"),
        (no_results, "the run did not end"),
        (not_utf8, "byte 10 is no UTF-8"),
        (broken_results, "is no result file of lm-eval"),
        (other_edition, "name the run's own with --dataset"),
    ],
)
def test_bad_folders_are_one_line(tmp_path, make, message):
    done = score_command(make(tmp_path))
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.rglob("scores.json"))


@pytest.mark.parametrize("text", [None, "", "\ud800", "\x00", "x" * 200_000])
def test_any_output_gets_a_status(tmp_path, dataset, text):
    run = lm_eval_runs.convert(write(tmp_path, {"hk_fs_mcq_hk": [text], "hk_fs_oeq": [text]}))
    scores = scoring.score(run, dataset)
    assert scores["tasks"]["hk_fs_mcq_hk"]["accuracy"]["value"] == 0
    assert all(sum(t["statuses"].values()) == 1 for t in scores["tasks"].values())


def test_unknown_run_item_is_named(tmp_path, dataset):
    run = lm_eval_runs.convert(write(tmp_path, {"hk_fs_mcq_hk": ["x"]}))
    path = run.folder / "predictions.jsonl"
    path.write_text(path.read_text().replace(dataset.items("mcq")[0].id, "mcq-nowhere"))
    with pytest.raises(UserError, match="mcq-nowhere, which the dataset lacks"):
        scoring.score(runs.read_run(run.folder), dataset)
