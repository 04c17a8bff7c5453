"""Replies, streams and errors of the kinds that break runners, over real sockets.

Our own table is tests/data/api_cases.jsonl. HK_FS_CASES may name a folder with a further table,
B_api_payloads.jsonl, in the same form.
"""

import asyncio
import json
import os
from pathlib import Path

import pytest

from hk_fs_bench import answers, api_models, api_plan, api_runs, client, items, providers, runs
from hk_fs_bench.client import Account, Session
from tests.fault_server import FaultServer, Reply, ok, stream

HERE = Path(__file__).resolve().parent
TABLES = [HERE / "data" / "api_cases.jsonl"]
if folder := os.environ.get("HK_FS_CASES"):
    TABLES.append(Path(folder) / "B_api_payloads.jsonl")
CASES = [
    json.loads(line)
    for path in TABLES
    for line in path.read_text("utf-8").splitlines()
    if line.strip()
]
REGISTRY = api_models.load()
GOOD = '{"answer": "A", "reason": "second reply"}'
CAUSE = {
    "budget_spent_on_thinking": "reasoning_budget",
    "empty_content_with_reasoning": "empty_beside_reasoning",
    "filtered": "content_filter",
    "refused": "refusal",
}
ENTRY = {
    "anthropic": "claude-opus",
    "deepseek": "deepseek-thinking",
    "gemini": "gemini-3",
    "openai": "gpt-4.1",
    "xai": "grok-4",
    "alibaba": "qwen-plus",
}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(client, "FIRST_WAIT_S", 0.01)


def entry_of(case: dict) -> str:
    words = case["context"]["provider"].lower().replace("/", " ").split()
    return next((ENTRY[word] for word in words if word in ENTRY), "gpt-4.1")


def reply_of(payload: dict) -> Reply:
    """The neutral form of a payload, as the server sends it."""
    then = "reset" if payload.get("then") == "connection reset" else payload.get("then")
    headers = dict(payload.get("headers", {}))
    if "sse" in payload:
        events = [f"{e}\n\n" if isinstance(e, str) else e for e in payload["sse"]]
        failed = any(isinstance(e, dict) and "error" in e for e in events)
        return stream(events, done=payload.get("done", not failed), then=then)
    raw = payload.get("raw_body")
    return Reply(
        payload["status"],
        payload.get("body"),
        None if raw is None else raw.encode(),
        headers,
        then=then,
    )


def play(case: dict, replies: list[Reply], tmp_path: Path, edition: Path, *, regime="greedy"):
    """Ask one question; the server sends `replies` in order, the last one again and again."""

    def respond(request):
        return replies[min(len(server.requests), len(replies)) - 1]

    with FaultServer(respond) as server:
        job = job_for(case, server, tmp_path, edition, regime)
        (going,) = asyncio.run(api_runs.run([job]))
    rows = [json.loads(line) for line in going.log.path.read_text("utf-8").splitlines()]
    return server, going, rows


