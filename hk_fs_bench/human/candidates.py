"""The answers of a study behind opaque ids: models', expert-written, known-bad, repeated ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from hk_fs_bench import prompts
from hk_fs_bench.comparing import label
from hk_fs_bench.errors import UserError
from hk_fs_bench.human.study import Answer, defaults
from hk_fs_bench.items import Dataset
from hk_fs_bench.runs import Run
from hk_fs_bench.schema import OEQItem
from hk_fs_bench.scored_rows import rows_of
from hk_fs_bench.tables import Fault, read_table, text_of

TASK = "hk_fs_oeq"
# No vowels, so that no id spells a word; no signs that are taken for one another.
ALPHABET = "bcdfghjkmnpqrstvwxz23456789"
_ITEM_HEADS, _ANSWER_HEADS = ("item_id", "id", "item", "qid"), ("answer", "text")


@dataclass(frozen=True)
class Source:
    """One model's run: what the key says of it, and item → answer text."""

    run: str
    about: Mapping[str, Any]
    answers: Mapping[str, str]


@dataclass(frozen=True)
class Origin:
    """What stands behind an opaque id: `run` for a model's, `taken_from` for a built known-bad."""

    item_id: str
    kind: str
    run: str | None = None
    repeat: bool = False
    taken_from: str | None = None


def open_run(folder: Path, dataset: Dataset | None = None) -> Run:
    """A run folder, or an lm-eval --output_path, converted if it was not scored before."""
    from hk_fs_bench import lm_eval_runs, runs

    if (folder / "run.json").is_file() or not lm_eval_runs.is_lm_eval_output(folder):
        return runs.read_run(folder)
    converted = sorted(folder.glob("*/run.json"))
    if len(converted) == 1:
        return runs.read_run(converted[0].parent)
    return lm_eval_runs.convert(folder, dataset=dataset)


def run_names(folders: Sequence[Path]) -> list[str]:
    """A name for each run folder: its own, with those above it where two have the same.

    Raises:
        UserError: one folder is given twice.
    """
    places = [folder.resolve() for folder in folders]
    if len(set(places)) < len(places):
        raise UserError("a run is given twice")
    parts = [place.parts[-1:] for place in places]
    while len(set(parts)) < len(parts):
        parts = [
            place.parts[-len(own) - 1 :] if parts.count(own) > 1 else own
            for place, own in zip(places, parts, strict=True)
        ]
    return ["/".join(own) for own in parts]


def read_source(run: Run, name: str, dataset: Dataset) -> Source:
    """The open answers of a run, under its `run_names` name.

    Raises:
        UserError: no open task, another edition, or calls that failed and have to be made again.
    """
    if TASK not in run.tasks:
        raise UserError(f"{run.folder} has no answers to {TASK}; it has {', '.join(run.tasks)}")
    model, protocol = run.manifest.get("model"), run.manifest.get("protocol")
    if not isinstance(model, dict) or "id" not in model or not isinstance(protocol, dict):
        raise UserError(f"{run.folder / 'run.json'} does not say whom it asked; run it again")
    if protocol.get("dataset_sha256") != dataset.sha256:
        raise UserError(
            f"{run.folder} was asked on another edition ({protocol.get('dataset_version')}) than "
            f"{dataset.source} ({dataset.version}); name the run's own with --dataset"
        )
    rows = [row for row in rows_of(run, dataset, prompts.load_task(TASK)) if not row["sample"]]
    if failed := [row["item_id"] for row in rows if row["status"] == "infra_error"]:
        raise UserError(
            f"{run.folder}: {len(failed)} calls failed ({', '.join(failed[:3])}, …) and are no "
            "answers; finish the run first"
        )
    said = {r["item_id"]: (r["answer"] or "").strip() or defaults()["no_answer"] for r in rows}
    about = {"model": label(model), "mode": model.get("mode"), "folder": name}
    return Source(name, about, said)


