"""Checked submissions → the content of leaderboard.json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from hk_fs_bench import __version__, answers, comparing, prompts
from hk_fs_bench.leaderboard import claims, flags, human_baseline, ranking, studies
from hk_fs_bench.leaderboard.checking import Checked
from hk_fs_bench.leaderboard.editions import Editions
from hk_fs_bench.leaderboard.recompute import STATUS_LETTERS, Recomputed
from hk_fs_bench.leaderboard.validating import echoes_of, superseded
from hk_fs_bench.stats import proportion

SCHEMA_VERSION = 1
DIGITS = 6
VERIFIED, RECORDED, REPORTED = "verified", "recorded", "self-reported"
# Of an entry: every figure is verified but METEOR or BERTScore, which are recorded.
PARTLY = "partly recorded"
# Groups of questions that a page of an entry shows.
GROUPS = ("part", "level", "engineering_related")
_FIGURE = ("value", "n", "unit", "ci95", "interval", "p", "test", "reason", "signature")
_MORE = ("errors", "not_annotated", "only_first", "only_second", "small")
_ORDER = ("hk_fs_mcq_hk", "hk_fs_mcq_nohk", "hk_fs_oeq")

Figures = Mapping[str, Any]


def assemble(checked: Sequence[Checked], editions: Editions, folder: Path) -> dict[str, Any]:
    """The board of submissions without a fault.

    Args:
        folder: the leaderboard's, for its studies.
    """
    dataset = editions.current
    found = sorted(checked, key=lambda one: one.slug)
    manifests = {one.slug: one.manifest or {} for one in found}
    gone, echoed = superseded(manifests), echoes_of(found)
    families = flags.families(dataset, editions.folder)
    rated = studies.read(folder / "studies")
    entries = []
    for one in found:
        assert one.manifest is not None
        assert one.recomputed is not None
        entry = _entry(one.manifest, one.recomputed, rated) | {
            "superseded_by": gone.get(one.slug),
            "flags": flags.of_entry(
                one.manifest,
                one.recomputed["scores"],
                searched=one.recomputed["searched"],
                families=families,
                superseded_by=gone.get(one.slug),
                echo=echoed.get(one.slug),
                current=str(dataset.version),
            ),
            "differences": one.differences,
        }
        entry["ranked"] = not any(flag["bars_rank"] for flag in entry["flags"])
        entries.append(entry)
    shares = {one.slug: one.recomputed["shares"] for one in found if one.recomputed}
    tasks = _in_order({task for entry in entries for task in entry["tasks"]})
    content: dict[str, Any] = rounded(
        {
            "schema_version": SCHEMA_VERSION,
            "dataset": {
                "version": dataset.version,
                "sha256": dataset.sha256,
                "canary": editions.manifest.get("canary"),
                "items": {
                    split.split("/")[0]: len(items)
                    for split, items in dataset.splits.items()
                    if split.endswith("/test")
                },
            },
            "software": {"hk_fs_bench": __version__, "parser": answers.PARSER_VERSION},
            "families": families,
            "status_letters": {letter: status for status, letter in STATUS_LETTERS.items()},
            "questions": {
                task: [item.id for item in dataset.items(prompts.load_task(task).subset)]
                for task in tasks
            },
            "leagues": _leagues(entries, shares, tasks),
            "entries": entries,
            "human_baseline": human_baseline.read(folder / "studies"),
            "paper": _paper(),
        }
    )
    return content


def _entry(
    manifest: Figures, found: Recomputed, rated: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    run, sha256 = manifest["run"], manifest["predictions"]["sha256"]
    tasks = {task: _task(task, manifest, found) for task in _in_order(found["scores"]["tasks"])}
    metrics = [m for t in tasks.values() for m in (t.get("metrics") or {}).values()]
    return {
        "slug": manifest["slug"],
        "name": comparing.label(run["model"]),
        **{name: manifest[name] for name in ("submitter", "date", "kind", "supersedes")},
        "superseded_by": None,
        **{name: manifest[name] for name in ("links", "notes", "declaration", "key")},
        "model": run["model"],
        "protocol": run["protocol"],
        "price": run.get("price"),
        "software": run.get("software"),
        "predictions": {"sha256": sha256, "rows": manifest["predictions"]["rows"]},
        "asked_on": run["protocol"]["dataset_version"],
        "label": PARTLY if any(m["label"] == RECORDED for m in metrics) else VERIFIED,
        "flags": [],
        "ranked": True,
        "warnings": found["scores"]["warnings"],
        "tasks": tasks,
        "context": _context(found["scores"]["context"]),
        "human": rated.get("expert", {}).get(sha256),
        "judge": rated.get("model", {}).get(sha256),
        "differences": [],
    }


def _task(task: str, manifest: Figures, found: Recomputed) -> dict[str, Any]:
    own = found["scores"]["tasks"][task]
    unread = own["answered"] - own["readable"]
    out: dict[str, Any] = {
        "signature": own["signature"],
        "league": ranking.league_of(own["signature"]),
        **{name: own[name] for name in ("items", "answered", "readable", "samples")},
        "invalid_rate": figure(proportion(unread, own["answered"], "answers").to_json()),
        "statuses": own["statuses"],
        "failures": found["failures"][task],
        **{name: own[name] for name in ("contaminated", "over_limit")},
        "tokens": {name: _mean(value) for name, value in own["tokens"].items()},
        "seconds": _mean(own["seconds"]),
        "usd": _mean(_money(own["usd"], "mean", manifest)),
        "outcomes": found["outcomes"][task],
    }
    if "metrics" in own:
        metrics = {n: figure(f) for n, f in own["metrics"].items() if not claims.is_recorded(n)}
        stated = manifest["scores"][task].get("metrics") or {}
        metrics |= {n: figure(f, RECORDED) for n, f in stated.items() if claims.is_recorded(n)}
        return out | {"metrics": dict(sorted(metrics.items()))}
    return out | {
        **{name: figure(own[name]) for name in claims.FIGURES},
        "per_correct": {
            n: _ratio(_money(f, "value", manifest) if n == "usd" else f)
            for n, f in own["per_correct"].items()
        },
        "by": {name: _groups(own["by"][name]) for name in GROUPS},
        "rank": None,
    }


def figure(found: Figures, label: str = VERIFIED) -> dict[str, Any]:
    """A figure of scores.json as the board has it."""
    return {n: found[n] for n in (*_FIGURE, *_MORE) if n in found} | {"label": label}


def _money(found: Figures, name: str, manifest: Figures) -> Figures:
    """A cost; null where a machine of the submitter's own has no price, for it is not free."""
    if manifest["run"]["model"].get("deployment") == "api" or found[name] != 0:
        return found
    reason = "ran on a machine of the submitter's own, whose cost is not known"
    return {**found, name: None, "n": 0, "ci95": None, "reason": reason}