def job_for(case: dict, server: FaultServer, tmp_path: Path, edition: Path, regime: str):
    registry = REGISTRY
    entry = registry.model(entry_of(case))
    provider = registry.provider(entry).model_copy(
        update={"base_url": server.url, "key_required": False}
    )
    registry = registry.model_copy(
        update={"providers": registry.providers | {entry.provider: provider}}
    )
    return api_plan.plan(
        registry,
        entry_of(case),
        items.load(edition),
        tasks=["hk_fs_mcq_hk"],
        regime=regime,
        out=tmp_path,
        limit=1,
    )


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case, tmp_path, edition, monkeypatch):
    expected = case["expected"]
    if expected["action"] == "config_check":
        return check_request(case)
    if "sequence" in case["payload"]:
        return check_order(case, tmp_path, edition)
    bad = reply_of(case["payload"])
    if expected["action"] == "use_text":
        server, going, (row,) = play(case, [bad], tmp_path, edition)
        assert row["status"] == "ok"
        assert row["output"] == expected["text"]
        assert len(server.requests) == 1
        got = row["token_usage"] | {
            "cached_tokens": row["token_usage"]["cached_input_tokens"],
            "sources_used": row["sources_used"],
            "reasoning": row["reasoning"],
        }
        wanted = {k: v for k, v in expected.items() if k not in ("action", "text")}
        assert {k: got[k] for k in wanted} == wanted
    elif expected["action"] == "record_no_answer":
        server, going, (row,) = play(case, [bad, ok(GOOD)], tmp_path, edition)
        assert row["status"] == "no_answer"
        assert row["cause"] == CAUSE.get(expected["status"], expected["status"])
        assert answers.status_of_cause(row["cause"]) not in ("valid", "repaired")
        assert len(server.requests) == 1
    elif expected["action"] == "retry":
        server, going, (row,) = play(case, [bad, ok(GOOD)], tmp_path, edition)
        assert (row["status"], row["output"], row["attempt"]) == ("ok", GOOD, 2)
        assert len(server.requests) == 2
        if expected.get("then") == "infra_error" or "max_attempts" in expected:
            # After an answer: before the first one a failure is not even an item's.
            server, going, rows = play(case, [bad], tmp_path / "always", edition)
            assert (going.failed, rows) == (1, [])
            assert len(server.requests) <= client.TRIES
    elif expected["action"] in ("stop_provider", "stop_model"):
        monkeypatch.setattr(client, "TRIES", 1)
        server, going, rows = play(case, [bad], tmp_path, edition)
        assert rows == []
        assert len(server.requests) == 1
        assert going.session.stopped
        assert check_account(case, bad) == (expected["action"] == "stop_provider")
        if reason := expected.get("reason"):
            assert reason.split()[-1] in going.session.stopped
    elif expected["action"] == "fix_params_and_resend":
        server, going, (row,) = play(case, [bad, ok(GOOD)], tmp_path, edition)
        name = expected["change"].removeprefix("drop ")
        assert [name in request.body for request in server.requests] == [True, False]
        assert row["output"] == GOOD
        assert name in going.job.manifest["protocol"]["parameters_not_applied"]
        # A server that refuses what is no longer sent is not asked again and again.
        server, going, rows = play(case, [bad], tmp_path / "always", edition)
        assert len(server.requests) == 2
        assert going.session.stopped
    else:
        raise AssertionError(f"unknown action {expected['action']}")


def check_account(case: dict, bad: Reply) -> bool:
    """Whether another model of the same account stops, too."""
    registry = REGISTRY
    model = registry.model(entry_of(case))

    async def ask() -> bool:
        account = Account(registry.provider(model), server.url, "key", client.Pace(1, 1))
        async with Session(model, account) as first, Session(model, account) as second:
            with pytest.raises(client.Stopped):
                await first.ask(providers.payload(model, "q", wishes={}, answer_limit=9))
            return second.stopped is not None

    with FaultServer(lambda request: bad) as server:
        return asyncio.run(ask())


def check_order(case: dict, tmp_path: Path, edition: Path) -> None:
    """Replies that look alike are filed under the item that was asked, whatever their order."""
    dataset = items.load(edition)
    sequence = case["payload"]["sequence"]
    asked = {item.question: n for n, item in enumerate(dataset.items("mcq")[: len(sequence)])}

    def respond(request):
        n = next(n for question, n in asked.items() if question in request.prompt)
        return Reply(body=sequence[n]["response"], delay=0.1 * (len(sequence) - n))

    with FaultServer(respond) as server:
        job = job_for(case, server, tmp_path, edition, "paper")
        plan = {"tasks": ["hk_fs_mcq_hk"], "regime": "paper", "out": tmp_path / "two"}
        registry = REGISTRY.model_copy(
            update={"providers": {job.model.provider: job.provider}, "models": {"m": job.model}}
        )
        two = api_plan.plan(registry, "m", dataset, limit=len(sequence), **plan)
        asyncio.run(api_runs.run([two]))
    rows = runs.read_run(two.folder).rows
    stored = {
        sequence[n]["item"]: json.loads(rows["hk_fs_mcq_hk", item.id, "", 0]["output"])["answer"]
        for n, item in enumerate(dataset.items("mcq")[: len(sequence)])
    }
    assert stored == case["expected"]["stored"]


def check_request(case: dict) -> None:
    """What is asked for, and what is on record as not applied."""
    registry = REGISTRY
    model = registry.model(entry_of(case))
    wish = dict(case["payload"]["request_wish"])
    if "thinking" in wish:
        assert (wish.pop("thinking"), model.thinking.mode) == (False, "minimal")
        body = providers.payload(model, "q", wishes={}, answer_limit=512)
        switch = body["extra_body"]["google"]["thinking_config"]
        assert switch == {"thinking_level": "minimal"}
        assert "reasoning_effort" not in body
        assert providers.sent_fields(body)["extra_body"] == body["extra_body"]
    sent, not_applied = providers.applied(model, wish)
    expected = case["expected"]
    assert not set(expected.get("ignored", [])) & set(sent)
    recorded = set(expected.get("ignored", [])) | set(expected.get("capped", {}))
    assert set(not_applied) == recorded
    assert {k: model.parameters.capped[k] for k in expected.get("capped", {})} == expected.get(
        "capped", {}
    )
