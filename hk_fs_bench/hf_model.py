"""lm-eval's `hf` model, which also says how long each answer was and why it ended.

Import it only where a model is about to be loaded: it brings torch.
"""

from __future__ import annotations

from typing import Any

import torch
from lm_eval.models.huggingface import HFLM

from hk_fs_bench.local_batches import free_memory
from hk_fs_bench.local_counting import Counting


class CountingHF(Counting, HFLM):  # type: ignore[misc]
    """What lm-eval generates, bit by bit, with the length of every answer.

    One thing is left out: lm-eval looks for the end token's text by decoding the last tokens of
    the whole batch after every step. Where `generate` ends at that token by itself, as it does for
    every token of the model's generation config, that look finds nothing new and costs more than
    a step of a small model.
    """

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
        """How many answers the free memory of the GPUs holds, by arithmetic.

        Args:
            prompt, new: tokens of the longest prompt and of its answer.

        Counted are the cache of keys and values with a fifth of room for its growth, what a layer
        holds of the prompt, and three copies of the logits; a tenth of the memory is left free.
        None on a CPU, and for a model whose config does not tell (Mamba has no heads, OpenELM
        others in each layer).
        """
        each = answer_bytes(self.model.config.get_text_config(), self.model.dtype, prompt, new)
        if self.device.type != "cuda" or each is None:
            return None
        # The caching allocator holds what the tasks before have let go of, and the driver's count
        # of free memory knows nothing of that.
        free_memory()
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


def answer_bytes(shape: Any, dtype: torch.dtype, prompt: int, new: int) -> float | None:
    """What one answer of a batch takes of memory; None where a model's config does not tell."""

    def told(name: str) -> Any:
        return getattr(shape, name, None)

    named = ("num_hidden_layers", "num_attention_heads", "hidden_size", "vocab_size")
    layers, queries, hidden, vocabulary = map(told, named)
    if not all(isinstance(number, int) and number for number in map(told, named)):
        return None
    heads = told("num_key_value_heads") or queries
    width = told("head_dim") or hidden // queries
    inner = told("intermediate_size") or 4 * hidden
    if not all(isinstance(number, int) for number in (heads, width, inner)):
        return None
    cache = 2 * layers * heads * width * dtype.itemsize * (prompt + new)
    return float(1.2 * cache + 3 * prompt * inner * dtype.itemsize + 3 * 4 * vocabulary)
