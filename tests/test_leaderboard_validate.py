"""The validator against submissions that are wrong on purpose, made as their makers could."""

import gzip
import io
import json
import os
import random
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hk_fs_bench import items
from hk_fs_bench.leaderboard import entries, safe_text, strict_json

from .submissions import ROOT, Board, git, make_run, repack, score, small_edition

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Board:
    """A board with one clean submission."""
    folder = tmp_path_factory.mktemp("board")
    board = Board(folder, small_edition(folder / "edition"))
    board.submit()
    return board


@pytest.fixture
def board(made: Board, tmp_path: Path) -> Board:
    """A copy of it that a test may spoil."""
    shutil.copytree(made.root, tmp_path / "leaderboard", symlinks=True)
    copy = Board.__new__(Board)
    copy.folder, copy.edition = tmp_path, made.edition
    copy.root, copy.dataset = tmp_path / "leaderboard", made.dataset
    shutil.copytree(made.folder / "cache", tmp_path / "cache")
    return copy


def only(board: Board) -> Path:
    (folder,) = (board.root / "submissions").iterdir()
    return folder


def put(path: str, value: Any) -> Callable[[dict], None]:
    """A change of one field, by its dotted path."""

    def change(content: dict) -> None:
        *way, last = path.split(".")
        for name in way:
            content = content[name]
        content[last] = value

    return change


def row(number: int, **fields: Any) -> Callable[[list], None]:
    return lambda rows: rows[number].update(fields)


def quote(words: int) -> str:
    """So many words of the Code in a row, made from what the digests hold."""
    return " ".join(CODE.split()[:words])


# A clause of the Code would be an excerpt; the tests' own text stands in for it, see `grams`.
CODE = " ".join(f"word{n}" for n in range(200))


@pytest.fixture
def grams(monkeypatch):
    """The digests of a text that is not the Code's."""
    from hk_fs_bench import code_grams

    own = frozenset(code_grams._digest(run) for run in code_grams._runs(CODE))
    monkeypatch.setattr(code_grams, "load_grams", lambda: own)


