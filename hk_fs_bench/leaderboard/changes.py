"""What differs between two boards in the figures of entries that both have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

# What of a figure may change: its value or mean under its own name, the others named beside it.
_PARTS = {"value": "", "mean": "", "n": ", n", "ci95": ", 95% interval"}
# Of a task: what follows from other entries too, names what the figures are of, or repeats them.
_NO_FIGURES = ("rank", "league", "signature", "outcomes", "failures")
# Levels of a task's content that only group figures.
_GROUPS = ("metrics", "by", "groups")
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
    for task in (*new["tasks"], _CONTEXT):
        before, after = dict(_figures(old, task)), dict(_figures(new, task))
        for name in dict.fromkeys([*before, *after]):
            was, now = before.get(name, {}), after.get(name, {})
            for part, beside in _PARTS.items():
                if was.get(part) != now.get(part):
                    yield task, f"{name}{beside}", was.get(part), now.get(part)
                    break


def _figures(entry: Mapping[str, Any], task: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(name, figure) of a task, or of the context."""
    held = (entry.get(_CONTEXT) if task == _CONTEXT else entry["tasks"].get(task)) or {}
    yield from _walked({name: own for name, own in held.items() if name not in _NO_FIGURES}, ())


def _walked(
    held: Mapping[str, Any], way: tuple[str, ...]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if "value" in held or "mean" in held:
        yield " ".join(way), held
        return
    for name, inner in held.items():
        deeper = way if name in _GROUPS else (*way, name)
        if isinstance(inner, Mapping):
            yield from _walked(inner, deeper)
        elif isinstance(inner, int | float):
            # A count, as of a status.
            yield " ".join(deeper), {"value": inner}
