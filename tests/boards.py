"""Invented boards that hold the schema: for the tests of what reads leaderboard.json."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hk_fs_bench.answers import STATUSES
from hk_fs_bench.items import Dataset
from hk_fs_bench.stats import proportion

CHOICE = ("hk_fs_mcq_hk", "hk_fs_mcq_nohk")
OPEN = "hk_fs_oeq"
LETTERS = {"valid": "v", "refused": "f", "empty": "e"}
LEAGUE = "0123456789ab"


def figure(hits: float, n: int, label: str = "verified", **more: Any) -> dict[str, Any]:
    """A share with Wilson's interval."""
    found = proportion(hits, n).to_json()
    ci95 = None if found["ci95"] is None else [round(x, 6) for x in found["ci95"]]
    known = {"value": None, "reason": "no answer to count"}
    value = known if found["value"] is None else {"value": round(found["value"], 6)}
    return value | {"n": n, "unit": "questions", "ci95": ci95, "label": label} | more


def mean(value: float | None, n: int = 1) -> dict[str, Any]:
    """A mean of what the run counted, with an interval."""
    known = {"label": "self-reported", "unit": "an answer"}
    if value is None:
        return known | {"mean": None, "n": 0, "ci95": None, "reason": "the run has no price"}
    return known | {"mean": value, "n": n, "ci95": [round(0.9 * value, 6), round(1.1 * value, 6)]}


def choice_figures(
    dataset: Dataset, ids: Sequence[str], skill: float, seed: int, price: float | None
) -> dict[str, Any]:
    """Figures of a multiple-choice task from answers drawn at random."""
    draw = random.Random(seed)
    items = [dataset.by_id[name] for name in ids]
    chosen = []
    for item in items:
        if draw.random() < 0.03:
            chosen.append(".")
        elif draw.random() < skill:
            chosen.append(item.answer)
        else:
            chosen.append(draw.choice([x for x in "ABCD" if x != item.answer]))
    right = [letter == item.answer for letter, item in zip(chosen, items, strict=True)]
    unsafe = [
        letter in item.distractors and item.distractors[letter].risk == "unsafe"
        for letter, item in zip(chosen, items, strict=True)
    ]
    n, unread = len(ids), chosen.count(".")
    by = {}
    for field in ("part", "level"):
        groups: dict[str, list[bool]] = {}
        for item, hit in zip(items, right, strict=True):
            groups.setdefault(getattr(item, field), []).append(hit)
        by[field] = {
            value: figure(sum(hits), len(hits), small=len(hits) < 30)
            for value, hits in sorted(groups.items())
        }
    return {
        "accuracy": figure(sum(right), n),
        "accuracy_on_valid": figure(sum(right), n - unread),
        "non_conservative": figure(sum(unsafe), n, errors={"unsafe": sum(unsafe)}, not_annotated=0),
        "by": by,
        "rank": None,
        "per_correct": {
            "tokens": {"value": 400.0, "label": "self-reported"},
            "seconds": {"value": 4.0, "label": "self-reported"},
            "usd": {"value": price, "label": "self-reported"}
            | ({} if price else {"reason": "the run has no price"}),
        },
        **common(n, unread, price),
        "outcomes": {
            "status": "".join("f" if letter == "." else "v" for letter in chosen),
            "chosen": "".join(chosen),
        },
    }


def common(n: int, unread: int, price: float | None) -> dict[str, Any]:
    statuses = dict.fromkeys(STATUSES, 0) | {"valid": n - unread, "refused": unread}
    failures = [{"status": "refused", "cause": "refusal in the text", "n": unread}]
    return {
        "signature": "task:x@1.0|data:1.0.0@0|prompt:0|regime:greedy|parser:1",
        "league": LEAGUE,
        "items": n,
        "answered": n,
        "readable": n - unread,
        "samples": 1,
        "invalid_rate": figure(unread, n),
        "statuses": statuses,
        "failures": failures if unread else [],
        "contaminated": 0,
        "over_limit": {"limit": 512, "n": 0, "unknown": 0},
        "tokens": {
            "input": mean(231.5, n),
            "cached_input": mean(0.0, n),
            "output": mean(120.25, n),
            "reasoning": mean(None),
        },
        "seconds": mean(2.75, n) | {"definition": "latency of the answering call"},
        "usd": mean(price, n),
    }


