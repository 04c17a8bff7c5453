"""scripts/score.py and what it calls: lm-eval's folder in, figures of record out."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hk_fs_bench import items, lm_eval_runs, report_notes, runs, scored_rows, scoring
from hk_fs_bench.errors import UserError
from hk_fs_bench.prompts import load_task
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
    assert any("name it with --tokenizer" in text for text in scores["warnings"])
    tokens = mcq["tokens"]["output"]
    assert (tokens["mean"], tokens["reason"]) == (None, "not known for any answer")
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
        (lambda folder: folder, "which needs both --log_samples and --output_path"),
        (lambda folder: folder / "nowhere", "no such folder"),
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


def test_costs_per_question_and_per_correct_answer(tmp_path, dataset):
    a, b = keys(2)
    run = lm_eval_runs.convert(write(tmp_path, {"hk_fs_mcq_hk": [answer(a), wrong(b)]}))
    usage = {"input_tokens": 100, "output_tokens": 50, "reasoning_tokens": 40}
    rows = [row | {"token_usage": usage} for row in run.rows.values()]
    runs.write_jsonl(run.folder / "predictions.jsonl", rows)
    price = {"input": 1.0, "output": 4.0, "date": "2026-11-01", "source": "page"}
    runs.write_json(run.folder / "run.json", run.manifest | {"price": price})
    scores = scoring.score(runs.read_run(run.folder), dataset)
    mcq = scores["tasks"]["hk_fs_mcq_hk"]
    assert mcq["usd"]["mean"] == pytest.approx((100 + 4 * 50) / 1e6)
    assert mcq["usd"]["price"] == price
    assert mcq["tokens"]["reasoning"]["mean"] == 40
    assert mcq["per_correct"]["tokens"]["value"] == 300
    assert mcq["per_correct"]["usd"]["value"] == pytest.approx(0.0006)
    lines = report_notes.notes(scores)
    assert "hk_fs_mcq_hk: reasoning tokens, part of the output: 40 an answer, n 2" in lines
    assert mcq["per_correct"]["seconds"]["value"] == pytest.approx(12.0)


def test_means_and_ratios_carry_intervals(tmp_path, dataset):
    """The answers to one question count as one; against statsmodels' clustered regression."""
    from statsmodels.api import OLS

    keyed = keys(6)
    texts = [[answer(k), wrong(k) if i % 2 else answer(k)] for i, k in enumerate(keyed)]
    run = lm_eval_runs.convert(write(tmp_path, {"hk_fs_mcq_hk": texts}))
    spent = [10, 12, 50, 50, 31, 20, 70, 60, 11, 15, 44, 40]
    for row, tokens in zip(run.rows.values(), spent, strict=True):
        row["token_usage"] = {"input_tokens": 100, "output_tokens": tokens}
    mcq = scoring.score(run, dataset)["tasks"]["hk_fs_mcq_hk"]
    found = mcq["tokens"]["output"]
    groups = [i // 2 for i in range(12)]
    fit = OLS(spent, [1.0] * 12).fit(cov_type="cluster", cov_kwds={"groups": groups})
    assert found["ci95"] == pytest.approx(fit.conf_int()[0])
    assert (found["n"], found["unit"]) == (12, "tokens an answer")
    ratio = mcq["per_correct"]["tokens"]
    assert ratio["value"] == pytest.approx((12 * 100 + sum(spent)) / 9)
    assert ratio["ci95"][0] < ratio["value"] < ratio["ci95"][1]
    assert (ratio["n"], ratio["unit"]) == (6, "questions")


def test_a_cut_open_answer_is_one_and_is_said_to_be_cut(tmp_path, dataset):
    run = lm_eval_runs.convert(
        write(tmp_path, {"hk_fs_oeq": ["The lobby is", "It must", "A wall."]})
    )
    for row in list(run.rows.values())[:2]:
        row["finish_reason"] = "length"
    scores = scoring.score(run, dataset)
    oeq = scores["tasks"]["hk_fs_oeq"]
    assert (oeq["statuses"]["truncated"], oeq["readable"], oeq["texts"]["truncated"]) == (2, 3, 2)
    assert not any("could be read" in text for text in scores["warnings"])
    notes = report_notes.notes(scores)
    assert (
        "hk_fs_oeq: of 3 answers 2 were cut by the token limit: scored as far as they go" in notes
    )
    assert "hk_fs_oeq: of 3 answers 3 have fewer than four words, so no 4-gram" in notes


def test_what_can_not_be_known_is_null_with_a_reason(tmp_path, dataset):
    run = lm_eval_runs.convert(write(tmp_path, {"hk_fs_mcq_hk": ["?"], "hk_fs_oeq": [""]}))
    scores = scoring.score(run, dataset)
    mcq, oeq = scores["tasks"]["hk_fs_mcq_hk"], scores["tasks"]["hk_fs_oeq"]
    for figure in (mcq["accuracy_on_valid"], mcq["superseded"], mcq["usd"], scores["tasks"]):
        assert figure is scores["tasks"] or figure["reason"]
    seconds = mcq["per_correct"]["seconds"]
    assert (seconds["value"], seconds["reason"]) == (None, "no answer is correct")
    assert mcq["per_correct"]["usd"]["reason"] == "the run has no price"
    assert (oeq["metrics"]["cites"]["value"], oeq["metrics"]["citations_exist"]["value"]) == (
        0,
        None,
    )
    assert "--metrics" in oeq["metrics"]["bleu4"]["reason"]
    assert oeq["texts"]["empty"] == 1
    assert scores["context"] is None


def figures_of(value: object) -> list[dict]:
    """Every figure in scores.json."""
    if not isinstance(value, dict):
        return []
    inner = [figure for child in value.values() for figure in figures_of(child)]
    return [value, *inner] if {"value", "mean"} & {*value} else inner


def test_every_figure_has_n_unit_and_interval_or_reason(tmp_path, dataset):
    texts = [answer(k) for k in keys(6)]
    tasks = ("hk_fs_mcq_hk", "hk_fs_mcq_nohk")
    outputs = dict.fromkeys(tasks, texts) | {"hk_fs_oeq": ["Clause B6.1 it is.", "No."]}
    scores = scoring.score(lm_eval_runs.convert(write(tmp_path, outputs)), dataset)
    found = figures_of(scores)
    assert len(found) > 40
    for figure in found:
        assert figure["unit"]
        assert figure["n"] >= 0
        value = figure["value"] if "value" in figure else figure["mean"]
        assert value is not None or figure["reason"]
        # An interval and how it was made, or why there is none.
        assert figure["ci95"] is None or figure["interval"]
        assert figure["ci95"] or figure.get("interval") or figure["reason"]
        assert figure.get("signature") or "mean" in figure or value is None
    difference = scores["context"]["difference"]
    assert (difference["value"], difference["p"], difference["n"]) == (0.0, 1.0, 6)


@pytest.mark.java
def test_the_command_scores_open_answers(tmp_path, dataset):
    """Dirty answers, one METEOR for two runs, and each row's own values in items.jsonl."""
    first = dataset.items("oeq")[0]
    good = json.dumps({"answer": first.reference_answer, "reason": "Clause B6.1"})
    folders = [
        write(tmp_path / "one", {"hk_fs_oeq": [good, "a\u2028b ||| c", ""]}),
        write(tmp_path / "two", {"hk_fs_oeq": ["Nothing of it.", "\ud800", "door"]}),
    ]
    done = score_command(*folders, "--json")
    assert done.returncode == 0, done.stderr
    out = json.loads(done.stdout)
    one, two = (scores["tasks"]["hk_fs_oeq"]["metrics"] for scores in out["runs"])
    for name in ("bleu4", "meteor", "rouge_l"):
        assert one[name]["value"] > two[name]["value"] >= 0
        assert one[name]["signature"].startswith(name)
        assert one[name]["n"] == 3
    assert set(out["comparison"]["tasks"]["hk_fs_oeq"]) >= {"bleu4", "meteor", "rouge_l"}
    home = folders[0] / "some__model"
    rows = [json.loads(line) for line in (home / "items.jsonl").read_text().splitlines()]
    assert rows[0]["metrics"]["meteor"] == pytest.approx(1.0)
    assert rows[2]["metrics"]["rouge_l"] == 0.0


def test_without_java_the_rest_is_scored(tmp_path):
    outputs = {"hk_fs_mcq_hk": [answer(k) for k in keys(2)], "hk_fs_oeq": ["Clause B6.1."]}
    folder = write(tmp_path, outputs)
    env = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"} | {"PATH": "/nowhere"}
    command = [sys.executable, str(ROOT / "scripts" / "score.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "install a JRE" in done.stdout
    scores = json.loads((folder / "some__model" / "scores.json").read_text())
    assert scores["tasks"]["hk_fs_mcq_hk"]["accuracy"]["value"] == 1.0
    assert scores["tasks"]["hk_fs_oeq"]["metrics"]["cites"]["value"] == 1.0


def spoil(part: str, name: str | None = None, value: object = None):
    """A change of run.json: a part or a field of it taken out or replaced."""

    def change(manifest: dict) -> None:
        if name is None:
            manifest[part] = value
        else:
            manifest[part][name] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (spoil("model"), "lacks model"),
        (spoil("model", value=[1]), "has a model that can't be read"),
        (spoil("model", "id"), "lacks model.id"),
        (spoil("model", "id", ""), "has a model.id that can't be read"),
        (spoil("model", "mode", 3), "has a model.mode that can't be read"),
        (spoil("model", "returned_ids", [1]), "has a model.returned_ids.0 that can't be read"),
        (spoil("model", "id", "org/\ud800"), "holds half a character"),
        (spoil("protocol"), "lacks protocol"),
        (spoil("protocol", "dataset_sha256", 5), "has a protocol.dataset_sha256 that can't"),
        (spoil("protocol", "samples", "3"), "has a protocol.samples that can't be read"),
        (spoil("protocol", "max_tokens", {"x": "y"}), "has a protocol.max_tokens.x that can't"),
        (spoil("protocol", "parameters_not_applied", ["x"]), "has a protocol.parameters_not"),
        (spoil("protocol", "regime", "a|b"), "has a protocol.regime that can't be read"),
        (spoil("protocol", "regime"), "lacks protocol.regime"),
        (spoil("protocol", "task_versions", {}), "lacks protocol.task_versions of hk_fs_mcq_hk"),
        (spoil("tasks", value=["hk_fs_nothing"]), "lacks protocol.task_versions of hk_fs_nothing"),
        (spoil("tasks", value="hk_fs_mcq_hk"), "has a tasks that can't be read"),
        (spoil("tasks", value=[]), "has a tasks that can't be read"),
        (spoil("complete", value="no"), "has a complete that can't be read"),
        (spoil("price", value={"input": "dear"}), "has a price.input that can't be read"),
        (spoil("timing", value={"total_seconds": "long"}), "has a timing.total_seconds that"),
        (spoil("timing", value={"total_seconds": 1.0}), "belong together"),
    ],
)
def test_a_broken_manifest_is_one_line(tmp_path, dataset, change, message):
    run = lm_eval_runs.convert(write(tmp_path, {"hk_fs_mcq_hk": [answer(k) for k in keys(2)]}))
    change(run.manifest)
    (run.folder / "run.json").write_text(json.dumps(run.manifest))
    with pytest.raises(UserError, match=message):
        scoring.score(runs.read_run(run.folder), dataset)
    assert not (run.folder / "scores.json").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"status": "fine"}, "has the status 'fine'"),
        ({"status": None}, "has the status None"),
        ({"status": "no_answer", "cause": "mood"}, "unknown cause 'mood'"),
        ({"output": 5}, "has output '5'"),
        ({"variant": "rot9"}, "has the variant 'rot9'"),
        ({"sample": "x"}, "has sample 'x'"),
        ({"variant": "rot2"}, "has the variant 'rot2', none of .* of hk_fs_mcq_hk"),
        ({"sample": True}, "has sample 'True'"),
        ({"sample": -1}, "samples count from 0"),
        ({"token_usage": {"input_tokens": "many"}}, "that is no number"),
        ({"token_usage": {"input_tokens": float("nan")}}, "that is no number"),
        ({"token_usage": {"output_tokens": 10**400}}, "that is no number"),
        ({"token_usage": {"output_tokens": -1}}, "that is no number"),
        ({"token_usage": {"output_tokens": True}}, "that is no number"),
        ({"performance": {"latency_ms": float("inf")}}, "that is no number"),
        ({"option_logprobs": [1.0]}, "has 1 option_logprobs"),
        ({"option_logprobs": [None] * 4}, "that is no number"),
        ({"option_logprobs": [float("nan")] * 4}, "that is no number"),
        ({"item_id": ["a"]}, "are no key"),
        ({"performance": [1]}, "has performance"),
        ({"item_id": 7}, "has item_id '7'"),
    ],
)
def test_a_broken_row_is_one_line(tmp_path, dataset, changes, message):
    run = lm_eval_runs.convert(write(tmp_path, {"hk_fs_mcq_hk": [answer(k) for k in keys(2)]}))
    rows = list(run.rows.values())
    rows[1] |= changes
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (run.folder / "predictions.jsonl").write_text(text)
    with pytest.raises(UserError, match=message):
        scoring.score(runs.read_run(run.folder), dataset)
    assert not (run.folder / "scores.json").exists()


