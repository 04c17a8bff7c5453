"""What the page of an entry shows: who, how, figures, failures by cause, answers beside keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hk_fs_bench.leaderboard.site import shown
from hk_fs_bench.leaderboard.site.board import OPEN_TASK, Board, Outcome, Row, page_of
from hk_fs_bench.schema import MCQItem

Json = Mapping[str, Any]
LONGEST = 4_000
"""Characters of an open answer that a page shows, and of one that could not be read."""
LONGEST_UNREAD = 400
_CHOICE = ("accuracy", "accuracy_on_valid", "non_conservative", "invalid_rate")


@dataclass(frozen=True)
class Line:
    """A figure in words."""

    name: str
    value: str
    interval: str
    n: str
    label: str
    why: str


def context(board: Board, row: Row, texts: Mapping[tuple[str, str], str]) -> dict[str, Any]:
    """The template's variables."""
    entry = row.entry
    return {
        "row": row,
        "entry": entry,
        "facts": [fact for fact in _facts(entry, board) if fact[1] not in (None, "")],
        "links": [(name, shown.link(url), url) for name, url in sorted(entry["links"].items())],
        "tasks": [_task(board, entry, task) for task in entry["tasks"]],
        "studies": list(_studies(entry)),
        "cues": _cues(entry),
        "choice_tasks": [t for t in board.choice_tasks if t in entry["tasks"]],
        "choices": _choices(board, entry),
        "parts": _values(board, "part"),
        "levels": _values(board, "level"),
        "unread": _unread(board, entry, texts),
        "answers": _answers(board, entry, texts),
    }


def _facts(entry: Json, board: Board) -> Iterator[tuple[str, Any]]:
    model, protocol, price = entry["model"], entry["protocol"], entry["price"] or {}
    returned = ", ".join(map(str, model.get("returned_ids") or []))
    yield "Model", model.get("id")
    yield "Asked for as", model.get("requested_id")
    yield "Answered as", returned
    yield "Revision", model.get("revision")
    yield "Weights, sha256", model.get("weights_sha256")
    yield "Provider", model.get("provider")
    yield "Ran", model.get("deployment")
    yield "Thinking", model.get("mode")
    yield "Search", model.get("search")
    yield "Regime", protocol.get("regime")
    template = protocol.get("chat_template_used")
    yield "Chat template", None if template is None else "used" if template else "not used"
    yield "Asked on edition", entry["asked_on"]
    yield "Submitted by", _submitter(entry["submitter"])
    yield "Date", entry["date"]
    yield "Contamination", board.words["contamination"][entry["declaration"]["contamination"]]
    yield "Statement", entry["declaration"]["statement"]
    yield "Notes", entry["notes"]
    if price:
        rates = f"{price.get('input')} in, {price.get('output')} out, US$ per million tokens"
        source = price.get("source") or "no source"
        yield "Price", f"{rates}; {price.get('date') or 'undated'} ({source})"
    yield "Raw answers, sha256", entry["predictions"]["sha256"]
    yield "Raw answers, rows", shown.number(entry["predictions"]["rows"])


def _submitter(submitter: Json) -> str:
    name = submitter["name"]
    return f"{name} ({submitter['login']})" if name else str(submitter["login"])


def _task(board: Board, entry: Json, task: str) -> dict[str, Any]:
    figures, words = entry["tasks"][task], board.words
    rank = figures.get("rank")
    return {
        "key": task,
        "title": words["tasks"].get(task, task),
        "signature": figures["signature"],
        "rank": None
        if rank is None
        else f"{rank['best']} to {rank['worst']} of {rank['of']}, tie group {rank['tie_group']}",
        "lines": list(_lines(figures, words["figures"])),
        "answered": figures["answered"],
        "prompts": figures["items"],
        "samples": figures["samples"],
        "over_limit": figures["over_limit"],
        "contaminated": figures["contaminated"],
        "statuses": {name: n for name, n in figures["statuses"].items() if n},
        "failures": figures["failures"],
        "by": figures.get("by") or {},
    }


def _lines(figures: Json, words: Mapping[str, str]) -> Iterator[Line]:
    shares = {name: figures[name] for name in _CHOICE if name in figures}
    for name, figure in (shares | (figures.get("metrics") or {})).items():
        label = words.get(name) or f"{words['bertscore_f1']} ({name})"
        yield Line(
            label,
            shown.percent(figure["value"]),
            shown.span(figure["ci95"]),
            f"{shown.number(figure['n'])} {figure['unit']}",
            figure["label"],
            shown.reason(figure),
        )
    costs = [(f"tokens_{name}", "tokens", mean) for name, mean in figures["tokens"].items()]
    costs += [(name, name, figures[name]) for name in ("seconds", "usd")]
    ratios = figures.get("per_correct") or {}
    costs += [(f"per_correct_{name}", name, ratio) for name, ratio in ratios.items()]
    for name, kind, found in costs:
        yield Line(
            words[name],
            shown.cost(kind, found["mean" if "mean" in found else "value"]),
            shown.cost_span(kind, found.get("ci95")),
            f"{shown.number(found['n'])} answers" if "n" in found else "",
            found["label"],
            shown.reason(found) or str(found.get("definition") or ""),
        )


