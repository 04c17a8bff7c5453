"""What differs between two boards in the figures of entries that both have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_FIGURES = ("accuracy", "accuracy_on_valid", "non_conservative", "invalid_rate")
# What of a figure may change: its value under its own name, the others named beside it.
_PARTS = {"value": "", "n": ", n", "ci95": ", 95% interval"}
_CONTEXT = "context"


def changes(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row a figure that changed: `entry`, `task`, `figure`, `old`, `new`; n or the interval
    where only that changed. New and vanished entries are none."""
    before = {entry["slug"]: entry for entry in (old or {}).get("entries", [])}
    return [
        {"entry": entry["slug"], "task": task, "figure": name, "old": was, "new": now}
        for entry in new["entries"]
        if entry["slug"] in before
        for task, name, was, now in _differing(before[entry["slug"]], entry)
    ]


def _differing(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[tuple[str, str, Any, Any]]:
    before = {(task, name): figure for task, name, figure in _figures(old)}
    after = {(task, name): figure for task, name, figure in _figures(new)}
    for task, name in dict.fromkeys([*before, *after]):
        if task != _CONTEXT and task not in new["tasks"]:
            continue
        was, now = before.get((task, name), {}), after.get((task, name), {})
        for part, beside in _PARTS.items():
            if was.get(part) != now.get(part):
                yield task, f"{name}{beside}", was.get(part), now.get(part)
                break


def _figures(entry: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(task, name, figure) of all that is recomputed."""
    for task, own in entry["tasks"].items():
        for name in _FIGURES:
            if name in own:
                yield task, name, own[name]
        for name, figure in (own.get("metrics") or {}).items():
            yield task, name, figure
        for field, groups in (own.get("by") or {}).items():
            for group, figure in groups.items():
                yield task, f"{field} {group}", figure
    if entry.get("context"):
        yield _CONTEXT, "difference", entry["context"]["difference"]
