"""Gate 4's probe: a trained reader that sees the options of each question and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from hk_fs_bench.gates.base import LETTERS, Item, settings
from hk_fs_bench.gates.giveaways import hedges, likeness, mean
from hk_fs_bench.quantities import quantities


@dataclass(frozen=True)
class Probe:
    """What the probe reached: its accuracy, and for each item how often it was right (0 to 1).

    `telling` are the features of a right (positive weight) and of a wrong option, strongest first.
    """

    accuracy: float
    credit: Mapping[str, float]
    telling: Sequence[tuple[str, float]]


# How an option stands among its four; names of the columns of `_relative`.
RELATIVE = (
    "length",
    "is longest",
    "is shortest",
    "numbers",
    "hedges",
    "likeness to the others",
    "rank of its number",
    "commas",
)


def run_probe(items: Sequence[Item]) -> Probe:
    """Cross-validated choices-only accuracy.

    Logistic regression over words, characters and relative form of each option; the option with
    the highest score in its item is the answer, ties share the credit. No item is divided between
    folds; folds follow from the ids and one seed, and the mean over repeats is taken.
    """
    import numpy as np
    from scipy.sparse import csr_matrix, hstack
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    limits = settings()["giveaways"]
    # By a hash, so that a cut of a large set is a fair sample.
    ordered = sorted(items, key=lambda item: sha256(str(item["id"]).encode()).digest())
    ordered = ordered[: limits["probe_items"]]
    options = [choice for item in ordered for choice in item["choices"]]
    right = np.array([letter == item["answer"] for item in ordered for letter in LETTERS])
    dense = np.array([row for item in ordered for row in _relative(item["choices"])])
    folds = min(limits["probe_folds"], len(ordered))
    # What stands once can't tell of another item; a small set has little else.
    rare = 2 if len(ordered) >= settings()["set_gates_from"] else 1
    credit = np.zeros(len(ordered))
    weights: dict[str, float] = {}
    for repeat in range(limits["probe_repeats"]):
        rng = np.random.default_rng(limits["probe_seed"] + repeat)
        fold_of = rng.permutation(len(ordered)) % folds
        scores = np.zeros(len(options))
        for fold in range(folds):
            test = np.repeat(fold_of == fold, 4)
            train = np.flatnonzero(~test)
            words = TfidfVectorizer(token_pattern=r"\b\w+\b", ngram_range=(1, 2), min_df=rare)
            letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), min_df=rare)
            seen = [options[row] for row in train]
            words.fit(seen)
            letters.fit(seen)
            scaler = StandardScaler().fit(dense[train])
            features = hstack(
                [
                    words.transform(options),
                    letters.transform(options),
                    csr_matrix(scaler.transform(dense)),
                ]
            ).tocsr()
            model = LogisticRegression(class_weight="balanced", solver="liblinear")
            model.fit(features[train], right[train])
            scores[test] = model.decision_function(features[test])
            names = [*words.get_feature_names_out(), *letters.get_feature_names_out(), *RELATIVE]
            for name, weight in zip(names, model.coef_[0], strict=True):
                weights[name] = weights.get(name, 0.0) + float(weight)
        table = scores.reshape(-1, 4)
        best = np.isclose(table, table.max(axis=1, keepdims=True))
        credit += (best & right.reshape(-1, 4)).sum(axis=1) / best.sum(axis=1)
    credit /= limits["probe_repeats"]
    telling = sorted(weights.items(), key=lambda pair: (-abs(pair[1]), pair[0]))[:40]
    by_item = {item["id"]: float(value) for item, value in zip(ordered, credit, strict=True)}
    return Probe(float(credit.mean()), by_item, telling)


def _relative(choices: Sequence[str]) -> list[list[float]]:
    """For each option the values of RELATIVE."""
    alike = likeness(choices)
    firsts = [next((n.value for n in quantities(choice)), 0.0) for choice in choices]
    rows = []
    for place, choice in enumerate(choices):
        others = [n for n in range(len(choices)) if n != place]
        lengths = [len(choices[n]) for n in others]
        rows.append(
            [
                len(choice) - mean(lengths),
                float(len(choice) > max(lengths)),
                float(len(choice) < min(lengths)),
                len(quantities(choice)) - mean([len(quantities(choices[n])) for n in others]),
                hedges(choice) - mean([hedges(choices[n]) for n in others]),
                alike[choice],
                float(sum(firsts[place] > firsts[n] for n in others)),
                choice.count(",") - mean([choices[n].count(",") for n in others]),
            ]
        )
    return rows
