"""A round of review by people: who gets which item, the sheets out, the sheets in.

A round is a folder: `assignment.json`, and for every form `<form>.blind.xlsx` (questions), then
`<form>.keys.xlsx` (keys and verdicts), which is made only from blind answers that came back; they
are kept in the assignment, so that they can't be changed afterwards.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hk_fs_bench import items, review, review_figures, review_sheets
from hk_fs_bench.errors import UserError
from hk_fs_bench.review import FILE, settings
from hk_fs_bench.runs import write_json
from hk_fs_bench.schema import MCQItem

if TYPE_CHECKING:
    from rich.table import Table

ASSIGNMENT = "assignment.json"


def sample(rows: Sequence[Mapping[str, Any]], size: int) -> list[Mapping[str, Any]]:
    """`size` rows, or all of them, each stratum (type, Part, engineering) in its share.

    Seats by largest remainder; inside a stratum in file order, which is a fixed shuffle.
    """
    strata: dict[tuple[str, str, bool], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        engineering = bool(row.get("engineering_related"))
        kind = "mcq" if "choices" in row else "oeq"
        strata[kind, row.get("part") or "", engineering].append(row)
    quota = {key: size * len(found) / max(1, len(rows)) for key, found in strata.items()}
    seats = {key: min(int(share), len(strata[key])) for key, share in quota.items()}
    for key in sorted(quota, key=lambda key: (seats[key] - quota[key], key)):
        if sum(seats.values()) >= min(size, len(rows)):
            break
        seats[key] += 1
    chosen = {row["id"] for key, found in strata.items() for row in found[: seats[key]]}
    return [row for row in rows if row["id"] in chosen]


def assign(
    rows: Iterable[Mapping[str, Any]], reviewers: Mapping[str, int]
) -> dict[str, list[tuple[str, bool]]]:
    """Form → (item id, whether it is the second reviewer), two forms an item by its domain.

    Of a role's reviewers the one with the fewest items is next.

    Raises:
        UserError: too few reviewers of a role.
    """
    forms: dict[str, list[tuple[str, bool]]] = {
        f"{role}-{n}": [] for role, count in reviewers.items() for n in range(1, count + 1)
    }
    for row in rows:
        domain = "engineering" if row.get("engineering_related") else "architectural"
        taken: list[str] = []
        for second, role in enumerate(settings()["routing"][domain]):
            free = [f for f in forms if f.rpartition("-")[0] == role and f not in taken]
            if not free:
                needed = settings()["routing"][domain].count(role)
                raise UserError(f"{domain} items need {needed} reviewers of the role {role}")
            form = min(free, key=lambda name: len(forms[name]))
            forms[form].append((row["id"], bool(second)))
            taken.append(form)
    return {form: found for form, found in forms.items() if found}


def open_round(
    folder: Path, out: Path, reviewers: Mapping[str, int], date: str, size: int | None = None
) -> dict[str, int]:
    """Write the blind sheets of a round over the test items that no expert has reviewed twice.

    Returns:
        Form → number of its items.

    Raises:
        UserError: `out` holds a round already, too few reviewers, nothing left to review.
    """
    if (out / ASSIGNMENT).exists():
        raise UserError(f"{out} holds a round already; name another folder")
    dataset = items.load(folder)
    log = [r for r in review.read_reviews(folder / FILE) if r.kind == "expert"]
    done = {name for name, found in review.current(dataset, log).items() if len(found) > 1}
    rows = [i.model_dump() for i in dataset.by_id.values() if i.id not in done]
    if not rows:
        raise UserError("every item has two reviews by experts")
    chosen = rows if size is None else sample(rows, size)
    label = f"{date}-{out.resolve().name}"
    plan: dict[str, dict[str, Any]] = {
        form: {
            "role": form.rpartition("-")[0],
            "label": f"{form}-{label}",
            "items": {name: items.item_sha256(dataset.by_id[name]) for name, _ in found},
            "argue": [name for name, second in found if second],
            "blind": None,
        }
        for form, found in assign(chosen, reviewers).items()
    }
    out.mkdir(parents=True, exist_ok=True)
    for form, entry in plan.items():
        review_sheets.write_blind(out / f"{form}.blind.xlsx", entry, dataset.by_id)
    write_json(out / ASSIGNMENT, {"date": date, "forms": plan})
    return {form: len(entry["items"]) for form, entry in plan.items()}


def hand_out_keys(folder: Path, out: Path, partial: bool = False) -> dict[str, int]:
    """Write the keys' sheets for the blind sheets that came back.

    Args:
        partial: drop questions that were left unanswered from the round, instead of refusing.

    Returns:
        Form → number of its items, for each sheet written now.
    """
    plan = _read_plan(out)
    dataset = items.load(folder)
    made = {}
    unfinished = []
    for form, entry in plan["forms"].items():
        path = out / f"{form}.keys.xlsx"
        if entry["blind"] is None:
            answers = review_sheets.read_blind(out / f"{form}.blind.xlsx", entry, dataset.by_id)
            open_ = [name for name, answer in answers.items() if answer is None]
            if len(open_) == len(answers):
                continue
            if open_ and not partial:
                some = f"{', '.join(open_[:5])}{', …' if len(open_) > 5 else ''}"
                unfinished.append(f"{form}: {len(open_)} of {len(answers)} ({some})")
                continue
            _unchanged(form, entry, dataset)
            entry["items"] = {n: sha for n, sha in entry["items"].items() if n not in open_}
            entry["blind"] = {n: a for n, a in answers.items() if n not in open_}
            kept = {name: dataset.by_id[name] for name in entry["items"]}
            entry["key"] = {n: item.answer for n, item in kept.items() if isinstance(item, MCQItem)}
            # Before the keys are out, so that no answer can be taken down after them.
            write_json(out / ASSIGNMENT, plan)
        if not path.exists():
            review_sheets.write_keys(path, entry, dataset.by_id)
            made[form] = len(entry["items"])
    if unfinished:
        raise UserError(
            f"{len(unfinished)} sheets have unanswered questions; have them answered, or give "
            "--partial to leave those questions out of the round",
            unfinished,
        )
    return made


def bring_in(folder: Path, out: Path, date: str) -> review.Appended:
    """Record the verdicts of the keys' sheets that came back, or a JSONL file of reviews."""
    if not out.is_dir():
        return review.import_reviews(folder, out)
    rows, waiting = [], []
    for form, entry in _read_plan(out)["forms"].items():
        path = out / f"{form}.keys.xlsx"
        if entry["blind"] is None or not path.exists():
            waiting.append(f"{form}: no keys' sheet yet")
            continue
        for where, row in review_sheets.read_keys(path, entry):
            if row is None:
                waiting.append(where)
            else:
                rows.append((where, row | {"date": date}))
    return replace(review.append(folder, rows), waiting=waiting)