def test_nothing_is_written_unless_all_runs_can_be_scored(tmp_path, dataset):
    good = lm_eval_runs.convert(write(tmp_path / "one", {"hk_fs_mcq_hk": [answer(keys(1)[0])]}))
    bad = lm_eval_runs.convert(write(tmp_path / "two", {"hk_fs_mcq_hk": [answer(keys(1)[0])]}))
    bad.manifest["protocol"]["dataset_sha256"] = "0" * 64
    with pytest.raises(UserError, match="name the run's own"):
        scoring.score_runs([good, bad], dataset)
    assert not (good.folder / "scores.json").exists()


def test_runs_of_two_editions_are_told_apart(tmp_path, dataset):
    made = [
        lm_eval_runs.convert(write(tmp_path / name, {"hk_fs_mcq_hk": ["x"]}))
        for name in ("one", "two")
    ]
    made[1].manifest["protocol"]["dataset_sha256"] = "0" * 64
    with pytest.raises(UserError, match="several editions can't be compared, score them apart"):
        scoring.score_runs(made, dataset)


def test_a_tie_of_likeliest_letters_is_no_choice(tmp_path, dataset):
    run = lm_eval_runs.convert(write(tmp_path, {"hk_fs_mcq_hk": ["x"] * 2}))
    name = "hk_fs_mcq_hk_ll"
    rows = {(name, *key[1:]): row | {"task": name} for key, row in run.rows.items()}
    tie, clear = rows.values()
    tie["option_logprobs"], clear["option_logprobs"] = [-1.0, -1.0, -2.0, -3.0], [-3, -2, -1, -4]
    found = scored_rows.rows_of(runs.Run(run.folder, run.manifest, rows), dataset, load_task(name))
    assert [(row["value"], row["status"]) for row in found] == [(None, "ambiguous"), ("C", "valid")]
    clear["option_logprobs"] = None
    with pytest.raises(UserError, match="no option_logprobs"):
        scored_rows.rows_of(runs.Run(run.folder, run.manifest, rows), dataset, load_task(name))


