"""Submissions that were found clean, and what follows from them: a second look is quick.

They lie in the user's cache, under names made of the submission's bytes, the edition and this
package's own source: nothing that went into a verdict or a figure can change behind it. Only
clean ones are kept.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hk_fs_bench import prompts
from hk_fs_bench.errors import UserError
from hk_fs_bench.leaderboard import entries, schemas
from hk_fs_bench.runs import write_bytes

_LIBRARIES = ("numpy", "pycocoevalcap", "rapidfuzz")


def path_of(folder: Path, *basis: object) -> Path | None:
    """Where a submission's result lies if there is one; None for a folder that can't be read.

    Args:
        basis: what else decides the result, such as the edition's sha256.
    """
    if (content := entries.digest(folder)) is None:
        return None
    text = "|".join([_code(), content, *map(str, basis)])
    return _folder() / f"{hashlib.sha256(text.encode()).hexdigest()}.json"


def read(path: Path | None, names: Sequence[str]) -> dict[str, Any] | None:
    """What was kept under these names, or None; a file that can't be used is as good as none."""
    if path is None:
        return None
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.keys() >= set(names) else None


def write(path: Path | None, value: dict[str, Any]) -> None:
    """Keep a result; a disk that takes none is no fault."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, json.dumps(value).encode())
    except (OSError, UserError):
        return


def _folder() -> Path:
    """$XDG_CACHE_HOME/hk-fs-bench/leaderboard, or under ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "hk-fs-bench" / "leaderboard"


@cache
def _code() -> str:
    """The hash of all that decides a figure here: this package, the tasks, the schema."""
    root = Path(__file__).resolve().parent.parent
    paths = [p for p in root.rglob("*.py") if "site" not in p.relative_to(root).parts]
    paths += [*root.glob("data/*"), *prompts.tasks_folder().glob("*")]
    paths += schemas.schema_folder().glob("*.json")
    digest = hashlib.sha256("|".join(map(version, _LIBRARIES)).encode())
    for path in sorted(paths):
        if path.is_file():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.name} {content}\n".encode())
    return digest.hexdigest()
