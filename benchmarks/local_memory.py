"""Peak memory of a GPU or of this process, and how it grows with the batch."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from local_contenders import Bench


def reset_peak(device: str) -> None:
    """From here on, what `peak` tells begins with what is in use now."""
    from hk_fs_bench.local_batches import free_memory

    free_memory()
    if device == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats()
        return
    with contextlib.suppress(OSError, AttributeError):
        # What was freed stays with the process, and would hide what comes next. Only glibc has it.
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak(device: str) -> float | None:
    """Bytes at most since the reset, of the GPU or of this process; None where nothing tells."""
    if device == "cuda":
        import torch

        return float(torch.cuda.max_memory_allocated())
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return 1024.0 * int(line.split()[1])
    return None


def in_a_process(words: list[str]) -> list[str]:
    """The lines of another process, which is told to give every freed tensor back at once.

    Else the heap keeps blocks of tensors that grow with every step between others in use, and a
    batch's peak depends on what came before it. That costs time, so no speed is measured there.
    """
    told = os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run([sys.executable, *words], stdout=subprocess.PIPE, text=True, env=told)
    return done.stdout.splitlines() if done.returncode == 0 else ["peak memory: not measured"]


def lines(bench: Bench) -> list[str]:
    """Peak memory at several batch sizes, and its growth beside what arithmetic says."""
    from hk_fs_bench.hf_model import answer_bytes
    from hk_fs_bench.local_batches import length, out_of_memory

    args = bench.args
    new, most = args.alone_new, args.batch
    longest = bench.longest()
    said = [f"peak memory, {new} new tokens, the longest prompts:"]
    found: list[tuple[int, float]] = []
    for size in sorted(
        {min(max(1, size), len(longest)) for size in (1, most // 4, most // 2, most)}
    ):
        reset_peak(args.device)
        try:
            bench.batch(longest[:size], new)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            said.append(f"  batch {size}: memory ran out")
            break
        if (bytes_ := peak(args.device)) is None:
            return ["peak memory: not known on this system"]
        found.append((size, bytes_))
        said.append(f"  batch {size}: {bytes_ / 1e9:.2f} GB")
    reset_peak(args.device)
    if len(found) > 1:
        (small, low), (large, high) = found[0], found[-1]
        tokens = length(bench.lm, longest[0])
        shape = bench.lm.model.config.get_text_config()
        counted = answer_bytes(shape, bench.lm.model.dtype, tokens, new) or 0.0
        said.append(
            f"  growth: {(high - low) / (large - small) / 1e6:.1f} MB an answer of the batch; of "
            f"{tokens} + {new} tokens, for which a run counts {counted / 1e6:.1f} MB"
        )
    return said
