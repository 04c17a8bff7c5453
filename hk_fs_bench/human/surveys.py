"""Survey exports (CSV of Google Forms and its like) as they really come.

Columns are read by their place, since titles repeat. Nothing is resolved here: what can't be
understood goes along as a fault of its rating, and every row that is no rating is listed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from hk_fs_bench.errors import UserError
from hk_fs_bench.human import rubric
from hk_fs_bench.human.options import labels_of, matched
from hk_fs_bench.human.results import comment_of
from hk_fs_bench.human.returns import Chosen, Given, Return, Unused, without_email
from hk_fs_bench.human.study import Screen, Study
from hk_fs_bench.human.survey_sheets import TAG, Sheet, rater_of_row, read_sheet, refusal
from hk_fs_bench.human.timestamps import read_time

FIELDS = ("accuracy", "accuracy-why", "clarity", "clarity-why", "missed", "comment")


def read_survey(path: Path, study: Study, emails: Mapping[str, str] | None = None) -> Return:
    """The ratings of an export, in any of three layouts.

    1. Titles end in `[<candidate> <field>]` (our Google form): one row a submission.
    2. One row a rating, with columns for rater, candidate (or question), accuracy and clarity.
    3. Titles without tags, repeated for every candidate (a form made by hand): accuracy and clarity
       by turns, in the order in which the rater's batch shows the candidates.

    Raises:
        UserError: an export whose columns fit none of them.
    """
    sheet = read_sheet(path)
    tagged = _tagged(sheet)
    long = sheet.places("accuracy") and (sheet.places("candidate") or sheet.places("item"))
    turns = [] if tagged or long else _turns(sheet)
    if not (tagged or long or turns):
        raise UserError(
            f"{path.name}: no column is a rating; titles must end in [candidate field], or name "
            f"candidate, accuracy and clarity{''.join(f'; {note}' for note in sheet.notes)}"
        )
    ratings: list[Given] = []
    unused: list[Unused] = []
    found: list[Given]
    consent = sheet.places("consent")
    notes = [*sheet.notes]
    if not consent:
        notes.append("no column asks for consent; bring in only whoever gave it")
    for number, cells in sheet.rows:
        where = f"row {number}"
        rater, reason = rater_of_row(sheet, cells, study, emails)
        if reason is None and consent:
            reason = refusal([cells[p] for p in consent])
        if reason is not None or rater is None:
            unused.append(Unused(f"{path.name}, {where}", reason or "", rater))
            continue
        time = next((t for p in sheet.places("time") if (t := read_time(cells[p]))), None)
        batch = next(
            (int(c) for p in sheet.places("batch") if (c := cells[p].strip()).isdecimal()), None
        )
        base = Given(rater, "", Chosen(), Chosen(), batch=batch, rated_at=time, where=where)
        if tagged:
            found = [_given(base, study, c, at, cells) for c, at in tagged.items()]
        elif long:
            found = _long(sheet, base, study, cells, unused)
        else:
            found = _in_turn(sheet, base, study, turns, cells, unused)
        ratings += found
    digest = sha256(path.read_bytes()).hexdigest()
    form = "google" if tagged or turns else "csv"
    return Return("expert", form, path.name, digest, ratings, unused, notes)


def _tagged(sheet: Sheet) -> dict[str, dict[str, list[int]]]:
    """Candidate → field → its columns (several where a question was deleted and made again)."""
    found: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, title in enumerate(sheet.titles):
        tag = (TAG.search(title) or [None, ""])[1] or ""
        candidate, _, name = tag.strip().partition(" ")
        if name.strip() in FIELDS:
            found[candidate][name.strip()].append(place)
    return {candidate: dict(fields) for candidate, fields in found.items()}


def _turns(sheet: Sheet) -> list[tuple[int, str]]:
    """(column, dimension) of the columns that hold nothing but options of one dimension."""
    found = []
    for place in range(len(sheet.titles)):
        cells = [row[place] for _, row in sheet.rows if row[place].strip()]
        if not cells or sheet.meanings[place] is not None:
            continue
        fitting = [d for d in rubric.load().dimensions if not any(_options(d, c)[1] for c in cells)]
        if len(fitting) == 1:
            found.append((place, fitting[0]))
    return found


def _options(dimension: str, cell: str) -> tuple[list[str], str]:
    """Levels and descriptors that a cell names, and the unknown rest. Forms that follow the paper
    have both in one list; the paper's names are known too."""
    held = rubric.load().dimensions[dimension]
    both = {**held.levels, **held.descriptors}
    labels = {
        name: (*texts, *([] if both[name].id == rubric.MAJOR else [both[name].paper]))
        for name, texts in labels_of(both).items()
    }
    return matched(cell, labels)


