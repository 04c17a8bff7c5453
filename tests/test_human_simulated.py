"""A simulated study with known truth: the report's figures recover what was put in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from hk_fs_bench.human import agreement, correlations, figures, rubric
from tests.simulated_ratings import World, draw, run_name

SEEDS = range(12)
# Of twelve 95% intervals eleven or twelve should hold the truth, nine nearly always do; an interval
# that is off by a quarter of its width fails.
ENOUGH = 9
BIG = World(questions=4000, raters=400)


@pytest.fixture(scope="module")
def studies():
    return [draw(seed) for seed in SEEDS]


@pytest.fixture(scope="module")
def agreements(studies):
    return [agreement.agreement(study.rows, "accuracy") for study in studies]


@pytest.fixture(scope="module")
def truth():
    """By a study of 4,000 questions and 400 raters, by definition and not by our formulas."""
    big = draw(99, BIG)
    table = figures.by_answer(big.rows, "accuracy")
    values = np.array([list(own.values()) for own in table.values()])
    mean = figures.means(table)
    said = dict.fromkeys(mean, False)
    for row in big.rows:
        said[row["run"], row["item_id"]] |= bool(
            {"fabrication", "misunderstanding"} & {*row["descriptors"]}
        )
    units = list(mean)
    runs = [run_name(i) for i in range(5)]

    def rho(x, y):
        return spearmanr([x[u] for u in units], [y[u] for u in units]).statistic

    # Two pairs of raters of the same answers: how far their means go together.
    four = figures.by_answer(
        draw(98, replace(BIG, questions=2000, per_question=4)).rows, "accuracy"
    ).values()
    halves = np.array([[*own.values()] for own in four]).reshape(-1, 2, 2).mean(axis=2)
    flipped = np.concatenate([values, values[:, ::-1]])
    return {
        "accuracy": {r: np.mean([v for u, v in mean.items() if u[0] == r]) for r in runs},
        "unsafe": {r: np.mean([v for u, v in said.items() if u[0] == r]) for r in runs},
        "icc": np.corrcoef(flipped.T)[0, 1],
        "good": rho(big.metrics["good"], mean),
        "useless": rho(big.metrics["useless"], mean),
        "ceiling": np.corrcoef(np.concatenate([halves, halves[:, ::-1]]).T)[0, 1] ** 0.5,
        "perfect": np.corrcoef([big.worth[u] for u in units], [mean[u] for u in units])[0, 1],
    }


def covered(intervals, value: float) -> int:
    return sum(low <= value <= high for low, high in intervals)


def test_means_and_unsafe_shares(studies, truth):
    every = [figures.model_figures(study.rows, rubric.load()) for study in studies]
    for name, key in (("accuracy", "accuracy"), ("unsafe_share", "unsafe")):
        inside = {
            run: covered((f[run][name]["ci95"] for f in every), value)
            for run, value in truth[key].items()
        }
        assert sum(inside.values()) >= 0.88 * 5 * len(SEEDS), (name, inside)
        assert min(inside.values()) >= ENOUGH - 1, (name, inside)
        # Not by being wide: all but the neighbours are told apart.
    for found in every:
        widths = [np.ptp(f["accuracy"]["ci95"]) for f in found.values()]
        assert max(widths) < 0.15
        assert next(iter(found)) in (run_name(0), run_name(1))
        assert list(found)[-1] == run_name(4)
        best, worst = found[run_name(0)]["accuracy"], found[run_name(4)]["accuracy"]
        assert best["ranks"][1] < worst["ranks"][0]
        assert not set(best["ties"]) & set(worst["ties"])


def test_agreement(agreements, truth):
    found = agreements
    singles = [one["single"] for one in found]
    assert covered((one["ci95"] for one in singles), truth["icc"]) >= ENOUGH
    assert np.mean([one["value"] for one in singles]) == pytest.approx(truth["icc"], abs=0.04)
    assert all(one["single"]["clusters"] == 68 for one in found)
    for one in found:
        assert one["two_way"]["value"] is None
        assert "use the one-way form" in one["two_way"]["reason"]
        parts = {name: part["value"] for name, part in one["components"].items()}
        share = parts["items"] / sum(parts.values())
        assert share == pytest.approx(one["single"]["value"], abs=0.08)
        assert one["ratings_per_answer"] == {"2": 340}


def test_agreement_of_uneven_numbers_of_ratings(truth):
    """Two to four raters a question, a quarter of the ratings lost: the same truth."""
    found = []
    for seed in SEEDS:
        study = draw(seed, World(per_question=2 + seed % 3))
        generator = np.random.default_rng(seed)
        rows = [row for row in study.rows if generator.random() < 0.75]
        found.append(agreement.single(rows, "accuracy"))
    assert covered((one.ci95 for one in found), truth["icc"]) >= ENOUGH
    assert np.mean([one.value for one in found]) == pytest.approx(truth["icc"], abs=0.04)
    assert all(one.more["k"] % 1 for one in found)


def test_severity_is_told_from_noise():
    """Strict and lenient raters who agree on the order: low ICC, high reliability within."""
    strict = agreement.agreement(draw(3, World(severity=0.25, noise=0.05)).rows, "accuracy")
    noisy = agreement.agreement(draw(3, World(severity=0.0, noise=0.25)).rows, "accuracy")
    assert strict["components"]["raters"]["value"] > 2 * strict["components"]["residual"]["value"]
    assert noisy["components"]["raters"]["value"] < 0.1 * noisy["components"]["residual"]["value"]
    assert strict["within"]["value"] > strict["average"]["value"] + 0.15
    assert noisy["within"]["value"] < noisy["average"]["value"] + 0.05


def test_the_ceiling(agreements, truth):
    ceilings = [one["ceiling"]["answers"] for one in agreements]
    assert np.mean([one["value"] for one in ceilings]) == pytest.approx(truth["ceiling"], abs=0.03)
    assert covered((one["ci95"] for one in ceilings), truth["ceiling"]) >= ENOUGH
    # The worth itself, a metric without fault, comes near it and not beyond: levels are coarse.
    assert truth["ceiling"] - 0.05 < truth["perfect"] < truth["ceiling"]
    assert truth["good"] < truth["perfect"]


def test_metrics(studies, truth):
    """The good metric is found at both levels, the useless one never called evidence."""
    verdicts: dict = {}
    intervals: dict = {"good": [], "useless": []}
    for study in studies:
        scores = {
            name: figures.means(figures.by_answer(study.rows, name)) for name in figures.FIELDS
        }
        rows = correlations.correlations(study.metrics, scores)
        assert len(rows) == 3 * 2 * 2
        for row in rows:
            verdicts.setdefault((row["level"], row["metric"]), []).append(row["verdict"])
            if row["level"] == "answers" and row["dimension"] == "accuracy":
                intervals[row["metric"]].append(row["ci95"])
            if row["level"] == "answers":
                assert row["clusters"] == 68
            if row["level"] == "models":
                assert row["p_holm"] is None
                assert row["ci95"] is None
                assert row["n"] == 5
            else:
                every = row["n"] + row.get("constant", 0)
                assert every == {"within": 68, "answers": 340}[row["level"]]
            if row["verdict"] == "none":
                assert row["says"].startswith("no evidence; a true rho below 0.")
    for level in ("within", "answers"):
        assert set(verdicts[level, "good"]) == {"evidence"}
        assert verdicts[level, "useless"].count("none") >= 2 * len(SEEDS) - 2
    assert set(verdicts["models", "good"]) == {"untested"}
    for name, found in intervals.items():
        assert covered(found, truth[name]) >= ENOUGH, name


def test_a_weak_metric_is_missed_by_few_questions_and_the_report_says_so():
    study = draw(5, World(questions=12))
    scores = {"accuracy": figures.means(figures.by_answer(study.rows, "accuracy"))}
    generator = np.random.default_rng(5)
    weak = {u: 0.15 * w + generator.normal() for u, w in study.worth.items()}
    rows = correlations.correlations({"weak": weak}, scores)
    answers = next(row for row in rows if row["level"] == "answers")
    assert answers["verdict"] == "none"
    assert answers["smallest_rho"] > 0.2


def test_exclusion_raises_agreement_without_better_raters(studies):
    study = studies[0]
    every = agreement.agreement(study.rows, "accuracy")["single"]["value"]
    rows = figures.exclusions(study.rows)
    assert [row["kept"] + row["left_out"] for row in rows] == [68] * 3
    assert rows[0]["left_out"] > rows[2]["left_out"]
    strictest = rows[0]["icc"]["value"]
    assert strictest is None or strictest > every + 0.1


def test_third_raters_controls_and_repeats():
    study = draw(4, extras=True)
    called = figures.third_raters(study.rows, rubric.load())
    for one in called:
        assert max(one["scores"]) - min(one["scores"]) >= 0.4 - 1e-9
    held = {(one["item_id"], one["candidate"]) for one in called}
    wide = {
        (item, run)
        for (run, item), own in figures.by_answer(study.rows, "accuracy").items()
        if max(own.values()) - min(own.values()) >= 0.4 - 1e-9
    }
    assert len(held) == len(wide) > 0
    checks = agreement.controls(study.rows)
    assert checks["expert"]["answers"] == checks["known_bad"]["answers"] == 7
    assert checks["known_bad"]["found"]["value"] == 1.0
    assert checks["expert"]["found"]["n"] == 14
    assert checks["expert"]["accuracy"]["value"] > 0.85
    # A form may ask for descriptors alone; a missed essential point is a fault, whatever the level.
    bare = [dict(r, level=None) if r["descriptors"] else r for r in study.rows]
    assert agreement.controls(bare) == checks
    assert agreement.repeats(bare, "accuracy") == agreement.repeats(study.rows, "accuracy")
    capped = [dict(r, capped=r["answer_kind"] == "expert") for r in study.rows]
    assert agreement.controls(capped)["expert"]["found"]["value"] == 0
    again = agreement.repeats(study.rows, "accuracy")
    assert again["pairs"] == 12
    assert 0 < again["same_level"]["value"] <= 1
    # Controls and second looks are in no model's figures.
    plain = [r for r in study.rows if r["answer_kind"] == "model" and not r["repeat"]]
    rubric_ = rubric.load()
    assert figures.model_figures(study.rows, rubric_) == figures.model_figures(plain, rubric_)


def test_the_pooled_mean_is_over_ratings_and_the_mean_over_questions():
    """One question with a third rating: the paper's mean counts it thrice, ours once."""
    study = draw(6, World(questions=3, raters=6))
    first = next(r for r in study.rows if r["run"] == run_name(0))
    extra = dict(first, rater="r99", score=0.0, level="major", descriptors=["misunderstanding"])
    rows = [*study.rows, extra]
    found = figures.model_figures(rows, rubric.load())[run_name(0)]
    by_item: dict = {}
    for row in rows:
        if row["run"] == run_name(0):
            by_item.setdefault(row["item_id"], []).append(row["score"])
    assert found["accuracy"]["value"] == pytest.approx(
        np.mean([np.mean(v) for v in by_item.values()])
    )
    assert found["accuracy_pooled"]["value"] == pytest.approx(
        np.mean([x for v in by_item.values() for x in v])
    )
    assert found["accuracy"]["n"] == 3
    assert found["accuracy_pooled"]["ratings"] == 7
    assert found["unsafe_share"]["value"] >= 1 / 3
    assert found["levels"]["accuracy"]["major"] == sum(
        row["level"] == "major" for row in rows if row["run"] == run_name(0)
    )
