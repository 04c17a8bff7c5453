"""lm-eval's output held against what was sent and against the data."""

import json

import pytest
import yaml

from hk_fs_bench import lm_eval_runs, prompts, runs, scoring
from hk_fs_bench.errors import UserError
from tests.lm_eval_output import write

TASK = "hk_fs_mcq_hk"
PAPER = yaml.safe_load((prompts.tasks_folder() / "configs/paper/qwen2.5-7b.yaml").read_text())


def changed(folder, change, pattern="results_*"):
    """lm-eval's output with one of its files changed."""
    path = next(folder.glob(f"*/{pattern}"))
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    change(rows if pattern.startswith("samples") else rows[0])
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return folder


def sent(label=None, *, pretrained=PAPER["model_args"]["pretrained"], **settings):
    def change(results):
        results["config"]["model_args"] = {"pretrained": pretrained}
        config = results["configs"][TASK]
        config["generation_kwargs"] = {"until": [], "max_gen_toks": 512} | settings
        config["metadata"] = {"hk_fs_regime": label} if label else {}

    return change


@pytest.mark.parametrize(
    ("change", "regime"),
    [
        (sent(do_sample=False), "greedy"),
        (sent("greedy", do_sample=False, repetition_penalty=1.0), "greedy"),
        (sent("greedy", do_sample=True, temperature=0.7), "custom"),
        (sent("paper", **PAPER["gen_kwargs"]), "paper"),
        (sent("paper", **PAPER["gen_kwargs"] | {"max_gen_toks": 99}), "paper"),
        (sent("paper", **PAPER["gen_kwargs"] | {"top_k": 21}), "custom"),
        (sent("paper", pretrained="some/other", **PAPER["gen_kwargs"]), "custom"),
        (sent("paper", do_sample=False), "custom"),
        (sent("banana", do_sample=True), "custom"),
        (sent(do_sample=True), "custom"),
    ],
)
def test_the_regime_is_what_was_sent(tmp_path, dataset, change, regime):
    run = lm_eval_runs.convert(changed(write(tmp_path, {TASK: ["x"]}), change))
    assert run.manifest["protocol"]["regime"] == regime
    scores = scoring.score(run, dataset)
    assert any("regime custom" in text for text in scores["warnings"]) == (regime == "custom")


def test_limit_and_system_instruction_are_in_the_signature(tmp_path, dataset):
    plain = scoring.score(lm_eval_runs.convert(write(tmp_path / "a", {TASK: ["x"]})), dataset)
    assert "|system:none|max_tokens:512|" in plain["tasks"][TASK]["signature"]
    folder = write(tmp_path / "b", {TASK: ["x"]}, system_instruction_sha="ab" * 32)
    other = lm_eval_runs.convert(changed(folder, sent(max_gen_toks=64)))
    assert other.manifest["protocol"]["system_instruction_sha"] == "ab" * 32
    scores = scoring.score(other, dataset)
    assert "|system:abababababab|max_tokens:64|" in scores["tasks"][TASK]["signature"]
    assert any("the limit was 64 tokens, not the task's 512" in w for w in scores["warnings"])


def first(**changes):
    return lambda rows: rows[0].update(changes)


def doc(**changes):
    return lambda rows: rows[0]["doc"].update(changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (first(resps="x"), "line 1 is no sample"),
        (first(resps=["x"]), "line 1 is no sample"),
        (first(resps=[[5]]), "line 1 is no sample"),
        (first(doc=[]), "line 1 is no sample"),
        (first(doc={"id": "x", "variant": ""}), "line 1 is no sample"),
        (doc(question="Another?"), "the question of mcq-.* is not the dataset's"),
        (doc(choices=list("abcd")), "the choices of mcq-.* is not the dataset's"),
        (doc(answer="E"), "the answer of mcq-.* is not the dataset's"),
        (lambda rows: rows.append(rows[0]), "has mcq-.* twice"),
        (lambda rows: rows.clear(), f"is empty: there is no sample of {TASK}"),
    ],
)
def test_samples_of_another_form_or_content(tmp_path, dataset, change, message):
    folder = changed(write(tmp_path, {TASK: ["x", "y"]}), change, "samples*")
    with pytest.raises(UserError, match=message):
        lm_eval_runs.convert(folder, dataset=dataset)
    assert not list(tmp_path.rglob("run.json"))


def test_rotated_samples_are_held_in_their_own_order(tmp_path, dataset):
    folder = write(tmp_path, {"hk_fs_mcq_hk_rotated": ["x"] * 8})
    assert len(lm_eval_runs.convert(folder, dataset=dataset).rows) == 8


def test_a_task_without_its_samples_is_named(tmp_path):
    folder = write(tmp_path, {TASK: ["x"], "hk_fs_oeq": ["x"]})
    next(folder.glob("*/samples_hk_fs_oeq*")).unlink()
    with pytest.raises(UserError, match="no samples of hk_fs_oeq"):
        lm_eval_runs.convert(folder)


@pytest.mark.parametrize("text", ["[]", '{"config": 1, "versions": {}, "configs": {}}', "null"])
def test_results_of_another_form(tmp_path, text):
    folder = write(tmp_path, {TASK: ["x"]})
    next(folder.glob("*/results_*")).write_text(text)
    with pytest.raises(UserError, match="is no result file"):
        lm_eval_runs.convert(folder)


def test_a_byte_order_mark_is_no_fault(tmp_path):
    folder = write(tmp_path, {TASK: ["x"]})
    path = next(folder.glob("*/samples_*"))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(lm_eval_runs.convert(folder).rows) == 1


@pytest.mark.model
def test_no_output_has_no_length(tmp_path, dataset, small_model_folder):
    args = {"model_args": {"pretrained": str(small_model_folder)}}
    run = lm_eval_runs.convert(write(tmp_path, {TASK: [None]}, config=args))
    assert scoring.score(run, dataset)["tasks"][TASK]["statuses"]["empty"] == 1


@pytest.mark.parametrize("name", ["", "name", "/a/b", "../b", "a/..", "a/b/c", "./b", "a/b\n"])
def test_a_model_id_is_no_path(tmp_path, name):
    with pytest.raises(UserError, match="--model-id is org/name"):
        lm_eval_runs.convert(write(tmp_path, {TASK: ["x"]}), model_id=name)


def test_a_folder_of_runs_names_them(tmp_path):
    write(tmp_path / "one", {TASK: ["x"]})
    write(tmp_path / "two", {TASK: ["x"]})
    with pytest.raises(UserError, match="holds runs and is none; name one of them: one, two"):
        runs.read_run(tmp_path)
