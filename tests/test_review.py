"""Reviews: sheets out and in, the log, decisions, figures before any discard."""

import json
import re

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hk_fs_bench import items, manifest, review, review_figures, review_rounds, review_sheets
from hk_fs_bench.errors import UserError

DAY = "2026-11-30"
TEAM = {"architect": 2, "fire_engineer": 1}
JUDGED = review.settings()["judged"]


@pytest.fixture
def folder(edition):
    manifest.write_manifest(edition, "0.9.0")
    return edition


@pytest.fixture
def round_(folder, tmp_path):
    """An open round over the whole small edition."""
    review_rounds.open_round(folder, tmp_path / "round-1", TEAM, DAY)
    return tmp_path / "round-1"


def fill(path, cells):
    """Write into a returned workbook as a reviewer does: {(item, column): value}, item "" for all.

    A callable value gets the item's id.
    """
    book = openpyxl.load_workbook(path)
    for sheet in book.worksheets[1:]:
        head = {cell.value: cell.column for cell in sheet[1]}
        for row in range(2, sheet.max_row + 1):
            name = sheet.cell(row, head["Item"]).value
            for (item, column), value in cells.items():
                if item in ("", name) and column in head:
                    sheet.cell(row, head[column]).value = value(name) if callable(value) else value
    book.save(path)


def answer_all(folder, round_, answer=None):
    keys = {
        i.id: getattr(i, "answer", "All the points.") for i in items.load(folder).by_id.values()
    }
    for path in round_.glob("*.blind.xlsx"):
        fill(path, {("", review_sheets.ANSWER): answer or keys.get})


def judged_sound():
    """Cells of a keys' sheet in which everything is found sound."""
    marks = {("", text): "no" if name == "distractor" else "yes" for name, text in JUDGED.items()}
    return marks | {
        ("", review_sheets.VERDICT): "accept",
        ("", review_sheets.ARGUMENT): "It sounds stricter.",
        ("", review_sheets.ESSENTIAL): "yes",
    }


def plan(round_):
    return json.loads((round_ / "assignment.json").read_text())["forms"]


def texts(path):
    book = openpyxl.load_workbook(path)
    cells = (cell for sheet in book for row in sheet.iter_rows() for cell in row)
    return "\n".join(str(cell.value) for cell in cells if cell.value is not None)


def test_two_reviewers_an_item_by_its_domain(folder, round_):
    forms = plan(round_)
    assert set(forms) == {"architect-1", "architect-2", "fire_engineer-1"}
    for item in items.load(folder).by_id.values():
        holders = [form for form, entry in forms.items() if item.id in entry["items"]]
        roles = sorted(forms[form]["role"] for form in holders)
        engineer = "fire_engineer" if item.engineering_related else "architect"
        assert roles == ["architect", engineer]
        assert sum(item.id in forms[form]["argue"] for form in holders) == 1
    sizes = [len(forms[f"architect-{n}"]["items"]) for n in (1, 2)]
    assert abs(sizes[0] - sizes[1]) <= 1


def test_blind_sheet_tells_nothing_and_can_be_filled(folder, round_):
    dataset = items.load(folder)
    seen = texts(round_ / "architect-1.blind.xlsx")
    for name in plan(round_)["architect-1"]["items"]:
        item = dataset.by_id[name]
        assert item.question in seen
        assert item.explanation not in seen
        assert getattr(item, "reference_answer", "no such text") not in seen
        for distractor in (getattr(item, "distractors", None) or {}).values():
            assert distractor.why not in seen
    book = openpyxl.load_workbook(round_ / "architect-1.blind.xlsx")
    assert book.sheetnames == ["Read me first", "Multiple choice", "Open-ended"]
    sheet = book["Multiple choice"]
    (rule,) = sheet.data_validations.dataValidation
    assert rule.formula1 == '"A,B,C,D,?"'
    letter = next(cell.column_letter for cell in sheet[1] if cell.value == review_sheets.ANSWER)
    assert str(rule.sqref).startswith(f"{letter}2:")
    assert sheet.protection.sheet
    assert not sheet[f"{letter}2"].protection.locked
    assert sheet["C2"].alignment.wrap_text


