"""The bytes of a reply → one JSON value: a body as it stands, or the chunks of a stream joined.

A stream is read whole before it is taken apart: half a reply is never an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hk_fs_bench.api_errors import Failure, error_of, failure_of

if TYPE_CHECKING:
    from hk_fs_bench.api_models import Provider


def decode(raw: bytes, provider: Provider) -> Any:
    """The JSON value of a reply, whole or streamed.

    Raises:
        Failure: bytes that are no JSON, an error event, a stream that was cut off.
    """
    if _is_stream(raw):
        return _assemble(_events(raw), provider)
    return _json(raw)


def _is_stream(raw: bytes) -> bool:
    return raw.lstrip()[:6].startswith((b"data:", b"event:", b"id:", b"retry:", b":"))


def _events(raw: bytes) -> Iterator[str]:
    """The data of each server-sent event. Split on line feeds only: text may hold U+2028."""
    text = raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    for block in text.split("\n\n"):
        lines = [line[5:] for line in block.split("\n") if line.startswith("data:")]
        if lines:
            yield "\n".join(line.removeprefix(" ") for line in lines)


def _assemble(events: Iterator[str], provider: Provider) -> dict[str, Any]:
    """The chunks of a stream as the one reply that they make.

    Raises:
        Failure: an error event, a chunk that is no JSON, or a stream that was cut off.
    """
    body: dict[str, Any] = {}
    message: dict[str, Any] = {"content": None}
    choice: dict[str, Any] = {"message": message, "finish_reason": None}
    ended = chosen = False
    for data in events:
        if data.strip() == "[DONE]":
            ended = True
            break
        chunk = _json(data.encode("utf-8", "replace"))
        if not isinstance(chunk, dict):
            raise Failure("retry", "bad_body", "a chunk of the stream is no JSON object")
        if (error := error_of(chunk)) is not None:
            raise failure_of(None, error, {}, provider)
        body |= {k: v for k, v in chunk.items() if k != "choices" and v is not None}
        parts = chunk.get("choices")
        for part in parts if isinstance(parts, list) else []:
            if not isinstance(part, dict) or part.get("index", 0) != 0:
                continue
            chosen = True
            if (error := error_of(part)) is not None:
                raise failure_of(None, error, {}, provider)
            if isinstance(whole := part.get("message"), dict) and "delta" not in part:
                message.update(whole)
            else:
                _add(message, part.get("delta") or {"content": part.get("text")})
            if part.get("finish_reason") is not None:
                choice["finish_reason"] = part["finish_reason"]
    if choice["finish_reason"] is None and not ended:
        raise Failure("retry", "stream_cut", "the stream broke off before the reply ended")
    return body | {"choices": [choice] if chosen else []}


def _add(message: dict[str, Any], delta: Any) -> None:
    if not isinstance(delta, dict):
        return
    for name, value in delta.items():
        if value is None or name in ("role", "index", "type"):
            continue
        known = message.get(name)
        if known is None or isinstance(known, dict) or isinstance(value, dict):
            message[name] = value
        elif isinstance(known, str) and isinstance(value, str):
            message[name] = known + value
        else:
            message[name] = _blocks(known) + _blocks(value)


def _blocks(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [content]


def _json(raw: bytes) -> Any:
    try:
        return json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise Failure(
            "retry", "bad_body", "the service sent a body that is no JSON; is the base URL right?"
        ) from None