MANIFESTS = {
    "a text for a number": (put("schema_version", "1"), "must be the integer 1"),
    "a boolean for a number": (put("schema_version", True), "must be the integer 1"),
    "a future version": (put("schema_version", 2), "must be the integer 1"),
    "an unknown field": (put("extra", 1), "'extra'"),
    "a field of the machine": (put("run.hostname", "node-7"), "'hostname'"),
    "a missing field": (lambda c: c.pop("declaration"), "'declaration' is a required property"),
    "no declaration": (put("declaration.outputs_unaltered", False), "outputs_unaltered"),
    "an unknown edition": (
        put("run.protocol.dataset_version", "9.9.9"),
        "dataset version 9.9.9, expected 1.0.0",
    ),
    "another content": (put("run.protocol.dataset_sha256", "0" * 64), "was asked on 000000000000"),
    "another task version": (
        lambda c: c["run"]["protocol"]["task_versions"].update(hk_fs_oeq="0.9"),
        "hk_fs_oeq was asked in version 0.9",
    ),
    "another template": (
        lambda c: c["run"]["protocol"]["prompt_templates_sha256"].update(hk_fs_oeq="0" * 64),
        "from another template",
    ),
    "an unknown task": (
        lambda c: (
            put("run.tasks", ["hk_fs_other"])(c),
            c["run"]["protocol"]["task_versions"].update(hk_fs_other="1.0"),
        ),
        "no task hk_fs_other",
    ),
    "a path for a model": (put("run.model.id", "/models/tiny"), "illegal model name"),
    "a path in a note": (put("notes", "see /home/me/run.log"), "a path of a machine (/home/me"),
    "a key in a note": (put("notes", "sk-proj-" + "a1B2" * 8), "looks like a key"),
    "a password in a link": (put("links.code", "https://u:p@example.org/"), "only http(s) links"),
    "a script for a link": (put("links.code", "javascript:alert(1)"), "only http(s) links"),
    "a data link": (put("links.code", "data:text/html,x"), "only http(s) links"),
    "a link that ends its attribute": (
        put("links.code", "https://example.org/'onclick='x"),
        "only http(s) links",
    ),
    "a link to no host": (put("links.code", "https://../"), "only http(s) links"),
    "greedy by name alone": (
        lambda c: c["run"]["protocol"].update(
            regime="greedy", parameters_sent={"body": {"temperature": 0.7}}
        ),
        "run.protocol.regime is greedy, and temperature 0.7 was sent",
    ),
    "an encoder's column under another name": (
        lambda c: (
            c["scores"]["hk_fs_oeq"]["metrics"].update(
                {"bertscore_f1:judge": METEOR | {"signature": "bertscore_f1|model:tiny@1|layer:6"}}
            ),
            c["scores"]["hk_fs_oeq"].update(recorded_rows={"bertscore_f1:judge": [0.5] * 5}),
        ),
        "bertscore_f1:judge: by its signature it is bertscore_f1:tiny-L6",
    ),
    "a link over two lines": (put("links.code", "https://example.org/\n"), "direction characters"),
    "a name that turns round": (put("submitter.name", "a\u202eb"), "direction characters"),
    "an invisible letter": (put("submitter.name", "a\u200bb"), "direction characters"),
    "a bell": (put("notes", "a\u0007b"), "direction characters"),
    "another spelling": (put("submitter.name", "e\u0301"), "Unicode's form NFC"),
    "half a character": (put("submitter.name", "\ud800"), "U+D800"),
    "a name of blanks": (put("submitter.name", "  "), "a blank at its beginning"),
    "no account": (put("submitter.login", "-x"), "no account name"),
    "a day to come": (put("date", "2999-01-01"), "lies in the future"),
    "no day": (put("date", "2026-02-31"), "is no date"),
    "a day before the edition": (put("date", "2001-01-01"), "before the edition was released"),
    "a start to come": (
        put("run.started_at", "2999-01-01T00:00:00+00:00"),
        "lies in the future",
    ),
    "money earned": (put("run.price.input", -1.0), "run.price.input"),
    "money past belief": (put("run.price.output", 1e9), "run.price.output"),
    "time turned back": (
        put("run.timing", {"total_seconds": -5, "requests": 1, "seconds_definition": "x"}),
        "run.timing",
    ),
    "a chat model without its template": (
        lambda c: c["run"]["protocol"].update(
            chat_template_used=False, model_has_chat_template=True
        ),
        "ran without its template",
    ),
    "a chat model by name": (
        lambda c: (
            put("run.model.id", "org/M-Instruct")(c),
            put("run.protocol.chat_template_used", False)(c),
        ),
        "ran without its template",
    ),
    "a better accuracy": (
        put("scores.hk_fs_mcq_hk.accuracy.value", 0.9999),
        "accuracy.value: stated 0.9999, recomputed",
    ),
    "a narrower interval": (
        put("scores.hk_fs_mcq_hk.accuracy.ci95", [0.5, 0.6]),
        "accuracy.ci95[0]: stated 0.5",
    ),
    "more answers": (put("scores.hk_fs_mcq_hk.answered", 13), "answered: stated 13, recomputed 12"),
    "fewer failures": (put("scores.hk_fs_mcq_hk.statuses.valid", 99), "statuses.valid"),
    "a better BLEU": (
        put("scores.hk_fs_oeq.metrics.bleu4.value", 0.9),
        "bleu4.value: stated 0.9, recomputed",
    ),
    "cheaper": (put("scores.hk_fs_oeq.usd.mean", 0.0), "usd.mean: stated 0.0"),
    "faster": (put("scores.hk_fs_oeq.seconds.mean", 0.001), "seconds.mean: stated 0.001"),
    "a metric of one's own": (
        lambda c: c["scores"]["hk_fs_oeq"]["metrics"].update(
            wow={"value": 1.0, "n": 5, "unit": "questions", "ci95": None, "signature": "wow"}
        ),
        "wow is no metric of this task",
    ),
    "no BLEU": (lambda c: c["scores"]["hk_fs_oeq"]["metrics"].pop("bleu4"), "bleu4 is missing"),
    "no accuracy": (lambda c: c["scores"]["hk_fs_mcq_hk"].pop("accuracy"), "accuracy: it is miss"),
    "scores of another task": (lambda c: c["scores"].pop("hk_fs_oeq"), "the run's tasks are other"),
    "recorded without rows": (
        lambda c: c["scores"]["hk_fs_oeq"]["metrics"].update(meteor=METEOR),
        "recorded_rows has 0 values for 5 answers",
    ),
    "recorded with another mean": (
        lambda c: (
            c["scores"]["hk_fs_oeq"]["metrics"].update(
                bertscore_f1=METEOR | {"signature": "bertscore_f1|x"}
            ),
            c["scores"]["hk_fs_oeq"].update(recorded_rows={"bertscore_f1": [0.2] * 5}),
        ),
        "bertscore_f1: stated 0.5, its rows have the mean 0.2",
    ),
    "METEOR raised, its rows as they were": (
        lambda c: (
            c["scores"]["hk_fs_oeq"]["metrics"].update(meteor=METEOR),
            c["scores"]["hk_fs_oeq"].update(recorded_rows={"meteor": [0.46] * 5}),
        ),
        "meteor: stated 0.5, its rows have the mean 0.46",
    ),
    "recorded under no signature of its own": (
        lambda c: (
            c["scores"]["hk_fs_oeq"]["metrics"].update(meteor=METEOR | {"signature": "mine"}),
            c["scores"]["hk_fs_oeq"].update(recorded_rows={"meteor": [0.5] * 5}),
        ),
        "meteor has no value, or no signature of its own",
    ),
    "rows of no metric": (
        lambda c: c["scores"]["hk_fs_oeq"].update(recorded_rows={"wow": [1.0] * 5}),
        "recorded_rows.wow is of no metric",
    ),
    "a day before its own run": (put("date", "2026-10-05"), "lies before the run was started"),
    "a letter that shows nothing": (put("submitter.name", "\u3164"), "U+3164"),
    "letters that look alike": (put("submitter.name", "\u0410cme"), "two alphabets in one word"),
    "recorded out of range": (
        lambda c: (
            c["scores"]["hk_fs_oeq"]["metrics"].update(meteor=METEOR | {"value": 1.5}),
            c["scores"]["hk_fs_oeq"].update(recorded_rows={"meteor": [0.5] * 5}),
        ),
        "meteor: 1.5 lies outside 0 to 1",
    ),
    "deep settings": (
        put("run.protocol.generation_kwargs", {"a": [{"b": {"c": {"d": "x" * 1001}}}]}),
        "generation_kwargs.a.0.b.c.d",
    ),
    "endless samples": (put("run.protocol.samples", 10**12), "run.protocol.samples"),
    "a thousand fields": (
        lambda c: c["run"].update({f"field{n}": "/home/x/y" for n in range(1000)}),
        "submission.json: and more",
    ),
    "superseding nothing": (put("supersedes", "tiny-1-0123456789"), "which is no submission"),
}
METEOR = {"value": 0.5, "n": 5, "unit": "questions", "ci95": [0.4, 0.6], "signature": "meteor|x"}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_that_lies_is_refused(name: str, board: Board) -> None:
    change, words = MANIFESTS[name]
    repack(only(board), change)
    done = board("validate")
    assert done.returncode == 1, done.stdout
    assert words in done.stdout, done.stdout
    assert "Traceback" not in done.stderr


