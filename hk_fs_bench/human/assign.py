"""Who rates what: a new study, and more raters for one that runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, cast

from hk_fs_bench.errors import UserError
from hk_fs_bench.human import candidates, figures, rubric, workload
from hk_fs_bench.human.batches import draw_batches
from hk_fs_bench.human.candidates import Origin, Source
from hk_fs_bench.human.draw import draw_blocks
from hk_fs_bench.human.study import (
    FORMAT,
    KEY,
    SETTINGS,
    Question,
    Rater,
    Screen,
    Study,
    defaults,
    made_folder,
    read_key,
    read_study,
    write_study,
)
from hk_fs_bench.items import Dataset
from hk_fs_bench.runs import write_json
from hk_fs_bench.schema import OEQItem


@dataclass(frozen=True)
class Controls:
    """Item → expert-written answer (None: the study does without), item → known-bad answer.

    Items without a known-bad answer of their own get one built. `names` are of the files.
    """

    expert: Mapping[str, str] | None = None
    known_bad: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str | None] = field(default_factory=dict)


def chosen_items(
    dataset: Dataset, sources: Sequence[Source], most: int | None = None
) -> tuple[list[OEQItem], list[str]]:
    """The questions that every run answered, the first `most` of them, and notes on the others."""
    if most is not None and most < 1:
        raise UserError(f"--questions {most}: at least one question has to be rated")
    items = cast("Sequence[OEQItem]", dataset.items("oeq"))
    shared = [item for item in items if all(item.id in one.answers for one in sources)]
    if not shared:
        raise UserError("no question was answered by all of these runs")
    notes = []
    for one in sources:
        if extra := len(one.answers) - len(shared):
            notes.append(f"{one.run}: {extra} answers left out, other runs lack those questions")
    # File order is a stratified shuffle, so the first ones are a fair sample.
    return shared[:most], notes


def new_study(
    folder: Path,
    dataset: Dataset,
    sources: Sequence[Source],
    raters: Sequence[Rater],
    controls: Controls,
    *,
    seed: int,
    per_question: int | None = None,
    most: int | None = None,
) -> list[str]:
    """Draw a study and write its folder; returns lines that say what was drawn.

    Args:
        seed: the same seed and inputs give the same study. Raters must not know it.
        per_question: raters of a question, at least two.
        most: questions at most.

    Raises:
        UserError: wishes that can't be met, with what is missing.
    """
    if (folder / SETTINGS).exists():
        raise UserError(
            f"{folder} holds a study, whose answers are fixed; leave the runs out to draw for "
            "more raters, or name another folder"
        )
    each = defaults()["raters_per_question"] if per_question is None else per_question
    if each < 2:
        raise UserError("a question needs at least two raters: one alone shows no agreement")
    items, notes = chosen_items(dataset, sources, most)
    origins = _origins(items, dataset, sources, controls, seed)
    answers, key = candidates.hide(origins, sources, Random(f"{seed}/ids"))
    sheet = rubric.load()
    study = Study(
        folder,
        {
            "format": FORMAT,
            "name": folder.resolve().name,
            "seed": seed,
            "draws": 0,
            "dataset": {"version": dataset.version, "sha256": dataset.sha256},
            "rubric": {"version": sheet.version, "sha256": sheet.sha256},
            "raters_per_question": each,
            "batch_size": defaults()["batch_size"],
            "most_candidates": defaults()["most_candidates"],
            "controls": {
                "expert": controls.names.get("expert"),
                "known_bad": controls.names.get("known_bad") or "built",
            },
            "settled": {},
            "withdrawn": [],
        },
        {one.rater: one for one in raters},
        {item.id: _question(item) for item in items},
        answers,
    )
    draw_batches(study, key, dict.fromkeys(study.questions, each), {})
    made_folder(folder)
    write_json(folder / KEY, key)
    write_study(study)
    notes += candidates.missing_answers(sources, study.questions)
    if controls.expert is None:
        notes.append(
            "no expert-written control: nothing will show whether raters know a good answer, and "
            "the report has no human yardstick"
        )
    return [*notes, *candidates.give_aways(sources), *summary(study)]


def extend_study(
    folder: Path,
    raters: Sequence[Rater],
    rated: Mapping[tuple[str, int], Collection[str]],
    disputed: Collection[str] = (),
    *,
    keep_sent: bool = False,
) -> list[str]:
    """Draw again for a study that runs: raters came, raters left, or a third is called.

    What was rated stays. Of raters who left, so do the questions they rated. Where raters were
    added, batches of which nothing came back are drawn anew (unless `keep_sent`); their rows stay
    as superseded, so that what still comes back of them counts.

    Args:
        raters: all raters from now on.
        rated: (rater, batch) → the candidates that the rater has rated.
        disputed: questions that get one rater more.
    """
    study, key = read_study(folder), read_key(folder)
    present = {one.rater: one for one in raters}
    if gone := [name for name in present if name in study.settings["withdrawn"]]:
        raise UserError(f"{', '.join(gone)} withdrew and can't be drawn; give another id to others")
    changed = [
        n for n, r in present.items() if n in study.raters and study.raters[n].role != r.role
    ]
    if changed:
        raise UserError(f"the role of {', '.join(changed)} changed; give them another id instead")
    added = [name for name in present if name not in study.raters or study.raters[name].left]
    redraw = bool(added) and not keep_sent
    screens = []
    for screen in study.assignment:
        begun = rated.get((screen.rater, screen.batch), ())
        if screen.rater in present:
            kept = bool(begun) or not redraw
        else:
            kept = bool(set(begun) & set(screen.candidates))
        screens.append(screen if kept else replace(screen, superseded=True))
    before = {name: replace(one, left=True) for name, one in study.raters.items()}
    held: dict[str, set[str]] = defaultdict(set)
    for screen in screens:
        done = set(rated.get((screen.rater, screen.batch), ())) & set(screen.candidates)
        if done or not screen.superseded:
            held[screen.rater].add(screen.item_id)
    study.raters, study.assignment = before | present, screens
    each = study.settings["raters_per_question"]
    counts = Counter(item for items in held.values() for item in items)
    wanted = {q: max(0, each + (q in disputed) - counts[q]) for q in study.questions}
    if not any(wanted.values()):
        write_study(study)
        return ["nothing to draw: every question has its raters", *summary(study)]
    lacking = draw_batches(study, key, wanted, held)
    write_study(study)
    dropped = {(s.rater, s.batch) for s in screens if s.superseded}
    notes = [f"{len(dropped)} batches are superseded; make the forms anew"] if dropped else []
    return [*notes, *lacking, *summary(study)]


def disputed(rows: Sequence[Mapping[str, Any]]) -> set[str]:
    """The questions with an answer on which its two raters are so far apart that a third is called.

    Args:
        rows: of `ratings.read_ratings`.
    """
    found = figures.third_raters(figures.of_kind(rows, "expert"), rubric.load())
    return {one["item_id"] for one in found if not one["settled"]}


def summary(study: Study) -> list[str]:
    """What each rater has to do, in words."""
    roles = {name: held["label"] for name, held in defaults()["roles"].items()}
    by_rater: dict[str, list[Screen]] = defaultdict(list)
    for screen in study.assignment:
        if not screen.superseded:
            by_rater[screen.rater].append(screen)
    out = []
    for name, rater in study.raters.items():
        own = by_rater[name]
        questions = [s for s in own if not s.repeat]
        hours = workload.minutes(len(own), sum(len(s.candidates) for s in own)) / 60
        out.append(
            f"{name} ({roles[rater.role]}{', left' if rater.left else ''}): {len(questions)} "
            f"questions in {len({s.batch for s in own})} batches, about {hours:.1f} hours"
        )
    return out


def _question(item: OEQItem) -> Question:
    essential = [point.text for point in item.key_points or [] if point.essential]
    return Question(
        item.id,
        item.question,
        list(item.references or []),
        essential,
        item.reference_answer,
        item.engineering_related,
    )


def _origins(
    items: Sequence[OEQItem],
    dataset: Dataset,
    sources: Sequence[Source],
    controls: Controls,
    seed: int,
) -> dict[Origin, str]:
    """Everything that may be shown, with its text."""
    rng = Random(f"{seed}/blocks")
    order = [item.id for item in items]
    rng.shuffle(order)
    by_run = {one.run: one for one in sources}
    blocks = draw_blocks(order, sorted(by_run), defaults()["most_candidates"], rng)
    out: dict[Origin, str] = {}
    others = cast("Sequence[OEQItem]", dataset.items("oeq"))
    for item in items:
        for run in blocks[item.id]:
            text = by_run[run].answers[item.id]
            out[Origin(item.id, "model", run)] = text
            out[Origin(item.id, "model", run, repeat=True)] = text
        if item.id in (controls.expert or {}):
            out[Origin(item.id, "expert")] = (controls.expert or {})[item.id]
        if item.id in controls.known_bad:
            out[Origin(item.id, "known_bad")] = controls.known_bad[item.id]
        else:
            mixed = Random(f"{seed}/known-bad/{item.id}")
            text, taken = candidates.build_known_bad(item, others, sources, mixed)
            out[Origin(item.id, "known_bad", taken_from=taken)] = text
    return out
