"""ICC, alpha and Spearman against published values and their libraries.

Our own table is tests/data/statistics_cases.jsonl. HK_FS_CASES may name a folder with a further
one, D_ratings_statistics.jsonl; its cases about survey exports are not for this module.
"""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from hk_fs_bench import stats

HERE = Path(__file__).resolve().parent
FIELD = Path(os.environ.get("HK_FS_CASES") or HERE.parents[1] / "shared" / "cases")
TABLES = [HERE / "data" / "statistics_cases.jsonl", FIELD / "D_ratings_statistics.jsonl"]
CASES = [
    case
    for path in TABLES
    if path.is_file()
    for case in map(json.loads, path.read_text("utf-8").splitlines())
    if {"ratings", "x"} & set(case["input"])
]


def crossed(ratings: list[list[float]]) -> dict[str, dict[str, float]]:
    return {f"q{i}": {f"r{j}": v for j, v in enumerate(row)} for i, row in enumerate(ratings)}


def forms(ratings) -> dict[str, stats.Estimate]:
    """The six ICCs of a table, or of item → rater → rating."""
    table = ratings if isinstance(ratings, dict) else crossed(ratings)
    rows = [list(row.values()) for row in table.values()]
    found = []
    for average in (False, True):
        found.append(stats.icc_one_way(rows, average=average))
        for consistency in (False, True):
            found.append(stats.icc_two_way(table, average=average, consistency=consistency))
    return {estimate.more["form"]: estimate for estimate in found}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case):
    expected, tolerance = case["expected"], case["context"].get("tol", 1e-6)
    if "x" in case["input"]:
        found = stats.spearman(case["input"]["x"], case["input"]["y"])
        if expected.get("spearman", 0) is None:
            assert found.value is None
            assert expected["warn"] in found.reason
            return
        assert found.value == pytest.approx(expected["spearman"], abs=tolerance)
        if "p" in expected:
            assert found.p == pytest.approx(expected["p"], abs=tolerance)
        if "p_exact" in expected:
            assert found.p == pytest.approx(expected["p_exact"], abs=tolerance)
            assert found.test.startswith("exact")
        return
    found = forms(case["input"]["ratings"])
    one = found["ICC(1,1)"]
    for name in found.keys() & expected.keys():
        assert found[name].value == pytest.approx(expected[name], abs=tolerance), name
    for name in {"df1", "df2"} & expected.keys():
        assert one.more[name] == expected[name]
    if "p" in expected:
        assert one.p == pytest.approx(expected["p"], abs=1e-4)
    if "CI95" in expected:
        assert one.ci95 == pytest.approx(expected["CI95"], abs=tolerance)
    if "icc" in expected:
        assert all(estimate.value is None for estimate in found.values())
        assert all(expected["warn"] in estimate.reason for estimate in found.values())
    if "error" in expected:
        assert all(expected["error"] in estimate.reason for estimate in found.values())
    if expected.get("two_way") == "refused":
        assert one.value is not None
        for name in ("ICC(A,1)", "ICC(C,k)"):
            assert "use the one-way form" in found[name].reason


@pytest.mark.parametrize(
    ("form", "low", "high"),
    [
        # As R's psych prints them for the table of Shrout and Fleiss.
        ("ICC(1,1)", -0.133, 0.723),
        ("ICC(A,1)", 0.019, 0.761),
        ("ICC(C,1)", 0.342, 0.946),
        ("ICC(1,k)", -0.884, 0.912),
        ("ICC(A,k)", 0.071, 0.927),
        ("ICC(C,k)", 0.676, 0.986),
    ],
)
def test_intervals_of_shrout_and_fleiss(form, low, high):
    found = forms(CASES[0]["input"]["ratings"])[form]
    assert found.ci95 == pytest.approx((low, high), abs=6e-4)


Ratings = st.lists(st.lists(st.integers(0, 100), min_size=1, max_size=4), min_size=2, max_size=12)


@given(Ratings)
@settings(deadline=None)
def test_one_way_of_any_design(ratings):
    found = stats.icc_one_way(ratings)
    average = stats.icc_one_way(ratings, average=True)
    if found.value is None:
        assert found.reason
        return
    assert found.value <= 1
    assert found.n == len(ratings)
    if "F" in found.more:
        wanted = scipy_stats.f_oneway(*ratings)
        assert found.more["F"] == pytest.approx(wanted.statistic, rel=1e-6)
        assert found.p == pytest.approx(wanted.pvalue, rel=1e-6)
        if found.more["F"] == 0:
            assert (found.ci95, found.interval) == (None, "none: F is 0")
            return
        low, high = found.ci95
        assert low <= found.value <= high
        if average.value is not None:
            assert average.value == pytest.approx(1 - 1 / found.more["F"], abs=1e-9)
    again = stats.icc_one_way([[value + 7 for value in reversed(own)] for own in ratings])
    assert again.value == pytest.approx(found.value, abs=1e-9)


