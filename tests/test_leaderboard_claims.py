"""What a submission may say of its answers and figures, and what is held against it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hk_fs_bench.leaderboard import claims, entries, kept
from hk_fs_bench.leaderboard.changes import changes

from .submissions import Board, git, make_run, repack, score, small_edition

pytestmark = pytest.mark.java
OPEN = "hk_fs_oeq"
Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def board(tmp_path: Path) -> Board:
    return Board(tmp_path, small_edition(tmp_path / "edition", mcq=3, oeq=3))


def submit(board: Board, change: Change, rows: Change | None = None, **how: Any) -> Any:
    """The answer of `submit` to a run whose run.json and rows were changed."""
    folder = make_run(board.folder / "runs" / "changed", board.dataset, **how)
    content = json.loads((folder / "run.json").read_text("utf-8"))
    change(content)
    (folder / "run.json").write_text(json.dumps(content), "utf-8")
    if rows is not None:
        path = folder / "predictions.jsonl"
        table = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        for row in table:
            rows(row)
        path.write_text("".join(json.dumps(row) + "\n" for row in table), "utf-8")
    score(folder, board.dataset)
    return board("submit", folder, "--submitter", "bob", "--contamination", "none_known")


def test_a_run_of_the_local_runner_is_taken(board: Board) -> None:
    done = submit(
        board,
        lambda run: (
            run["model"].update(deployment="local", endpoint=None, returned_ids=[]),
            run.update(timing={"seconds_definition": "wall time of a batch, shared out"}),
        ),
        lambda row: row.update(
            performance={"batch_share_ms": 12.5, "batch": 32}, returned_model=None
        ),
    )
    assert done.returncode == 0, done.stderr


SENT: dict[str, Change] = {
    "a schema in the request": lambda run: run["protocol"].update(
        parameters_sent={"response_format": {"json_schema": {"schema": {"a": [{"b": True}]}}}}
    ),
    "an end of two lines": lambda run: run["protocol"].update(
        generation_kwargs={"until": ["\n\n", " "]}
    ),
    "what a service said of a parameter": lambda run: run["protocol"].update(
        parameters_not_applied={"seed": "refused by the service: " + "x" * 300}
    ),
    "greedy in every form": lambda run: run["protocol"].update(
        regime="greedy", parameters_sent={"temperature": 0, "do_sample": False}
    ),
    "a name with a tag": lambda run: run["model"].update(id="qwen3:8b"),
    "a host's long name": lambda run: run["model"].update(id="accounts/acme/models/x-1"),
    "a base model of a name that sounds alike": lambda run: (
        run["model"].update(id="acme/llama-italian-7b-base"),
        run["protocol"].update(chat_template_used=False),
    ),
    "a model that is known to have no template": lambda run: (
        run["model"].update(id="acme/falcon-7b-instruct"),
        run["protocol"].update(chat_template_used=False, model_has_chat_template=False),
    ),
}


@pytest.mark.parametrize("name", SENT)
def test_what_an_honest_run_says_is_taken(name: str, board: Board) -> None:
    done = submit(board, SENT[name])
    assert done.returncode == 0, done.stderr


def test_the_address_of_ones_own_machine_is_not_packed(board: Board) -> None:
    done = submit(board, lambda run: run["model"].update(endpoint="http://10.0.0.1:8000/v1"))
    assert done.returncode == 0, done.stderr
    (folder,) = (board.root / "submissions").iterdir()
    assert "10.0.0.1" not in (folder / entries.MANIFEST).read_text("utf-8")


@pytest.mark.parametrize("task", [OPEN, "hk_fs_mcq_hk"])
def test_probabilities_are_no_answer_to_a_question_that_is_generated(
    task: str, board: Board
) -> None:
    folder = board.submit()
    repack(
        folder,
        rows=lambda rows: next(row for row in rows if row["task"] == task).update(
            option_logprobs=[-4.0, -3.0, -2.0, -1.0]
        ),
    )
    done = board("validate")
    assert done.returncode == 1, done.stderr
    assert f"option_logprobs under {task}" in done.stdout


def test_rows_that_break_the_scorer_are_a_fault_of_one_submission(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hk_fs_bench.leaderboard import checking

    board.submit("good")
    bad = board.submit("bad", login="bob", seed=2, model={"id": "acme/other"})
    for path in (board.folder / "cache").rglob("*.json"):
        path.unlink()
    real = checking.recompute

    def breaks(runs: Any, *more: Any) -> Any:
        if any(run.folder.name == bad.name for run in runs):
            raise KeyError("answer")
        return real(runs, *more)

    monkeypatch.setattr(checking, "recompute", breaks)
    done = board("validate")
    assert done.returncode == 1
    assert f"{bad.name}: can't be scored: KeyError: 'answer'" in done.stdout
    assert "1 faults in 1" in done.stdout


def test_a_false_figure_is_told_beside_a_bad_link(board: Board) -> None:
    folder = board.submit()

    def change(content: dict[str, Any]) -> None:
        content["date"] = "2999-01-01"
        content["scores"]["hk_fs_mcq_hk"]["accuracy"]["value"] = 0.123

    repack(folder, change)
    done = board("validate")
    assert "lies in the future" in done.stdout
    assert "accuracy.value: stated 0.123, recomputed" in done.stdout


def test_answers_that_were_corrected_are_still_somebodys(board: Board) -> None:
    old = board.submit("old", login="alice")
    board.submit("new", "--supersedes", old.name, login="alice", seed=2)
    # The same answers again, with another declaration: a correction of one's own.
    again = board.folder / "runs" / "old"
    words = ("--submitter", "alice", "--contamination", "possible", "--supersedes")
    newest = next(f for f in (board.root / "submissions").iterdir() if f != old)
    assert board("submit", again, *words, newest.name).returncode == 0
    assert board("validate").returncode == 0
    done = board("submit", again, "--submitter", "bob", "--contamination", "none_known")
    assert done.returncode == 2
    assert "holds the very answers of" in done.stderr


USUAL = "bertscore_f1|level:mean|model:roberta-large@722cf37b1afa|layer:17"
RECORDED: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "as it should be": ("bertscore_f1", {"signature": USUAL}, None),
    "another encoder in the usual column": (
        "bertscore_f1",
        {"signature": "bertscore_f1|model:evil/mine@abc|layer:3"},
        "by its signature it is bertscore_f1:evil/mine-L3",
    ),
    "n past belief": ("meteor", {"signature": "meteor|x", "n": 10**9}, "n is 1000000000"),
    "fewer than were answered": ("meteor", {"signature": "meteor|x", "n": 2}, "n is 2 questions"),
    "an interval that its rows don't make": (
        "meteor",
        {"signature": "meteor|x", "ci95": [0.4999, 0.5001]},
        "times as wide as its rows make it",
    ),
    "a unit of one's own": ("meteor", {"signature": "meteor|x", "unit": "bananas"}, "3 bananas"),
    "an interval past the scale": (
        "meteor",
        {"signature": "meteor|x", "ci95": [-5.0, 7.0]},
        "is no interval between 0 and 1",
    ),
    "an interval of no width": (
        "meteor",
        {"signature": "meteor|x", "ci95": [0.5, 0.5]},
        "is no interval",
    ),
}


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_figures_keep_to_their_bounds(name: str) -> None:
    column, more, words = RECORDED[name]
    figure = {"value": 0.5, "n": 3, "unit": "questions", "ci95": [0.4, 0.6]} | more
    claim = {"answered": 3, "recorded_rows": {column: [0.4, 0.5, 0.6]}}
    found = list(claims._metric_faults(column, figure, claim, 3))
    assert bool(found) == (words is not None)
    assert any((words or "") in line for line in [*found, ""])


def test_the_full_check_holds_the_values_of_single_answers() -> None:
    claim = {OPEN: {"recorded_rows": {"meteor": [0.1, 0.2, 0.3], "bertscore_f1": [0.5, 0.5004]}}}
    values = {OPEN: {"meteor": [0.1, 0.3, 0.2], "bertscore_f1": [0.5, 0.5]}}
    (line,) = claims.row_faults(claim, values)
    assert (
        "recorded_rows.meteor: 2 values differ from the recomputed ones; the first, number 2"
        in line
    )
    assert not list(claims.row_faults(claim, {OPEN: {"meteor": [0.1, 0.2, 0.3]}}))


def test_two_that_were_merged_side_by_side_stop_no_board(board: Board) -> None:
    (board.folder / ".gitignore").write_text("cache\nruns\n", "utf-8")
    git(board.folder, "init", "-q", "-b", "main")
    first = board.submit("one")
    held = board.folder / "held"
    first.rename(held)
    board.submit("two", seed=2)
    held.rename(first)
    assert board("validate").returncode == 1
    git(board.folder, "add", ".")
    git(board.folder, "commit", "-q", "-m", "both")
    done = board("validate")
    assert done.returncode == 0, done.stdout
    assert "with the same key" in done.stdout
    assert board("build").returncode == 0
    # Each of them can still be corrected.
    run = score(make_run(board.folder / "runs" / "three", board.dataset, seed=3), board.dataset)
    words = ("--submitter", "alice", "--contamination", "none_known")
    assert "with the same key" in board("submit", run, *words).stderr
    done = board("submit", run, *words, "--supersedes", first.name)
    assert done.returncode == 0, done.stderr
    assert "with the same key" in done.stdout
    assert board("validate").returncode == 0


def test_without_git_the_board_tells_what_was_accepted(board: Board) -> None:
    first = board.submit("one")
    assert board("build").returncode == 0

    def age(content: dict[str, Any]) -> None:
        content["run"]["protocol"]["task_versions"][OPEN] = "0.9"
        for name, figures in content["scores"].items():
            figures["signature"] = figures["signature"].replace(f"{name}@1.0", f"{name}@0.9")

    old = repack(first, age)
    done = board("validate")
    assert "was asked in version 0.9" in done.stdout
    text = (board.root / "leaderboard.json").read_text("utf-8")
    (board.root / "leaderboard.json").write_text(text.replace(first.name, old.name), "utf-8")
    assert "was asked in version 0.9" not in board("validate").stdout


def test_what_was_clean_is_not_checked_again_once_it_is_on_the_board(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hk_fs_bench.leaderboard import checking

    board.submit()
    assert board("build").returncode == 0
    monkeypatch.setattr(checking, "recompute", lambda *_: pytest.fail("checked again"))
    assert board("validate").returncode == 0


def test_a_cache_that_is_damaged_is_none(board: Board, tmp_path: Path) -> None:
    board.submit()
    assert board("validate").returncode == 0
    (path,) = (board.folder / "cache").rglob("leaderboard/*.json")
    path.write_text("{}", "utf-8")
    assert kept.read(path, ("manifest",)) is None
    assert board("validate").returncode == 0


def test_a_board_with_conflicts_is_not_built_over(board: Board) -> None:
    board.submit()
    path = board.root / "leaderboard.json"
    for text in (
        "<<<<<<< HEAD\n{}\n",
        '{"entries": [{}], "dataset": {"version": "1"}}',
    ):
        path.write_text(text, "utf-8")
        for command in (("build",), ("rescore",), ("export", board.folder / "out")):
            done = board(*command)
            assert done.returncode == 2, command
            assert "is no board" in done.stderr
            assert "Traceback" not in done.stderr
        assert path.read_text("utf-8") == text
    path.unlink()
    assert board("build").returncode == 0


@pytest.mark.parametrize("broken", [None, [1], {"value": [1]}, 3])
def test_a_board_that_is_broken_deep_down_is_one_line(board: Board, broken: Any) -> None:
    board.submit()
    assert board("build").returncode == 0
    content = board.content
    path = board.root / "leaderboard.json"
    for where in ("tasks", "accuracy"):
        own = content["entries"][0]["tasks"]
        if where == "tasks":
            own = own | {"hk_fs_mcq_hk": broken}
        else:
            own = own | {"hk_fs_mcq_hk": own["hk_fs_mcq_hk"] | {"accuracy": broken}}
        entry = content["entries"][0] | {"tasks": own}
        path.write_text(json.dumps(content | {"entries": [entry]}), "utf-8")
        for command in (("build",), ("export", board.folder / "out")):
            done = board(*command)
            assert done.returncode == 2, (where, command, done.stdout)
            assert "Traceback" not in done.stderr


def test_nothing_is_exported_into_the_board(board: Board) -> None:
    board.submit()
    assert board("build").returncode == 0
    for out in (board.root, board.root / "submissions", board.root / "submissions" / "x"):
        done = board("export", out)
        assert done.returncode == 2
        assert "is the board's own" in done.stderr
    assert board("validate").returncode == 0


def test_a_field_that_is_named_for_a_secret_is_one(board: Board) -> None:
    done = submit(
        board, lambda run: run["protocol"].update(parameters_sent={"extra_body": {"api_key": "x"}})
    )
    assert done.returncode == 2
    assert "parameters_sent.extra_body.api_key is a field of a secret" in done.stderr


def test_the_full_check_says_what_it_could_not_recompute(board: Board) -> None:
    folder = board.submit()

    def record(content: dict[str, Any]) -> None:
        claim = content["scores"][OPEN]
        figure = {"value": 0.5, "n": 3, "unit": "questions", "ci95": [0.4, 0.6]}
        claim["metrics"]["bertscore_f1"] = figure | {"signature": USUAL}
        claim["recorded_rows"] = {"bertscore_f1": [0.5] * 3}

    repack(folder, record)
    done = board("validate", "--full")
    assert done.returncode == 0, done.stdout
    assert f"{OPEN}: bertscore_f1 was not recomputed: " in done.stdout
    assert "was not recomputed" not in board("validate").stdout


def test_an_interval_that_changes_is_a_change() -> None:
    def board_of(low: float, difference: float, usd: float = 1.0) -> dict[str, Any]:
        figure = {"value": 0.5, "n": 4, "ci95": [low, 0.9]}
        more = {
            "usd": {"mean": usd, "n": 4},
            "statuses": {"valid": int(usd)},
            "rank": {"best": usd},
        }
        tasks = {"t": {"accuracy": figure, "by": {"part": {"B": figure}}, **more}}
        context = {"difference": {"value": difference, "n": 4, "ci95": None}}
        return {"entries": [{"slug": "s", "tasks": tasks, "context": context}]}

    found = changes(board_of(0.1, 0.0), board_of(0.2, 0.25))
    assert [(one["task"], one["figure"], one["old"], one["new"]) for one in found] == [
        ("t", "accuracy, 95% interval", [0.1, 0.9], [0.2, 0.9]),
        ("t", "part B, 95% interval", [0.1, 0.9], [0.2, 0.9]),
        ("context", "difference", 0.0, 0.25),
    ]
    assert changes(board_of(0.1, 0.0), board_of(0.1, 0.0)) == []
    found = changes(board_of(0.1, 0.0), board_of(0.1, 0.0, 2.0))
    assert [one["figure"] for one in found] == ["usd", "statuses valid"]
