"""Gate 8 and the quotas: how items spread over facts, sentence patterns, Parts and levels."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from hk_fs_bench.gates.base import Item, asked, key_of, sentences, settings
from hk_fs_bench.gates.report import Finding, GateReport


def facts(items: Sequence[Item], report: GateReport) -> None:
    """Gate 8: a fact is asked at most twice, and calculated at most once."""
    limits = settings()["facts"]
    of_fact: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        if item.get("fact_id"):
            of_fact[item["fact_id"]].append(item)
    for fact, members in sorted(of_fact.items()):
        sums = sum(item.get("level") == "calculation" for item in members)
        ids = ", ".join(item["id"] for item in members)
        if len(members) > limits["per_fact"]:
            message = f"{len(members)} items ask {fact}: {ids}"
            report.extend([Finding("8 facts", members[-1]["id"], message)])
        if sums > limits["calculations_per_fact"]:
            message = f"{sums} calculations of {fact}: {ids}"
            report.extend([Finding("8 facts", members[-1]["id"], message)])


def opening(question: str) -> str:
    """How a stem opens, content masked: "A hotel of 12 storeys has…" gives "a _ of"."""
    return _masked(next(iter(sentences(question)), ""))


def asking(question: str) -> str:
    """How its question opens: "…What is the least width of each door?" gives "what is the"."""
    return _masked(asked(question))


def _masked(sentence: str) -> str:
    limits = settings()["facts"]
    kept = set(limits["function_words"].split())
    words = re.findall(r"[a-z]+(?:'[a-z]+)?|\d[\d.,]*", sentence.replace("’", "'").lower())
    masked = [w if w in kept else "#" if w[0].isdigit() else "_" for w in words]
    # A run of content words is one slot: "a hotel" and "a bonded tobacco warehouse" alike.
    slots = [m for n, m in enumerate(masked) if m != "_" or n == 0 or masked[n - 1] != "_"]
    return " ".join(slots[: limits["pattern_tokens"]])


def patterns(items: Sequence[Item], report: GateReport) -> None:
    """Gate 8: no way to open a stem or to ask makes up over a quarter of the set or of a Part."""
    limits = settings()["facts"]
    groups = {"": list(items)}
    for item in items:
        groups.setdefault(f" in Part {item.get('part')}", []).append(item)
    for name, members in sorted(groups.items()):
        if name and len(members) < limits["pattern_from"]:
            continue
        for kind, shape in (("opening", opening), ("asking", asking)):
            counts = Counter(shape(item["question"]) for item in members)
            top, count = counts.most_common(1)[0]
            title, share = f"commonest {kind}{name} “{top}”", count / len(members)
            report.measure(
                "8 patterns", title, share, None, limits["pattern_share"], n=len(members)
            )


def quotas(mcq: Sequence[Item], oeq: Sequence[Item], report: GateReport) -> None:
    """Targets of the first release; misses are reported."""
    targets = settings()["quotas"]
    share, least = targets["tolerance"]
    for subset, items in (("mcq", mcq), ("oeq", oeq)):
        for kind in (subset, f"{subset}_engineering"):
            chosen = [i for i in items if kind == subset or i.get("engineering_related")]
            for part, target in targets[kind].items():
                slack = max(least, round(share * target))
                count = sum(item.get("part") == part for item in chosen)
                name = f"{kind.replace('_', ' ')} in Part {part}"
                low = max(0, target - slack)
                _note(report, name, count, low, target + slack, len(items))
    for level, (low, high) in targets["levels"].items():
        share_of = sum(item.get("level") == level for item in mcq) / max(1, len(mcq))
        _note(report, f"mcq of level {level}", share_of, low, high, len(mcq))
    described = [item for item in mcq if item.get("level") in ("scenario", "calculation")]
    unsafe = sum(
        any(d["risk"] == "unsafe" for d in (item.get("distractors") or {}).values())
        for item in described
    )
    ratio = unsafe / max(1, len(described))
    _note(report, "with an unsafe distractor", ratio, targets["unsafe_share"], None, len(described))
    numbers = re.compile(targets["standard_number"])
    standards = sum(bool(numbers.search(key_of(item))) for item in mcq)
    _note(report, "keyed on a test standard", standards, None, targets["test_standards"], len(mcq))
    missing = re.compile(targets["withheld"], re.IGNORECASE)
    withheld = sum(
        any(p["essential"] and missing.search(p["text"]) for p in item.get("key_points") or ())
        for item in oeq
    )
    name = "oeq that seem to withhold a fact"
    _note(report, name, withheld, targets["withheld_facts"], None, len(oeq))


def _note(
    report: GateReport, name: str, value: float, low: float | None, high: float | None, n: int
) -> None:
    report.measure("quotas", name, value, low, high, n=n, report_only=True)
