"""hk_fs_bench.stats against published values."""

import pytest

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
