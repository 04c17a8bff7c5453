"""What a branch may touch: submissions that stand at the merge base never change.

git is asked for names only; nothing of the branch is run, and none of its filters.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from hk_fs_bench.errors import UserError

_MAIN = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
# A checkout must not choose programs that git starts.
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")


@dataclass(frozen=True)
class History:
    """`base`: the commit that the working tree is held against; None outside git.

    `old`: the submissions that it holds. `touched`: files of these that differ now. `elsewhere`:
    files outside the submissions that differ.
    """

    base: str | None
    old: frozenset[str] = frozenset()
    touched: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


def read(submissions: Path, base: str | None = None) -> History:
    """How the working tree stands to the merge base.

    Args:
        submissions: the folder of submissions.
        base: a commit or branch; by default the main branch, as the remote or else this clone
            has it.

    Raises:
        UserError: `base` is none.
    """
    top = _git(submissions.parent, "rev-parse", "--show-toplevel")
    if top is None:
        if base is not None:
            raise UserError(
                f"{submissions} lies in no git repository, so {base} is no commit of it"
            )
        return History(None)
    root = Path(top.strip())
    inside = submissions.resolve().relative_to(root.resolve()).as_posix()
    start = _merge_base(root, base)
    if start is None:
        return History(None)
    listed = _git(root, "ls-tree", "-r", "-z", "--name-only", start, "--", f"{inside}/") or ""
    before = {name for name in listed.split("\0") if name}
    old = frozenset(name.removeprefix(f"{inside}/").split("/")[0] for name in before)
    changed = _changed(root, start)
    touched = [
        name
        for name in changed
        if name.startswith(f"{inside}/") and name.removeprefix(f"{inside}/").split("/")[0] in old
    ]
    elsewhere = [name for name in changed if not name.startswith(f"{inside}/")]
    return History(start, old, tuple(touched), tuple(elsewhere))


def _merge_base(root: Path, base: str | None) -> str | None:
    for name in (base,) if base is not None else _MAIN:
        if name.startswith("-"):
            raise UserError(f"{name} is no commit")
        if found := _git(root, "merge-base", "HEAD", name):
            return found.strip()
    if base is not None:
        raise UserError(f"git knows no common commit of HEAD and {base}; fetch it, or name another")
    return None


def _changed(root: Path, start: str) -> list[str]:
    """Files that differ from a commit: committed since, in the index, in the tree, or new."""
    options = ("--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv")
    differing = _git(root, "diff", *options, start, "--") or ""
    new = _git(root, "ls-files", "-z", "--others", "--exclude-standard") or ""
    return sorted({name for name in (differing + new).split("\0") if name})


def _git(folder: Path, *words: str) -> str | None:
    """What git says, None where it fails or there is none."""
    try:
        done = subprocess.run(
            ["git", *_SAFE, *words], cwd=folder, capture_output=True, timeout=120, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None
