"""Studies with known truth: how good each answer is, how strict and how noisy raters are.

An answer's worth on each dimension is normal about its model's; raters see it with their own
severity and noise, and choose the level or descriptor nearest to what they see. Latent values are
on the scale of scores, so that all truths follow by drawing a large study.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hk_fs_bench.human import rubric
from hk_fs_bench.human.study import Answer, Question, Rater, Screen, Study
from hk_fs_bench.human.study import write_study as write_folder
from hk_fs_bench.runs import write_json, write_jsonl

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
        # A third of the questions, and of the raters, is engineering.
        role = "architect" if q % 3 else "fire_engineer"
        own = [r for r in range(world.raters) if (r % 3 > 0) == (role == "architect")]
        raters = generator.choice(own, world.per_question, replace=False)
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
            for candidate, worth, run, kind, again in shown:
                latent = {
                    name: worth - strict[r] + generator.normal(0, world.noise)
                    for name in DIMENSIONS
                }
                more = {"run": run, "answer_kind": kind, "repeat": again is not None}
                more["repeat_of"] = again
                found.rows.append(rating(f"r{r:02}", role, item, candidate, latent, **more))
    return found


def write_study(
    folder: Path, drawn: Drawn, *, judged: list[dict[str, Any]] | None = None, runs: bool = True
) -> list[Path]:
    """The study as a folder, and beside it the runs that were rated, scored; returns those."""
    rows = [*drawn.rows, *(judged or [])]
    about, answers, shown = {}, {}, {}
    for row in rows:
        name = row["candidate"]
        about[name] = {
            "item_id": row["item_id"],
            "kind": row["answer_kind"],
            "run": row["run"] and row["run"].replace("/", "-"),
            "repeat_of": row["repeat_of"],
            "taken_from": None,
        }
        length = 20 + zlib.crc32(name.encode()) % 60
        answers[name] = Answer(name, row["item_id"], " ".join(["word"] * length))
        if row["kind"] == "expert":
            shown.setdefault((row["rater"], row["item_id"], row["repeat"]), []).append(name)
    labels = sorted({one["run"] for one in about.values() if one["run"]})
    items = sorted({row["item_id"] for row in rows})
    study = Study(
        folder,
        {
            "format": 1,
            "name": folder.name,
            "seed": 1,
            "dataset": {"version": "1.0.0", "sha256": "d" * 64},
            "rubric": {"version": rubric.load().version, "sha256": rubric.load().sha256},
            "raters_per_question": 2,
            "batch_size": 10,
            "most_candidates": 5,
            "controls": {"expert": None, "known_bad": "built"},
            "settled": {},
            "withdrawn": [],
        },
        {
            n: Rater(n, role, 99)
            for n, role in sorted({(r["rater"], r["role"]) for r in drawn.rows})
        },
        {i: Question(i, f"Question {i}?", ["B11.6"], ["point one"], "Yes.", None) for i in items},
        answers,
        [
            Screen(rater, 1, place, item, names, repeat)
            for place, ((rater, item, repeat), names) in enumerate(shown.items(), 1)
        ],
    )
    write_folder(study)
    models = {label: {"model": label, "mode": "none", "folder": label} for label in labels}
    write_json(folder / "key.json", {"runs": models, "candidates": about})
    joined = ("run", "answer_kind", "repeat_of")
    write_jsonl(
        folder / "ratings.jsonl", [{k: v for k, v in r.items() if k not in joined} for r in rows]
    )
    write_jsonl(folder / "unresolved.jsonl", [])
    return [_run(folder.parent / label, label, drawn, about, answers) for label in labels if runs]


def _run(
    folder: Path, label: str, drawn: Drawn, about: dict[str, Any], answers: dict[str, Answer]
) -> Path:
    folder.mkdir()
    model = label.replace("-", "/", 1)
    write_json(folder / "run.json", {"tasks": ["hk_fs_oeq"]})
    (folder / "predictions.jsonl").write_text("")
    write_jsonl(
        folder / "items.jsonl",
        [
            {
                "task": "hk_fs_oeq",
                "item_id": held["item_id"],
                "variant": "",
                "sample": 0,
                "answer": answers[name].answer,
                "metrics": {m: v[model, held["item_id"]] for m, v in drawn.metrics.items()},
            }
            for name, held in about.items()
            if held["run"] == label and held["repeat_of"] is None
        ],
    )
    metrics = {name: {"signature": f"{name}|simulated"} for name in drawn.metrics}
    write_json(folder / "scores.json", {"tasks": {"hk_fs_oeq": {"metrics": metrics}}})
    return folder
