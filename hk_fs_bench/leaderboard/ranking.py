"""Leagues, and within each what the data tell apart.

Entries are compared where their figures are of one protocol: signatures that are alike but for the
parts that two runs may differ in (as in `comparing`). All pairs of a league are tested at once:
exact McNemar on the questions that both answered, Holm's correction over the league.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hk_fs_bench.comparing import FREE, LEVEL
from hk_fs_bench.stats import Pooled, mcnemar, paired_bootstrap, rank_ranges
from hk_fs_bench.stats.intervals import RESAMPLES, resampled
from hk_fs_bench.stats.paired import holm

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

Shares = Mapping[str, float]

# Every number of answers to a question up to 16 divides it.
_PARTS = 720_720

_mcnemar = lru_cache(maxsize=None)(mcnemar)


def protocol_of(signature: str) -> dict[str, str]:
    """The parts of a signature that entries of a league share."""
    parts = (part.partition(":") for part in signature.split("|"))
    return {name: value for name, _, value in parts if name not in FREE}


def league_of(signature: str) -> str:
    """A short name of a league: the task, and eight digits of its protocol."""
    protocol = protocol_of(signature)
    text = "|".join(f"{name}:{value}" for name, value in sorted(protocol.items()))
    return f"{protocol['task']}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def rank(shares: Mapping[str, Shares]) -> dict[str, dict[str, int]]:
    """The ranks by accuracy of a league's entries.

    Args:
        shares: entry → question → the share of its answers that are right.

    Returns:
        entry → best and worst rank that it may have, `of` how many, and its tie group: 1 holds the
        best entry and all not told apart from it, 2 the best of the rest with those not told apart
        from that one, and so on. Best first.
    """
    values = {name: sum(own.values()) / len(own) for name, own in shares.items() if own}
    order = sorted(values, key=lambda name: (-values[name], name))
    apart = _separated([shares[name] for name in order])
    place = {name: i for i, name in enumerate(order)}

    def separated(one: str, two: str) -> bool:
        return bool(apart[place[one], place[two]])

    ranges = rank_ranges({name: values[name] for name in order}, separated)
    groups: dict[str, int] = {}
    for name in order:
        if name in groups:
            continue
        group = len(set(groups.values())) + 1
        for other in order:
            if other not in groups and not separated(name, other):
                groups[other] = group
    return {
        name: {"best": best, "worst": worst, "of": len(order), "tie_group": groups[name]}
        for name, (best, worst) in ranges.items()
    }


def _separated(shares: Sequence[Shares]) -> Flags:
    """(n, n): which pairs differ at LEVEL after Holm's correction."""
    import numpy as np

    n = len(shares)
    questions = sorted({question for own in shares for question in own})
    table = np.array([[own.get(question, np.nan) for question in questions] for own in shares])
    first, second = np.triu_indices(n, 1)
    apart = np.zeros((n, n), dtype=bool)
    if not len(first):
        return apart
    if np.isin(table[~np.isnan(table)], (0.0, 1.0)).all():
        p = _mcnemar_of_all(table, first, second)
    elif not np.isnan(table).any():
        p = _bootstrap_of_all(table, first, second)
    else:
        pooled = [Pooled.of_means(list(own.values()), list(own)) for own in shares]
        pairs = zip(first.tolist(), second.tolist(), strict=True)
        found = [paired_bootstrap(pooled[i], pooled[j]).p for i, j in pairs]
        p = [1.0 if one is None else one for one in found]
    told = np.array(holm(p)) < LEVEL
    apart[first, second] = told
    return apart | apart.T


def _mcnemar_of_all(table: Floats, first: Any, second: Any) -> list[float]:
    """p of every pair; the counts of all pairs are two products of matrices."""

    right = (table == 1.0).astype(float)
    wrong = (table == 0.0).astype(float)
    only = (right @ wrong.T).astype(int)
    one, two = only[first, second].tolist(), only[second, first].tolist()
    return [_mcnemar(min(a, b), max(a, b)) for a, b in zip(one, two, strict=True)]


def _bootstrap_of_all(table: Floats, first: Any, second: Any) -> list[float]:
    """p of every pair as `paired_bootstrap` has it, where all have answered the same questions.

    One set of resamples serves them all: hundreds of entries make tens of thousands of pairs.
    """
    import numpy as np

    questions = table.shape[1]
    if questions < 2:
        return [1.0] * len(first)
    # Shares of a few samples are whole numbers of parts, of which sums have no rounding.
    parts = table * _PARTS
    whole = np.rint(parts)
    exact = whole if np.allclose(parts, whole, rtol=0, atol=1e-6) else parts
    drawn = resampled(exact.T, lambda sums: sums, RESAMPLES)
    least = 2.0 ** (1 - questions)
    p = np.ones((len(table), len(table)))
    for one in range(len(table) - 1):
        apart = drawn[:, one, None] - drawn[:, one + 1 :]
        sides = np.minimum((apart <= 0).sum(axis=0), (apart >= 0).sum(axis=0))
        p[one, one + 1 :] = np.minimum(1.0, np.maximum(2 * (sides + 1) / (RESAMPLES + 1), least))
    found: list[float] = p[first, second].tolist()
    return found
