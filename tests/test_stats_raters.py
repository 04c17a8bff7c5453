"""What agreement, variance components and correlations inside groups are when answers cluster."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from hk_fs_bench import stats

# Shrout and Fleiss 1979, Table 2: six targets, four judges.
SHROUT = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]


def crossed(rows) -> dict[str, dict[str, float]]:
    return {f"q{i}": {f"r{j}": v for j, v in enumerate(row)} for i, row in enumerate(rows)}


def study(
    seed: int, questions: int = 60, systems: int = 5, raters: int = 12, spread=(15, 8, 12)
) -> dict[tuple[str, int], dict[str, float]]:
    """(question, system) → rater → rating: two raters a question, who see all of its answers."""
    generator = np.random.default_rng(seed)
    severity = severities(generator, raters, spread[1])
    table = {}
    for q in range(questions):
        seen = generator.choice(raters, 2, replace=False)
        for s in range(systems):
            truth = generator.normal(70, spread[0])
            noise = generator.normal(0, spread[2], 2)
            table[f"q{q}", s] = {
                f"r{r}": truth + severity[r] + e for r, e in zip(seen, noise, strict=True)
            }
    return table


def severities(generator: np.random.Generator, raters: int = 12, spread: float = 8) -> np.ndarray:
    return generator.normal(0, spread, raters)


def test_components_of_shrout_and_fleiss():
    """From the mean squares that they print: 11.24, 32.49 and 1.02."""
    found = stats.variance_components(crossed(SHROUT))
    assert found["items"].value == pytest.approx((11.24 - 1.02) / 4, abs=0.01)
    assert found["raters"].value == pytest.approx((32.49 - 1.02) / 6, abs=0.01)
    assert found["residual"].value == pytest.approx(1.02, abs=0.005)
    assert found["items"].more["linked_groups"] == 1


def test_components_without_bias_in_the_unbalanced_design():
    tables = [study(seed) for seed in range(60)]
    mean = {name: np.mean([of(t)[name] for t in tables]) for name in stats.components.COMPONENTS}
    assert mean["items"] == pytest.approx(15**2, rel=0.05)
    assert mean["raters"] == pytest.approx(8**2, rel=0.2)
    assert mean["residual"] == pytest.approx(12**2, rel=0.05)


def of(table) -> dict[str, float]:
    """The values alone, without the bootstrap."""
    raters = sorted({rater for row in table.values() for rater in row})
    sums = sum(stats.components._item_sums(row, raters, 70.0) for row in table.values())
    found = stats.components._components(sums, len(raters))
    return dict(zip(stats.components.COMPONENTS, found, strict=True))


def test_raters_who_share_nothing_are_told():
    table = {"a": {"r1": 50, "r2": 60}, "b": {"r1": 40, "r2": 45}, "c": {"r3": 9, "r4": 7}}
    table["d"] = {"r3": 9, "r4": 5}
    found = stats.variance_components(table)
    assert found["raters"].more["linked_groups"] == 2
    assert found["raters"].value is not None
    alone = stats.variance_components({"a": {"r1": 1}, "b": {"r2": 2}})
    assert "does not link" in alone["raters"].reason
    few = stats.variance_components({"a": {"r1": 1, "r2": 2}})
    assert "left over" in few["residual"].reason


def test_intervals_over_questions_cover_what_was_put_in():
    """One-way ICC and components, for these raters: the truth is inside in most of 16 studies."""
    covered = {"icc": 0, "items": 0, "raters": 0, "residual": 0}
    for seed in range(16):
        table = study(seed)
        strict = float(severities(np.random.default_rng(seed)).var(ddof=1))
        truth = {"items": 15**2, "raters": strict, "residual": 12**2}
        truth["icc"] = 15**2 / (15**2 + strict + 12**2)
        questions = [q for q, _ in table]
        icc = stats.icc_one_way([list(r.values()) for r in table.values()], clusters=questions)
        parts = stats.variance_components(table, {key: key[0] for key in table})
        for name, figure in {"icc": icc, **parts}.items():
            low, high = figure.ci95
            covered[name] += low <= truth[name] <= high
        assert icc.p is None
        assert icc.more["clusters"] == 60
    assert min(covered.values()) >= 13, covered


def test_one_way_over_clusters_is_the_same_value():
    table = study(1)
    rows = [list(row.values()) for row in table.values()]
    for average in (False, True):
        alone = stats.icc_one_way(rows, average=average)
        together = stats.icc_one_way(rows, average=average, clusters=[q for q, _ in table])
        assert together.value == alone.value
        assert together.ci95 == pytest.approx(alone.ci95, abs=0.1)
    each = stats.icc_one_way(rows, clusters=range(len(rows)))
    assert each.ci95 == pytest.approx(stats.icc_one_way(rows).ci95, abs=0.03)


def test_alpha_over_clusters():
    table = study(2)
    rows = [[round(v, -1) for v in row.values()] for row in table.values()]
    alone = stats.krippendorff_alpha(rows)
    together = stats.krippendorff_alpha(rows, clusters=[q for q, _ in table])
    assert together.value == alone.value
    assert together.more["clusters"] == 60
    assert together.ci95 != alone.ci95


def test_reliability_within_questions():
    """Severity and what the answers to a question share do not count; Shrout's ICC(3,k) does."""
    found = stats.reliability_within({"only": crossed(SHROUT)})
    assert found.value == pytest.approx(
        stats.icc_two_way(crossed(SHROUT), average=True, consistency=True).value
    )
    values = []
    for seed in range(20):
        blocks: dict = {}
        for (question, system), row in study(seed).items():
            shift = 30 * (int(question[1:]) % 3)
            blocks.setdefault(question, {})[system] = {r: v + shift for r, v in row.items()}
        found = stats.reliability_within(blocks)
        assert found.ci95[0] < found.value < found.ci95[1]
        values.append(found.value)
    assert np.mean(values) == pytest.approx(15**2 / (15**2 + 12**2 / 2), abs=0.02)
    nothing = stats.reliability_within({"a": {"x": {"r1": 1}, "y": {"r2": 1}}})
    assert nothing.value is None
    assert nothing.more["left_out"] == 1


