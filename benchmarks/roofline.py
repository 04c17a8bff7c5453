"""What a machine could do at best: measured bandwidth and arithmetic, and the limit they set.

A step of generation reads every weight once and the cached keys and values of every answer in the
batch, and multiplies: two operations a weight and answer, and four a cached value and query head.
The slower of the two sets the limit. Reading the prompt (prefill) comes before, once a batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Machine:
    """Bytes and operations a second, measured."""

    bandwidth: float
    arithmetic: float

    def or_better(self, other: Machine) -> Machine:
        """The higher of each rate."""
        return Machine(max(self.bandwidth, other.bandwidth), max(self.arithmetic, other.arithmetic))


@dataclass(frozen=True)
class Shape:
    """What decides the work of a step; bytes are those of the model's own dtype."""

    weights: int
    weight_bytes: int
    cache_bytes: int
    layers: int
    heads: int
    head_size: int
    output_weights: int = 0  # Of the logits: among the weights, and read once a prompt.

    @classmethod
    def of(cls, model: Any) -> Shape:
        config, item = model.config, next(model.parameters()).element_size()
        heads = config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // heads
        weights = sum(parameter.numel() for parameter in model.parameters())
        if not config.tie_word_embeddings:
            # Of the input embedding a step reads one row an answer.
            weights -= model.get_input_embeddings().weight.numel()
        cache = 2 * config.num_hidden_layers * config.num_key_value_heads * size * item
        output = model.get_output_embeddings().weight.numel()
        return cls(weights, weights * item, cache, config.num_hidden_layers, heads, size, output)


@dataclass(frozen=True)
class Limit:
    """Of one batch: seconds of reading the prompts, and of a step by memory and by arithmetic."""

    batch: int
    new: int
    prefill: float
    memory: float
    arithmetic: float

    @property
    def step(self) -> float:
        return max(self.memory, self.arithmetic)

    @property
    def decoding(self) -> float:
        """New tokens a second at best, prompts not counted."""
        return self.batch / self.step

    @property
    def whole(self) -> float:
        """New tokens a second at best, prompts counted."""
        return self.batch * self.new / (self.prefill + self.new * self.step)


def limit(machine: Machine, shape: Shape, batch: int, prompt: float, new: int) -> Limit:
    """The limit of a batch.

    Args:
        prompt: mean tokens of a prompt; padding is no work that has to be done.
        new: tokens of every answer.
    """
    cached = prompt + new / 2
    attention = 4 * shape.layers * shape.heads * shape.head_size * cached
    return Limit(
        batch,
        new,
        max(
            2
            * batch
            * ((shape.weights - shape.output_weights) * prompt + shape.output_weights)
            / machine.arithmetic,
            shape.weight_bytes / machine.bandwidth,
        ),
        (shape.weight_bytes + batch * cached * shape.cache_bytes) / machine.bandwidth,
        batch * (2 * shape.weights + attention) / machine.arithmetic,
    )


def seconds(
    machine: Machine, shape: Shape, batches: Mapping[int, int], prompt: float, new: int
) -> tuple[float, float]:
    """Seconds of a run at best: of all its steps, and with the reading of its prompts.

    Args:
        batches: how many batches of each size.
        prompt, new: as in `limit`.
    """
    bound = {size: limit(machine, shape, size, prompt, new) for size in batches}
    steps = sum(n * new * bound[size].step for size, n in batches.items())
    return steps, steps + sum(n * bound[size].prefill for size, n in batches.items())


def measure(device: str, dtype: Any) -> Machine:
    """A machine's bandwidth (the better of copying and of a matrix times a vector) and arithmetic
    (a square matrix product), each the best of several."""
    import torch

    big, side = (1 << 30, 8192) if device == "cuda" else (1 << 26, 1536)
    source = torch.ones(big, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    rows = torch.randn(side * 2, side * 2, dtype=dtype, device=device)
    vector = torch.randn(side * 2, dtype=dtype, device=device)
    square = torch.randn(side, side, dtype=dtype, device=device)
    copying = 2 * big / best(lambda: target.copy_(source), device)
    reading = rows.numel() * rows.element_size() / best(lambda: torch.mv(rows, vector), device)
    product = 2 * side**3 / best(lambda: square @ square, device)
    return Machine(max(copying, reading), product)


def best(work: Callable[[], Any], device: str, times: int = 7) -> float:
    """Seconds of the quickest of several runs, after one that warms up."""
    import torch

    found = []
    for _ in range(times + 1):
        begun = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        found.append(time.perf_counter() - begun)
    return min(found[1:])