def test_round_trip(folder, round_):
    """Blind answers, keys, verdicts, log; a second import adds nothing."""
    answer_all(folder, round_)
    assert set(review_rounds.hand_out_keys(folder, round_)) == set(plan(round_))
    keys = texts(round_ / "architect-1.keys.xlsx")
    first = items.load(folder).by_id[next(iter(plan(round_)["architect-1"]["items"]))]
    assert first.explanation in keys
    for path in round_.glob("*.keys.xlsx"):
        fill(path, judged_sound())
    done = review_rounds.bring_in(folder, round_, DAY)
    count = len(items.load(folder).by_id)
    assert (done.new, done.known, done.waiting) == (2 * count, 0, [])
    again = review_rounds.bring_in(folder, round_, "2026-12-24")
    assert (again.new, again.known) == (0, 2 * count)
    log = review.read_reviews(folder / review.FILE)
    assert {r.kind for r in log} == {"expert"}
    assert {r.blind_correct for r in log} == {True}
    assert {r.form for r in log} == {f"{form}-{DAY}-round-1" for form in plan(round_)}
    dataset = items.load(folder)
    outcomes = {d.outcome for d in review.decide(dataset, log) if d.item in dataset.by_id}
    assert outcomes == {"keep"}
    with pytest.raises(UserError, match="every item has two reviews by experts"):
        review_rounds.open_round(folder, round_.parent / "round-2", TEAM, DAY)


def test_keys_only_after_the_blind_answers(folder, round_):
    assert review_rounds.hand_out_keys(folder, round_) == {}
    fill(round_ / "architect-1.blind.xlsx", {("", review_sheets.ANSWER): "b)"})
    name = next(iter(plan(round_)["architect-1"]["items"]))
    fill(round_ / "architect-1.blind.xlsx", {(name, review_sheets.ANSWER): None})
    with pytest.raises(UserError, match="1 sheets have unanswered questions") as caught:
        review_rounds.hand_out_keys(folder, round_)
    assert re.fullmatch(rf"architect-1: 1 of \d+ \({name}\)", caught.value.details[0])
    made = review_rounds.hand_out_keys(folder, round_, partial=True)
    assert made == {"architect-1": len(plan(round_)["architect-1"]["items"])}
    assert name not in plan(round_)["architect-1"]["items"]
    assert set(plan(round_)["architect-1"]["key"]) <= set(plan(round_)["architect-1"]["blind"])
    # The keys are out: what is written into the blind sheet now is not read any more.
    kept = plan(round_)["architect-1"]["blind"]
    fill(round_ / "architect-1.blind.xlsx", {("", review_sheets.ANSWER): "A"})
    review_rounds.hand_out_keys(folder, round_)
    assert plan(round_)["architect-1"]["blind"] == kept


def test_sheets_come_back_one_by_one(folder, round_):
    """An unfinished sheet holds up nobody else's, and can be finished later."""
    answer_all(folder, round_)
    name = next(iter(plan(round_)["architect-2"]["items"]))
    fill(round_ / "architect-2.blind.xlsx", {(name, review_sheets.ANSWER): None})
    with pytest.raises(UserError, match="1 sheets have unanswered questions"):
        review_rounds.hand_out_keys(folder, round_)
    assert {p.name for p in round_.glob("*.keys.xlsx")} == {
        "architect-1.keys.xlsx",
        "fire_engineer-1.keys.xlsx",
    }
    fill(round_ / "architect-1.keys.xlsx", judged_sound())
    early = review_rounds.bring_in(folder, round_, DAY)
    assert early.new == len(plan(round_)["architect-1"]["items"])
    fill(round_ / "architect-2.blind.xlsx", {(name, review_sheets.ANSWER): "?"})
    assert list(review_rounds.hand_out_keys(folder, round_)) == ["architect-2"]


