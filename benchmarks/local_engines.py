"""What else transformers offers to generate with: a compiled static cache, continuous batching."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from local_contenders import Bench


def lines(bench: Bench) -> Iterator[str]:
    """Each engine's speed on the same prompts, briefly, as it is known."""
    from hk_fs_bench.local_batches import first_line, free_memory

    questions, new = bench.longest()[: bench.fits], bench.args.alone_new
    yield f"engines of transformers, {len(questions)} prompts, {new} new tokens each:"
    engines: dict[str, Callable[[Bench, list[Any], int], float]] = {
        "as run": lambda bench, questions, new: bench.batch(questions, new),
        "static cache, compiled": static,
        "continuous batching": continuous,
    }
    for name, work in engines.items():
        free_memory()
        try:
            seconds = [work(bench, questions, new), work(bench, questions, new)][1]
            # The first compiles.
            yield f"  {name}: {len(questions) * new / seconds:.0f} tokens/s"
        except Exception as error:
            yield f"  {name}: {type(error).__name__}: {first_line(error)[:120]}"


def static(bench: Bench, questions: list[Any], new: int) -> float:
    ids, mask = bench.lm.tok_batch_encode([q.context for q in questions])
    begun = time.perf_counter()
    bench.lm.model.generate(
        input_ids=ids.to(bench.lm.device),
        attention_mask=mask.to(bench.lm.device),
        max_new_tokens=new,
        min_new_tokens=new,
        do_sample=False,
        cache_implementation="static",
        pad_token_id=bench.lm.tokenizer.pad_token_id,
    ).tolist()
    return time.perf_counter() - begun


def continuous(bench: Bench, questions: list[Any], new: int) -> float:
    from transformers import GenerationConfig

    ids = [bench.lm.tok_encode(q.context, add_special_tokens=False) for q in questions]
    bench.lm.model.set_attn_implementation("sdpa")  # From it transformers makes its paged one.
    config = GenerationConfig(max_new_tokens=new, do_sample=False, eos_token_id=-1)
    begun = time.perf_counter()
    found = bench.lm.model.generate_batch(ids, generation_config=config)
    assert all(len(one.generated_tokens) == new for one in found.values())
    return time.perf_counter() - begun
