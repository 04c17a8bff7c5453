"""The released questions themselves: every gate, every review, the numbers that were promised."""

from collections import Counter

from hk_fs_bench import items, review
from hk_fs_bench.validating import validate

FOLDER = items.default_folder()


def test_sizes(dataset):
    sizes = {split: len(found) for split, found in dataset.splits.items()}
    assert sizes == {"mcq/test": 400, "mcq/dev": 8, "oeq/test": 100, "oeq/dev": 4}


def test_every_gate_passes():
    report = validate(FOLDER, "strict")
    assert report.failures == []


def test_two_reviewers_accepted_every_item_as_it_stands(dataset):
    decisions = review.decide(dataset, review.read_reviews(FOLDER / review.FILE))
    assert Counter(decision.outcome for decision in decisions) == {"keep": 512}
