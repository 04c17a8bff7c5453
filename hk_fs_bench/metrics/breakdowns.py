"""Accuracy by what the items say of themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from hk_fs_bench.metrics.mcq import NOT_ANNOTATED
from hk_fs_bench.schema import Item
from hk_fs_bench.stats import Estimate

FIELDS = (
    "part",
    "topic",
    "level",
    "engineering_related",
    "edition_sensitive",
    "jurisdiction_cue",
)
# Below this many questions a group shows its interval alone: its value would be read as a rank.
SMALL = 30

Row = Mapping[str, Any]
AnItem = TypeVar("AnItem", bound=Item)


def by_field(
    rows: Sequence[Row],
    items: Mapping[str, AnItem],
    field: str,
    figure: Callable[[Sequence[Row]], Estimate],
) -> dict[str, Any]:
    """A figure for each value of an item field.

    Returns:
        groups: value of the field → the figure, and `small`. Truth is "yes" and "no".
        not_annotated: how many questions lack the field; `reason` where all do.
    """
    groups: dict[str, list[Row]] = defaultdict(list)
    lacking = set()
    for row in rows:
        value = getattr(items[row["item_id"]], field)
        if value is None:
            lacking.add(row["item_id"])
        else:
            groups[{True: "yes", False: "no"}.get(value, value)].append(row)
    found: dict[str, Any] = {"groups": {}, "not_annotated": len(lacking)}
    for name, own in sorted(groups.items()):
        estimate = figure(own)
        found["groups"][name] = estimate.to_json() | {"small": estimate.n < SMALL}
    if not groups:
        found["reason"] = NOT_ANNOTATED if rows else "no answer to count"
    return found