ROWS: dict[str, tuple[Callable[[list], Any], str]] = {
    "a missing answer": (lambda rows: rows.pop(3), "hk_fs_mcq_hk: 1 answers missing: mcq-"),
    "an answer twice": (lambda rows: rows.append(rows[0]), "answered before"),
    "another answer too": (
        lambda rows: rows.append(rows[0] | {"output": '{"answer": "A"}'}),
        "never asked anew",
    ),
    "an unknown item": (row(0, item_id="mcq-9999"), "no such item in this edition"),
    "an item under another task": (row(0, task="hk_fs_oeq"), "no such item"),
    "an unknown variant": (row(0, variant="rot1"), "no variant 'rot1'"),
    "a sample too many": (row(0, sample=1), "protocol.samples is 1"),
    "another prompt": (row(0, prompt_sha256="0" * 64), "is not that of the task's prompt"),
    "only a failed call": (row(0, status="infra_error"), "1 answers only failed calls"),
    "a status of one's own": (row(0, status="great"), "status"),
    "an unknown cause": (row(0, status="no_answer", cause="bad luck"), "unknown cause"),
    "negative tokens": (row(0, token_usage={"input_tokens": -1}), "greater than or equal to 0"),
    "tokens past belief": (row(0, token_usage={"input_tokens": 10**12}), "less than or equal to"),
    "tokens in words": (row(0, token_usage={"input_tokens": "12"}), "valid integer"),
    "negative time": (row(0, performance={"latency_ms": -1.0}), "greater than or equal to 0"),
    "a field of one's own": (row(0, comment="hello"), "is not one of the format"),
    "a day to come": (row(0, sent_at="2999-01-01T00:00:00+00:00"), "lies in the future"),
    "no day": (row(0, sent_at="yesterday"), "is no date"),
    "a key in an answer": (row(0, output="hf_" + "aB3" * 10), "looks like a key"),
    "a key in an error": (row(0, detail="Authorization: Bearer " + "aB3" * 10), "like a key"),
    "a path in an error": (row(0, detail="no file /home/me/x.gguf"), "a path of a machine"),
    "a path for a model": (row(0, returned_model="/data/models/x"), "a path of a machine"),
    "a name that turns round": (row(0, returned_model="a\u202eb"), "direction characters"),
    "another model's answer": (row(0, returned_model="other"), "returned_ids does not name"),
    "a look at the keys that it hides": (
        row(0, sources=["https://huggingface.co/datasets/hk-fs-bench/hk-fs-code"]),
        "its sources are this benchmark's own address",
    ),
    "no rows": (lambda rows: rows.clear(), "12 answers missing"),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_that_lie_are_refused(name: str, board: Board) -> None:
    change, words = ROWS[name]
    repack(only(board), rows=change)
    done = board("validate")
    assert done.returncode == 1, done.stdout
    assert words in done.stdout, done.stdout
    assert "Traceback" not in done.stderr


def test_a_quotation_is_allowed_and_an_excerpt_is_not(board: Board, grams) -> None:
    cases = ((25, 0), (26, 1), (150, 1))
    folder = only(board)
    for words, expected in cases:
        text = json.dumps({"answer": f"As written: {quote(words)}", "reason": ""})
        folder = repack(folder, rows=row(-1, output=text))
        done = board("validate")
        found = "words of the Code in a row" in done.stdout
        assert found == bool(expected), (words, done.stdout)
    folder = repack(folder, put("notes", quote(12)))
    assert "notes holds an excerpt of the Code" in board("validate").stdout
    assert (
        "notes holds" not in board("validate", str(repack(folder, put("notes", quote(11))))).stdout
    )


RAW = {
    "a doubled key": (b'{"task": "a", "task": "b"}\n', "'task' stands twice"),
    "no number": (b'{"task": NaN}\n', "NaN is not finite"),
    "infinity": (b'{"task": 1e999}\n', "1e999 is not finite"),
    "a number of a thousand digits": (b'{"task": ' + b"9" * 1000 + b"}\n", "1000 digits"),
    "a list": (b"[]\n", "a JSON object is expected"),
    "an empty line": (b"\n\n", "is empty"),
    "no UTF-8": (b'{"task": "\xff"}\n', "byte offset 10"),
    "deep nesting": (b"[" * 100_000 + b"\n", "nesting is too deep"),
    "a cut line": (b'{"task": "a"', "no line feed"),
    "too many rows": (b"{}\n" * 10_000, "10,000 rows for 29 answers"),
}


@pytest.mark.parametrize("name", RAW)
def test_lines_that_are_no_rows_are_refused(name: str, board: Board) -> None:
    raw, words = RAW[name]
    repack(only(board), raw=raw)
    done = board("validate")
    assert done.returncode == 1
    assert words in done.stdout, done.stdout


def test_a_bomb_is_let_go(board: Board, monkeypatch) -> None:
    monkeypatch.setitem(safe_text.settings()["sizes"], "predictions.jsonl", 1_000_000)
    bomb = io.BytesIO()
    with gzip.GzipFile(fileobj=bomb, mode="wb") as file:
        for _ in range(100):
            file.write(b"\0" * 1_000_000)
    repack(only(board), packed=bomb.getvalue())
    begun = time.monotonic()
    done = board("validate")
    assert "unpacks to more than 1,000,000 bytes" in done.stdout
    assert time.monotonic() - begun < 60


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        (b"", "no gzip file"),
        (b"PK\x03\x04", "no gzip file"),
        (gzip.compress(b"{}\n")[:-4], "no gzip file"),
        (gzip.compress(b"{}\n") + b"more", "holds more than the rows"),
        (gzip.compress(b"{}\n") + b"\0\0\0", "holds more than the rows"),
        (gzip.compress(b"{}\n") + gzip.compress(b""), "holds more than the rows"),
        (
            b"\x1f\x8b\x08\x08" + gzip.compress(b"")[4:10] + b"sk-key\0" + gzip.compress(b"")[10:],
            "holds more than the rows",
        ),
    ],
    ids=["empty", "zip", "cut", "more behind", "zeros behind", "two parts", "a name in it"],
)
def test_what_is_no_gzip_file_is_refused(packed: bytes, words: str, board: Board) -> None:
    repack(only(board), packed=packed)
    done = board("validate")
    assert words in done.stdout, done.stdout


