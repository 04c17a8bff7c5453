"""lm_eval_tasks through lm-eval itself: prompts, filters, metrics, data options.

`include_defaults=False` spares the index of lm-eval's own 14,000 task files.
"""

import json
import math

import pytest
from lm_eval.api.model import LM
from lm_eval.evaluator import simple_evaluate
from lm_eval.tasks import TaskManager

from hk_fs_bench import answers, items, prompts

GENERATIVE = ["hk_fs_mcq_hk", "hk_fs_mcq_nohk", "hk_fs_mcq_hk_rotated", "hk_fs_oeq"]
ALL = [*GENERATIVE, "hk_fs_mcq_hk_ll"]


class Scripted(LM):
    """A model whose answers are given by a function of the prompt."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer
        self.requests = []

    def generate_until(self, requests, disable_tqdm=False):
        self.requests += [request.args for request in requests]
        return [self.answer(request.args[0], request.doc) for request in requests]

    def loglikelihood(self, requests, disable_tqdm=False):
        self.requests += [request.args for request in requests]
        return [(-float(len(request.args[1])), False) for request in requests]

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        raise AssertionError("no task of ours asks for this")


def manager(**metadata) -> TaskManager:
    return TaskManager(
        include_path=str(prompts.tasks_folder()), include_defaults=False, metadata=metadata or None
    )


def evaluate(task, answer=lambda prompt, doc: "", **options):
    model = Scripted(answer)
    metadata = options.pop("metadata", {})
    found = simple_evaluate(
        model, tasks=[task], task_manager=manager(**metadata), bootstrap_iters=0, **options
    )
    return model, found


@pytest.fixture(scope="module")
def tasks():
    return manager().load(ALL)["tasks"]


@pytest.mark.parametrize("name", ALL)
def test_same_bytes_as_lm_eval(tasks, dataset, name):
    ours = prompts.load_task(name)
    docs = items.docs(dataset, **ours.data_options)
    theirs = list(tasks[name].test_docs())
    assert [doc["id"] for doc in theirs] == [doc["id"] for doc in docs]
    for mine, doc in zip(docs, theirs, strict=True):
        assert prompts.render(ours, mine).encode() == tasks[name].doc_to_text(doc).encode()


@pytest.mark.parametrize("name", GENERATIVE)
def test_generation_settings(tasks, name):
    settings = tasks[name].config.generation_kwargs
    assert settings == {"until": [], "max_gen_toks": 512, "do_sample": False}


def test_two_shots_are_json_objects(dataset):
    model, _ = evaluate("hk_fs_mcq_hk", num_fewshot=2, limit=1)
    task = prompts.load_task("hk_fs_mcq_hk")
    shots = items.docs(dataset, **task.data_options, split="dev")[:2]
    asked = items.docs(dataset, **task.data_options)[0]
    expected = "".join(
        f"{prompts.render(task, shot)}\n"
        + json.dumps({"answer": shot["answer"], "reason": shot["explanation"]}, ensure_ascii=False)
        + "\n\n"
        for shot in shots
    ) + prompts.render(task, asked)
    assert model.requests[0][0] == expected


# One transcript a status, in the shape in which models really answer; the figures are by hand.
TRANSCRIPT = [
    ('{"answer": "KEY", "reason": "clear"}', 1),
    ('```json\n{"answer": "KEY", "reason": "clear"}\n```', 1),
    ('{"answer": "OTHER", "reason": "wrong"}', 0),
    ("{'answer': 'KEY', 'reason': 'single quotes'}", 1),
    ("I cannot help with that request.", 0),
    ("", 0),
    ("It depends on many things.", 0),
    ('{"answer": "KEY"}\n{"answer": "OTHER"}', 0),
]


def transcript(docs):
    """Answers by item id, with KEY and OTHER replaced by the item's own letters."""
    out = {}
    for (text, _), doc in zip(TRANSCRIPT, docs, strict=False):
        other = "ABCD"[("ABCD".index(doc["answer"]) + 1) % 4]
        out[doc["id"]] = text.replace("KEY", doc["answer"]).replace("OTHER", other)
    return out


@pytest.mark.parametrize("name", ["hk_fs_mcq_hk", "hk_fs_mcq_nohk"])
def test_golden_transcript_of_mcq(dataset, name):
    docs = items.docs(dataset, subset="mcq", context=True)
    script = transcript(docs)
    _, found = evaluate(name, lambda p, doc: script[doc["id"]], limit=len(TRANSCRIPT))
    results = found["results"][name]
    assert results["acc,parsed"] == 3 / 8
    statuses = {s: results[f"{s},parsed"] for s in answers.STATUSES}
    assert sum(statuses.values()) == 1
    assert statuses["refused"] == statuses["empty"] == 1 / 8
    readable = statuses["valid"] + statuses["repaired"]
    assert readable == 4 / 8
    assert results["acc_valid,parsed"] == 3 / 4
    rows = found["samples"][name]
    assert [row["acc"] for row in rows] == [right for _, right in TRANSCRIPT]
    # What lm-eval logs of the filter is JSON that says how the answer was read.
    logged = json.loads(rows[0]["filtered_resps"][0])
    assert (logged["value"], logged["status"]) == (docs[0]["answer"], "valid")
    assert logged["parser_version"] == answers.PARSER_VERSION


