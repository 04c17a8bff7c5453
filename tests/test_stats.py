"""hk_fs_bench.stats against published values."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from hk_fs_bench import stats


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17:857, Table I, method 3 (Wilson, no correction).
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_of_newcombe(successes, n, low, high):
    assert stats.wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


def test_wilson_without_observations_is_undefined():
    assert stats.wilson(0, 0) is None


@pytest.mark.parametrize(("k", "n"), [(0, 60), (1, 60), (3, 60), (26, 400), (59, 60)])
def test_upper_bound_leaves_five_per_cent_below(k, n):
    """By its definition: at the bound, k or fewer of n happen once in twenty."""
    p = stats.upper_bound(k, n)
    tail = sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))
    assert tail == pytest.approx(0.05, abs=1e-9)


def test_upper_bound_at_the_edges():
    assert stats.upper_bound(0, 0) is None
    assert stats.upper_bound(5, 5) == 1.0
    assert stats.upper_bound(0, 60) == pytest.approx(1 - 0.05 ** (1 / 60))


def test_kappa_of_two_by_two():
    """20 and 15 of 50 agreed, margins 25/25 and 30/20: (0.7 - 0.5) / 0.5."""
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert stats.cohen_kappa(pairs) == pytest.approx(0.4)
    low, high = stats.bootstrap(pairs, stats.cohen_kappa)
    # The asymptotic interval (Fleiss, Cohen and Everitt 1969) is 0.15 to 0.65.
    assert (low, high) == pytest.approx((0.15, 0.65), abs=0.03)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1))
def test_kappa_as_scikit_learn_has_it(pairs):
    found = stats.cohen_kappa(pairs)
    if found is None:
        assert len({a for a, _ in pairs} | {b for _, b in pairs}) == 1
    else:
        assert found == pytest.approx(cohen_kappa_score(*zip(*pairs, strict=True)))


def test_undefined_agreement():
    assert stats.cohen_kappa([]) is None
    assert stats.cohen_kappa([("a", "a")] * 9) is None
    assert stats.bootstrap([("a", "a")] * 9, stats.cohen_kappa) is None
    assert stats.bootstrap([], stats.cohen_kappa) is None