def _given(
    base: Given, study: Study, candidate: str, at: Mapping[str, Sequence[int]], cells: Sequence[str]
) -> Given:
    """The rating of one candidate from its columns."""
    faults: list[str] = []
    texts = {}
    for name, places in at.items():
        said = list(dict.fromkeys(cells[p].strip() for p in places if cells[p].strip()))
        if len(said) > 1:
            faults.append(f"two columns for {name} differ: {said[0][:60]!r}, {said[1][:60]!r}")
        texts[name] = said[0] if len(said) == 1 else ""
    accuracy, clarity = (
        _chosen(name, [texts.get(name, ""), texts.get(f"{name}-why", "")], faults)
        for name in ("accuracy", "clarity")
    )
    missed = _missed(study, candidate, texts.get("missed", ""), faults)
    return replace(
        base,
        candidate=candidate,
        accuracy=accuracy,
        clarity=clarity,
        missed_essential=missed,
        comment=comment_of(texts.get("comment")),
        faults=faults,
    )


def _chosen(dimension: str, texts: Sequence[str], faults: list[str]) -> Chosen:
    held = rubric.load().dimensions[dimension]
    names: list[str] = []
    for text in texts:
        found, strange = _options(dimension, text)
        names += found
        if strange:
            faults.append(
                f"{dimension}: {without_email(strange)[:80]!r} is no option of the rubric"
            )
    levels = list(dict.fromkeys(n for n in names if n in held.levels))
    if len(levels) > 1:
        faults.append(f"{dimension}: several levels, {', '.join(levels)}")
    descriptors = [n for n in dict.fromkeys(names) if n in held.descriptors]
    return Chosen(levels[0] if levels else None, descriptors)


def _missed(study: Study, candidate: str, cell: str, faults: list[str]) -> list[int]:
    """Numbers of the essential points that a cell names, by "<n>. <text>" or by their numbers."""
    if candidate not in study.answers or not cell:
        return []
    points = study.questions[study.answers[candidate].item_id].essential_points
    labels = {str(n): (f"{n}. {text}", text, str(n)) for n, text in enumerate(points, 1)}
    found, strange = matched(cell, labels)
    if strange:
        faults.append(f"missed points: {strange[:80]!r} is none of the question's")
    return sorted(map(int, found))


def _long(
    sheet: Sheet, base: Given, study: Study, cells: Sequence[str], unused: list[Unused]
) -> list[Given]:
    """A row that is one rating."""
    named = [cells[p].strip() for m in ("candidate", "item") for p in sheet.places(m)]
    candidates = [name for name in named if name in study.answers]
    shown = [s for s in study.assignment if s.rater == base.rater and s.item_id in named]
    if not candidates and len({c for s in shown for c in s.candidates}) == 1:
        candidates = [shown[0].candidates[0]]
    if not candidates:
        reason = f"{', '.join(filter(None, named))[:80]!r} names no candidate of the study"
        unused.append(Unused(f"{sheet.name}, {base.where}", reason, base.rater))
        return []
    at = {name: sheet.places(name) for name in ("accuracy", "clarity", "comment")}
    return [_given(base, study, candidates[0], at, cells)]


def _in_turn(
    sheet: Sheet,
    base: Given,
    study: Study,
    turns: Sequence[tuple[int, str]],
    cells: Sequence[str],
    unused: list[Unused],
) -> list[Given]:
    """The ratings of a row whose columns follow the order of the rater's batch."""
    batches: dict[int, list[Screen]] = defaultdict(list)
    for screen in study.assignment:
        if screen.rater == base.rater and base.batch in (None, screen.batch):
            batches[screen.batch].append(screen)
    pairs = list(_pairs(turns))
    fitting = {
        number: shown
        for number, screens in batches.items()
        if len(shown := [c for s in screens for c in s.candidates]) == len(pairs)
    }
    if len(fitting) != 1:
        reason = (
            f"{len(pairs)} pairs of accuracy and clarity fit {len(fitting)} of the rater's "
            "batches; end the titles in [candidate field]"
        )
        unused.append(Unused(f"{sheet.name}, {base.where}", reason, base.rater))
        return []
    ((number, shown),) = fitting.items()
    return [
        _given(replace(base, batch=number), study, candidate, at, cells)
        for candidate, at in zip(shown, pairs, strict=True)
    ]


def _pairs(turns: Sequence[tuple[int, str]]) -> Iterator[dict[str, list[int]]]:
    """Accuracy and clarity by turns, as pairs of columns; nothing where they are not by turns."""
    if [d for _, d in turns] == ["accuracy", "clarity"] * (len(turns) // 2):
        for n in range(0, len(turns), 2):
            yield {"accuracy": [turns[n][0]], "clarity": [turns[n + 1][0]]}