def test_unbalanced_k_is_the_mean_of_the_design():
    """k of 2, 3 and 4 ratings: (9 - 29/9) / 2."""
    found = stats.icc_one_way([[1, 2], [2, 3, 4], [5, 4, 6, 5]])
    assert found.more["k"] == pytest.approx((9 - 29 / 9) / 2)
    assert found.more["ratings"] == 9


@pytest.mark.parametrize("consistency", [False, True])
def test_two_way_against_the_anova_of_statsmodels(consistency):
    import pandas as pd
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    generator = np.random.default_rng(3)
    x = generator.normal(0, 1, (9, 1)) + generator.normal(0, 0.5, (1, 4))
    x = x + generator.normal(0, 0.7, (9, 4))
    frame = pd.DataFrame(
        [(i, j, x[i, j]) for i in range(9) for j in range(4)], columns=["item", "rater", "y"]
    )
    squares = anova_lm(ols("y ~ C(item) + C(rater)", frame).fit())["mean_sq"]
    rows, columns, error = squares["C(item)"], squares["C(rater)"], squares["Residual"]
    extra = 0 if consistency else 4 * (columns - error) / 9
    wanted = (rows - error) / (rows + 3 * error + extra)
    found = stats.icc_two_way(crossed(x.tolist()), consistency=consistency)
    assert found.value == pytest.approx(wanted, abs=1e-9)


def test_alpha_of_krippendorff():
    """His worked example: 4 observers, 12 units, missing ratings (Krippendorff 2011)."""
    observers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]
    units = [[r for r in ratings if r is not None] for ratings in zip(*observers, strict=True)]
    values = {"nominal": 0.743, "ordinal": 0.815, "interval": 0.849, "ratio": 0.797}
    for level, wanted in values.items():
        found = stats.krippendorff_alpha(units, level=level)
        assert found.value == pytest.approx(wanted, abs=1e-3), level
        assert found.n == 11
        assert found.more["ratings"] == 40
        low, high = found.ci95
        assert low < found.value <= high


def test_undefined_alpha():
    assert "two raters" in stats.krippendorff_alpha([[1], [2]]).reason
    assert "no variance" in stats.krippendorff_alpha([[1, 1], [1, 1]]).reason


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=30))
@settings(deadline=None, max_examples=25)
def test_spearman_as_scipy_has_it(pairs):
    x, y = zip(*pairs, strict=True)
    found = stats.spearman(x, y)
    if found.value is None:
        assert len(set(x)) == 1 or len(set(y)) == 1
    else:
        assert found.value == pytest.approx(scipy_stats.spearmanr(x, y).statistic, abs=1e-9)


def test_spearman_of_clusters():
    """Pairs of one question are drawn together, so the interval is wider and p larger."""
    generator = np.random.default_rng(5)
    base = generator.normal(size=30)
    x = np.repeat(base, 5)
    y = np.repeat(base + generator.normal(0, 2, 30), 5)
    questions = np.repeat(np.arange(30), 5).tolist()
    alone = stats.spearman(x, y)
    together = stats.spearman(x, y, clusters=questions, unit="answers")
    assert together.value == alone.value
    assert together.more["clusters"] == 30
    assert together.p > 10 * alone.p
    assert together.more["se_z"] > 1.5 * alone.more["se_z"]
    assert np.ptp(together.ci95) > 1.5 * np.ptp(alone.ci95)


def test_unequal_lengths_are_a_fault():
    with pytest.raises(ValueError, match="2 values of x and 3 of y"):
        stats.spearman([1, 2], [1, 2, 3])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), None, "80"])
def test_what_is_no_number_is_refused_and_never_counted(bad):
    for call in (
        lambda: stats.icc_one_way([[bad, 90], [80, 80]]),
        lambda: stats.icc_two_way({"a": {"x": bad, "y": 1}, "b": {"x": 1, "y": 2}}),
        lambda: stats.krippendorff_alpha([[bad, 90], [80, 80]]),
    ):
        with pytest.raises(ValueError, match="is no number"):
            call()
    if bad != float("inf"):
        with pytest.raises(ValueError, match="is no number"):
            stats.spearman([bad, 2, 3, 4], [1, 2, 3, 4])


def test_a_perfect_order_is_no_certainty():
    found = stats.spearman(range(12), range(12))
    assert (found.value, found.ci95, found.interval) == (1.0, None, "none: all pairs alike")
    assert found.p == pytest.approx(2 / math.factorial(12))
    assert stats.spearman([1, 2, 3, 4, 5], [5, 4, 3, 2, 1]).value == -1.0


def test_like_differences_and_impossible_shares():
    alike = stats.Pooled.of_means([1.0, 0.0, 1.0], "abc")
    found = stats.paired_bootstrap(alike, alike)
    assert (found.value, found.ci95, found.p) == (0.0, None, 1.0)
    for successes in (-1, 11):
        with pytest.raises(ValueError, match="successes of 10"):
            stats.wilson(successes, 10)
    opposite = stats.icc_one_way([[0, 100], [0, 100], [100, 0]])
    assert (opposite.value, opposite.ci95, opposite.interval) == (-1.0, None, "none: F is 0")
