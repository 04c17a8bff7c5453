"""Ratings derived from the returns: matched to the assignment, scored, conflicts shown."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Literal

from hk_fs_bench.errors import UserError
from hk_fs_bench.human import publishing, returns, rubric
from hk_fs_bench.human.returns import Given, Return, Unused
from hk_fs_bench.human.study import Screen, Study, made_folder, read_key, read_study, typed
from hk_fs_bench.items import jsonl_rows
from hk_fs_bench.runs import write_jsonl

RATINGS, UNRESOLVED, UNUSED = "ratings.jsonl", "unresolved.jsonl", "unused.jsonl"
# Times without a zone come from sheets kept in Hong Kong.
_ZONE = timezone(timedelta(hours=8))


@dataclass(frozen=True)
class _Counted:
    """What the figures rely on in a row of ratings.jsonl."""

    rater: str
    role: str | None
    kind: Literal["expert", "model"]
    item_id: str
    candidate: str
    level: str | None
    descriptors: list[str]
    score: float
    capped: bool
    clarity_level: str | None
    clarity_descriptors: list[str]
    clarity_score: float
    repeat: bool

    def __post_init__(self) -> None:
        sheet = rubric.load().dimensions
        for score in (self.score, self.clarity_score):
            if not 0 <= score <= 1:
                raise ValueError(f"{score} is no score, which is 0 to 1")
        for name, level in (("accuracy", self.level), ("clarity", self.clarity_level)):
            if level is not None and level not in sheet[name].levels:
                raise ValueError(f"the rubric has no level {level!r} of {name}")


@dataclass
class Rebuilt:
    """What a rebuild made: rows that count, that wait for the organiser, that are no ratings."""

    ratings: list[dict[str, Any]] = field(default_factory=list)
    unresolved: list[dict[str, Any]] = field(default_factory=list)
    unused: list[Unused] = field(default_factory=list)

    def lines(self) -> list[str]:
        """The counts, and a line for each row that does not count."""
        return [
            f"{len(self.ratings)} ratings, {len(self.unresolved)} unresolved, "
            f"{len(self.unused)} rows not used",
            *(
                f"unresolved: {r['source']} ({r['candidate']}): {r['reason']}"
                for r in self.unresolved
            ),
            *_grouped(self.unused),
        ]


def _grouped(unused: Sequence[Unused]) -> Iterator[str]:
    """A line for the rows of a file that are not used for one reason; unused.jsonl has each."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in unused:
        # What differs within a file is the place alone: "…, question 3", "…, row 7".
        file = one.source.rpartition(", ")[0] or one.source
        groups[file, re.sub(r", (?:question|row) \S+$", "", one.reason)].append(one.source)
    for (file, reason), places in groups.items():
        rest = f", {len(places)} rows" if len(places) > 1 else ""
        yield f"not used: {file if rest else places[0]}{rest}: {reason}"


def rebuild(folder: Path) -> Rebuilt:
    """Derive ratings.jsonl, unresolved.jsonl, unused.jsonl, comments.csv and published/.

    Raises:
        UserError: a broken study folder.
    """
    study, key = read_study(folder), read_key(folder)
    found = derive(study, key, returns.read_all(folder))
    rows = [*found.ratings, *found.unresolved]
    screened = publishing.write_comments(folder / publishing.COMMENTS, rows)
    write_jsonl(folder / RATINGS, found.ratings)
    write_jsonl(folder / UNRESOLVED, found.unresolved)
    write_jsonl(folder / UNUSED, map(asdict, found.unused))
    made_folder(folder / publishing.FOLDER)
    public = publishing.published(found.ratings, study, key, screened)
    write_jsonl(folder / publishing.FOLDER / RATINGS, public)
    return found


