"""The data's changelog: what a release added, changed and removed."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

HEAD = "# Changelog of the data\n\nNewest first. `errata.jsonl` has the old and new values.\n"


def entry(manifest: Mapping[str, Any], errata: Sequence[Mapping[str, Any]]) -> str:
    """The entry of the manifest's own version, against the release before it."""
    versions = manifest["versions"]
    version = manifest["version"]
    names = list(versions)
    place = names.index(version)
    now = _hashes(versions[version])
    before = _hashes(versions[names[place - 1]]) if place else {}
    changed = [name for name in now if name in before and now[name] != before[name]]
    lines = [f"## {version} ({versions[version]['date']})", ""]
    lines += _count(manifest)
    lines += _list("added", [name for name in now if name not in before])
    lines += _list("removed", [name for name in before if name not in now])
    lines += _list("changed", changed)
    lines += _reasons([row for row in errata if row["version"] == version])
    return "\n".join(lines) + "\n"


def add(text: str, new: str) -> str:
    """The changelog with a new entry on top."""
    rest = text.removeprefix(HEAD).lstrip("\n")
    return f"{HEAD}\n{new}" + (f"\n{rest}" if rest else "")


def versions(text: str) -> list[str]:
    """The versions that have an entry, newest first."""
    return re.findall(r"^## (\S+) \(", text, re.MULTILINE)


def _hashes(version: Mapping[str, Any]) -> dict[str, str]:
    return {n: sha for entry in version["splits"].values() for n, sha in entry["ids"].items()}


def _count(manifest: Mapping[str, Any]) -> list[str]:
    counts = [f"{split} {entry['items']}" for split, entry in manifest["splits"].items()]
    return [f"- items: {', '.join(counts)}"]


def _list(what: str, names: Sequence[str]) -> list[str]:
    return [f"- {what} ({len(names)}): {', '.join(spans(names))}"] if names else []


def _reasons(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Changes of one item for one reason in one line."""
    fields: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows:
        if row["field"] != "revised":
            fields[row["item"], row["reason"]].append(row["field"] or "withdrawn")
    for (item, reason), names in fields.items():
        yield f"  - {item} ({', '.join(names)}): {reason}"


def spans(names: Iterable[str]) -> list[str]:
    """Ids in order, with runs of consecutive numbers as one: mcq-0001 to mcq-0120."""
    out: list[list[str]] = []
    for name in sorted(names):
        match = re.fullmatch(r"(.*?)(\d+)", name)
        last = re.fullmatch(r"(.*?)(\d+)", out[-1][-1]) if out else None
        if match and last and match[1] == last[1] and int(match[2]) == int(last[2]) + 1:
            out[-1].append(name)
        else:
            out.append([name])
    return [run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in out]