def read_answers(path: Path, dataset: Dataset) -> dict[str, str]:
    """Item → answer of a file with the columns `item_id` and `answer`.

    Raises:
        UserError: unknown or doubled items, empty answers, no such columns.
    """
    table = read_table(path)
    heads = {head.casefold(): head for head in table.columns}
    where = [next((heads[h] for h in hs if h in heads), "") for hs in (_ITEM_HEADS, _ANSWER_HEADS)]
    if not all(where):
        raise UserError(f"{path.name} needs the columns item_id and answer")
    found: dict[str, str] = {}
    faults = []
    for row in table.rows:
        item, answer = (row.cells.get(head) for head in where)
        name, text = text_of(item), text_of(answer)
        if fault := next((cell for cell in (item, answer) if isinstance(cell, Fault)), None):
            faults.append(f"{table.where(row)}: a cell {fault.what}")
        elif not isinstance(dataset.by_id.get(name or ""), OEQItem):
            faults.append(f"{table.where(row)}: the edition has no open question {name!r}")
        elif name in found:
            faults.append(f"{table.where(row)}: {name} stands in an earlier row already")
        elif text is None:
            faults.append(f"{table.where(row)}: {name} has no answer")
        else:
            found[str(name)] = text
    if faults:
        raise UserError(f"{path.name}: {len(faults)} rows can't be used", faults)
    return found


def build_known_bad(
    item: OEQItem, others: Sequence[OEQItem], sources: Sequence[Source], rng: Random
) -> tuple[str, str]:
    """(text, item it was taken from) of an answer that is surely wrong: a model's to another item.

    It reads like its neighbours, comes from the same Part where one can be had, and shares no
    provision with the question. Whoever reads it beside the question sees that it fails.

    Raises:
        UserError: there is no such item.
    """
    mine = set(item.references or [])
    apart = [o for o in others if o.id != item.id and not mine & set(o.references or [])]
    for donors in ([o for o in apart if o.part == item.part], apart):
        found = [
            (source.answers[donor.id], donor.id)
            for donor in donors
            for source in sources
            if source.answers.get(donor.id, defaults()["no_answer"]) != defaults()["no_answer"]
        ]
        if found:
            return rng.choice(found)
    raise UserError(
        f"no answer to another question can serve as the known-bad one of {item.id}; give one "
        "with --known-bad FILE (columns item_id, answer)"
    )


def hide(
    origins: Mapping[Origin, str], runs: Sequence[Source], rng: Random
) -> tuple[dict[str, Answer], dict[str, Any]]:
    """Answers by opaque id, and the key: docs/human.md.

    Args:
        origins: what stands behind an id → the text shown.
    """
    order = sorted(origins, key=repr)
    rng.shuffle(order)
    taken: dict[str, Origin] = {}
    for origin in order:
        while (name := "".join(rng.choices(ALPHABET, k=8))) in taken:
            pass
        taken[name] = origin
    ids = {origin: name for name, origin in taken.items()}
    key: dict[str, Any] = {"runs": {one.run: dict(one.about) for one in runs}, "candidates": {}}
    for name, origin in sorted(taken.items()):
        first = Origin(origin.item_id, origin.kind, origin.run)
        key["candidates"][name] = {
            "item_id": origin.item_id,
            "kind": origin.kind,
            "run": origin.run,
            "repeat_of": ids[first] if origin.repeat else None,
            "taken_from": origin.taken_from,
        }
    answers = {n: Answer(n, origin.item_id, origins[origin]) for n, origin in sorted(taken.items())}
    return answers, key


def missing_answers(sources: Sequence[Source], asked: Collection[str]) -> list[str]:
    """A line for each run without an answer to some of the questions `asked`."""
    nothing = defaults()["no_answer"]
    counts = {one.run: sum(one.answers[item] == nothing for item in asked) for one in sources}
    return [
        f"{run}: {count} answers are empty or can't be read; raters see {nothing!r} and rate it"
        for run, count in counts.items()
        if count
    ]


def give_aways(sources: Sequence[Source]) -> list[str]:
    """A line for each answer that names a model of the study, and so may tell which it is."""
    names = set()
    for one in sources:
        words = re.findall(r"[A-Za-z]{4,}", str(one.about["model"]).split(" · ")[0])
        names |= {w.lower() for w in words} - {"instruct", "chat", "preview", "base", "flash"}
    if not names:
        return []
    pattern = re.compile(rf"\b({'|'.join(sorted(names))})", re.I)
    return [
        f"the answer of {one.run} to {item} names {found[0]!r}"
        for one in sources
        for item, text in one.answers.items()
        if (found := pattern.search(text))
    ]