def link_file(folder: Path) -> None:
    (folder / entries.MANIFEST).rename(folder.parent.parent / "elsewhere.json")
    (folder / entries.MANIFEST).symlink_to(folder.parent.parent / "elsewhere.json")


def link_folder(folder: Path) -> None:
    folder.rename(folder.parent.parent / "elsewhere")
    folder.symlink_to(folder.parent.parent / "elsewhere")


FOLDERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a file more": (lambda f: (f / "run.sh").write_text("x"), "holds run.sh"),
    "a hidden file": (lambda f: (f / ".env").write_text("x"), "holds .env"),
    "a folder in it": (lambda f: (f / "more").mkdir(), "holds more"),
    "a file less": (lambda f: (f / entries.PREDICTIONS).unlink(), f"lacks {entries.PREDICTIONS}"),
    "a link for a file": (link_file, "is no plain file"),
    "a link for a folder": (link_folder, "only folders of submissions"),
    "a pipe": (
        lambda f: ((f / entries.MANIFEST).unlink(), os.mkfifo(f / entries.MANIFEST)),
        "is no plain file",
    ),
    "a folder for a file": (
        lambda f: ((f / entries.MANIFEST).unlink(), (f / entries.MANIFEST).mkdir()),
        "is no plain file",
    ),
    "another name": (lambda f: f.rename(f.parent / "tiny-1-0123456789"), "the folder tiny-1-01"),
    "a file beside": (lambda f: (f.parent / "notes.txt").write_text("x"), "only folders of subm"),
    "a note in .gitkeep": (
        lambda f: (f.parent / ".gitkeep").write_text("x"),
        "only folders of sub",
    ),
    "a huge manifest": (
        lambda f: (f / entries.MANIFEST).write_bytes(b" " * 2_000_000),
        "2,000,000 bytes, 1,048,576 are allowed",
    ),
    "a changed manifest": (
        lambda f: (f / entries.MANIFEST).write_text(
            (f / entries.MANIFEST).read_text("utf-8").replace("alice", "mallory")
        ),
        "changed after it was packed",
    ),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_that_are_none_are_refused(name: str, board: Board) -> None:
    spoil, words = FOLDERS[name]
    spoil(only(board))
    done = board("validate")
    assert done.returncode == 1, done.stdout
    assert words in done.stdout, done.stdout
    assert "Traceback" not in done.stderr


