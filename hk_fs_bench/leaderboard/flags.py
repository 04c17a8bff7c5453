"""What a reader must know of an entry beside its figures, and what keeps it out of the ranks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hk_fs_bench.items import Dataset, jsonl_rows
from hk_fs_bench.leaderboard.echoes import Echo

# A family is named in words ("Claude (Anthropic)"), a model by an id; shorter runs of letters
# (v, b, it, ai) belong to all of them.
_LETTERS = re.compile(r"[a-z]{3,}")

Families = Mapping[str, Sequence[str]]


def families(dataset: Dataset, folder: Path) -> dict[str, list[str]]:
    """Model families that wrote (`drafters`) or checked (`reviewers`) the questions, by the
    dataset's own record."""
    items = [item for split in dataset.splits.values() for item in split]
    drafters = {item.provenance.drafter for item in items if item.provenance}
    path = folder / "reviews.jsonl"
    raw = path.read_bytes() if path.is_file() else b""
    reviewers = {row.get("model_family") for _, row in jsonl_rows(raw, path.name)}
    return {
        "drafters": sorted(drafters),
        "reviewers": sorted(str(one) for one in reviewers if one),
    }


def is_of(model: Mapping[str, Any], family: str) -> bool:
    """Whether a model is of a family, by any of the names that a run has for it."""
    names = [model["id"], model.get("requested_id"), *(model.get("returned_ids") or [])]
    own = set(_LETTERS.findall(" ".join(filter(None, names)).lower()))
    return bool(own & set(_LETTERS.findall(family.lower())))


def of_entry(
    manifest: Mapping[str, Any],
    scores: Mapping[str, Any],
    *,
    searched: int,
    families: Families,
    superseded_by: str | None,
    echo: Echo | None,
    current: str,
) -> list[dict[str, Any]]:
    """The flags of an entry, as in leaderboard.json.

    Args:
        scores: the content of its scores.json.
        searched: answers whose rows name sources.
        echo: whose words it gives under another model's name.
        current: the version of the edition on which the board stands.
    """
    found = _flags(manifest, scores, searched, families, superseded_by, echo, current)
    return [{"kind": kind, "text": text, "bars_rank": bars} for kind, text, bars in found]


def _flags(
    manifest: Mapping[str, Any],
    scores: Mapping[str, Any],
    searched: int,
    families: Families,
    superseded_by: str | None,
    echo: Echo | None,
    current: str,
) -> Iterator[tuple[str, str, bool]]:
    model = manifest["run"]["model"]
    if superseded_by is not None:
        yield "superseded", f"corrected by {superseded_by}", True
    if model["search"] == "on":
        yield "search", "looks things up, and questions and keys are public", True
    elif searched:
        yield "search", f"{searched} answers name sources that were looked up", True
    elif model["search"] == "unknown":
        yield "search", "whether it looks things up is not known", False
    for kind, role, names in (
        ("drafter_family", "drafted", families["drafters"]),
        ("reviewer_family", "reviewed", families["reviewers"]),
    ):
        if own := _first(names, model):
            yield kind, f"of the model family that {role} the questions: {own}", True
    if looked := sum(figures["contaminated"] for figures in scores["tasks"].values()):
        yield "contaminated", f"{looked} answers after a look at this benchmark's address", True
    declared = manifest["declaration"]["contamination"]
    if declared != "none_known":
        text = {"known": "it has", "possible": "it may have"}[declared]
        yield (
            "declared_contamination",
            f"by its submitter, {text} seen these questions or keys",
            declared == "known",
        )
    if manifest["kind"] == "plumbing_check":
        yield "plumbing_check", "proves that the parts work; its figures say nothing else", True
    if echo is not None:
        yield "same_answers", echo.told, False
    if (asked := manifest["run"]["protocol"]["dataset_version"]) != current:
        yield "other_edition", f"asked on edition {asked}, scored on {current}", False


def _first(names: Iterable[str], model: Mapping[str, Any]) -> str | None:
    return next((name for name in names if is_of(model, name)), None)
