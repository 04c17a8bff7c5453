"""Answers that another entry gave, under another model's name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hk_fs_bench import runs
from hk_fs_bench.leaderboard import echoes

from .submissions import Board, make_run, score, small_edition

pytestmark = pytest.mark.java

LONG = "The lobby is entered through a self-closing door on every storey. " * 3


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path, small_edition(tmp_path / "edition", mcq=2, oeq=12))


def submit(board: Board, model: str, said: list[str], backwards: bool = False) -> None:
    """A run of open answers as `said`, submitted by an account of its own."""
    folder = make_run(
        board.folder / "runs" / model,
        board.dataset,
        model={"id": f"org/{model}"},
        tasks=("hk_fs_oeq",),
    )
    path = folder / "predictions.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for row, text in zip(rows, said, strict=True):
        row["output"] = json.dumps({"answer": text, "reason": "B11.6"})
        row["performance"] = {"latency_ms": float(len(model))}
    runs.write_jsonl(path, rows[::-1] if backwards else rows)
    score(folder, board.dataset)
    done = board("submit", folder, "--submitter", model, "--contamination", "none_known")
    assert done.returncode == 0, done.stderr


def rows_of(words: list[str]) -> dict[Any, dict[str, Any]]:
    return {("hk_fs_oeq", f"oeq-{n:04d}", "", 0): {"output": text} for n, text in enumerate(words)}


def speakers(*told: tuple[str, str, list[str]], line: str = "") -> list[echoes.Speaker]:
    return [
        echoes.Speaker(slug, model, line or slug, echoes.words_of(rows_of(said)))
        for slug, model, said in told
    ]


def test_the_words_of_two_models_alone_make_an_echo() -> None:
    own = [f"{LONG}{n}" for n in range(20)]
    half = own[:10] + [f"{text} but" for text in own[10:]]
    fewer = own[:9] + [f"{text} and" for text in own[9:]]
    found = echoes.echoes(speakers(("a", "x", own), ("again", "X", own), ("half", "y", half)))
    assert {slug: (e.other, e.same, e.of, e.every) for slug, e in found.items()} == {
        "a": ("half", 10, 20, False),
        "again": ("half", 10, 20, False),
        "half": ("a", 10, 20, False),
    }
    found = echoes.echoes(speakers(("a", "x", own), ("all", "y", own)))
    assert found["all"] == echoes.Echo("a", 20, 20, True)
    assert not echoes.echoes(speakers(("a", "x", own), ("fewer", "y", fewer)))
    # A correction of one's own may give the model its right name.
    assert not echoes.echoes(speakers(("a", "x", own), ("b", "y", own), line="a"))


def test_what_many_models_say_is_no_echo() -> None:
    """Letters alone, nothing at all, the same refusal to each question."""
    for said in (["A"] * 20, [""] * 20, [LONG] * 20, [str(n) for n in range(20)]):
        assert not echoes.echoes(speakers(("a", "x", said), ("b", "y", said)))


def test_a_crowd_that_says_the_same_costs_little() -> None:
    words = echoes.words_of(rows_of([f"{LONG}{n}" for n in range(100)]))
    crowd = [echoes.Speaker(str(n), str(n), str(n), words) for n in range(1000)]
    assert len(echoes.echoes(crowd)) == 1000


def test_another_models_answers_in_another_order_are_refused(board: Board) -> None:
    said = [f"{n}. {LONG}" for n in range(12)]
    submit(board, "first", said)
    assert board("validate").returncode == 0
    submit(board, "second", said, backwards=True)
    done = board("validate")
    assert done.returncode == 1
    told = [line for line in done.stdout.splitlines() if "word for word" in line]
    (line,) = (line for line in told if not line.startswith("note: "))
    assert "12 of its 12 long answers are word for word those of" in line
    assert line.endswith("name the model that gave them")


def test_half_of_anothers_long_answers_are_marked(board: Board) -> None:
    for model in ("first", "second"):
        own = [f"{n}. {LONG}" + ("" if n < 8 else model) for n in range(12)]
        submit(board, model, own)
    done = board("validate")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("8 of its 12 long answers are word for word those of ") == 2
    assert board("build").returncode == 0
    marked = [
        any(flag["kind"] == "same_answers" for flag in entry["flags"])
        for entry in board.content["entries"]
    ]
    assert marked == [True, True], "who had them first is not known"
    assert all(entry["ranked"] for entry in board.content["entries"])
    page = (board.root / "site" / "index.html").read_text("utf-8")
    assert "another&#39;s answers" in page