def test_no_line_is_a_command_to_the_service_that_runs_the_check(board: Board) -> None:
    repack(only(board), put("date", "x\n::add-mask::y\n##[error]z"))
    (board.root / "submissions" / "::stop-commands::x").write_text("")
    (board.root / "submissions" / "##[group]x").write_text("")
    done = board("validate")
    assert done.returncode == 1
    assert "\\n::add-mask::y" in done.stdout
    assert not re.search(r"^\s*::|##\[", done.stdout, re.MULTILINE), done.stdout


def test_a_board_behind_a_link_is_not_checked_in_its_place(board: Board) -> None:
    board.root.rename(board.folder / "elsewhere")
    board.root.symlink_to(board.folder / "elsewhere")
    done = board("validate")
    assert done.returncode == 2
    assert "is a link" in done.stderr


def test_all_faults_at_once_and_the_other_submissions_all_the_same(board: Board) -> None:
    clean = board.submit("other", login="bob", seed=2)
    folder = next(f for f in (board.root / "submissions").iterdir() if f != clean)
    bad = repack(
        folder,
        lambda c: (put("date", "2999-01-01")(c), put("run.price.input", -1.0)(c)),
    )
    bad = repack(bad, put("run.price.input", 1.0), rows=lambda rows: (rows.pop(), rows.pop(0)))
    done = board("validate")
    lines = [line for line in done.stdout.splitlines() if line.startswith(f"{bad.name}: ")]
    assert len(lines) >= 3
    assert any("2999-01-01" in line for line in lines)
    assert sum("answers missing" in line for line in lines) == 2
    assert not any(line.startswith(clean.name) for line in done.stdout.splitlines())
    assert "2 submissions checked" in done.stdout


