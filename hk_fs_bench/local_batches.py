"""Questions → answers in batches, with an engine of lm-eval: timed, counted, halved in need."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hk_fs_bench import runs
from hk_fs_bench.errors import UserError


@dataclass(frozen=True)
class Question:
    """One prompt: lm-eval's requests of it (one, or one an option), and what a row says of it."""

    key: runs.Key
    requests: tuple[Any, ...]
    prompt_sha256: str
    limit: int | None

    @property
    def context(self) -> str:
        """The prompt as the model sees it, with its chat template."""
        return str(self.requests[0].args[0])


@dataclass
class Progress:
    """How a session goes. `batch` is how many are generated at once now."""

    asked: int
    batch: int
    answered: int = 0
    tokens: int = 0
    halved: int = 0
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    @property
    def seconds_left(self) -> float | None:
        """At the rate so far; None before the first answer."""
        if not self.answered:
            return None
        return self.seconds / self.answered * (self.asked - self.answered)


Watch = Callable[[Progress], None]


def length(lm: Any, question: Question) -> int:
    """Of a prompt, in tokens where the engine counts them."""
    return len(lm.tok_encode(question.context) if hasattr(lm, "tok_encode") else question.context)


def answers(
    lm: Any, asked: Sequence[Question], progress: Progress, watch: Watch = lambda _: None
) -> Iterator[dict[str, Any]]:
    """The rows of the answers, batch by batch; a batch is of one task.

    Tasks are not mixed: a batch lasts as long as its longest answer, and each task's seconds are
    its own. Each begins with what memory holds of its own answers, at most the batch of the start,
    or half of the one for which memory ran out.
    """
    at, most, task = 0, progress.batch, ""
    while at < len(asked):
        if asked[at].key[0] != task:
            task = asked[at].key[0]
            progress.batch = min(most, _holds(lm, asked[at]) or most)
        batch = [q for q in asked[at : at + progress.batch] if q.key[0] == task]
        begun = time.perf_counter()
        found = _ask(lm, batch, progress)
        if found is None:
            most = progress.batch
            continue
        seconds = (time.perf_counter() - begun) / len(batch)
        at += len(batch)
        for question, answer in zip(batch, found, strict=True):
            progress.tokens += answer["token_usage"]["output_tokens"] or 0
            progress.answered += 1
            yield {
                **dict(zip(("task", "item_id", "variant", "sample"), question.key, strict=True)),
                "attempt": 1,
                "prompt_sha256": question.prompt_sha256,
                "status": "ok",
                **answer,
                "performance": {"batch_share_ms": 1000 * seconds, "batch": len(batch)},
            }
        watch(progress)


def _holds(lm: Any, longest: Question) -> int | None:
    """How many answers the engine's free memory holds by arithmetic, where that can be known."""
    if not hasattr(lm, "most_at_once"):
        return None
    most: int | None = lm.most_at_once(length(lm, longest), longest.limit or 1)
    return most


def _ask(lm: Any, batch: list[Question], progress: Progress) -> list[dict[str, Any]] | None:
    """The answers of one batch; None, and the batch size halved, where memory ran out."""
    if hasattr(lm, "batch_size_per_gpu"):
        lm.batch_size_per_gpu = len(batch)
    try:
        if batch[0].requests[0].request_type == "generate_until":
            return _generated(lm, batch)
        return _probabilities(lm, batch)
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
    if len(batch) == 1:
        raise UserError(
            f"{batch[0].key[1]} of {batch[0].key[0]} does not fit into memory alone; take a scale "
            "that spreads the model (model-parallel, vllm), or a smaller model"
        )
    progress.batch = len(batch) // 2
    progress.halved += 1
    free_memory()
    return None


def out_of_memory(error: Exception) -> bool:
    """Whether an engine's error says that memory ran out, on whatever device."""
    if isinstance(error, MemoryError):
        return True
    from accelerate.utils.memory import should_reduce_batch_size

    # Its words are those of transformers and accelerate; others say it in their own.
    return should_reduce_batch_size(error) or "out of memory" in str(error).lower()


def first_line(error: BaseException) -> str:
    """The first line of an error's text, and its kind's name where it has none."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def free_memory() -> None:
    """Give back what torch holds of GPUs' memory and nothing uses."""
    gc.collect()
    import torch

    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _generated(lm: Any, batch: list[Question]) -> list[dict[str, Any]]:
    texts = lm.generate_until([q.requests[0] for q in batch], disable_tqdm=True)
    known: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for context, text, tokens, end in getattr(lm, "ends", []):
        known.setdefault((context, text), []).append((tokens, end))
    out = []
    for question, text in zip(batch, texts, strict=True):
        if counts := known.get((question.context, text)):
            tokens, end = counts.pop()
        else:
            # An engine that does not say: the text is counted with its tokenizer.
            tokens = _count(lm, text)
            cut = None not in (tokens, question.limit) and tokens >= question.limit
            end = "length" if cut else "stop"
        usage = {"input_tokens": _count(lm, question.context), "output_tokens": tokens}
        out.append(
            {
                "output": text,
                "finish_reason": None if tokens is None else end,
                "token_usage": usage | {"cached_input_tokens": None, "reasoning_tokens": None},
                "answer_tokens": tokens,
            }
        )
    return out


def _count(lm: Any, text: str) -> Any:
    tokenizer = getattr(lm, "tokenizer", None)
    if tokenizer is None:
        return None
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])


def _probabilities(lm: Any, batch: list[Question]) -> list[dict[str, Any]]:
    requests = [request for question in batch for request in question.requests]
    found = iter(lm.loglikelihood(requests, disable_tqdm=True))
    usage = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens")
    out = []
    for question in batch:
        values = [float(next(found)[0]) for _ in question.requests]
        if not all(map(math.isfinite, values)):
            wrong = next(value for value in values if not math.isfinite(value))
            raise UserError(
                f"{question.key[1]} of {question.key[0]}: the log probability of an option is "
                f"{wrong}, which is no number; another dtype (bfloat16, float32) may give one"
            )
        tokens = dict.fromkeys(usage) | {"input_tokens": _count(lm, question.context)}
        out.append({"option_logprobs": values, "token_usage": tokens})
    return out
