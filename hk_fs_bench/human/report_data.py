"""All figures of a study, as report.json holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hk_fs_bench import __version__
from hk_fs_bench.human import agreement, figures, judge_figures, rubric
from hk_fs_bench.human.correlations import correlations
from hk_fs_bench.human.figures import FIELDS, Row
from hk_fs_bench.human.metric_values import LENGTH, MetricValues
from hk_fs_bench.human.study import Study, defaults

FORMAT = 1


def collect(
    study: Study,
    key: Mapping[str, Any],
    rows: Sequence[Row],
    unresolved: Sequence[Row],
    metrics: MetricValues,
    summaries: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """The content of report.json. Undefined figures are null with a reason; no rater is named.

    Args:
        rows: of `ratings.read_ratings`.
        unresolved: of unresolved.jsonl.
        summaries: of `judge_figures.read_summaries`.
    """
    known = rubric.load()
    people, judges = figures.of_kind(rows, "expert"), figures.of_kind(rows, "model")
    rated = figures.of_models(people)
    scores = {n: figures.means(figures.by_answer(people, n)) for n in FIELDS}
    dataset = study.settings["dataset"]
    edition = f"{dataset['version'] or 'no version'}@{dataset['sha256'][:12]}"
    found: dict[str, Any] = {
        "format": FORMAT,
        "study": study.name,
        "signature": f"{known.signature}|data:{edition}|hk_fs_bench:{__version__}",
        "rubric": {"version": known.version, "sha256": known.sha256, "rule": known.rule["en"]},
        "rubric_of_forms": study.settings["rubric"],
        "dataset": dataset,
        "counts": _counts(people, rated, unresolved),
        "names": names(key),
        "third_rater_gap": known.third_rater_gap,
        "unresolved": [_unresolved(row) for row in unresolved],
    }
    if rated:
        found |= {
            "models": figures.model_figures(people, known),
            "agreement": {name: agreement.agreement(people, name) for name in FIELDS},
            "by_role": _by_role(people, found["counts"]["roles"]),
            "repeats": {name: agreement.repeats(people, name) for name in FIELDS},
            "controls": agreement.controls(people),
            "third_raters": figures.third_raters(people, known),
            "exclusions": figures.exclusions(people),
        }
    found["metrics"] = {
        "notes": metrics.notes,
        "signatures": metrics.signatures,
        "correlations": correlations(metrics.values, scores) if rated else [],
    }
    lengths = metrics.values[LENGTH]
    found["judges"] = {
        name: _judge(people, own, lengths, summaries.get(name))
        for name in sorted({row["rater"] for row in judges})
        for own in [[row for row in judges if row["rater"] == name]]
    }
    return found


def names(key: Mapping[str, Any]) -> dict[str, str]:
    """Run → the model's name, no two alike."""
    models = {label: str(held["model"]) for label, held in key["runs"].items()}
    every = list(models.values())
    return {
        label: name if every.count(name) == 1 else f"{name} ({label})"
        for label, name in models.items()
    }


def _counts(
    people: Sequence[Row], rated: Sequence[Row], unresolved: Sequence[Row]
) -> dict[str, Any]:
    """How much there is. Roles are named only where every role has raters enough."""
    raters = {row["rater"]: row["role"] for row in people}
    roles = {role: list(raters.values()).count(role) for role in sorted(map(str, raters.values()))}
    small = not roles or any(n < defaults()["smallest_published_group"] for n in roles.values())
    return {
        "raters": len(raters),
        "roles": None if small else roles,
        "ratings": len(rated),
        "questions": len({row["item_id"] for row in rated}),
        "answers": len({(row["run"], row["item_id"]) for row in rated}),
        "unresolved": len(unresolved),
    }


def _by_role(people: Sequence[Row], roles: Mapping[str, int] | None) -> dict[str, Any] | None:
    """Agreement of each role on its own questions; None where a role has too few raters."""
    if roles is None:
        return None
    found = {}
    for role, raters in roles.items():
        own = figures.of_models(row for row in people if row["role"] == role)
        found[role] = {
            "raters": raters,
            "questions": len({row["item_id"] for row in own}),
            **{name: agreement.single(own, name).to_json() for name in FIELDS},
        }
    return found


def _unresolved(row: Row) -> dict[str, str]:
    """A row that waits, without who rated it and in which file."""
    reason = str(row["reason"])
    if reason.startswith("conflict"):
        reason = "two different ratings by one rater came back"
    return {"item_id": row["item_id"], "candidate": row["candidate"], "reason": reason}


def _judge(
    people: Sequence[Row],
    own: Sequence[Row],
    lengths: Mapping[tuple[str, str], float],
    summary: Mapping[str, Any] | None,
) -> dict[str, Any]:
    known = rubric.load()
    found: dict[str, Any] = {
        "models": figures.model_figures(own, known) if figures.of_models(own) else {},
        "controls": agreement.controls(own),
        "beside_people": {
            name: judge_figures.judge_figures(people, own, lengths, name) for name in FIELDS
        },
        "calls": None,
        "position": None,
    }
    if summary is not None:
        kept = ("prompt", "calls", "unreadable", "unanswered", "tokens", "usd", "seconds")
        found["calls"] = {name: summary[name] for name in kept}
        found["position"] = {n: judge_figures.position_bias(summary, n) for n in FIELDS}
    return found
