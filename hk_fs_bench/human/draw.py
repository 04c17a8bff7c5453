"""The draws of an assignment: blocks of models, raters of questions, batches. All from a seed."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from math import ceil, comb
from random import Random

MOST_BLOCKS = 3000


def draw_blocks(
    items: Sequence[str], models: Sequence[str], size: int, rng: Random
) -> dict[str, list[str]]:
    """Item → the models whose answers it shows, at most `size` of them.

    Incomplete blocks are balanced as far as the numbers allow: how often two models are shown
    differs by one at most, and pairs of models meet about equally often.
    """
    if len(models) <= size:
        return {item: list(models) for item in items}
    shown: Counter[str] = Counter()
    met: Counter[frozenset[str]] = Counter()
    out = {}
    for item in items:
        # All models below the current level must be taken; the rest come from those at it.
        level = sorted(shown[m] for m in models)[size - 1]
        fixed = [m for m in models if shown[m] < level]
        free = [m for m in models if shown[m] == level]
        block = min(
            _choices(free, size - len(fixed), rng),
            key=lambda chosen: sum(
                (met[frozenset(pair)] + 1) ** 2 - met[frozenset(pair)] ** 2
                for pair in combinations([*fixed, *chosen], 2)
            ),
        )
        out[item] = [*fixed, *block]
        shown.update(out[item])
        met.update(map(frozenset, combinations(out[item], 2)))
    return out


def _choices(free: Sequence[str], count: int, rng: Random) -> list[tuple[str, ...]]:
    """Subsets to choose from, in random order: all of them, or a sample where there are many."""
    if comb(len(free), count) <= MOST_BLOCKS:
        found = list(combinations(free, count))
        rng.shuffle(found)
        return found
    return [tuple(rng.sample(free, count)) for _ in range(MOST_BLOCKS)]


class Draw:
    """Raters of questions: as many as needed each, loads as equal as roles and capacities allow.

    Args:
        capacity: rater → questions at most, those they have already included.
        rated: rater → the questions that they have already and keep.
    """

    def __init__(
        self, capacity: Mapping[str, int], rated: Mapping[str, Collection[str]], rng: Random
    ) -> None:
        self._capacity = capacity
        self._kept = {rater: frozenset(rated.get(rater, ())) for rater in capacity}
        self._new: dict[str, set[str]] = {rater: set() for rater in capacity}
        self._eligible: dict[str, frozenset[str]] = {}
        self._together: Counter[frozenset[str]] = Counter()
        self._rng = rng
        for question in set().union(*self._kept.values()) if capacity else ():
            self._count_pairs(r for r in capacity if question in self._kept[r])

    @property
    def found(self) -> dict[str, list[str]]:
        """Rater → their new questions, sorted."""
        return {rater: sorted(questions) for rater, questions in self._new.items()}

    def add(self, question: str, eligible: Iterable[str], count: int) -> int:
        """Find `count` raters for a question; returns how many could not be found."""
        self._eligible[question] = frozenset(eligible)
        before = {r for r, kept in self._kept.items() if question in kept}
        for done in range(count):
            if not self._one_more(question):
                return count - done
        self._count_pairs([*before, *(r for r, new in self._new.items() if question in new)])
        return 0

    def _load(self, rater: str) -> int:
        return len(self._kept[rater]) + len(self._new[rater])

    def _count_pairs(self, raters: Iterable[str]) -> None:
        self._together.update(map(frozenset, combinations(sorted(raters), 2)))

    def _may(self, rater: str, question: str) -> bool:
        return (
            rater in self._eligible[question]
            and question not in self._new[rater]
            and question not in self._kept[rater]
        )

    def _one_more(self, question: str) -> bool:
        """Give the question one more rater, moving others' questions along where that is fairer.

        Each step takes the least loaded rater that any chain of moves reaches, so the loads of the
        whole draw stay as equal as can be (an optimal semi-matching).
        """
        order = list(self._capacity)
        self._rng.shuffle(order)
        mates = [r for r in order if question in self._new[r] or question in self._kept[r]]
        order.sort(key=lambda r: sum(self._together[frozenset((r, m))] for m in mates))
        came: dict[str, tuple[str, str | None]] = {}
        queue = deque(r for r in order if self._may(r, question))
        for rater in queue:
            came[rater] = (question, None)
        while queue:
            rater = queue.popleft()
            for held in sorted(self._new[rater]):
                for other in order:
                    if other not in came and self._may(other, held):
                        came[other] = (held, rater)
                        queue.append(other)
        open_ = [r for r in came if self._load(r) < self._capacity[r]]
        if not open_:
            return False
        at: str | None = min(open_, key=self._load)
        while at is not None:
            moved, giver = came[at]
            self._new[at].add(moved)
            if giver is not None:
                self._new[giver].remove(moved)
            at = giver
        return True


def deal_batches(
    questions: Sequence[str], first: Collection[str], size: int, rng: Random
) -> list[list[str]]:
    """A rater's questions in batches of nearly equal length, at most `size`.

    `first` (questions with an expert-written answer) are spread over the batches.
    """
    order = list(questions)
    rng.shuffle(order)
    order.sort(key=lambda question: question not in first)
    count = ceil(len(order) / size)
    batches = [order[n::count] for n in range(count)]
    for batch in batches:
        rng.shuffle(batch)
    return batches