def test_single_submissions_can_be_named(board: Board) -> None:
    folder = only(board)
    other = board.submit("other", login="bob", seed=2)
    (other / "more").write_text("x")
    assert board("validate", folder).returncode == 0
    assert board("validate", folder / entries.MANIFEST).returncode == 0
    assert board("validate", other).returncode == 1
    assert board("validate").returncode == 1
    assert board("validate", "nowhere").returncode == 2


def test_one_submitter_has_one_entry_of_a_key(board: Board) -> None:
    again = score(make_run(board.folder / "again", board.dataset, seed=9), board.dataset)
    words = ["submit", again, "--submitter", "alice", "--contamination", "none_known"]
    done = board(*words)
    assert done.returncode == 2
    assert "with the same key" in done.stderr
    old = only(board)
    done = board(*words, "--supersedes", old.name)
    assert done.returncode == 0, done.stderr
    assert board("validate").returncode == 0
    # Somebody else may run the same model.
    words[3] = "bob"
    third = score(make_run(board.folder / "third", board.dataset, seed=10), board.dataset)
    assert board("submit", third, *words[2:]).returncode == 0
    # But not correct another's entry, nor hand in another's answers.
    new = next(f for f in (board.root / "submissions").iterdir() if f.name != old.name)
    fourth = score(make_run(board.folder / "fourth", board.dataset, seed=11), board.dataset)
    done = board("submit", fourth, *words[2:], "--supersedes", new.name)
    assert done.returncode == 2
    assert "which is alice's" in done.stderr
    done = board("submit", again, "--submitter", "carol", "--contamination", "none_known")
    assert done.returncode == 2
    assert "holds the very answers of" in done.stderr


