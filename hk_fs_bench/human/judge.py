"""A model as one more rater: the same rubric, the same rows, kind `model`.

Its replies are kept in the study folder, judges/<judge>/, each paid for once; judges/<judge>/
judge.json says what the command asked, what that cost, and what the judge said of answers shown in
two orders.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined

from hk_fs_bench import runs
from hk_fs_bench.errors import UserError
from hk_fs_bench.human import ratings, returns, rubric
from hk_fs_bench.human.judge_figures import ORDERS, SUMMARY
from hk_fs_bench.human.study import Study, read_key, read_study
from hk_fs_bench.judging import ApiJudge, Query
from hk_fs_bench.metrics.keypoints import fenceless, without_reasoning

TASK = "human_judge"


# What of a reply is looked at for its object.
_LONGEST_REPLY = 20_000


@dataclass(frozen=True)
class Showing:
    """Candidates of one question as the judge sees them; `order` is one of ORDERS."""

    item_id: str
    block: int
    order: str
    candidates: Sequence[str]


@lru_cache(maxsize=1)
def settings() -> dict[str, Any]:
    """The content of judge.yaml: version, max_tokens, template."""
    text = resources.files(__package__).joinpath("judge.yaml").read_text("utf-8")
    held: dict[str, Any] = yaml.safe_load(text)
    return held


def signature() -> str:
    """The prompt's version and hash, with the rubric that is rendered into it."""
    whole = settings()["template"] + rubric.load().sha256
    return (
        f"judge-prompt {settings()['version']} ({hashlib.sha256(whole.encode()).hexdigest()[:12]})"
    )


def api_judge(
    name: str,
    *,
    service_id: str | None = None,
    base_url: str | None = None,
    max_cost: float | None = None,
    models_file: Path | None = None,
) -> ApiJudge:
    """An entry of models.yaml as judge; UserError as `ApiJudge`."""
    return ApiJudge(
        name,
        service_id=service_id,
        base_url=base_url,
        max_cost=max_cost,
        models_file=models_file,
        prompt=settings(),
    )


def plan(study: Path, judge: ApiJudge, *, swapped: float = 0.25) -> list[str]:
    """What `judge_study` would ask and pay, as lines; nothing is sent."""
    queries = [query for _, query in _queries(read_study(study), swapped)]
    missing = judge.missing(queries)
    most = judge.most(missing)
    return [
        f"judge {judge.signature}, {signature()}",
        f"{len(queries)} calls, {len(queries) - len(missing)} of them answered already",
        f"at most {most:.4f} USD" if most is not None else "no price is known, so no cost either",
    ]


def judge_study(study: Path, judge: ApiJudge, *, swapped: float = 0.25) -> list[str]:
    """Have a judge rate every candidate of a study, and a share of them in reversed order too.

    What was answered before is not asked again. The ratings become a return of the study, as a
    rater's; those of the reversed order stand in judge.json alone.

    Returns:
        Lines to print.

    Raises:
        UserError: no study, a share that is none, nothing to rate, or no reply at all.
    """
    held = read_study(study)
    asked = _queries(held, swapped)
    replies = judge.ask([query for _, query in asked])
    judged = [
        (showing, read_reply(reply, held, showing))
        for (showing, _), reply in zip(asked, replies, strict=True)
    ]
    place = judge.place(study)
    told = [judgements for _, judgements in judged if judgements]
    summary = {
        "format": 1,
        "judge": judge.signature,
        "prompt": signature(),
        "calls": len(asked),
        "unreadable": sum(reply is not None for reply in replies) - len(told),
        "unanswered": sum(reply is None for reply in replies),
        **_costs(judge, place),
        "orders": [_order(showing, found) for showing, found in judged if found],
    }
    if not told:
        raise UserError(
            f"{judge.signature} gave no reply that can be read ({summary['unanswered']} calls "
            f"failed); read its replies in {place}, and delete that folder to ask anew"
        )
    runs.write_json(place / SUMMARY, summary)
    returns.store(study, _return(judge, judged))
    ratings.rebuild(study)
    rated = {str(held["model"]).split(" · ")[0] for held in read_key(study)["runs"].values()}
    own = judge.signature.rpartition(" (")[0] in rated
    return [
        judge.summary,
        *(["the judge rates answers of its own model: it may favour them"] if own else []),
        f"{len(told)} of {len(asked)} replies could be read, {summary['unreadable']} could not, "
        f"{summary['unanswered']} are missing (the same command asks them again)",
        f"ratings of {judge.signature} are in {study / 'ratings.jsonl'}, kind model",
    ]


def _return(
    judge: ApiJudge, judged: Sequence[tuple[Showing, dict[str, dict[str, Any]] | None]]
) -> returns.Return:
    """The ratings of the first order, as a rater's returned form; the same judge's replaces it."""
    given = [
        returns.Given(
            judge.signature,
            candidate,
            returns.Chosen(one["level"], one["descriptors"]),
            returns.Chosen(one["clarity_level"], one["clarity_descriptors"]),
            one["missed_essential"],
            where=f"{showing.item_id}, block {showing.block}",
        )
        for showing, found in judged
        if found and showing.order == ORDERS[0]
        for candidate, one in found.items()
    ]
    place = hashlib.sha256(judge.signature.encode()).hexdigest()
    return returns.Return("model", "judge", judge.signature, place, given)