def decisions(folder: Path) -> list[str]:
    """A line an item: keep, revise, discard or waiting, and why."""
    decided = review.decide(items.load(folder), review.read_reviews(folder / FILE))
    return [f"{one.outcome:8} {one.item}  {'; '.join(one.why)}".rstrip() for one in decided]


def figures(folder: Path) -> Table:
    """Agreement, blind accuracy and wrong keys of an edition's reviews."""
    dataset = items.load(folder)
    found = review_figures.figures(dataset, review.read_reviews(folder / FILE))
    return review_figures.table(found)


def _read_plan(out: Path) -> dict[str, Any]:
    path = out / ASSIGNMENT
    try:
        plan: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise UserError(f"{out} holds no round: it has no {ASSIGNMENT}") from None
    except ValueError:
        raise UserError(f"{path} is broken; restore it, or open a new round") from None
    return plan


def _unchanged(form: str, entry: Mapping[str, Any], dataset: items.Dataset) -> None:
    """Reviews are of the text that was handed out, so it must still be the item's."""
    changed = [
        name
        for name, sha in entry["items"].items()
        if name not in dataset.by_id or items.item_sha256(dataset.by_id[name]) != sha
    ]
    if changed:
        raise UserError(
            f"{form}: {', '.join(changed[:5])}{', …' if len(changed) > 5 else ''} changed since "
            "the round was opened; restore them while it runs, or open a new round"
        )
