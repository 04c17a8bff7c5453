"""A prompt → the request that a provider understands; its reply → text, reasoning, usage, finish.

The differences between providers are data (models.yaml). What stands here is the reading of replies
in every form in which OpenAI-compatible services send them: whole or as a stream, with the parts of
the text in one string or in blocks, reasoning under several names, token counts that include the
reasoning or leave it out. Reading is total: any bytes give a reply or a `Failure`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hk_fs_bench.api_bodies import decode
from hk_fs_bench.api_errors import Failure, error_of, failure_of, one_line
from hk_fs_bench.api_usage import count, read_usage

if TYPE_CHECKING:
    from hk_fs_bench.api_models import Model, Provider

REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")
SOURCE_FIELDS = (
    "citations",
    "annotations",
    "search_results",
    "search_info",
    "sources",
    "web_search",
    "grounding_metadata",
    "groundingMetadata",
)
FILTERED = ("content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii")
LENGTH = (
    "length",
    "max_tokens",
    "max_output_tokens",
    "model_length",
    "model_context_window_exceeded",
)
# The service broke off for reasons of its own: what came is no answer, whatever can be read in it.
BROKEN_OFF = (
    "error",
    "abort",
    "aborted",
    "cancelled",
    "canceled",
    "insufficient_system_resource",
    "server_error",
)


def payload(
    model: Model, prompt: str, *, wishes: Mapping[str, Any], answer_limit: int | None
) -> dict[str, Any]:
    """The body of one request: the messages, the limit, and nothing that nobody asked for.

    Args:
        wishes: what the regime and the entry call for, as far as this API applies it (`applied`).
        answer_limit: tokens of the final answer; None sends no limit.
    """
    body: dict[str, Any] = {
        "model": model.id,
        "messages": [{"role": "user", "content": prompt}],
    }
    if answer_limit is not None:
        # One limit for both: thinking gets its own tokens on top, so that 512 bind the answer.
        extra = model.thinking.budget if model.limit.includes_thinking else 0
        body[model.limit.parameter] = answer_limit + extra
    body |= wishes
    body |= model.thinking.request | model.search.request
    if model.stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return body


def applied(model: Model, wishes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The wished fields that this API takes, and those that it does not apply, each with the why.

    A field that it caps is in both: it is sent, and the cap is on record.
    """
    api = model.parameters
    why = dict.fromkeys(api.rejected, "the API rejects it")
    why |= dict.fromkeys(api.ignored, "the API ignores it")
    sent = {name: value for name, value in wishes.items() if name not in why}
    why |= {
        name: f"the API caps it at {cap:g}"
        for name, cap in api.capped.items()
        if isinstance(value := sent.get(name), int | float) and value > cap
    }
    return sent, {name: why[name] for name in wishes if name in why}