def test_runs_that_are_not_ready_are_not_packed(board: Board) -> None:
    run = make_run(board.folder / "raw", board.dataset, seed=3)
    words = ["submit", run, "--submitter", "bob", "--contamination", "none_known"]
    assert "not scored yet" in board(*words).stderr
    score(run, board.dataset)
    content = json.loads((run / "run.json").read_text("utf-8"))
    for change, expected in (
        ({"complete": False}, "is incomplete"),
        ({"complete": True, "model": {"id": "x/y"}}, "lacks 'provider'"),
    ):
        (run / "run.json").write_text(json.dumps(content | change), "utf-8")
        done = board(*words)
        assert done.returncode == 2
        assert expected in done.stderr
    (run / "run.json").write_text(json.dumps(content), "utf-8")
    (run / "scores.json").write_text("{}", "utf-8")
    assert "score the run again" in board(*words).stderr
    (run / "scores.json").write_text("[" * 100_000, "utf-8")
    assert "score the run again" in board(*words).stderr
    assert len(list((board.root / "submissions").iterdir())) == 1
    assert board("submit", "nowhere", *words[2:]).returncode == 2


def test_answers_come_in_any_order(board: Board) -> None:
    """A service answers when it likes; resampled intervals stand on the order of its file."""
    shutil.rmtree(only(board))
    run = make_run(board.folder / "runs" / "late", board.dataset, seed=9)
    lines = (run / "predictions.jsonl").read_text("utf-8").splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    (run / "predictions.jsonl").write_text("".join(lines), "utf-8")
    words = ("--submitter", "alice", "--contamination", "none_known")
    done = board("submit", score(run, board.dataset), *words)
    assert done.returncode == 0, done.stderr


def test_nothing_of_the_machine_is_packed(board: Board) -> None:
    run = make_run(board.folder / "local", board.dataset, seed=3)
    content = json.loads((run / "run.json").read_text("utf-8"))
    content |= {"hostname": "node-7", "cwd": "/home/me"}
    content["model"] |= {"deployment": "local", "endpoint": "http://localhost:8000/v1"}
    content["software"]["backend"] = "hf"
    content["started_at"] = 1_793_000_000.5
    (run / "run.json").write_text(json.dumps(content), "utf-8")
    score(run, board.dataset)
    done = board("submit", run, "--submitter", "bob", "--contamination", "none_known")
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.splitlines()[0].removeprefix("packed "))
    text = (folder / entries.MANIFEST).read_text("utf-8")
    assert not [word for word in ("node-7", "/home", "localhost") if word in text]
    assert json.loads(text)["run"]["started_at"].startswith("2026-10-26T")
    packed = gzip.decompress((folder / entries.PREDICTIONS).read_bytes())
    assert packed == (run / "predictions.jsonl").read_bytes()


@pytest.fixture
def repository(board: Board) -> Board:
    """The board in git: main has the submission, and a branch is checked out."""
    (board.folder / ".gitignore").write_text("cache\nrepo-runs\nruns\n", "utf-8")
    git(board.folder, "init", "-q", "-b", "main")
    git(board.folder, "add", ".")
    git(board.folder, "commit", "-q", "-m", "one")
    git(board.folder, "checkout", "-q", "-b", "mine")
    return board


def test_a_branch_may_add_its_own_submission(repository: Board) -> None:
    folder = repository.submit("mine", login="bob", seed=4)
    assert repository("validate", "--login", "Bob").returncode == 0
    git(repository.folder, "add", ".")
    git(repository.folder, "commit", "-q", "-m", "two")
    assert repository("validate", "--login", "bob", "--base", "main").returncode == 0
    done = repository("validate", "--login", "mallory")
    assert done.returncode == 1
    assert f"{folder.name}: submitted for bob by mallory" in done.stdout