def _mean(found: Figures) -> dict[str, Any]:
    names = ("mean", "n", "unit", "ci95", "interval", "reason", "definition", "signature")
    return {name: found[name] for name in names if name in found} | {"label": REPORTED}


def _ratio(found: Figures) -> dict[str, Any]:
    names = ("value", "n", "unit", "ci95", "interval", "reason", "signature")
    return {name: found[name] for name in names if name in found} | {"label": REPORTED}


def _groups(found: Figures) -> dict[str, Any]:
    """A breakdown; the signature stands with the figure over all."""
    groups = {value: figure(one) for value, one in found["groups"].items()}
    for one in groups.values():
        one.pop("signature", None)
    return groups


def _context(found: Figures | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "tasks": found["tasks"],
        "difference": figure(found["difference"]),
        "by_jurisdiction_cue": _groups(found["by_jurisdiction_cue"]),
    }


def _leagues(
    entries: Sequence[dict[str, Any]], shares: Figures, tasks: Sequence[str]
) -> dict[str, Any]:
    """Every league by name; the entries' ranks are written into them."""
    found: dict[str, Any] = {}
    for task in tasks:
        leagues: dict[str, dict[str, dict[str, Any]]] = {}
        for entry in entries:
            if task in entry["tasks"]:
                leagues.setdefault(entry["tasks"][task]["league"], {})[entry["slug"]] = entry
        for name, members in sorted(leagues.items()):
            own = {
                slug: shares[slug][task]
                for slug, entry in members.items()
                if entry["ranked"] and task in shares[slug]
            }
            ranks = ranking.rank(own)
            for slug, rank in ranks.items():
                members[slug]["tasks"][task]["rank"] = rank
            signature = next(iter(members.values()))["tasks"][task]["signature"]
            protocol = ranking.protocol_of(signature)
            about = {"task": task, "protocol": protocol, "level": comparing.LEVEL}
            found[name] = about | {"entries": list(ranks)}
    return found


def _in_order(tasks: Any) -> list[str]:
    return sorted(tasks, key=lambda t: (_ORDER.index(t) if t in _ORDER else len(_ORDER), t))


def _paper() -> dict[str, Any]:
    text = resources.files("hk_fs_bench").joinpath("data/paper_table3.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def rounded(value: Any) -> Any:
    """Every number of a JSON value with at most DIGITS decimals, so that machines agree."""
    if isinstance(value, float):
        return round(value, DIGITS) + 0.0
    if isinstance(value, Mapping):
        return {name: rounded(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner) for inner in value]
    return value


def to_text(board: Figures) -> str:
    """leaderboard.json: a line for each entry, so that a diff shows whose figures changed."""

    def compact(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))

    parts = []
    for name, value in board.items():
        if name == "entries" and value:
            lines = ",\n".join(compact(entry) for entry in value)
            parts.append(f'"entries":[\n{lines}\n]')
        else:
            parts.append(f"{compact(name)}:{compact(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
