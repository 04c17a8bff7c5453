"""Which of lm-eval's model_args decide an answer, told without the paths of a machine."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hk_fs_bench.lm_eval_model import WEIGHTS

# Said elsewhere in a manifest, or no matter of an answer: where the model lies, and how much of it.
LEFT_OUT = frozenset(
    {
        *("pretrained", "revision", "dtype", "enable_thinking", "seed"),
        *("device", "device_map", "parallelize", "offload_folder", "low_cpu_mem_usage"),
        *("max_memory", "max_memory_per_gpu", "max_cpu_memory", "gpu_memory_utilization"),
        *("tensor_parallel_size", "data_parallel_size", "pipeline_parallel_size"),
        *("batch_size", "max_batch_size", "max_num_seqs", "max_num_batched_tokens"),
        *("max_model_len", "swap_space", "cpu_offload_gb", "enforce_eager"),
        "distributed_executor_backend",
    }
)
# Whose value may be a folder or a file of this machine; its content is part of what was asked.
FILES = ("peft", "delta", "lora_local_path", "tokenizer")
_PATH = re.compile(r"/|~[/\\]|\.\.?[/\\]|\\\\|[A-Za-z]:[/\\]")


def recorded(args: Mapping[str, Any]) -> dict[str, Any]:
    """What a manifest keeps of them: JSON values, by name.

    A local adapter or tokenizer is named by the last part of its path and hashed, so that another
    one of that name is another one. A tokenizer's revision counts where it is not the model's.
    """
    found = {}
    for name, value in sorted(args.items()):
        if name in LEFT_OUT or value is None:
            continue
        if name == "tokenizer_revision" and value == args.get("revision"):
            continue
        here = name in FILES and _file(value)
        found[name] = _hashed(here, name) if here else _plain(value)
    return found


def _file(value: Any) -> Path | None:
    path = Path(str(value)).expanduser()
    return path if value and path.exists() else None


def _hashed(path: Path, name: str) -> str:
    # A model's own folder may be named for its tokenizer: its weights decide nothing there.
    without = WEIGHTS if name == "tokenizer" else ()
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    whole = hashlib.sha256()
    for one in files:
        if not any(one.match(pattern) for pattern in without):
            with one.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            whole.update(f"{one.relative_to(path.parent).as_posix()} {digest}\n".encode())
    return f"local/{path.resolve().name} sha256:{whole.hexdigest()}"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and abs(value) < float("inf"):
        return value
    text = str(value)
    return "local/" + re.findall(r"[^/\\]*", text.rstrip("/\\"))[-2] if _PATH.match(text) else text
