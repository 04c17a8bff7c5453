"""Token counts as vendors give them → counts with one meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# More than any reply has; a larger number is none, and sums of it would lose their last digits.
MOST_TOKENS = 10**9


def read_usage(usage: Mapping[str, Any]) -> dict[str, int | None]:
    """Token counts with one meaning, whichever the vendor's.

    Output is everything generated. Some count reasoning inside completion_tokens, some beside it,
    some not at all; what they bill is the total less the input, so that decides where it is known.
    """
    tokens_in = count(usage.get("prompt_tokens"))
    completion = count(usage.get("completion_tokens", usage.get("output_tokens")))
    total = count(usage.get("total_tokens"))
    details_in = _mapping(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
    details_out = _mapping(
        usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    )
    cached = _first(
        details_in.get("cached_tokens"),
        usage.get("prompt_cache_hit_tokens"),
        usage.get("cache_read_input_tokens"),
    )
    if tokens_in is None:
        tokens_in = count(usage.get("input_tokens"))
        if tokens_in is not None and "cache_read_input_tokens" in usage:
            # Anthropic's own names: cached tokens stand beside input_tokens, not in them.
            tokens_in += (cached or 0) + (count(usage.get("cache_creation_input_tokens")) or 0)
    thought = _first(details_out.get("reasoning_tokens"), usage.get("reasoning_tokens"))
    if cached and not thought and None not in (total, tokens_in, completion):
        # Cached input stands beside the input where that, and no reasoning, makes up the total.
        beside = (total or 0) - (tokens_in or 0) - (completion or 0) == cached
        tokens_in = (tokens_in or 0) + (cached if beside else 0)
    output = completion
    if total is not None and tokens_in is not None and total - tokens_in > (completion or 0):
        output = total - tokens_in
        if thought is None and completion is not None:
            thought = output - completion
    elif completion is not None and thought is not None and thought > completion:
        output = completion + thought
    return {
        "input_tokens": tokens_in,
        "cached_input_tokens": cached,
        "output_tokens": output,
        "reasoning_tokens": thought,
    }


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def count(value: Any) -> int | None:
    """A token count, or None for anything that is none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    number = isinstance(value, int) and not isinstance(value, bool)
    return value if number and 0 <= value <= MOST_TOKENS else None


def _first(*values: Any) -> int | None:
    return next((n for v in values if (n := count(v)) is not None), None)