def test_lost_rows_make_a_run_incomplete_whatever_its_manifest_says(tmp_path, dataset):
    run = lm_eval_runs.convert(write(tmp_path, {"hk_fs_mcq_hk": ["x"] * 3}))
    run.manifest |= {"complete": True, "planned": {"hk_fs_mcq_hk": 5}}
    scores = scoring.score(run, dataset)
    assert not scores["complete"]
    assert scores["warnings"][0].startswith("INCOMPLETE RUN: 3 of 5 answers are there")


def test_a_folder_that_can_not_be_written_is_known_before_the_scoring(tmp_path, dataset):
    run = lm_eval_runs.convert(write(tmp_path, {"hk_fs_mcq_hk": ["x"]}))
    gone = runs.Run(tmp_path / "gone", run.manifest, run.rows)
    with pytest.raises(UserError, match="gone can't be written"):
        scoring.score_runs([run, gone], dataset)
    assert not (run.folder / "scores.json").exists()


def test_rows_of_tasks_that_the_run_does_not_name_are_said(tmp_path, dataset):
    outputs = {"hk_fs_mcq_hk": [answer(keys(1)[0])], "hk_fs_oeq": ["text"]}
    run = lm_eval_runs.convert(write(tmp_path, outputs))
    run.manifest["tasks"] = ["hk_fs_mcq_hk"]
    scores = scoring.score(run, dataset)
    assert any(
        "1 rows belong to tasks that run.json does not name" in t for t in scores["warnings"]
    )


def test_a_run_without_an_answer(tmp_path, dataset):
    run = lm_eval_runs.convert(write(tmp_path, {"hk_fs_mcq_hk": ["x"], "hk_fs_oeq": ["x"]}))
    (run.folder / "predictions.jsonl").write_text("")
    scores = scoring.score(runs.read_run(run.folder), dataset)
    for figures in scores["tasks"].values():
        assert figures["answered"] == 0
    assert scores["tasks"]["hk_fs_mcq_hk"]["accuracy"]["reason"] == "no answer to count"
    metrics = scores["tasks"]["hk_fs_oeq"]["metrics"]
    assert metrics["cites"]["reason"] == "no answer to count"
    assert metrics["citations_exist"]["reason"] == "no citation to count"
