"""hk_fs_bench.prompts against the paper's wording; against lm-eval's bytes in test_tasks.py."""

import pytest

from hk_fs_bench import items, prompts
from hk_fs_bench.errors import UserError

CONTEXT = (
    "You are answering a question about the Hong Kong fire safety code "
    "(Code of Practice for Fire Safety in Buildings 2011). "
)
MCQ = (
    "You are given a multiple-choice question. "
    "Choose ONE most appropriate answer from the options. "
)
OEQ = (
    "You are given a short-answer question. "
    "Respond in a concise, accurate, and professional manner. "
)
FORMAT = (
    "Return the result strictly as a JSON object in the following format:\n"
    '{"answer": "x", "reason": "x"}\n'
)
DOC = {
    "question": "Which door {{ may }} stay open?",
    "choices": ["P & Q", 'the "R" door', "S", "none"],
}


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (
            "hk_fs_mcq_hk",
            CONTEXT + MCQ + FORMAT + "Which door {{ may }} stay open?\n"
            'A) P & Q\nB) the "R" door\nC) S\nD) none',
        ),
        (
            "hk_fs_mcq_nohk",
            MCQ + FORMAT + "Which door {{ may }} stay open?\n"
            'A) P & Q\nB) the "R" door\nC) S\nD) none',
        ),
        ("hk_fs_oeq", CONTEXT + OEQ + FORMAT + "Which door {{ may }} stay open?"),
    ],
)
def test_wording_of_table_5(task, expected):
    task = prompts.load_task(task)
    choices = DOC["choices"] if task.subset == "mcq" else []
    doc = DOC | {"choices": choices, "hk_context": task.context}
    assert prompts.render(task, doc) == expected


def test_without_context_the_prompt_names_no_jurisdiction(dataset):
    task = prompts.load_task("hk_fs_mcq_nohk")
    for doc in items.docs(dataset, **task.data_options):
        instruction = prompts.render(task, doc).removesuffix(doc["question"]).split("\n")[0]
        assert "Hong Kong" not in instruction


def test_canary_and_key_are_in_no_prompt(dataset):
    for name in prompts.expand(["hk_fs"]):
        task = prompts.load_task(name)
        for doc in items.docs(dataset, **task.data_options):
            prompt = prompts.render(task, doc)
            assert "canary" not in prompt.lower()
            assert doc["explanation"] not in prompt
            assert not doc["reference_answer"] or doc["reference_answer"] not in prompt


def test_groups_expand_once_and_in_order():
    assert prompts.expand(["hk_fs_oeq", "hk_fs"]) == ["hk_fs_oeq", "hk_fs_mcq_hk", "hk_fs_mcq_nohk"]


def test_unknown_names_list_what_there_is():
    with pytest.raises(UserError, match=r"no task hk_fs_mcq; there are hk_fs, hk_fs_mcq_hk"):
        prompts.load_task("hk_fs_mcq")
    with pytest.raises(UserError, match="is a group; name one of hk_fs_mcq_hk"):
        prompts.load_task("hk_fs")


def test_template_hash_tells_tasks_apart():
    names = ["hk_fs_mcq_hk", "hk_fs_mcq_nohk", "hk_fs_oeq", "hk_fs_mcq_hk_ll"]
    assert len({prompts.template_sha256(prompts.load_task(n)) for n in names}) == 4