def derive(study: Study, key: Mapping[str, Any], returned: Sequence[Return]) -> Rebuilt:
    """The ratings of a study from what came back."""
    out = Rebuilt([], [], [one for held in returned for one in held.unused])
    screens = _screens_of(study)
    groups: dict[tuple[str, str, str], list[tuple[Return, Given, str]]] = defaultdict(list)
    for held, given, place in returns.places(returned):
        if reason := _refusal(study, held, given, screens):
            out.unused.append(Unused(place, reason, given.rater, given.candidate))
        else:
            groups[held.kind, given.rater, given.candidate].append((held, given, place))
    for (_, rater, candidate), group in groups.items():
        kept, dropped, reason = _one_of(group, study.settings["settled"].get(rater))
        out.unused += [Unused(place, why, rater, candidate) for place, why in dropped]
        for one in kept:
            row, why = _row(study, key, screens.get((rater, candidate), []), one)
            if reason or why:
                out.unresolved.append(row | {"reason": reason or why})
            else:
                out.ratings.append(row)
    for rows in (out.ratings, out.unresolved):
        rows.sort(key=publishing.order)
    out.unused.sort(key=lambda one: (one.source, one.candidate or "", one.reason))
    return out


def read_ratings(folder: Path) -> list[dict[str, Any]]:
    """The rows of ratings.jsonl with `run`, `answer_kind` and `repeat_of` from the key."""
    path = folder / RATINGS
    if not path.is_file():
        raise UserError(f"{folder} has no ratings yet; bring some in with human_eval.py import")
    about = read_key(folder)["candidates"]
    rows = [row for _, row in jsonl_rows(path.read_bytes(), path.name)]
    again = f"don't edit it; derive it again with human_eval.py import {folder}"
    typed(list[_Counted], rows, path, again)
    seen = set()
    for row in rows:
        if row["candidate"] not in about:
            raise UserError(f"{path}: {row['candidate']!r} is not in the key; {again}")
        name = (row["kind"], row["rater"], row["candidate"])
        if name in seen:
            raise UserError(f"{path}: {row['rater']} rates {row['candidate']} twice; {again}")
        seen.add(name)
    return [row | origin(about[row["candidate"]]) for row in rows]


def rated_batches(folder: Path) -> dict[tuple[str, int], set[str]]:
    """(rater, batch) → the candidates that people rated, resolved or not."""
    found: dict[tuple[str, int], set[str]] = defaultdict(set)
    held = derive(read_study(folder), read_key(folder), returns.read_all(folder))
    for row in [*held.ratings, *held.unresolved]:
        if row["kind"] == "expert":
            found[row["rater"], row["batch"]].add(row["candidate"])
    return dict(found)


def origin(about: Mapping[str, Any]) -> dict[str, Any]:
    """What the key says of a candidate, as the rows name it."""
    return {"run": about["run"], "answer_kind": about["kind"], "repeat_of": about["repeat_of"]}


def _screens_of(study: Study) -> dict[tuple[str, str], list[Screen]]:
    """(rater, candidate) → the screens that show it, those that still stand first."""
    found: dict[tuple[str, str], list[Screen]] = defaultdict(list)
    for screen in sorted(study.assignment, key=lambda s: s.superseded):
        for candidate in screen.candidates:
            found[screen.rater, candidate].append(screen)
    return found


def _refusal(
    study: Study, held: Return, given: Given, screens: Mapping[tuple[str, str], Any]
) -> str | None:
    """Why a row is no rating of this study; None if it is one."""
    if given.candidate not in study.answers:
        return f"the study has no candidate {given.candidate!r}"
    if held.kind == "expert" and given.rater not in study.raters:
        return f"the study has no rater {given.rater!r}; correct the id in the file"
    if held.kind == "expert" and (given.rater, given.candidate) not in screens:
        return "this answer was not assigned to this rater"
    return "left blank" if given.blank else None


Placed = tuple[Return, Given, str]