def test_every_fault_of_a_blind_sheet_is_named(folder, round_):
    path = round_ / "architect-1.blind.xlsx"
    answer_all(folder, round_)
    names = [n for n in plan(round_)["architect-1"]["items"] if n.startswith("mcq")][:3]
    fill(path, {(names[0], review_sheets.ANSWER): "E", (names[1], review_sheets.ANSWER): "=A1"})
    fill(path, {(names[2], "Item"): "mcq-9999"})
    with pytest.raises(UserError, match="4 faults") as caught:
        review_rounds.hand_out_keys(folder, round_)
    listed = "\n".join(caught.value.details)
    assert re.search(r"row \d+, column Your answer: 'E' is none of A, B, C, D, \?", listed)
    assert re.search(r"row \d+, column Your answer: is a formula", listed)
    assert re.search(r"row \d+, column Item: 'mcq-9999' is no item of this form", listed)
    assert f"architect-1.blind.xlsx: rows of {names[2]} are missing" in listed


def test_an_address_in_a_blind_answer_is_found_before_the_keys(folder, round_):
    """Once the keys are out the answer is kept, and the round could never be brought in."""
    answer_all(folder, round_)
    form, name = next(
        (form, n) for form, entry in plan(round_).items() for n in entry["items"] if "oeq" in n
    )
    path = round_ / f"{form}.blind.xlsx"
    fill(path, {(name, review_sheets.ANSWER): "Ask me at a.chan@example.org"})
    with pytest.raises(UserError, match="1 faults") as caught:
        review_rounds.hand_out_keys(folder, round_)
    place = rf"{form}\.blind\.xlsx, sheet Open-ended, row \d+, column Your answer"
    assert re.search(rf"{place}: an e-mail address stands in it", caught.value.details[0])
    assert plan(round_)[form]["blind"] is None
    fill(path, {(name, review_sheets.ANSWER): "All the points."})
    assert form in review_rounds.hand_out_keys(folder, round_)


def judged(name):
    return JUDGED[name]


@pytest.mark.parametrize(
    ("cells", "fault"),
    [
        ({review_sheets.VERDICT: "maybe"}, "column Verdict: 'maybe' is none of accept"),
        ({review_sheets.VERDICT: "revise"}, "column Reason: is empty, revise needs a reason"),
        ({judged("key"): "no"}, "accepted, but faults are marked: key"),
        ({judged("distractor"): "yes"}, "accepted, but faults are marked: distractor"),
        ({judged("question"): None}, "is empty"),
        ({judged("references"): "perhaps"}, "'perhaps' is none of yes, no"),
        ({review_sheets.ARGUMENT: None}, "an argument is required here"),
    ],
)
def test_faults_of_a_keys_sheet(folder, round_, cells, fault):
    answer_all(folder, round_)
    review_rounds.hand_out_keys(folder, round_)
    for path in round_.glob("*.keys.xlsx"):
        fill(path, judged_sound())
    form = "fire_engineer-1"
    name = next(n for n in plan(round_)[form]["argue"] if n.startswith("mcq"))
    fill(round_ / f"{form}.keys.xlsx", {(name, column): v for column, v in cells.items()})
    with pytest.raises(UserError, match="1 faults") as caught:
        review_rounds.bring_in(folder, round_, DAY)
    assert re.search(rf"{form}\.keys\.xlsx, sheet .*, row \d+", caught.value.details[0])
    assert fault in caught.value.details[0]
    assert not (folder / review.FILE).exists()


def test_unfinished_sheets_wait(folder, round_):
    answer_all(folder, round_)
    review_rounds.hand_out_keys(folder, round_)
    fill(round_ / "architect-1.keys.xlsx", judged_sound())
    name = next(iter(plan(round_)["architect-1"]["items"]))
    fill(round_ / "architect-1.keys.xlsx", {(name, review_sheets.VERDICT): None})
    done = review_rounds.bring_in(folder, round_, DAY)
    assert done.new == len(plan(round_)["architect-1"]["items"]) - 1
    assert any(place.startswith("architect-1.keys.xlsx, sheet") for place in done.waiting)


