"""Studies for tests: drawn as the command draws them, from answers that a test makes up."""

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from hk_fs_bench.human import assign
from hk_fs_bench.human.candidates import Source
from hk_fs_bench.human.returns import Chosen, Given, Return
from hk_fs_bench.human.study import Rater, Study, read_study
from hk_fs_bench.items import Dataset

TEAM = [
    *(Rater(f"a{n}", "architect", 40) for n in range(1, 5)),
    *(Rater(f"e{n}", "fire_engineer", 40) for n in range(1, 4)),
]


def part_of(dataset: Dataset, *places: int) -> Dataset:
    """An edition of some of the open questions."""
    items = dataset.items("oeq")
    return replace(dataset, splits={"oeq/test": [items[n] for n in places]})


def sources(dataset: Dataset, models: int) -> list[Source]:
    return [
        Source(
            f"run{m}",
            {"model": f"org/model-{m}", "mode": "none", "folder": f"run{m}"},
            {i.id: f"Answer {m} to {i.id}: {i.reference_answer}" for i in dataset.items("oeq")},
        )
        for m in range(models)
    ]


def experts(dataset: Dataset) -> assign.Controls:
    texts = {item.id: f"As I would put it: {item.question}" for item in dataset.items("oeq")}
    return assign.Controls(texts, {}, {"expert": "experts.csv"})


def draw(folder: Path, dataset: Dataset, *, models=3, team=TEAM, seed=7, **more) -> Study:
    controls = more.pop("controls", None) or experts(dataset)
    assign.new_study(folder, dataset, sources(dataset, models), team, controls, seed=seed, **more)
    return read_study(folder)


def shown(study: Study) -> Iterator[tuple[str, int, str]]:
    """(rater, batch, candidate) of every form that is out."""
    for (rater, batch), screens in study.batches().items():
        for screen in screens:
            for candidate in screen.candidates:
                yield rater, batch, candidate


def given(rater: str, candidate: str, level="full", *why: str, clarity="full", **more) -> Given:
    return Given(rater, candidate, Chosen(level, why), Chosen(clarity), **more)


def returned(*ratings: Given, source="a.json", **more) -> Return:
    digest = sha256(f"{source}{ratings}".encode()).hexdigest()
    return Return("expert", "html", source, digest, ratings, **more)