def _one_of(
    group: Sequence[Placed], settled: str | None
) -> tuple[list[Placed], list[tuple[str, str]], str | None]:
    """Of several ratings of one answer by one rater: the one that counts, or all as a conflict.

    Returns:
        Kept, (place, reason) of the dropped, and the reason if the kept ones are in conflict.
    """
    dropped = []
    later = sorted(group, key=_when) if _timed(group) else list(group)
    kept: list[Placed] = []
    for n, one in enumerate(later):
        rest = later[n + 1 :]
        alike = next((o for o in rest if o[1].judgement() == one[1].judgement()), None)
        fuller = next((o for o in later if one[1].unfinished_state_of(o[1])), None)
        if alike:
            dropped.append((one[2], f"the same rating stands in {alike[2]}"))
        elif fuller:
            dropped.append((one[2], f"an unfinished state of the rating in {fuller[2]}"))
        else:
            kept.append(one)
    if len(kept) < 2:
        return kept, dropped, None
    if chosen := _settled(kept, settled):
        dropped += [
            (one[2], f"another rating of this answer counts ({settled}): {chosen[2]}")
            for one in kept
            if one is not chosen
        ]
        return [chosen], dropped, None
    places = "; ".join(one[2] for one in kept)
    how = f"{settled} does not tell which; name a file" if settled else "settle it with --settle"
    return (
        kept,
        dropped,
        f"conflict: {len(kept)} different ratings of this answer, {places} ({how})",
    )


def _settled(kept: Sequence[Placed], settled: str | None) -> Placed | None:
    """The rating that the organiser's wish names: the first or last by time, or a file's."""
    if settled in ("first", "last") and _timed(kept):
        return (max if settled == "last" else min)(kept, key=_when)
    named = [one for one in kept if one[0].source == settled]
    return named[0] if len(named) == 1 else None


def _timed(group: Sequence[Placed]) -> bool:
    """Whether every rating has a time, no two the same."""
    times = [_time(one[1].rated_at) for one in group]
    return None not in times and len(set(times)) == len(times)


def _when(one: Placed) -> datetime:
    found = _time(one[1].rated_at)
    assert found is not None
    return found


def _time(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=_ZONE)


def _row(
    study: Study, key: Mapping[str, Any], screens: Sequence[Screen], one: Placed
) -> tuple[dict[str, Any], str | None]:
    """A row of ratings.jsonl, and why it can't be scored."""
    held, given, place = one
    screen = next((s for s in screens if s.batch == given.batch), screens[0] if screens else None)
    sheet = rubric.load()
    points = len(study.questions[study.answers[given.candidate].item_id].essential_points)
    faults = [*given.faults]
    if wrong := [n for n in given.missed_essential if not 1 <= n <= points]:
        faults.append(f"essential points {wrong} of {points}")
    accuracy, clarity = (
        sheet.worth(name, chosen.level, chosen.descriptors, given.missed_essential)
        for name, chosen in (("accuracy", given.accuracy), ("clarity", given.clarity))
    )
    faults += [worth.reason for worth in (accuracy, clarity) if worth.reason]
    rater = study.raters.get(given.rater) if held.kind == "expert" else None
    row = {
        "rater": given.rater,
        "role": rater.role if rater else None,
        "kind": held.kind,
        "batch": screen.batch if screen else None,
        "position": screen.position if screen else None,
        "item_id": study.answers[given.candidate].item_id,
        "candidate": given.candidate,
        "level": given.accuracy.level,
        "descriptors": sorted(set(given.accuracy.descriptors)),
        "score": accuracy.score,
        "capped": accuracy.capped,
        "clarity_level": given.clarity.level,
        "clarity_descriptors": sorted(set(given.clarity.descriptors)),
        "clarity_score": clarity.score,
        "missed_essential": sorted(set(given.missed_essential)),
        "comment": given.comment,
        "repeat": key["candidates"][given.candidate]["repeat_of"] is not None,
        "form": held.form,
        "rated_at": given.rated_at,
        "seconds": given.seconds,
        "source": place,
    }
    return row, "; ".join(faults) or None
