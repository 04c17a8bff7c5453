"""How long each answer of an lm-eval model was and why it ended, heard while it generates."""

from __future__ import annotations

from typing import Any


class Counting:
    """Stands before a model class of lm-eval, whose `_model_generate` fills `_counts`.

    `_counts` gets (new tokens, "stop" or "length") of every answer, in the order in which lm-eval
    then takes their texts. `ends` holds (prompt, text, new tokens, "stop" or "length") of the last
    call's answers.
    """

    cache_hook: Any
    _counts: list[tuple[int, str]]
    ends: list[tuple[str, str, int, str]]

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        self._counts = []
        heard: list[tuple[str, str]] = []
        hook = self.cache_hook
        self.cache_hook = _Hook(heard)
        try:
            texts: list[str] = super().generate_until(requests, disable_tqdm=disable_tqdm)  # type: ignore[misc]
        finally:
            self.cache_hook = hook
        self.ends = [(*answer, *count) for answer, count in zip(heard, self._counts, strict=True)]
        return texts


class _Hook:
    """Stands where lm-eval's response cache would, and hears every answer in batch order."""

    def __init__(self, heard: list[tuple[str, str]]) -> None:
        self.heard = heard

    def add_partial(self, kind: str, request: tuple[str, Any], text: str) -> None:
        self.heard.append((request[0], text))
