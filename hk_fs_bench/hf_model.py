"""lm-eval's `hf` model, which also says how long each answer was and why it ended.

Import it only where a model is about to be loaded: it brings torch.
"""

from __future__ import annotations

from typing import Any

import torch
from lm_eval.models.huggingface import HFLM


class CountingHF(HFLM):  # type: ignore[misc]
    """What lm-eval generates, bit by bit, with the length of every answer.

    One thing is left out: lm-eval looks for the end token's text by decoding the last tokens of
    the whole batch after every step. Where `generate` ends at that token by itself, as it does for
    every token of the model's generation config, that look finds nothing new and costs more than
    a step of a small model.

    `ends` holds (prompt, text, new tokens, "stop" or "length") of the last call's answers.
    """

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        self._counts: list[tuple[int, str]] = []
        heard: list[tuple[str, str]] = []
        hook: Any = self.cache_hook
        self.cache_hook: Any = _Hook(heard)
        try:
            texts: list[str] = super().generate_until(requests, disable_tqdm=disable_tqdm)
        finally:
            self.cache_hook = hook
        self.ends = [(*answer, *count) for answer, count in zip(heard, self._counts, strict=True)]
        return texts

    def _model_generate(
        self, context: torch.Tensor, max_length: int, stop: list[str], **settings: Any
    ) -> torch.Tensor:
        ends = self._end_tokens()
        known = {self.tok_decode(end, skip_special_tokens=False) for end in ends}
        left = [text for text in stop if text not in known]
        out: torch.Tensor = super()._model_generate(context, max_length, left, **settings)
        new = out[:, context.shape[1] :] if self.backend == "causal" else out
        ended = torch.isin(new, torch.tensor(ends, device=new.device))
        lengths = torch.where(ended.any(1), ended.int().argmax(1) + 1, new.shape[1])
        for length, at_end in zip(lengths.tolist(), ended.any(1).tolist(), strict=True):
            # Where a stop string ended the batch, nothing was cut by the limit.
            whole = context.shape[1] + length >= max_length
            self._counts.append((length, "length" if whole and not at_end else "stop"))
        return out

    def most_at_once(self, prompt: int, new: int) -> int | None:
        """How many answers the free memory of the GPUs holds, by arithmetic; None on a CPU.

        Args:
            prompt, new: tokens of the longest prompt and of its answer.

        Counted are the cache of keys and values with a fifth of room for its growth, what a layer
        holds of the prompt, and three copies of the logits; a tenth of the memory is left free.
        """
        if self.device.type != "cuda":
            return None
        shape = self.model.config.get_text_config()
        size = self.model.dtype.itemsize
        heads = getattr(shape, "num_key_value_heads", None) or shape.num_attention_heads
        width = getattr(shape, "head_dim", None) or shape.hidden_size // shape.num_attention_heads
        cache = 2 * shape.num_hidden_layers * heads * width * size * (prompt + new)
        layer = 3 * prompt * (getattr(shape, "intermediate_size", None) or 4 * shape.hidden_size)
        each = 1.2 * cache + layer * size + 3 * 4 * shape.vocab_size
        devices = set(getattr(self.model, "hf_device_map", {"": self.device}).values())
        free = sum(
            torch.cuda.mem_get_info(torch.device(device))[0]
            for device in devices
            if str(device) not in ("cpu", "disk")
        )
        return max(1, int(0.9 * free // each))

    def _end_tokens(self) -> list[int]:
        ends = self.model.generation_config.eos_token_id
        return [ends] if isinstance(ends, int) else list(ends or [])


class _Hook:
    """Stands where lm-eval's response cache would, and hears every answer in batch order."""

    def __init__(self, heard: list[tuple[str, str]]) -> None:
        self.heard = heard

    def add_partial(self, kind: str, request: tuple[str, Any], text: str) -> None:
        self.heard.append((request[0], text))