def test_nobody_touches_an_entry_that_stands(repository: Board) -> None:
    folder = only(repository)
    text = (folder / entries.MANIFEST).read_text("utf-8")
    (folder / entries.MANIFEST).write_text(text.replace('"notes": null', '"notes": "x"'), "utf-8")
    done = repository("validate")
    assert f"{folder.name}: submission.json differs from the merge base" in done.stdout
    git(repository.folder, "checkout", "-q", ".")
    assert repository("validate").returncode == 0
    (folder / "more.txt").write_text("x", "utf-8")
    assert "more.txt differs from the merge base" in repository("validate").stdout
    (folder / "more.txt").unlink()
    moved = repack(folder, put("notes", "mine now"))
    done = repository("validate")
    assert done.returncode == 1
    assert f"{folder.name}: predictions.jsonl.gz differs from the merge base" in done.stdout
    shutil.rmtree(moved)
    git(repository.folder, "checkout", "-q", ".")
    shutil.rmtree(folder)
    git(repository.folder, "add", "-A")
    git(repository.folder, "commit", "-q", "-m", "gone")
    assert "differs from the merge base" in repository("validate").stdout


def test_a_submissions_pull_request_touches_nothing_else(repository: Board) -> None:
    (repository.folder / "check.py").write_text("print('mine')", "utf-8")
    assert repository("validate").returncode == 0
    done = repository("validate", "--login", "bob")
    assert done.returncode == 1
    assert "check.py: a submission's pull request touches nothing but" in done.stdout


def test_a_base_that_is_none_is_a_mistake_of_the_user(repository: Board, board: Board) -> None:
    for name in ("nowhere", "--upload-pack=x"):
        done = repository("validate", f"--base={name}")
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


def test_main_moving_on_is_no_fault_of_a_branch(repository: Board) -> None:
    git(repository.folder, "checkout", "-q", "main")
    other = repository.submit("other", login="carol", seed=5)
    git(repository.folder, "add", ".")
    git(repository.folder, "commit", "-q", "-m", "another")
    git(repository.folder, "checkout", "-q", "mine")
    assert not other.exists()
    assert repository("validate", "--login", "bob").returncode == 0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("https://example.org/home/user/x", False),
        ("/home/user/x", True),
        ("~/models", True),
        ("C:\\Users\\me", True),
        ("\\\\server\\share", True),
        ("file:///x", True),
        ("path=/mnt/data/x", True),
        ("org/model", False),
        ("https://example.org/x?path=/doc/en/fs.pdf and https://example.org/a,/b/c", False),
        ("https://example.org/ and /home/user/x", True),
        ("Invalid URL (POST /v1/chat/completions)", False),
        ("-/60/60 and 1/2", False),
    ],
)
def test_paths_are_told_from_addresses(text: str, found: bool) -> None:
    assert (safe_text.local_path(text) is not None) == found


@pytest.mark.parametrize("depth", [41, 300, 900, 990, 5000])
@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a":', "}")])
def test_nesting_of_any_depth_is_a_fault_and_no_crash(
    board: Board, depth: int, opened: str, closed: str
) -> None:
    text = opened * depth + "1" + closed * depth
    (only(board) / entries.MANIFEST).write_text('{"x": ' + text + "}", "utf-8")
    done = board("validate")
    assert done.returncode == 1
    assert "nesting is too deep" in done.stdout


def test_strict_json_takes_what_json_is() -> None:
    text = b'{"a": [1, -2.5e3, true, null, "\\u00e9"], "b": {"a": ""}}'
    assert strict_json.parse(text) == json.loads(text)
    assert items.LETTERS


def test_help_needs_no_heavy_import() -> None:
    import subprocess
    import sys

    code = (
        "import sys, runpy; sys.argv = ['x', '--help']\n"
        "try:\n runpy.run_path(sys.path.pop(), run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print([m for m in ('numpy', 'pandas', 'pydantic', 'jsonschema') if m in sys.modules])"
    )
    path = ROOT / "scripts" / "leaderboard.py"
    words = [sys.executable, "-c", f"import sys; sys.path.append({str(path)!r}); {code}"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