def showings(study: Study, swapped: float) -> list[Showing]:
    """Every candidate of every question once, at most `most_candidates` a call, in drawn order;
    a share `swapped` of the questions in the reversed order too."""
    if not 0 <= swapped <= 1:
        raise UserError(f"the share of swapped questions is between 0 and 1, not {swapped}")
    of: dict[str, list[str]] = {}
    for screen in study.assignment:
        if not screen.repeat:
            own = of.setdefault(screen.item_id, [])
            own += [name for name in screen.candidates if name not in own]
    if not of:
        raise UserError(f"{study.folder} has no assignment; make one with human_eval.py assign")
    names = sorted(of)
    again = {*names} if swapped == 1 else set()
    again = again or {
        *random.Random(f"{study.settings['seed']} swapped").sample(
            names, math.ceil(swapped * len(names))
        )
    }
    most = int(study.settings["most_candidates"])
    found = []
    for name in names:
        candidates = sorted(of[name])
        random.Random(f"{study.settings['seed']} {name}").shuffle(candidates)
        # Blocks of nearly equal size, so that no answer is rated all alone.
        parts = math.ceil(len(candidates) / most)
        for block in range(parts):
            shown = candidates[block::parts]
            found.append(Showing(name, block, ORDERS[0], shown))
            if name in again and len(shown) > 1:
                found.append(Showing(name, block, ORDERS[1], shown[::-1]))
    return found


def prompt(study: Study, showing: Showing) -> str:
    """What the judge is asked about one showing."""
    question = study.questions[showing.item_id]
    environment = Environment(undefined=StrictUndefined, autoescape=False, trim_blocks=True)
    return environment.from_string(settings()["template"]).render(
        dimensions=list(rubric.load().dimensions.values()),
        question=question.question,
        references=question.references,
        points=question.essential_points,
        reference=question.reference_answer,
        answers=[fenceless(study.answers[name].answer) for name in showing.candidates],
    )


def _queries(study: Study, swapped: float) -> list[tuple[Showing, Query]]:
    return [
        (one, Query(study.folder, (TASK, one.item_id, one.order, one.block), prompt(study, one)))
        for one in showings(study, swapped)
    ]


def read_reply(
    text: str | None, study: Study, showing: Showing
) -> dict[str, dict[str, Any]] | None:
    """Candidate → `level`, `descriptors`, `missed_essential`, `clarity_level`,
    `clarity_descriptors`, of a reply whose last object has a sound entry for every answer; else
    None. Nothing is guessed: one entry that is no judgement spoils the reply."""
    held = _last_object(without_reasoning(text or "")[-_LONGEST_REPLY:])
    if set(held) != {str(i + 1) for i in range(len(showing.candidates))}:
        return None
    points = len(study.questions[showing.item_id].essential_points)
    found = {
        name: _judgement(held[str(i + 1)], points) for i, name in enumerate(showing.candidates)
    }
    return None if None in found.values() else {k: v for k, v in found.items() if v is not None}


def _last_object(text: str) -> dict[str, Any]:
    decoder, found, at = json.JSONDecoder(), {}, text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            found = value
        at = text.find("{", end)
    return found


def _judgement(entry: Any, points: int) -> dict[str, Any] | None:
    if not isinstance(entry, dict):
        return None
    known = rubric.load()
    missed = entry.get("missed_essential") or []
    if not isinstance(missed, list) or not all(type(n) is int and 1 <= n <= points for n in missed):
        return None
    found: dict[str, Any] = {"missed_essential": sorted(set(missed))}
    for name, prefix in (("accuracy", ""), ("clarity", "clarity_")):
        level, chosen = entry.get(name), entry.get(f"{name}_descriptors") or []
        held = known.dimensions[name]
        if not isinstance(level, str) or level not in held.levels or not isinstance(chosen, list):
            return None
        if not all(isinstance(one, str) and one in held.descriptors for one in chosen):
            return None
        found |= {f"{prefix}level": level, f"{prefix}descriptors": list(dict.fromkeys(chosen))}
    return found


def _order(showing: Showing, judged: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A showing with the scores that it got, null where a level contradicts its descriptors."""
    known = rubric.load()
    return {
        "item_id": showing.item_id,
        "block": showing.block,
        "order": showing.order,
        "candidates": list(showing.candidates),
        "accuracy": [
            known.worth("accuracy", one["level"], one["descriptors"], one["missed_essential"]).score
            for one in map(judged.__getitem__, showing.candidates)
        ],
        "clarity": [
            known.worth("clarity", one["clarity_level"], one["clarity_descriptors"]).score
            for one in map(judged.__getitem__, showing.candidates)
        ],
    }


def _costs(judge: ApiJudge, place: Path) -> dict[str, Any]:
    """What all calls of this folder took: tokens, USD (null without a price) and seconds."""
    rows = runs.read_run(place).rows.values() if (place / "run.json").is_file() else []
    settled = [row for row in rows if runs.settled(row)]
    usage = [row.get("token_usage") or {} for row in settled]
    times = [(row.get("performance") or {}).get("latency_ms") or 0.0 for row in settled]
    price = judge.model.price
    return {
        "tokens": {
            name: sum(one.get(name) or 0 for one in usage)
            for name in ("input_tokens", "output_tokens")
        },
        "usd": None if price is None else sum(price.cost(one) or 0.0 for one in usage),
        "seconds": round(sum(times) / 1000, 3),
    }