def sent_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a request says beside the model and the messages."""
    return {k: v for k, v in body.items() if k not in ("model", "messages")}


@dataclass(frozen=True)
class Reply:
    """One reply, as it came. `None` is unknown, never zero.

    `usage` has input_tokens, cached_input_tokens, output_tokens (all that was generated, reasoning
    included) and reasoning_tokens. `sources` are the addresses that the model looked up.
    """

    text: str | None
    reasoning: str | None
    finish_reason: str | None
    usage: dict[str, int | None]
    model: str | None = None
    refusal: str | None = None
    sources_used: int | None = None
    sources: list[str] = field(default_factory=list)

    @property
    def outcome(self) -> tuple[str, str | None]:
        """("ok", None), or ("no_answer", why there is nothing to parse)."""
        reason = (self.finish_reason or "").lower()
        if reason in FILTERED:
            # Cut by a filter: no answer, even where a letter could be read.
            return "no_answer", "content_filter"
        if self.text is not None and self.text.strip():
            return "ok", None
        if self.refusal or reason == "refusal":
            return "no_answer", "refusal"
        thought = bool(self.reasoning) or bool(self.usage["reasoning_tokens"])
        if reason in LENGTH:
            return "no_answer", "reasoning_budget" if thought else "length"
        return "no_answer", "empty_beside_reasoning" if thought else "empty"

    def answer_tokens(self, model: Model) -> int | None:
        """Tokens of the final answer: output without reasoning; None where that is unknown."""
        output, thought = self.usage["output_tokens"], self.usage["reasoning_tokens"]
        if output is None:
            return None
        if thought is not None:
            return max(0, output - thought)
        silent = model.thinking.mode in ("none", "off") and not self.reasoning
        return output if silent else None

    def contaminated(self, addresses: Sequence[str]) -> bool:
        """Whether a source that was looked up is the benchmark itself."""
        return any(a.lower() in s.lower() for s in self.sources for a in addresses)


def read_reply(raw: bytes, provider: Provider) -> Reply:
    """The reply in a body of status 200, whole or streamed.

    Raises:
        Failure: an error in place of a reply, or bytes that are no reply.
    """
    body = decode(raw, provider)
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if not isinstance(body, dict):
        raise Failure("retry", "bad_body", "the service sent something that is no reply")
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        if (error := error_of(body)) is not None:
            raise failure_of(None, error, {}, provider)
        raise Failure("retry", "bad_body", "the service sent a reply without choices")
    choice = choices[0]
    finish = choice.get("finish_reason")
    finish = one_line(finish) if isinstance(finish, str) else None
    if (error := error_of(choice)) is not None or (error := error_of(body)) is not None:
        raise failure_of(None, error, {}, provider)
    if finish is not None and finish.lower() in BROKEN_OFF:
        raise Failure("retry", "http_500", f"the service ended the reply with {finish}")
    message = choice.get("message")
    if not isinstance(message, dict):
        message = {"content": choice.get("text")}
    text, inner, refused = _parts(message.get("content"))
    # Some services send the same reasoning under two names: the first that has text counts.
    named = (_flat(message.get(name)) for name in REASONING_FIELDS)
    reasoning = next(filter(None, named), inner) or None
    refusal = message.get("refusal")
    usage_field = body.get("usage")
    usage_raw = usage_field if isinstance(usage_field, dict) else {}
    sources = _sources(body, choice, message)
    counted = count(usage_raw.get("num_sources_used"))
    return Reply(
        text=text,
        reasoning=reasoning,
        finish_reason=finish,
        usage=read_usage(usage_raw),
        model=one_line(body["model"]) if isinstance(body.get("model"), str) else None,
        refusal=refusal if isinstance(refusal, str) and refusal else refused or None,
        sources_used=counted if counted is not None else len(sources) or None,
        sources=sources,
    )


def _parts(content: Any) -> tuple[str | None, str, str]:
    """(text, reasoning, refusal) of a message's content: a string, or typed blocks."""
    if isinstance(content, str):
        return content, "", ""
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return None, "", ""
    text, reasoning, refusal = [], [], []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else "text"
        if kind in ("thinking", "reasoning", "redacted_thinking"):
            reasoning.append(_flat(part))
        elif kind == "refusal":
            refusal.append(_flat(part))
        elif kind in ("text", "output_text", None):
            text.append(_flat(part))
    return "".join(text) if text else None, "".join(reasoning), "".join(refusal)


def _flat(value: Any, depth: int = 0) -> str:
    """The text in a string, a block, or a list of blocks."""
    if isinstance(value, str):
        return value
    if depth > 4:
        return ""
    if isinstance(value, list):
        return "".join(_flat(part, depth + 1) for part in value)
    if isinstance(value, dict):
        names = ("text", "content", "thinking", "reasoning", "refusal", "summary")
        return next((t for n in names if (t := _flat(value.get(n), depth + 1))), "")
    return ""


def _sources(*holders: Mapping[str, Any]) -> list[str]:
    """Every address under a field that lists what was looked up, each once."""
    found: dict[str, None] = {}

    def walk(value: Any, depth: int) -> None:
        if isinstance(value, str):
            if value.startswith(("http://", "https://")):
                found[value] = None
        elif isinstance(value, list | dict) and depth < 6:
            for part in value.values() if isinstance(value, dict) else value:
                walk(part, depth + 1)

    for holder in holders:
        for name in SOURCE_FIELDS:
            walk(holder.get(name), 0)
    return list(found)
