"""Survey exports as they really come, and cells of several options: family D of the field's cases.

HK_FS_CASES may name the folder of D_ratings_statistics.jsonl; tests/test_stats_agreement.py takes
its cases of statistics, this module all others. The cases' neutral labels stand for ours.
"""

import json
import os
from pathlib import Path

import pytest

from hk_fs_bench.human import ratings, returns, rubric
from hk_fs_bench.human.importing import read_file
from hk_fs_bench.human.options import matched
from hk_fs_bench.human.results import rater_of
from hk_fs_bench.human.study import Answer, Question, Rater, Screen, Study, write_study
from hk_fs_bench.human.survey_sheets import read_sheet
from hk_fs_bench.runs import write_json

HERE = Path(__file__).resolve().parent
FIELD = Path(os.environ.get("HK_FS_CASES") or HERE.parents[1] / "shared" / "cases")
TABLES = [HERE / "data" / "survey_cases.jsonl", FIELD / "D_ratings_statistics.jsonl"]
CASES = [
    case
    for path in TABLES
    if path.is_file()
    for case in map(json.loads, path.read_text("utf-8").splitlines())
    if not {"ratings", "x"} & set(case["input"])
]
OURS = {"Fully right": "Fully accurate", "Minor slip": "Small inaccuracy"}
OURS |= {"Major fault": "Serious fault", "Clear": "Clear and professional"}


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """Two questions of one candidate each, both rated by r1 and r2."""
    team = {name: Rater(name, "architect", 9) for name in ("r1", "r2")}
    names = ("q1", "q2")
    held = Study(
        tmp_path / "study",
        {"format": 1, "name": "study", "seed": 1, "rubric": {"version": "1"}, "settled": {}}
        | {"withdrawn": [], "dataset": {"version": "1", "sha256": "0" * 64}},
        team,
        {n: Question(n, "?", [], ["A point."], "Yes.", False) for n in names},
        {f"{n}-c": Answer(f"{n}-c", n, "Yes.") for n in names},
        [Screen(r, 1, p, n, [f"{n}-c"]) for r in team for p, n in enumerate(names, 1)],
    )
    write_study(held)
    origin = {"kind": "model", "run": "m", "repeat_of": None, "taken_from": None}
    key = {f"{n}-c": {"item_id": n, **origin} for n in names}
    write_json(held.folder / "key.json", {"runs": {"m": {}}, "candidates": key})
    return held


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_case(case, study, tmp_path):
    given, expected = case["input"], dict(case["expected"])
    if "cell" in given:
        found, strange = matched(given["cell"], {name: name for name in given["labels"]})
        assert found == expected.pop("selected")
        assert not strange
        if "score" in expected:
            assert min(given["labels"][name] for name in found) == expected.pop("score")
    elif "long" in given:
        names = {rubric.fold(name) for _, name, _ in given["long"]}
        assert len(names) == expected.pop("raters")
        study.raters = {name: Rater(name, "architect", 9) for _, name, _ in given["long"][-2:]}
        assert {rater_of(study, name) for _, name, _ in given["long"]} == set(study.raters)
    else:
        text = given["csv"]
        if "answers_in_order" in expected:
            path = tmp_path / "export.csv"
            path.write_text(text, "utf-8")
            ((_, cells),) = read_sheet(path).rows
            assert cells[2:] == expected.pop("answers_in_order")
        for theirs, ours in OURS.items():
            text = text.replace(theirs, ours)
        check_export(text, expected, study, tmp_path)
    assert not expected, f"no mapping of {expected}"


def check_export(text, expected, study, tmp_path):
    path = tmp_path / "export.csv"
    path.write_text(text, "utf-8")
    if "rows_used" not in expected:
        return
    returns.store(study.folder, read_file(path, study))
    found = ratings.rebuild(study.folder)
    assert len(found.ratings) == expected.pop("rows_used"), found.lines()
    if "timestamp" in expected:
        assert found.ratings[0]["rated_at"] == expected.pop("timestamp")
    if "unused" in expected:
        assert len(found.unused) == expected.pop("unused")
    if "conflicts" in expected:
        conflicts = {(r["rater"], r["candidate"]) for r in found.unresolved}
        assert len(conflicts) == expected.pop("conflicts")
