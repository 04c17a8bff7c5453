"""Answers that another entry gave, under another model's name."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hk_fs_bench import runs
from hk_fs_bench.leaderboard import echoes

from .submissions import Board, make_run, score, small_edition

pytestmark = pytest.mark.java

OPEN = "hk_fs_oeq"
LONG = "The lobby is entered through a self-closing door on every storey. " * 3


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path, small_edition(tmp_path / "edition", mcq=2, oeq=20))


def submit(
    board: Board,
    model: str,
    said: list[str],
    login: str | None = None,
    took: float | None = None,
    **form: Any,
) -> subprocess.CompletedProcess[str]:
    """The answer of `submit` to a run of open answers as `said`, by an account of its own.

    `form`: `written` makes an output of an answer, `order` a new order of the rows, `date` a day;
    `took` is the first time, the others follow.
    """
    runs_so_far = len(list((board.folder / "runs").glob("*")))
    folder = make_run(
        board.folder / "runs" / f"{model}-{runs_so_far}",
        board.dataset,
        model={"id": f"org/{model}"},
        tasks=(OPEN,),
    )
    path = folder / "predictions.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    written = form.get("written") or (lambda text: json.dumps({"answer": text, "reason": "B11.6"}))
    first = float(runs_so_far) if took is None else took
    for n, (row, text) in enumerate(zip(rows, said, strict=True)):
        row["output"] = written(text)
        row["performance"] = {"latency_ms": 1000 * first + n + 0.25}
    runs.write_jsonl(path, form.get("order", list)(rows))
    score(folder, board.dataset)
    words = ("--submitter", login or model, "--contamination", "none_known")
    return board("submit", folder, *words)


def parsed(words: list[str]) -> list[dict[str, Any]]:
    own = {"task": OPEN, "variant": "", "sample": 0}
    return [own | {"item_id": f"oeq-{n:04d}", "answer": text} for n, text in enumerate(words)]


def speakers(
    *told: tuple[str, str, list[str]], line: str = "", times: list[str] | None = None
) -> list[echoes.Speaker]:
    return [
        echoes.Speaker(
            slug,
            model,
            line or slug,
            echoes.words_of(parsed(said), []) | {"times": times or []},
        )
        for slug, model, said in told
    ]


def long(n: int, more: str = "") -> str:
    return f"{LONG} {n}{more}"


def test_the_words_of_two_models_alone_make_an_echo() -> None:
    own = [long(n) for n in range(20)]
    half = own[:10] + [f"{text} but" for text in own[10:]]
    fewer = own[:9] + [f"{text} and" for text in own[9:]]
    found = echoes.echoes(speakers(("a", "x", own), ("again", "X", own), ("half", "y", half)))
    assert found == {
        "a": echoes.Echo("half", 10, 20),
        "again": echoes.Echo("half", 10, 20),
        "half": echoes.Echo("a", 10, 20),
    }
    found = echoes.echoes(speakers(("a", "x", own), ("all", "y", own)))
    assert found["all"] == echoes.Echo("a", 20, 20, every=True)
    assert not echoes.echoes(speakers(("a", "x", own), ("fewer", "y", fewer)))
    # A correction of one's own may give the model its right name.
    assert not echoes.echoes(speakers(("a", "x", own), ("b", "y", own), line="a"))


def test_what_is_pieced_together_from_several_is_an_echo() -> None:
    three = [[long(n, model) for n in range(30)] for model in "xyz"]
    pieced = [three[n % 3][n] for n in range(30)]
    told = zip("abc", "xyz", three, strict=True)
    found = echoes.echoes(speakers(*told, ("d", "v", pieced)))
    assert found == {"d": echoes.Echo("a", 30, 30)}


@pytest.mark.parametrize("changed", [str.upper, lambda t: t.replace(".", " , "), lambda t: f"{t}."])
def test_how_words_are_written_tells_no_two_apart(changed: Any) -> None:
    own = [long(n) for n in range(20)]
    found = echoes.echoes(speakers(("a", "x", own), ("b", "y", list(map(changed, own)))))
    assert found["b"] == echoes.Echo("a", 20, 20, every=True)


def test_what_many_models_say_is_no_echo() -> None:
    """Letters alone, nothing at all, the same refusal to each question."""
    for said in (["A"] * 20, [""] * 20, [LONG] * 20, [str(n) for n in range(20)]):
        assert not echoes.echoes(speakers(("a", "x", said), ("b", "y", said)))


def test_a_run_is_told_by_its_times() -> None:
    """A greedy model says the same on every machine, and takes its own time."""
    said = ["A"] * 20
    both = speakers(("a", "x", said), ("b", "x", said))
    assert not echoes.echoes(both)
    same = speakers(("a", "x", said), ("b", "x", said), times=[str(n) for n in range(16)])
    assert {slug: (e.other, e.again) for slug, e in echoes.echoes(same).items()} == {
        "a": ("b", True),
        "b": ("a", True),
    }
    raw = [row | {"performance": {"latency_ms": 500.0}} for row in parsed(said)]
    assert echoes.words_of(parsed(said), raw)["times"] == []
    for n, row in enumerate(raw):
        row["performance"] = {"batch_share_ms": n + 0.5}
    assert len(echoes.words_of(parsed(said), raw)["times"]) == 16


def test_a_crowd_that_says_the_same_costs_little() -> None:
    words = echoes.words_of(parsed([long(n) for n in range(100)]), [])
    crowd = [echoes.Speaker(str(n), str(n), str(n), words) for n in range(1000)]
    assert len(echoes.echoes(crowd)) == 1000


SAID = [long(n) for n in range(20)]


def test_another_models_answers_are_refused_however_they_are_written(board: Board) -> None:
    assert submit(board, "first", SAID).returncode == 0
    done = submit(
        board,
        "second",
        SAID,
        order=lambda rows: rows[::-1],
        written=lambda text: f'```json\n{{"reason": "", "answer": "{text.upper()}"}}\n```',
    )
    assert done.returncode == 2
    assert "20 of its 20 long answers have the very words of another model's entry" in done.stderr
    assert "one of the two names the wrong model" in done.stderr


def test_a_run_is_submitted_once(board: Board) -> None:
    words = [f"{n}" for n in range(20)]
    assert submit(board, "first", words, took=7.0).returncode == 0
    done = submit(board, "first", words, login="bob", took=7.0, order=lambda rows: rows[::-1])
    assert done.returncode == 2
    assert "a run is submitted once" in done.stderr
    # The same model run again by somebody else may well say the same.
    assert submit(board, "first", words, login="carol", took=9.0).returncode == 0


def test_half_of_anothers_long_answers_are_marked(board: Board) -> None:
    for model in ("first", "second"):
        own = [f"{text} {model}" if n >= 13 else text for n, text in enumerate(SAID)]
        done = submit(board, model, own)
        assert done.returncode == 0, done.stderr
    assert "13 of its 20 long answers have the very words" in done.stdout
    done = board("validate")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("13 of its 20 long answers have the very words") == 2
    assert board("build").returncode == 0
    marked = [
        any(flag["kind"] == "same_answers" for flag in entry["flags"])
        for entry in board.content["entries"]
    ]
    assert marked == [True, True], "who had them first is not known"
    assert all(entry["ranked"] for entry in board.content["entries"])
    page = (board.root / "site" / "index.html").read_text("utf-8")
    assert "another&#39;s answers" in page