def _studies(entry: Json) -> Iterator[dict[str, str]]:
    for who, studies in (("experts", entry["human"]), ("a judge model", entry["judge"])):
        for study in studies or ():
            rated = {name: study[name] for name in ("accuracy", "clarity", "unsafe_share")}
            yield {
                "who": who,
                "study": f"{study['study']}, rubric {study['rubric_version']}, "
                f"edition {study['dataset_version']}",
                "raters": shown.number(study["raters"]),
                **{name: _rated(own) for name, own in rated.items()},
            }


def _rated(rated: Json | None) -> str:
    if rated is None or rated["value"] is None:
        return shown.NONE
    known = None not in (rated["low"], rated["high"])
    bounds = f" ({shown.span((rated['low'], rated['high']))})" if known else ""
    return f"{shown.percent(rated['value'])}{bounds}, n {shown.number(rated['n'])}"


def _cues(entry: Json) -> list[Line]:
    """With less without context: over all, and by jurisdiction cue."""
    held = entry["context"]
    if held is None:
        return []
    named = {"all questions": held["difference"]} | {
        f"cue: {cue}": figure for cue, figure in held["by_jurisdiction_cue"].items()
    }
    return [
        Line(
            name,
            shown.points(figure["value"]),
            shown.points_span(figure["ci95"]),
            f"{shown.number(figure['n'])} {figure['unit']}",
            figure["label"],
            shown.reason(figure),
        )
        for name, figure in named.items()
    ]


def _choices(board: Board, entry: Json) -> list[tuple[MCQItem, tuple[Outcome, ...]]]:
    """Each multiple-choice question with its key and what the entry chose, task by task."""
    tasks = [task for task in board.choice_tasks if task in entry["tasks"]]
    if not tasks:
        return []
    found = []
    for name in board.questions(open_ones=False):
        item = board.choice(name)
        outcomes = tuple(board.outcome(entry, task, name) for task in tasks)
        found.append((item, outcomes))
    return found


def _values(board: Board, field: str) -> list[str]:
    """What the multiple-choice questions have in a field."""
    items = (board.choice(name) for name in board.questions(open_ones=False))
    return sorted({value for item in items if (value := getattr(item, field)) is not None})


def _unread(
    board: Board, entry: Json, texts: Mapping[tuple[str, str], str]
) -> list[dict[str, str]]:
    """The multiple-choice answers that could not be read, where their text is known."""
    found = []
    for task in board.choice_tasks:
        for name in board.content["questions"][task] if task in entry["tasks"] else ():
            outcome, text = board.outcome(entry, task, name), texts.get((task, name))
            if outcome.kind == "unreadable" and text:
                found.append(
                    {
                        "id": name,
                        "page": page_of(name),
                        "task": board.words["short_tasks"][task],
                        "status": outcome.status,
                        "text": text[:LONGEST_UNREAD],
                        "cut": "…" if len(text) > LONGEST_UNREAD else "",
                    }
                )
    return found


def _answers(
    board: Board, entry: Json, texts: Mapping[tuple[str, str], str]
) -> list[dict[str, Any]]:
    """The open questions with the entry's answers beside the reference answers."""
    figures = entry["tasks"].get(OPEN_TASK)
    if figures is None:
        return []
    found = []
    for n, name in enumerate(board.content["questions"][OPEN_TASK]):
        letter = figures["outcomes"]["status"][n]
        text = texts.get((OPEN_TASK, name), "")
        found.append(
            {
                "id": name,
                "page": page_of(name),
                "item": board.open(name),
                "status": board.content["status_letters"].get(letter, "not asked"),
                "values": row_values(board, figures, n),
                "text": text[:LONGEST],
                "cut": board.words["cut"] if len(text) > LONGEST else "",
            }
        )
    return found


def row_values(board: Board, figures: Json, n: int) -> dict[str, str]:
    """The answer's own values of the text metrics, by the metric's name."""
    words = board.words["figures"]
    rows = figures["outcomes"].get("rows") or {}
    return {
        words.get(name, name): shown.percent(values[n], 1)
        for name, values in rows.items()
        if values[n] is not None
    }