def test_a_text_that_begins_like_a_formula_stays_a_text(folder, tmp_path):
    path = folder / "data/mcq/test.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    rows[0]["question"] = "=HYPERLINK is no formula here. Which?"
    manifest.write_edition(folder, {"mcq/test": rows})
    manifest.write_manifest(folder)
    review_rounds.open_round(folder, tmp_path / "r", TEAM, DAY)
    for path in (tmp_path / "r").glob("*.xlsx"):
        for sheet in openpyxl.load_workbook(path):
            assert all(cell.data_type != "f" for row in sheet.iter_rows() for cell in row)


@given(
    st.lists(st.tuples(st.sampled_from("ABCDEFG"), st.booleans()), min_size=1, max_size=120),
    st.integers(1, 150),
)
def test_sample_is_stratified(rows, size):
    rows = [
        {"id": str(n), "choices": [], "part": part, "engineering_related": engineering}
        for n, (part, engineering) in enumerate(rows)
    ]
    chosen = review_rounds.sample(rows, size)
    assert len(chosen) == min(size, len(rows))
    for part in "ABCDEFG":
        for engineering in (True, False):

            def of(found, stratum=(part, engineering)):
                return sum((r["part"], r["engineering_related"]) == stratum for r in found)

            assert abs(of(chosen) - min(size, len(rows)) * of(rows) / len(rows)) < 1 + 1e-9


def row(reviewed, **changes):
    """A review by an automated architect of the present text."""
    return {
        "item": reviewed.id,
        "item_sha256": items.item_sha256(reviewed),
        "role": "architect",
        "kind": "automated",
        "model_family": "Claude (Anthropic)",
        "blind_answer": reviewed.answer,
        "verdict": "accept",
        "date": DAY,
    } | changes


def write(path, rows):
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), "utf-8")
    return path


def test_jsonl_of_automated_reviewers(folder, tmp_path):
    first, second, third = items.load(folder).items("mcq")[:3]
    other = next(letter for letter in "ABCD" if letter != second.answer)
    gone = {"item": "draft-17", "item_sha256": "0" * 64}
    architect = write(
        tmp_path / "batch 1 architect.jsonl",
        [
            row(first),
            row(second, blind_answer=other),
            row(third, verdict="reject", reason="two keys", faults=["distractor"]),
            row(first, **gone, blind_correct=False, verdict="reject", reason="x", faults=["key"]),
        ],
    )
    engineer = write(
        tmp_path / "batch 1 engineer.jsonl",
        [
            row(first, role="fire_engineer"),
            row(second, role="fire_engineer"),
            row(third, role="fire_engineer"),
            row(first, role="fire_engineer", **gone, blind_correct=True),
        ],
    )
    done = review.import_reviews(folder, architect)
    assert (done.new, done.known, done.foreign) == (4, 0, ["draft-17"])
    review.import_reviews(folder, engineer)
    log = review.read_reviews(folder / review.FILE)
    assert [r.blind_correct for r in log[:3]] == [True, False, True]
    assert log[0].form == "batch-1-architect"
    decided = {d.item: d for d in review.decide(items.load(folder), log)}
    assert decided[first.id].outcome == "keep"
    assert decided[second.id].outcome == "keep"
    assert decided[second.id].why == [f"architect answered {other} blind"]
    assert decided[third.id].outcome == "discard"
    assert sum(d.outcome == "waiting" for d in decided.values()) == len(decided) - 3
    found = review_figures.figures(items.load(folder), log)["automated"]
    assert found["items"] == 4
    assert found["complete"] == 3
    assert found["kappa_verdict"]["n"] == 4
    # What is discarded or was never in the edition counts: two of the architect's four are wrong.
    assert found["blind_accuracy"]["architect"]["value"] == 2 / 4
    assert found["wrong_keys"]["found"] == 1
    assert found["wrong_keys"]["n"] == 4
    assert 0.75 < found["wrong_keys"]["upper95"] < 0.76


