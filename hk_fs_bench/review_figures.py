"""Figures of the reviews: agreement, blind accuracy, wrong keys; all before any discard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hk_fs_bench import items, stats
from hk_fs_bench.review import Review, current, of_items

if TYPE_CHECKING:
    from rich.table import Table

KINDS = ("expert", "automated")


def figures(dataset: items.Dataset, reviews: Sequence[Review]) -> dict[str, Any]:
    """For each kind of reviewer, over every text ever reviewed, whatever became of the item.

    Returns:
        kind → `items` (reviewed at least once), `complete` (test items of this edition with two
        reviews of their present text), `verdicts` (counts), `kappa_verdict` and `kappa_blind`
        {value, ci95, n pairs}, `blind_accuracy` by role {value, ci95, n} (MCQ), `wrong_keys`
        {found, n items, upper95, of the text of each item that was reviewed first}.
    """
    return {
        kind: _of_kind(dataset, [review for review in reviews if review.kind == kind])
        for kind in KINDS
    }


def _of_kind(dataset: items.Dataset, reviews: Sequence[Review]) -> dict[str, Any]:
    by_text = of_items(reviews)
    first: dict[str, list[Review]] = {}
    for (name, _), found in by_text.items():
        first.setdefault(name, found)
    wrong = sum(any("key" in review.faults for review in found) for found in first.values())
    pairs = [sorted(f, key=lambda r: (r.role, r.form))[:2] for f in by_text.values() if len(f) > 1]
    verdicts = [(a.verdict, b.verdict) for a, b in pairs]
    answered = [(a.blind_answer or "", b.blind_answer or "") for a, b in pairs]
    letters = [pair for pair in answered if all(x in ("A", "B", "C", "D", "?") for x in pair)]
    every = [review for found in by_text.values() for review in found]
    here = {n: found for n, found in current(dataset, reviews).items() if n in dataset.by_id}
    return {
        "items": len(first),
        "complete": sum(len(found) > 1 for found in here.values()),
        "of": len(here),
        "verdicts": {v: sum(r.verdict == v for r in every) for v in ("accept", "revise", "reject")},
        "kappa_verdict": _kappa(verdicts),
        "kappa_blind": _kappa(letters),
        "blind_accuracy": {
            role: _share([r for r in every if r.role == role])
            for role in ("architect", "fire_engineer")
        },
        "wrong_keys": {
            "found": wrong,
            "n": len(first),
            "upper95": stats.upper_bound(wrong, len(first)),
        },
        "families": sorted({r.model_family for r in every if r.model_family}),
    }


def _kappa(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    interval = stats.bootstrap(pairs, stats.cohen_kappa)
    return {"value": stats.cohen_kappa(pairs), "ci95": interval, "n": len(pairs)}


def _share(reviews: Sequence[Review]) -> dict[str, Any]:
    """Blind accuracy on multiple-choice items; `?` is wrong."""
    asked = [r for r in reviews if r.blind_correct is not None and len(r.blind_answer or "") == 1]
    right = sum(bool(r.blind_correct) for r in asked)
    value = right / len(asked) if asked else None
    return {"value": value, "ci95": stats.wilson(right, len(asked)), "n": len(asked)}


def rows(found: Mapping[str, Any]) -> list[tuple[str, dict[str, str]]]:
    """The figures as words: (what, kind → text)."""
    texts: dict[str, Callable[[Mapping[str, Any]], str]] = {
        "items reviewed": lambda f: str(f["items"]),
        "reviewed twice as they stand": lambda f: f"{f['complete']} of {f['of']}",
        "accept / revise / reject": lambda f: " / ".join(map(str, f["verdicts"].values())),
        "kappa of verdicts": lambda f: show(f["kappa_verdict"]),
        "kappa of blind answers": lambda f: show(f["kappa_blind"]),
        "blind accuracy, architects": lambda f: show(f["blind_accuracy"]["architect"]),
        "blind accuracy, fire engineers": lambda f: show(f["blind_accuracy"]["fire_engineer"]),
    }
    out = [(what, {kind: text(found[kind]) for kind in KINDS}) for what, text in texts.items()]
    wrong = {kind: wrong_keys(found[kind]["wrong_keys"], kind) for kind in KINDS}
    return [*out, ("wrong keys or reference answers found", wrong)]


def table(found: Mapping[str, Any]) -> Table:
    """The figures for people, one column a kind of reviewer."""
    from rich.table import Table

    out = Table("", *KINDS, title="Reviews, before any discard")
    for what, texts in rows(found):
        out.add_row(what, *texts.values())
    return out


def show(figure: Mapping[str, Any]) -> str:
    """ "0.62 (0.41 to 0.79, n=60)", or a dash where it is undefined."""
    if figure["value"] is None:
        return f"– (n={figure['n']})"
    low_high = figure["ci95"]
    band = "" if low_high is None else f"{low_high[0]:.2f} to {low_high[1]:.2f}, "
    return f"{figure['value']:.2f} ({band}n={figure['n']})"


def wrong_keys(figure: Mapping[str, Any], kind: str) -> str:
    """ "0 of 60, at most 4.9%", or a dash where nothing was reviewed.

    A plain count for automated reviewers: they may err as the drafter did, so it bounds nothing.
    """
    if not figure["n"]:
        return "–"
    if kind == "automated":
        return str(figure["found"])
    return f"{figure['found']} of {figure['n']}, at most {100 * figure['upper95']:.1f}%"