def test_golden_transcript_of_rotated(dataset):
    """One question by content, one by letter, one by content with an unreadable order."""
    docs = items.docs(dataset, subset="mcq", context=True, rotations=4)[:12]
    first, second, third = docs[0]["id"], docs[4]["id"], docs[8]["id"]

    def answer(prompt, doc):
        if doc["id"] == second:
            letter = "A"
        elif doc["id"] == third and doc["variant"] == "rot2":
            return "no idea"
        else:
            letter = doc["answer"]
        return json.dumps({"answer": letter, "reason": ""})

    _, found = evaluate("hk_fs_mcq_hk_rotated", answer, limit=12)
    results = found["results"]["hk_fs_mcq_hk_rotated"]
    assert first != second != third
    # First question right four times; second once (A is the key in one order); third three times.
    assert results["acc,parsed"] == 8 / 12
    assert results["consistency,parsed"] == pytest.approx(1 / 3)


def test_consistency_needs_all_four_orders(dataset):
    answer = lambda prompt, doc: json.dumps({"answer": doc["answer"]})  # noqa: E731
    _, found = evaluate("hk_fs_mcq_hk_rotated", answer, limit=6)
    assert found["results"]["hk_fs_mcq_hk_rotated"]["consistency,parsed"] == 1.0
    _, found = evaluate("hk_fs_mcq_hk_rotated", answer, limit=3)
    assert math.isnan(found["results"]["hk_fs_mcq_hk_rotated"]["consistency,parsed"])


def test_golden_transcript_of_oeq(dataset):
    docs = items.docs(dataset, subset="oeq", context=True)
    script = {
        docs[0]["id"]: '{"answer": "two words", "reason": "because"}',
        docs[1]["id"]: "just prose of five words",
        docs[2]["id"]: "",
        docs[3]["id"]: '```\n{"answer": "a b c", "reason": "d"}\n```',
    }
    _, found = evaluate("hk_fs_oeq", lambda p, doc: script[doc["id"]], limit=4)
    results = found["results"]["hk_fs_oeq"]
    assert results["answer_in_json,parsed"] == 2 / 4  # a fence is packaging
    assert results["answer_words,parsed"] == (2 + 5 + 0 + 3) / 4


def test_loglikelihood_twin_asks_for_the_letter(dataset):
    model, found = evaluate("hk_fs_mcq_hk_ll", limit=1)
    task = prompts.load_task("hk_fs_mcq_hk_ll")
    prompt = prompts.render(task, items.docs(dataset, **task.data_options)[0])
    assert [cont for _, cont in model.requests] == list("ABCD")
    assert {context for context, _ in model.requests} == {prompt + '{"answer": "'}
    assert "acc,none" in found["results"]["hk_fs_mcq_hk_ll"]


def test_a_run_without_a_readable_answer_says_so_loudly(caplog):
    with caplog.at_level("WARNING", logger="lm_eval.hk_fs"):
        _, found = evaluate("hk_fs_mcq_hk", lambda p, d: "hm", limit=3)
    assert "NOT ONE OF 3 ANSWERS COULD BE READ" in caplog.text
    assert math.isnan(found["results"]["hk_fs_mcq_hk"]["acc_valid,parsed"])
    assert found["results"]["hk_fs_mcq_hk"]["acc,parsed"] == 0


def test_another_edition_through_metadata(edition):
    _, found = evaluate(
        "hk_fs_mcq_hk",
        metadata={
            "hk_fs_dataset": str(edition),
            # What lm-eval passes along from the model, which is none of the data's business.
            "revision": "abc",
            "pretrained": "x/y",
            "dataset": "other",
        },
    )
    assert found["n-samples"]["hk_fs_mcq_hk"]["original"] == 6
    docs = [sample["doc"] for sample in found["samples"]["hk_fs_mcq_hk"]]
    assert {doc["dataset_sha256"] for doc in docs} == {items.load(edition).sha256}


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"hk_fs_dataset": "/no/where"}, "error: no dataset folder /no/where"),
        ({"hk_fs_dateset": "x"}, "error: --metadata has no key hk_fs_dateset"),
        ({"hk_fs_rotations": 3}, "error: --metadata has no key hk_fs_rotations"),
        ({"hk_fs_subset": "oeq"}, "error: --metadata has no key hk_fs_subset"),
        ({"hk_fs_context": False}, "error: --metadata has no key hk_fs_context"),
        ({"hk_fs_dataset": 5}, "error: --metadata has hk_fs_dataset 5; a text is expected"),
        ({"hk_fs_regime": "banana"}, "error: no regime banana; hk_fs_regime is paper or greedy"),
    ],
)
def test_a_users_mistake_is_one_line(metadata, message):
    with pytest.raises(SystemExit) as caught:
        manager(**metadata).load(["hk_fs_mcq_hk"])
    assert str(caught.value).startswith(message)


def test_edited_data_is_read_anew(edition):
    """The cache of `datasets` for local folders must not answer for an edited file."""

    def first_question():
        found = manager(hk_fs_dataset=str(edition)).load(["hk_fs_oeq"])["tasks"]["hk_fs_oeq"]
        return next(iter(found.test_docs()))["question"]

    before = first_question()
    path = edition / "data/oeq/test.jsonl"
    path.write_text(path.read_text("utf-8").replace(before[:20], "X" * 20), "utf-8")
    assert first_question() == "X" * 20 + before[20:]
