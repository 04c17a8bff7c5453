"""scripts/human_eval.py: the whole chain with real files, and mistakes in one line."""

import csv
import json
import runpy
import shutil
import sys
from pathlib import Path

import pytest
import yaml
from openpyxl import load_workbook

from hk_fs_bench import scoring
from hk_fs_bench.human import forms
from hk_fs_bench.human.study import read_key, read_study
from hk_fs_bench.items import jsonl_rows
from hk_fs_bench.open_metrics import Wanted
from tests.human_forms import ORGANISER
from tests.test_comparing import make_run

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = str(ROOT / "scripts" / "human_eval.py")
RATERS = "id,role,capacity\n" + "".join(f"a{n},architect,9\n" for n in (1, 2, 3))
RATERS += "".join(f"e{n},fire engineer,9\n" for n in (1, 2))
QUESTIONS = 12


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs the script in this process: (status, printed, complaint)."""

    def run(*args: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", [SCRIPT, *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(SCRIPT, run_name="__main__")
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run


def sound(done: tuple[int, str, str]) -> str:
    assert done[0] == 0, done[2]
    return done[1]


@pytest.fixture(scope="module")
def runs(tmp_path_factory, dataset) -> list[Path]:
    """Three scored runs over the first questions; one answer is missing."""
    folder = tmp_path_factory.mktemp("runs")
    texts = [item.reference_answer for item in dataset.items("oeq")[:QUESTIONS]]
    made = []
    for n, name in enumerate(("good", "half", "bad")):
        said = [" ".join(text.split()[: 200 // 4**n]) for text in texts]
        outputs = [json.dumps({"answer": text, "reason": f"{name}"}) for text in said]
        if name == "bad":
            outputs[0] = ""
        made.append(make_run(folder / name, {"hk_fs_oeq": outputs}, f"org/{name}"))
    scoring.score_runs(made, dataset, Wanted(("citations",)))
    return [run.folder for run in made]


@pytest.fixture
def files(tmp_path, dataset) -> dict[str, Path]:
    """The organiser's files."""
    paths = {name: tmp_path / f"{name}.csv" for name in ("raters", "experts")}
    paths["raters"].write_text(RATERS, "utf-8")
    with paths["experts"].open("w", encoding="utf-8", newline="") as file:
        lines = [(i.id, f"In my view: {i.question}") for i in dataset.items("oeq")[:QUESTIONS]]
        csv.writer(file).writerows([("item_id", "answer"), *lines])
    return paths | {"study": tmp_path / "pilot"}


@pytest.fixture
def drawn(command, runs, files) -> Path:
    given = ("--raters", files["raters"], "--seed", 5, "--expert-answers", files["experts"])
    sound(command("assign", files["study"], *runs, *given))
    organiser = yaml.safe_dump(ORGANISER, allow_unicode=True)
    (files["study"] / "organiser.yaml").write_text(organiser, "utf-8")
    return files["study"]


def fill(path: Path, quality: dict[str, tuple[str, str | None]]) -> None:
    """Fill a form's workbook in: candidate → level and descriptor of accuracy."""
    book = load_workbook(path)
    start = book["Start"]
    for row in start.iter_rows(min_col=1, max_col=3):
        if row[2].value == "consent":
            row[1].value = "yes"
    sheet = book["Ratings"]
    heads = {cell.value: cell.column for cell in sheet[1] if cell.value}
    for number in range(3, sheet.max_row + 1):
        level, why = quality[sheet.cell(number, heads["candidate"]).value]
        sheet.cell(number, heads["accuracy.level"], level)
        if why:
            sheet.cell(number, heads[f"accuracy.{why}"], "x")
        sheet.cell(number, heads["clarity.level"], "清晰專業")
    book.save(path)


def test_the_chain_on_spreadsheets(command, runs, drawn, tmp_path):
    key = read_key(drawn)["candidates"]
    assert sound(command("forms", drawn, "--format", "xlsx")).endswith(f"{drawn / 'forms'}\n")
    names = {
        label: one["model"].removeprefix("org/") for label, one in read_key(drawn)["runs"].items()
    }
    right = {"good": ("Fully accurate", None), "half": ("輕微失準", None)}
    wrong = ("Serious fault", "misunderstanding")
    quality = {
        name: right.get(names.get(one["run"], "good" if one["kind"] == "expert" else ""), wrong)
        for name, one in key.items()
    }
    sent = []
    for path in sorted((drawn / "forms").glob("*.xlsx")):
        fill(path, quality)
        sent.append(Path(shutil.copy(path, tmp_path / path.name)))
    out = sound(command("import", drawn, *sent))
    asked = [c for s in read_study(drawn).assignment for c in s.candidates]
    assert f"{len(asked)} ratings, 0 unresolved, 0 rows not used" in out
    rows = [r for _, r in jsonl_rows((drawn / "ratings.jsonl").read_bytes(), "ratings")]
    scores = {"good": 1.0, "half": 0.9, "bad": 0.0}
    assert all(
        r["score"] == scores.get(names.get(key[r["candidate"]]["run"]), r["score"]) for r in rows
    )
    out = sound(command("report", drawn, *runs))
    assert (drawn / "report" / "report.html").is_file()
    assert "org/good" in out
    out = sound(command("withdraw", drawn, "a2"))
    assert "the report rested on them" in out
    assert not (drawn / "report").exists()
    left = [r for _, r in jsonl_rows((drawn / "ratings.jsonl").read_bytes(), "ratings")]
    assert left == [r for r in rows if r["rater"] != "a2"]
    assert not list((drawn / "forms").glob("a2-*"))
    # Others take over what a2 had.
    more = tmp_path / "more.csv"
    more.write_text(RATERS.replace("a2,", "a7,"), "utf-8")
    out = sound(command("assign", drawn, "--raters", more))
    assert "a7 (architect): " in out
    new = [s for s in read_study(drawn).assignment if s.rater == "a7"]
    assert len({s.item_id for s in new}) >= 5


