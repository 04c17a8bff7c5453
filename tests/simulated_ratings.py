"""Studies with known truth: how good each answer is, how strict and how noisy raters are.

An answer's worth on each dimension is normal about its model's; raters see it with their own
severity and noise, and choose the level or descriptor nearest to what they see. Latent values are
on the scale of scores, so that all truths follow by drawing a large study.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hk_fs_bench.human import rubric

DIMENSIONS = {"accuracy": ("", "score"), "clarity": ("clarity_", "clarity_score")}


@dataclass
class World:
    """What is put in. `quality`: each model's mean worth; `question` and `answer`: spread between
    questions and between answers; `severity`, `noise`: spread between raters and within them."""

    quality: tuple[float, ...] = (0.85, 0.80, 0.70, 0.65, 0.55)
    question: float = 0.10
    answer: float = 0.20
    severity: float = 0.08
    noise: float = 0.15
    raters: int = 12
    questions: int = 68
    per_question: int = 2


@dataclass
class Drawn:
    """A study: rows as `read_ratings` gives them, the worth of each answer, raters' severity."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    worth: dict[tuple[str, str], float] = field(default_factory=dict)
    metrics: dict[str, dict[tuple[str, str], float]] = field(default_factory=dict)
    severity: list[float] = field(default_factory=list)


def run_name(i: int) -> str:
    return f"org/model-{chr(97 + i)}"


def choice(dimension: str, latent: float) -> tuple[str, list[str], float]:
    """The level and descriptors whose score is nearest."""
    held = rubric.load().dimensions[dimension]
    options: list[tuple[float, str, list[str]]] = [
        (one.score, one.id, []) for one in held.levels.values() if one.score is not None
    ]
    options += [(one.score, "major", [one.id]) for one in held.descriptors.values()]
    score, level, descriptors = min(options, key=lambda option: abs(option[0] - latent))
    return level, descriptors, score


def rating(
    rater: str, role: str, item: str, candidate: str, latent: dict[str, float], **more: Any
) -> dict[str, Any]:
    """One row; `latent`: what the rater sees on each dimension."""
    row = {
        "rater": rater,
        "role": role,
        "kind": "expert",
        "batch": 1,
        "position": 1,
        "item_id": item,
        "candidate": candidate,
        "capped": False,
        "missed_essential": [],
        "comment": None,
        "repeat": False,
        "repeat_of": None,
        "form": "html",
        "rated_at": None,
        "seconds": None,
        "source": "simulated",
        "run": None,
        "answer_kind": "model",
    }
    for name, (prefix, score) in DIMENSIONS.items():
        level, descriptors, value = choice(name, latent[name])
        row |= {f"{prefix}level": level, f"{prefix}descriptors": descriptors, score: value}
    return row | more


def draw(seed: int, world: World | None = None, *, extras: bool = False) -> Drawn:
    """A study, with a good metric (worth and some noise) and a useless one (noise alone).

    Args:
        extras: also blind controls and repeats, as forms have them.
    """
    world = world or World()
    generator = np.random.default_rng(seed)
    found = Drawn(metrics={"good": {}, "useless": {}})
    strict = generator.normal(0, world.severity, world.raters)
    found.severity = strict.tolist()
    for q in range(world.questions):
        item = f"oeq-{q:04}"
        ease = generator.normal(0, world.question)
        raters = generator.choice(world.raters, world.per_question, replace=False)
        worths = [m + ease + generator.normal(0, world.answer) for m in world.quality]
        for i, worth in enumerate(worths):
            unit = (run_name(i), item)
            found.worth[unit] = worth
            found.metrics["good"][unit] = worth + generator.normal(0, 0.15)
            found.metrics["useless"][unit] = generator.normal()
        shown = [(f"c{q}-{i}", w, run_name(i), "model", None) for i, w in enumerate(worths)]
        if extras and q % 10 == 0:
            shown += [
                (f"c{q}-x", 0.97, None, "expert", None),
                (f"c{q}-k", 0.1, None, "known_bad", None),
            ]
        if extras and q % 10 == 9:
            shown.append((f"c{q}-r", worths[0], run_name(0), "model", f"c{q}-0"))
        for r in raters:
            role = "architect" if q % 3 else "fire_engineer"
            for candidate, worth, run, kind, again in shown:
                latent = {
                    name: worth - strict[r] + generator.normal(0, world.noise)
                    for name in DIMENSIONS
                }
                more = {"run": run, "answer_kind": kind, "repeat": again is not None}
                more["repeat_of"] = again
                found.rows.append(rating(f"r{r:02}", role, item, candidate, latent, **more))
    return found
