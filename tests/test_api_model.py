"""A real model behind a real server: our runner and lm-eval's ask it the same and hear the same."""

import asyncio
import json

import pytest

from hk_fs_bench import api_models, api_plan, api_runs, items, prompts, runs, scoring

pytestmark = pytest.mark.model

SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": 60}, "reason": {"enum": ["r"]}},
    "required": ["answer", "reason"],
}
CONSTRAINED = {
    "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}
}


@pytest.fixture(scope="module")
def url():
    from tests.llama_server import llama_server

    with llama_server() as address:
        yield address


def ours(url: str, dataset: items.Dataset, out, tasks, limit, request):
    registry = api_models.load()
    entry = registry.model("local-server").model_copy(update={"request": request})
    registry = registry.model_copy(update={"models": {"local-server": entry}})
    job = api_plan.plan(
        registry,
        "local-server",
        dataset,
        tasks=tasks,
        regime="greedy",
        out=out,
        limit=limit,
        service_id="smollm2",
        base_url=url,
    )
    asyncio.run(api_runs.run([job], max_concurrency=1))
    return runs.read_run(job.folder)


def theirs(url: str, tasks, limit, request, monkeypatch):
    from lm_eval.evaluator import simple_evaluate
    from lm_eval.tasks import TaskManager

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return simple_evaluate(
        "local-chat-completions",
        model_args={
            "model": "smollm2",
            "base_url": f"{url}/chat/completions",
            "num_concurrent": 1,
            "max_retries": 1,
            "tokenized_requests": False,
        },
        tasks=prompts.expand(tasks),
        task_manager=TaskManager(include_path=str(prompts.tasks_folder()), include_defaults=False),
        limit=limit,
        gen_kwargs=request,
        apply_chat_template=True,
        log_samples=True,
        bootstrap_iters=0,
    )


@pytest.mark.parametrize(
    ("tasks", "limit", "request_fields"),
    [(["hk_fs_mcq_hk"], 2, {}), (["hk_fs"], 1, CONSTRAINED)],
    ids=["free", "json"],
)
def test_the_same_texts_and_scores_as_lm_eval(
    url, tmp_path, dataset, monkeypatch, tasks, limit, request_fields
):
    run = ours(url, dataset, tmp_path, tasks, limit, request_fields)
    assert run.manifest["complete"] is True
    assert run.manifest["protocol"]["parameters_sent"] == {
        "max_tokens": 512,
        "temperature": 0,
        **request_fields,
    }
    reference = theirs(url, tasks, limit, request_fields, monkeypatch)
    scores = scoring.score(run, dataset)
    for task, figures in scores["tasks"].items():
        texts = {
            sample["doc"]["id"]: sample["resps"][0][0] for sample in reference["samples"][task]
        }
        got = {row["item_id"]: row["output"] for row in run.of_task(task)}
        assert got == texts
        if "accuracy" in figures:
            assert figures["accuracy"]["value"] == reference["results"][task]["acc,parsed"]
        if request_fields:
            assert all(isinstance(json.loads(text)["answer"], str) for text in got.values())
    for row in run.rows.values():
        assert row["finish_reason"] in ("stop", "length")
        assert row["answer_tokens"] == row["token_usage"]["output_tokens"] > 0
        assert row["returned_model"] == "smollm2"
