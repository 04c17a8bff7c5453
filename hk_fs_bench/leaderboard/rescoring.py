"""After an erratum or a new parser: every entry recomputed, and a record of what changed.

`leaderboard/rescored.jsonl` is append-only: when and why figures of record changed. Submissions
stay as they are.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hk_fs_bench.errors import UserError
from hk_fs_bench.leaderboard import building
from hk_fs_bench.leaderboard.building import Built
from hk_fs_bench.leaderboard.changes import changes
from hk_fs_bench.leaderboard.checking import How
from hk_fs_bench.runs import write_text

LOG = "rescored.jsonl"


def rescore(root: Path, how: How, base: str | None = None) -> Built:
    """Build the board anew whatever changes in it; print and log the changes.

    Raises:
        UserError: a file that can't be read or written.
    """
    made, content = building.prepare(root, how, base)
    if content is None:
        return made
    old = building.read(root)
    with building.telling_of(root / building.FILE):
        found = changes(old, content)
    rows = [
        {
            "date": how.today.isoformat(),
            "from": _basis(old),
            "to": _basis(content),
            **{name: value for name, value in change.items() if name not in ("old", "new")},
            "old": change["old"],
            "new": change["new"],
        }
        for change in found
    ]
    path = root / LOG
    try:
        log = path.read_text("utf-8") if path.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} can't be read: {error}") from None
    building.write(root, how, content, made)
    if rows:
        write_text(path, log + "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    made.done += [
        f"{r['entry']}: {r['task']}: {r['figure']}: {r['old']} → {r['new']}" for r in rows
    ]
    made.done.append(f"{len(rows)} figures changed" + (f", logged in {LOG}" if rows else ""))
    return made


def _basis(board: dict[str, Any] | None) -> dict[str, str] | None:
    """What figures stand on: the edition, the parser, the package."""
    if board is None:
        return None
    return {"dataset": board["dataset"]["version"], **board.get("software", {})}