def open_figures(
    ids: Sequence[str], skill: float, seed: int, price: float | None
) -> dict[str, Any]:
    draw = random.Random(seed)
    rows = {
        name: [round(scale * skill * draw.uniform(0.5, 1), 6) for _ in ids]
        for name, scale in (("rouge_l", 0.3), ("meteor", 0.35))
    }
    n = len(ids)
    metrics = {
        "bleu4": figure(0.08 * skill * n, n),
        "meteor": figure(sum(rows["meteor"]), n, "recorded"),
        "rouge_l": figure(sum(rows["rouge_l"]), n),
        "cites": figure(n // 2, n),
        "citations_exist": figure(round(0.9 * n), n),
        "citations_hit": figure(n // 3, n),
    }
    outcomes = {"status": "v" * n, "rows": rows}
    return common(n, 0, price) | {"metrics": metrics, "rank": None, "outcomes": outcomes}


def entry(
    dataset: Dataset,
    questions: Mapping[str, Sequence[str]],
    number: int,
    name: str,
    skill: float,
    price: float | None = None,
    flags: Sequence[str] = (),
    **more: Any,
) -> dict[str, Any]:
    """An entry of a board; `flags` are kinds, and any bars it from the ranks."""
    tasks: dict[str, Any] = {
        task: choice_figures(dataset, questions[task], skill - n / 40, 1000 * number + n, price)
        for n, task in enumerate(CHOICE)
    }
    tasks[OPEN] = open_figures(questions[OPEN], skill, number, price)
    left = tasks[CHOICE[0]]["accuracy"]["value"] - tasks[CHOICE[1]]["accuracy"]["value"]
    n = len(questions[CHOICE[0]])
    difference = figure(0, n) | {
        "value": round(left, 6),
        "ci95": [round(left - 0.04, 6), round(left + 0.04, 6)],
    }
    made = {
        "slug": f"entry-{number}-{number:010x}",
        "name": name,
        "submitter": {"login": "someone", "name": None},
        "date": "2026-11-29",
        "kind": "plumbing_check" if "plumbing_check" in flags else "result",
        "supersedes": None,
        "superseded_by": None,
        "links": {"model": "https://example.org/model"},
        "notes": None,
        "declaration": {
            "contamination": "none_known",
            "outputs_unaltered": True,
            "statement": None,
        },
        "key": {"model": name},
        "model": {
            "id": name,
            "provider": "example" if price else None,
            "mode": "none",
            "search": "off",
            "deployment": "api" if price else "local",
        },
        "protocol": {"regime": "greedy"},
        "price": {"input": 1, "output": 4, "date": "2026-11-01", "source": "https://example.org"}
        if price
        else None,
        "software": None,
        "predictions": {"sha256": f"{number:064x}", "rows": sum(map(len, questions.values()))},
        "asked_on": dataset.version,
        "label": "partly recorded",
        "flags": [{"kind": k, "text": f"Because of {k}.", "bars_rank": True} for k in flags],
        "ranked": not flags,
        "warnings": [],
        "tasks": tasks,
        "context": {
            "tasks": list(CHOICE),
            "difference": difference,
            "by_jurisdiction_cue": {"explicit": difference, "none": difference},
        },
        "human": None,
        "judge": None,
        "differences": [],
    }
    return made | more


def board(
    dataset: Dataset, entries: Sequence[Mapping[str, Any]], most: int = 10_000
) -> dict[str, Any]:
    """A board over the first `most` questions; each entry is the keyword arguments of `entry`."""
    ids = {kind: [item.id for item in dataset.items(kind)][:most] for kind in ("mcq", "oeq")}
    questions = {**dict.fromkeys(CHOICE, ids["mcq"]), OPEN: ids["oeq"]}
    made = [entry(dataset, questions, n, **own) for n, own in enumerate(entries, 1)]
    ranked = sorted(
        (own for own in made if own["ranked"]),
        key=lambda own: -own["tasks"][CHOICE[0]]["accuracy"]["value"],
    )
    for n, own in enumerate(ranked):
        own["tasks"][CHOICE[0]]["rank"] = {
            "best": max(1, n),
            "worst": min(len(ranked), n + 2),
            "of": len(ranked),
            "tie_group": 1 + n // 3,
        }
    protocol = {"task": "hk_fs_mcq_hk@1.0", "data": "1.0.0@0", "regime": "greedy", "parser": "1"}
    league = {"task": CHOICE[0], "protocol": protocol, "level": 0.05}
    cell = {"accuracy": 80.5, "seconds": 3, "tokens": 265}
    return {
        "schema_version": 1,
        "dataset": {
            "version": dataset.version,
            "sha256": dataset.sha256,
            "canary": dataset.items("mcq")[0].canary,
            "items": Counter(mcq=len(ids["mcq"]), oeq=len(ids["oeq"])),
        },
        "software": {"hk_fs_bench": "0.1.0", "parser": "1"},
        "families": {"drafters": ["Claude (Anthropic)"], "reviewers": ["Claude (Anthropic)"]},
        "status_letters": {letter: status for status, letter in LETTERS.items()},
        "questions": questions,
        "leagues": {LEAGUE: league | {"entries": [own["slug"] for own in ranked]}},
        "entries": made,
        "human_baseline": None,
        "paper": {
            "source": "arXiv 2610.16127, Tables 3a-3e",
            "link": "https://arxiv.org/abs/2610.16127",
            "note": "null = not reported.",
            "unit": "percent, as printed",
            "n": {"mcq": 400, "oeq": 100},
            "human_n": {"questions": 68, "pairs": 340},
            "rows": [
                {
                    "model": "Llama3-70B",
                    "thinking": False,
                    "kind": "local or hosted",
                    "mcq_hk": cell,
                    "mcq_nohk": cell
                    | {"accuracy": 77.75, "accuracy_valid": 78.73, "invalid": 5, "tokens": None},
                    "oeq": {
                        "bertscore_f1": 84.46,
                        "bleu4": 0.73,
                        "meteor": 7.32,
                        "rouge_l": None,
                        "seconds": 8,
                        "tokens": None,
                    },
                    "human": None,
                }
            ],
        },
    }
