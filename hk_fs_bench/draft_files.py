"""Draft into files: candidates as items, and beside them every answer that is none, and why."""

from __future__ import annotations

import json
import os
from itertools import chain
from pathlib import Path

from hk_fs_bench import code_index, drafting
from hk_fs_bench.errors import UserError


def write_drafts(
    index: Path,
    base_url: str,
    model: str,
    key_from: str,
    out: Path,
    kind: drafting.Type,
    part: str | None,
    count: int,
    seed: int,
) -> dict[str, object]:
    """Draft `count` candidates; both files grow as answers come, so that none is lost.

    Args:
        index: the PDF of the Code.
        key_from: the environment variable that holds the server's key, if it wants one.
        out: JSONL of items; faulty answers go beside it, into `faults_path(out)`.

    Returns:
        Counts for people, and the faults one by one.

    Raises:
        UserError: `out` exists, or what `drafting.draft` raises; what came before it is kept.
    """
    faults = faults_path(out)
    for path in (out, faults):
        if path.exists():
            raise UserError(f"{path} exists; name another file, or delete it")
    groups = drafting.pick_sources(code_index.build_index(index), part, count, seed)
    from openai import OpenAI

    client = OpenAI(base_url=base_url, api_key=os.environ.get(key_from) or "none")
    good, bad = 0, []
    drafts = drafting.draft(client, model, groups, kind)
    # A call that is refused at once leaves no file behind.
    first = next(drafts)
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", encoding="utf-8") as items, faults.open("w", encoding="utf-8") as lost:
        for one in chain([first], drafts):
            if one.item is not None:
                items.write(json.dumps(one.item) + "\n")
                items.flush()
                good += 1
                continue
            bad.append(f"{', '.join(one.sources)}: {one.fault}")
            row = {"sources": one.sources, "fault": one.fault, "raw": one.raw}
            lost.write(json.dumps(row) + "\n")
            lost.flush()
    numbered = {f"fault {n}": text for n, text in enumerate(bad, 1)}
    return {"candidates": f"{good} in {out}", "faulty": f"{len(bad)} in {faults}", **numbered}


def faults_path(out: Path) -> Path:
    """Where the faulty answers of a draft go."""
    return out.with_suffix(".faults.jsonl")
