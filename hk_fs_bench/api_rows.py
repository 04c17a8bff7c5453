"""What became of a call → its row of predictions.jsonl."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hk_fs_bench import api_manifest, prompts
from hk_fs_bench.api_keys import hide
from hk_fs_bench.api_plan import Job, Request
from hk_fs_bench.api_usage import read_usage
from hk_fs_bench.client import Answer


def row_of(job: Job, request: Request, answer: Answer, keys: Sequence[str]) -> dict[str, Any]:
    """The row of predictions.jsonl for an answer, without any of the keys."""
    reply = answer.reply
    task, item_id, variant, sample = request.key
    returned = reply.model if reply else None
    row: dict[str, Any] = {
        "task": task,
        "item_id": item_id,
        "variant": variant,
        "sample": sample,
        "attempt": answer.attempt,
        "prompt_sha256": prompts.prompt_sha256(request.prompt),
        "output": reply.text if reply else None,
        "reasoning": reply.reasoning if reply else None,
        "refusal": reply.refusal if reply else None,
        "finish_reason": reply.finish_reason if reply else None,
        "status": answer.status,
        "cause": answer.cause,
        "detail": answer.detail,
        "option_logprobs": None,
        "token_usage": reply.usage if reply else read_usage({}),
        "answer_tokens": reply.answer_tokens(job.model) if reply else None,
        "performance": {"latency_ms": answer.latency_ms},
        "returned_model": None if returned is None else api_manifest.shown_id(returned),
        "sources_used": reply.sources_used if reply else None,
        "sources": reply.sources if reply else [],
        "contaminated": bool(reply and reply.contaminated(job.addresses)),
        "shown_ids": [],
        "in_flight": answer.in_flight,
        "sent_at": answer.sent_at,
    }
    # A service that echoes its request must not bring a key into a file.
    return {name: _without(value, keys) for name, value in row.items()}


def _without(value: Any, keys: Sequence[str]) -> Any:
    if isinstance(value, str):
        return hide(value, keys)
    if isinstance(value, list):
        return [_without(part, keys) for part in value]
    return value