def test_an_answer_that_a_model_did_not_give_is_shown_as_such(drawn):
    key = read_key(drawn)["candidates"]
    study = read_study(drawn)
    shown = {
        one.answer for name, one in study.answers.items()
        if str(key[name]["run"]).startswith("bad") and one.item_id == next(iter(study.questions))
    }  # fmt: skip
    assert shown == {"(No answer was given.)"}


def test_the_plan_needs_no_study(command, runs, files):
    out = sound(command("assign", files["study"], "--plan"))
    assert "architect: 70 questions, 140 question ratings, 14 batches of 10, about 21 hours" in out
    assert "fire engineer: 30 questions" in out
    out = sound(command("assign", files["study"], *runs, "--plan", "--raters", files["raters"]))
    assert "; enough" in out
    assert not files["study"].exists()


def test_a_third_rater_is_called(command, drawn, tmp_path, dataset):
    study = read_study(drawn)
    key = read_key(drawn)["candidates"]
    wanted = next(
        s for s in study.assignment
        if not s.repeat and not study.questions[s.item_id].engineering_related
    )  # fmt: skip
    name = next(c for c in wanted.candidates if key[c]["kind"] == "model")
    pair = sorted({s.rater for s in study.assignment if name in s.candidates})
    path = tmp_path / "ratings.csv"
    lines = [
        f"{r},{name},{a},Clear and professional"
        for r, a in zip(
            pair, ("Fully accurate", "Serious fault; Fundamentally misunderstood"), strict=True
        )
    ]
    path.write_text("\n".join(["rater,candidate,accuracy,clarity", *lines]), "utf-8")
    assert "2 ratings, 0 unresolved" in sound(command("import", drawn, path))
    out = sound(command("assign", drawn, "--third"))
    assert "1 questions call for a third rater" in out
    found = {s.rater for s in read_study(drawn).assignment if s.item_id == wanted.item_id}
    assert len(found) == 3
    assert {*pair} < found


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("assign {study} {run}", "needs --raters FILE and --seed N"),
        ("assign {study} {run} --raters {raters} --seed 1", "every batch holds an expert-written"),
        ("assign {study} {study}", "no such folder"),
        ("assign {study} {run} --raters {run} --seed 1 --no-expert-answers", "no such file"),
        ("assign {study} {run} {run} --plan", "given twice"),
        ("assign {study} {run} --raters {raters} --seed 1 --expert-answers {raters}",
         "needs the columns item_id and answer"),
        ("assign {study}", "holds no study"),
        ("assign {study} --raters {raters} --seed 1", "--seed is for a new study"),
        ("assign {study} {run} --third", "name no runs"),
        ("assign {study} {run} --plan --dataset {study}", "no dataset folder"),
        ("forms {study}", "holds no study"),
        ("forms", "name the study's folder"),
        ("forms --mcq", "--mcq needs --out"),
        ("import {study} {raters}", "holds no study"),
        ("report {study}", "holds no study"),
        ("judge {study} nobody", "no model nobody"),
        ("withdraw {study} a1", "holds no study"),
        ("withdraw {raters} a1", "holds no study"),
    ],
)  # fmt: skip
def test_mistakes_are_one_line(command, runs, files, args, message):
    names = files | {"run": runs[0]}
    words = [word.format(**names) for word in args.split()]
    status, out, complaint = command(*words)
    assert status == 2, out
    assert message in complaint.splitlines()[0]
    assert "Traceback" not in complaint
    assert not files["study"].exists()


def test_a_run_of_another_edition_is_refused(command, runs, files, tmp_path):
    other = Path(shutil.copytree(runs[0], tmp_path / "other"))
    held = json.loads((other / "run.json").read_text())
    held["protocol"]["dataset_sha256"] = "0" * 64
    (other / "run.json").write_text(json.dumps(held))
    status, _, complaint = command("assign", files["study"], other, "--plan")
    assert (status, "another edition" in complaint) == (2, True)


def test_forms_of_every_kind(command, drawn):
    made = sound(command("forms", drawn))
    stems = {f"{r}-{n}" for r, n in read_study(drawn).batches()}
    names = {f"{stem}.{kind}" for stem in stems for kind in forms.FORMATS}
    assert {p.name for p in (drawn / "forms").iterdir()} == names
    assert made.startswith(f"{len(names)} forms")
    for path in (drawn / "forms").glob("*.html"):
        text = path.read_text("utf-8")
        assert "org/good" not in text
        assert "known_bad" not in text


def test_files_may_stand_behind_options(command, runs, files):
    done = command("assign", files["study"], "--no-expert-answers", *runs, "--seed", 5, "--plan")
    assert "architect" in sound(done)
    args = ("--raters", files["raters"], "--seed", 5)
    said = sound(command("assign", *args, files["study"], "--no-expert-answers", *runs))
    assert "no expert-written control" in said
    assert "bad/some__model: 1 answers are empty" in said


def test_a_file_where_the_study_should_be(command, runs, files):
    args = ("--raters", files["raters"], "--seed", 5, "--no-expert-answers")
    status, _, complaint = command("assign", files["raters"], *runs, *args)
    assert status == 2
    assert "name another place" in complaint