def test_a_changed_item_has_lost_its_reviews(folder, tmp_path):
    item = items.load(folder).items("mcq")[0]
    path = write(tmp_path / "a.jsonl", [row(item), row(item, form="b")])
    review.import_reviews(folder, path)
    log = review.read_reviews(folder / review.FILE)
    assert {d.item: d.outcome for d in review.decide(items.load(folder), log)}[item.id] == "keep"
    data = folder / "data/mcq/test.jsonl"
    text = data.read_text("utf-8").replace(item.explanation[:20], "Another text begins ", 1)
    data.write_text(text, "utf-8")
    manifest.write_manifest(folder)
    dataset = items.load(folder)
    assert {d.item: d.outcome for d in review.decide(dataset, log)}[item.id] == "waiting"
    found = review_figures.figures(dataset, log)["automated"]
    assert (found["items"], found["complete"]) == (1, 0)


def test_the_last_row_of_a_form_counts(folder, tmp_path):
    item = items.load(folder).items("mcq")[0]
    doubt = row(item, verdict="revise", reason="unclear", form="a")
    review.import_reviews(folder, write(tmp_path / "x.jsonl", [doubt, row(item, form="b")]))
    review.import_reviews(folder, write(tmp_path / "y.jsonl", [row(item, form="a")]))
    log = review.read_reviews(folder / review.FILE)
    assert len(log) == 3
    assert {d.item: d.outcome for d in review.decide(items.load(folder), log)}[item.id] == "keep"
    assert review.import_reviews(folder, write(tmp_path / "z.jsonl", [doubt])).new == 1
    log = review.read_reviews(folder / review.FILE)
    assert {d.item: d.outcome for d in review.decide(items.load(folder), log)}[item.id] == "revise"


def test_accepted_but_found_by_nobody_goes_back(folder, tmp_path):
    item = items.load(folder).items("mcq")[0]
    other = next(letter for letter in "ABCD" if letter != item.answer)
    rows = [row(item, blind_answer=other, form=form) for form in ("a", "b")]
    review.import_reviews(folder, write(tmp_path / "x.jsonl", rows))
    log = review.read_reviews(folder / review.FILE)
    assert {d.item: d.outcome for d in review.decide(items.load(folder), log)}[item.id] == "revise"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_family": None}, "`model_family` belongs to an automated review"),
        ({"kind": "expert"}, "`model_family` belongs to an automated review"),
        ({"verdict": "revise"}, "verdict revise without a reason"),
        ({"faults": ["key"]}, "accepted with faults: key"),
        ({"reason": "ask wong@example.com"}, "an e-mail address stands in it"),
        ({"name": "C. Wong"}, "field `name` is not one of the format"),
        ({"role": "surveyor"}, "field `role`"),
        ({"item_sha256": "abc"}, "field `item_sha256`"),
        ({"date": "30/11/2026"}, "field `date`"),
        ({"blind_correct": False}, "and key"),
    ],
)
def test_faulty_rows_are_refused_together(folder, tmp_path, changes, message):
    first, second = items.load(folder).items("mcq")[:2]
    path = write(tmp_path / "a.jsonl", [row(first), row(second, **changes)])
    with pytest.raises(UserError, match="1 faulty reviews, nothing was recorded") as caught:
        review.import_reviews(folder, path)
    assert caught.value.details[0].startswith("a.jsonl line 2: ")
    assert message in caught.value.details[0]
    assert not (folder / review.FILE).exists()


def test_too_few_reviewers(folder, tmp_path):
    with pytest.raises(UserError, match="items need 2 reviewers of the role architect"):
        review_rounds.open_round(folder, tmp_path / "r", {"architect": 1, "fire_engineer": 1}, DAY)
    with pytest.raises(UserError, match="need 1 reviewers of the role fire_engineer"):
        review_rounds.open_round(folder, tmp_path / "r", {"architect": 2}, DAY)
    with pytest.raises(UserError, match="holds no round"):
        review_rounds.bring_in(folder, tmp_path, DAY)
    with pytest.raises(UserError, match="no such file"):
        review_rounds.bring_in(folder, tmp_path / "nowhere", DAY)
