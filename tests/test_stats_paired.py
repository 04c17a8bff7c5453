"""Differences between runs: tests, intervals, corrections, ties and ranks."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from hk_fs_bench import stats
from hk_fs_bench.stats.intervals import mean_of_sums, resampled


@pytest.mark.parametrize(
    ("cells", "difference", "low", "high"),
    [
        # Altman et al. 2000, Statistics with Confidence, Table 6.2.
        ((14, 5, 0, 22), 0.122, 0.011, 0.226),
        # Fagerland, Lydersen and Laake 2014, Statistics in Medicine 33:2850: two worked examples.
        ((1, 1, 7, 12), -0.286, -0.507, -0.026),
        ((59, 6, 16, 80), -0.062, -0.119, -0.005),
    ],
)
def test_difference_of_pairs(cells, difference, low, high):
    found = stats.paired_difference(*cells)
    assert found.value == pytest.approx(difference, abs=5e-4)
    assert found.ci95 == pytest.approx((low, high), abs=5e-4)
    assert found.n == sum(cells)


counts = st.integers(0, 60)


@given(counts, counts, counts, counts)
@settings(deadline=None)
def test_mcnemar_as_statsmodels_has_it(both, one, two, neither):
    p = stats.mcnemar(one, two)
    assert p == pytest.approx(mcnemar([[both, one], [two, neither]], exact=True).pvalue, abs=1e-12)
    if both + one + two + neither:
        found = stats.paired_difference(both, one, two, neither)
        turned = stats.paired_difference(both, two, one, neither)
        low, high = found.ci95
        assert -1 <= low <= found.value <= high <= 1
        assert turned.ci95 == pytest.approx((-high, -low), abs=1e-12)


def test_many_discordant_pairs_are_no_overflow():
    assert stats.mcnemar(30_000, 30_000) == 1.0
    assert 0 < stats.mcnemar(1000, 1300) < 1e-8


def test_nothing_in_both():
    assert "no question" in stats.paired_difference(0, 0, 0, 0).reason


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
@settings(deadline=None, max_examples=30)
def test_holm_as_statsmodels_has_it(p_values):
    _, wanted, _, _ = multipletests(p_values, method="holm")
    assert stats.holm(p_values) == pytest.approx(wanted)


def test_holm_of_nothing():
    assert stats.holm([]) == []


def separation(*pairs: str):
    """A relation of the names that two letters stand for."""
    apart = {frozenset(pair) for pair in pairs}
    return lambda one, two: frozenset((one, two)) in apart


@pytest.mark.parametrize(
    ("apart", "ranks", "groups"),
    [
        ((), {"a": (1, 3), "b": (1, 3), "c": (1, 3)}, [("a", "b", "c")]),
        (("ac",), {"a": (1, 2), "b": (1, 3), "c": (2, 3)}, [("a", "b"), ("b", "c")]),
        (("ab", "ac"), {"a": (1, 1), "b": (2, 3), "c": (2, 3)}, [("a",), ("b", "c")]),
        (
            ("ab", "ac", "bc"),
            {"a": (1, 1), "b": (2, 2), "c": (3, 3)},
            [("a",), ("b",), ("c",)],
        ),
    ],
)
def test_ranks_and_ties(apart, ranks, groups):
    values = {"b": 0.8, "a": 0.9, "c": 0.7}
    assert stats.rank_ranges(values, separation(*apart)) == ranks
    assert stats.tie_groups(values, separation(*apart)) == groups


names = "abcdef"


@given(st.sets(st.sampled_from([f"{a}{b}" for a, b in itertools.combinations(names, 2)])))
def test_tie_groups_hold_what_is_not_told_apart(apart):
    values = {name: -float(i) for i, name in enumerate(names)}
    told = separation(*apart)
    groups = [set(group) for group in stats.tie_groups(values, told)]
    for one, two in itertools.combinations(names, 2):
        together = any({one, two} <= group for group in groups)
        assert together == (not told(one, two))
    assert not any(one < two for one in groups for two in groups)


def test_paired_bootstrap_finds_a_small_steady_difference():
    """Question difficulty varies by far more than the models differ: only pairing can see it."""
    generator = np.random.default_rng(1)
    base = generator.uniform(0.2, 0.9, 100)
    better = base + 0.02 + generator.normal(0, 0.02, 100)
    questions = [f"q{i}" for i in range(100)]
    one, two = (stats.Pooled.of_means(v.tolist(), questions) for v in (better, base))
    found = stats.paired_bootstrap(one, two)
    assert found.value == pytest.approx(float((better - base).mean()))
    assert found.p < 0.001
    wanted = scipy_stats.bootstrap(
        (better - base,), np.mean, n_resamples=10_000, method="percentile", rng=generator
    ).confidence_interval
    assert found.ci95 == pytest.approx((wanted.low, wanted.high), abs=5e-4)
    one_interval, two_interval = one.estimate().ci95, two.estimate().ci95
    assert one_interval[0] < two_interval[1]


def test_a_few_questions_tell_no_more_than_their_signs():
    """Five questions that all fall one way: every resample does, yet p is no 0.0002."""
    one = stats.Pooled.of_means([0.9, 0.8, 0.7, 0.9, 0.8], "abcde")
    two = stats.Pooled.of_means([0.1, 0.2, 0.1, 0.3, 0.2], "abcde")
    assert stats.paired_bootstrap(one, two).p == scipy_stats.binomtest(5, 5).pvalue == 0.0625


def test_paired_bootstrap_of_like_runs():
    values = stats.Pooled.of_means([0.1, 0.5, 0.9], ["a", "b", "c"])
    found = stats.paired_bootstrap(values, values)
    assert (found.value, found.ci95, found.p) == (0.0, None, 1.0)
    assert found.interval == "none: all questions alike"


def test_paired_bootstrap_pairs_by_question():
    one = stats.Pooled.of_means([1.0, 0.0, 0.3], ["a", "b", "only one"])
    two = stats.Pooled.of_means([0.2, 0.8, 0.9], ["b", "a", "only two"])
    found = stats.paired_bootstrap(one, two)
    assert found.n == 2
    assert found.value == pytest.approx((0.2 - 0.2) / 2)
    assert "no question" in stats.paired_bootstrap(one, stats.Pooled.of_means([1.0], ["z"])).reason


def test_cluster_bootstrap_by_hand():
    """The same as drawing whole clusters one resample at a time."""
    values = [0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0]
    clusters = ["a", "a", "a", "b", "c", "c", "d"]
    pooled = stats.Pooled.of_means(values, clusters)
    generator = np.random.default_rng(8)
    members = {c: [v for v, own in zip(values, clusters, strict=True) if own == c] for c in "abcd"}
    means = [
        np.mean([v for c in generator.choice(list("abcd"), 4) for v in members[c]])
        for _ in range(20_000)
    ]
    drawn = resampled(np.array(list(pooled.by_cluster().values())), mean_of_sums, 20_000)
    assert drawn.mean() == pytest.approx(np.mean(means), abs=0.005)
    assert np.quantile(drawn, [0.1, 0.5, 0.9]) == pytest.approx(
        np.quantile(means, [0.1, 0.5, 0.9]), abs=0.02
    )
    assert stats.cluster_bootstrap(pooled) == stats.cluster_bootstrap(pooled)


def test_intervals_that_can_not_be():
    assert stats.Pooled.of_means([], []).estimate().reason == "no answer to count"
    single = stats.Pooled.of_means([0.5, 0.7], ["a", "a"]).estimate()
    assert (single.value, single.n, single.ci95) == (pytest.approx(0.6), 1, None)
    alike = stats.Pooled.of_means([1.0, 1.0], ["a", "b"]).estimate()
    assert (alike.value, alike.ci95) == (1.0, None)
    assert "alike" in alike.interval


def test_a_figure_is_finite_or_says_why():
    with pytest.raises(ValueError, match="finite"):
        stats.Estimate(float("nan"), 1, "questions")
    with pytest.raises(ValueError, match="says why"):
        stats.Estimate(None, 1, "questions")
    found = stats.proportion(0, 0)
    assert found.to_json() == {
        "value": None,
        "n": 0,
        "unit": "questions",
        "ci95": None,
        "reason": "no answer to count",
    }
