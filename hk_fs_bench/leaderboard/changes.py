"""What differs between two boards in the figures of entries that both have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_FIGURES = ("accuracy", "accuracy_on_valid", "non_conservative", "invalid_rate")


def changes(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row a figure that changed: `entry`, `task`, `figure`, `old`, `new`; n where only that
    changed. New and vanished entries are none."""
    before = {entry["slug"]: entry for entry in (old or {}).get("entries", [])}
    return [
        {"entry": entry["slug"], "task": task, "figure": name, "old": was, "new": now}
        for entry in new["entries"]
        if entry["slug"] in before
        for task, figures in entry["tasks"].items()
        for name, was, now in _differing(before[entry["slug"]]["tasks"].get(task), figures)
    ]


def _differing(
    old: Mapping[str, Any] | None, new: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    before, after = dict(_figures(old or {})), dict(_figures(new))
    for name in dict.fromkeys([*before, *after]):
        was, now = before.get(name) or {}, after.get(name) or {}
        if was.get("value") != now.get("value"):
            yield name, was.get("value"), now.get("value")
        elif was.get("n") != now.get("n"):
            yield f"{name}, n", was.get("n"), now.get("n")


def _figures(task: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name in _FIGURES:
        if name in task:
            yield name, task[name]
    yield from (task.get("metrics") or {}).items()