def within(seed: int, strength: float, groups: int = 60):
    generator = np.random.default_rng(seed)
    made = []
    for _ in range(groups):
        x = generator.normal(0, 1, 5)
        # What a question adds to both would look like a correlation across questions.
        shared = 10 * generator.normal()
        y = strength * x + generator.normal(0, 1, 5)
        made.append(((x + shared).tolist(), (y + shared).tolist()))
    return made


def test_spearman_within_sees_no_difference_between_questions():
    false_alarms, seen = 0, 0
    for seed in range(12):
        none = stats.spearman_within(within(seed, 0.0))
        false_alarms += none.p < 0.05
        some = stats.spearman_within(within(seed, 0.5))
        seen += some.p < 0.05
        assert some.ci95[0] < some.value < some.ci95[1]
        across = within(seed, 0.0)
        x, y = ([v for g in across for v in g[i]] for i in (0, 1))
        assert stats.spearman(x, y).value > 0.9
    assert false_alarms <= 3
    assert seen >= 11


def test_spearman_within_at_its_ends():
    same = [([1, 2, 3], [4, 5, 6])] * 4 + [([1, 1, 1], [1, 2, 3])]
    found = stats.spearman_within(same)
    assert found.value == pytest.approx(1)
    assert (found.n, found.more["constant"], found.more["pairs"]) == (4, 1, 12)
    assert found.p < 0.01
    assert found.ci95 is None
    assert found.interval == "none: all questions alike"
    few = stats.spearman_within(same[3:])
    assert few.value is None
    assert few.more["constant"] == 1


def test_smallest_rho_is_found_four_times_in_five():
    """Of samples of 50 pairs with that rho, about 80% are significant."""
    generator = np.random.default_rng(8)
    se = stats.spearman(range(50), generator.normal(size=50).tolist()).more["se_z"]
    rho = stats.smallest_rho(se)
    pearson = 2 * np.sin(np.pi * rho / 6)
    found = 0
    for _ in range(150):
        x = generator.normal(size=50)
        y = pearson * x + np.sqrt(1 - pearson**2) * generator.normal(size=50)
        found += spearmanr(x, y).pvalue < 0.05
    assert 0.70 <= found / 150 <= 0.90
    assert stats.smallest_rho(se, 0.005) > rho
    assert stats.smallest_rho(None) is None


def test_p_over_clusters_keeps_its_word():
    """Five answers a question that share its level: at 5%, few of 25 false alarms."""
    alarms = 0
    for seed in range(25):
        generator = np.random.default_rng(seed)
        x = np.repeat(generator.normal(size=40), 5) + 0.3 * generator.normal(size=200)
        y = np.repeat(generator.normal(size=40), 5) + 0.3 * generator.normal(size=200)
        alarms += stats.spearman(x, y, clusters=np.repeat(np.arange(40), 5).tolist()).p < 0.05
    assert alarms <= 5
