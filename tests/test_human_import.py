"""Returned forms into ratings: every form, every slip, conflicts, e-mail, comments, withdrawal."""

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hk_fs_bench.errors import UserError
from hk_fs_bench.human import assign, ratings, returns, rubric
from hk_fs_bench.human.importing import bring_in, read_file
from hk_fs_bench.human.study import Rater, Study, read_key, read_study
from hk_fs_bench.human.survey_sheets import agrees
from hk_fs_bench.human.timestamps import read_time
from hk_fs_bench.human.withdrawal import withdraw
from hk_fs_bench.items import Dataset, jsonl_rows
from tests import human_study
from tests.human_study import TEAM, part_of

SHEET = rubric.load()


@pytest.fixture(scope="module")
def drawn(dataset: Dataset, tmp_path_factory) -> Path:
    """A study of twelve questions and two raters a role."""
    places = [n for n, i in enumerate(dataset.items("oeq")) if not i.engineering_related][:8]
    places += [n for n, i in enumerate(dataset.items("oeq")) if i.engineering_related][:4]
    team = [TEAM[0], TEAM[1], TEAM[4], TEAM[5]]
    folder = tmp_path_factory.mktemp("drawn") / "pilot"
    return human_study.draw(folder, part_of(dataset, *places), team=team).folder


@pytest.fixture
def study(drawn: Path, tmp_path: Path) -> Study:
    return read_study(Path(shutil.copytree(drawn, tmp_path / "pilot")))


def rows(folder: Path, name: str) -> list[dict]:
    return [row for _, row in jsonl_rows((folder / name).read_bytes(), name)]


def screens(study: Study, rater="a1", batch=1):
    return study.batches()[rater, batch]


def candidates(study: Study, rater="a1", batch=1) -> list[str]:
    return [c for s in screens(study, rater, batch) for c in s.candidates]


def choice(level="full", *why: str) -> dict:
    return {"level": level, "descriptors": list(why)}


def result(study: Study, rater="a1", batch=1, **changes) -> dict:
    """What the HTML form gives back, all answers rated as right and clear."""
    whole = {
        "format": "hk-fs-human-result",
        "version": 1,
        "study": study.name,
        "rubric": SHEET.version,
        "rater": rater,
        "batch": batch,
        "form": "html",
        "language": "en",
        "consent": {"given": True, "at": "2026-11-30T04:00:00Z", "statement": "1"},
        "saved_at": "2026-11-30T05:31:00Z",
        "complete": True,
        "questions": [
            {
                "position": s.position,
                "item_id": s.item_id,
                "seconds": 312.5,
                "ratings": [
                    {
                        "candidate": c,
                        "accuracy": choice(),
                        "clarity": choice(),
                        "missed_essential": [],
                        "comment": None,
                        "rated_at": "2026-11-30T04:07:10Z",
                    }
                    for c in s.candidates
                ],
            }
            for s in screens(study, rater, batch)
        ],
    }
    return whole | changes


def written(folder: Path, name: str, content: object) -> Path:
    path = folder / name
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, "utf-8")
    return path


def test_a_whole_form(study, tmp_path):
    lines = bring_in(study.folder, [written(tmp_path, "a1-1.json", result(study))])
    asked = candidates(study)
    assert lines[-1] == f"{len(asked)} ratings, 0 unresolved, 0 rows not used"
    found = rows(study.folder, "ratings.jsonl")
    assert sorted(r["candidate"] for r in found) == sorted(asked)
    first = found[0]
    assert list(first) == [
        "rater", "role", "kind", "batch", "position", "item_id", "candidate", "level",
        "descriptors", "score", "capped", "clarity_level", "clarity_descriptors", "clarity_score",
        "missed_essential", "comment", "repeat", "form", "rated_at", "seconds", "source",
    ]  # fmt: skip
    assert (first["role"], first["kind"], first["form"]) == ("architect", "expert", "html")
    assert (first["score"], first["seconds"]) == (1.0, 312.5)
    assert first["source"] == "a1-1.json, question 1"
    assert sum(r["repeat"] for r in found) == 1
    joined = ratings.read_ratings(study.folder)
    assert {r["answer_kind"] for r in joined} == {"model", "expert", "known_bad"}
    assert {r["run"] for r in joined} == {"run0", "run1", "run2", None}


def one_rating(study: Study, **changes) -> dict:
    """A result in which only the first answer's rating differs."""
    whole = result(study)
    whole["questions"][0]["ratings"][0] |= changes
    return whole


def of(study: Study, name: str) -> list[dict]:
    mine = candidates(study)[0]
    return [r for r in rows(study.folder, name) if r["candidate"] == mine]


@pytest.mark.parametrize(
    ("changes", "score", "reason"),
    [
        ({"accuracy": choice("major", "omission", "fabrication")}, 0.3, None),
        ({"accuracy": choice("minor")}, 0.9, None),
        ({"accuracy": {"level": None, "descriptors": ["misunderstanding"]}}, 0.0, None),
        ({"missed_essential": [1]}, 0.6, None),
        ({"missed_essential": [1], "accuracy": choice("major", "irrelevant_clause")}, 0.6, None),
        ({"missed_essential": [2, 1], "accuracy": choice("major", "fabrication")}, 0.3, None),
        ({"accuracy": choice("major")}, None, "level major without a descriptor"),
        ({"accuracy": choice("full", "omission")}, None, "level full contradicts omission"),
        ({"accuracy": None}, None, "accuracy: nothing chosen"),
        ({"clarity": choice("minor", "terminology")}, None, "level minor contradicts"),
        ({"clarity": None, "accuracy": None}, None, "left blank"),
        ({"accuracy": choice("splendid")}, None, "no level splendid"),
        ({"accuracy": choice("major", "odd")}, None, "no descriptor odd"),
        ({"accuracy": "full"}, None, "accuracy is full"),
        ({"accuracy": choice("major", {})}, None, "no descriptor"),
        ({"missed_essential": [9]}, None, "essential points [9]"),
        ({"missed_essential": ["1"]}, None, "no list of numbers"),
        ({"candidate": 7}, None, "a rating without a candidate"),
        ({"candidate": "zzz"}, None, "the study has no candidate 'zzz'"),
    ],
)  # fmt: skip
def test_what_a_rating_is_worth(study, tmp_path, changes, score, reason):
    bring_in(study.folder, [written(tmp_path, "a.json", one_rating(study, **changes))])
    if score is not None:
        (row,) = of(study, "ratings.jsonl")
        assert row["score"] == score
        assert row["capped"] == (score == 0.6)
        assert not rows(study.folder, "unresolved.jsonl")
        return
    assert not of(study, "ratings.jsonl")
    listed = rows(study.folder, "unresolved.jsonl") + rows(study.folder, "unused.jsonl")
    assert len(listed) == 1
    assert reason in listed[0]["reason"]


def test_the_rest_of_a_form_counts_where_one_rating_is_odd(study, tmp_path):
    bring_in(study.folder, [written(tmp_path, "a.json", one_rating(study, accuracy=7))])
    assert len(rows(study.folder, "ratings.jsonl")) == len(candidates(study)) - 1


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"rater": "stranger"}, "the study has no rater 'stranger'"),
        ({"rater": "a2"}, "not assigned to this rater"),
        ({"consent": {"given": False}}, "no consent was given"),
        ({"consent": None}, "no consent was given"),
    ],
)
def test_forms_that_do_not_count(study, tmp_path, changes, reason):
    if changes.get("rater") == "a2":
        changes = changes | {"questions": result(study, "e1")["questions"]}
    bring_in(study.folder, [written(tmp_path, "a.json", result(study) | changes)])
    assert not rows(study.folder, "ratings.jsonl")
    found = rows(study.folder, "unused.jsonl")
    assert found
    assert all(reason in row["reason"] for row in found)


def test_nothing_is_kept_without_consent(study, tmp_path):
    refused = result(study, consent={"given": False})
    bring_in(study.folder, [written(tmp_path, "a.json", refused)])
    (stored,) = returns.read_all(study.folder)
    assert not stored.ratings


def test_ids_are_matched_whatever_their_case(study, tmp_path):
    bring_in(study.folder, [written(tmp_path, "a.json", result(study) | {"rater": " A1"})])
    assert {r["rater"] for r in rows(study.folder, "ratings.jsonl")} == {"a1"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", "is no JSON"),
        ("a.json", "[" * 100_000, "is no JSON"),
        ("a.json", "[]", "no result of a rating form"),
        ("a.json", {"format": "hk-fs-human-result", "version": 9}, "version 9"),
        ("a.json", {"study": "other"}, "of the study 'other'"),
        ("a.json", {"rubric": "0"}, "rated by rubric 0"),
        ("a.json", {"questions": None}, "no list of questions"),
        ("a.xlsx", "no zip", "can't be read as XLSX"),
        ("a.csv", "", "is empty"),
        ("a.csv", "a,b\n1,2\n", "no column is a rating"),
        ("a.csv", "a\0b", "NUL bytes"),
        ("a.pdf", "x", "no returned form"),
        ("folder.json", None, "folder without files"),
        ("folder.csv", None, "folder without files"),
        ("folder.xlsx", None, "folder without files"),
    ],
)
def test_files_that_are_no_form(study, tmp_path, name, content, message):
    if isinstance(content, dict):
        content = result(study) | content
    path = tmp_path / name
    good = written(tmp_path, "good.json", result(study))
    if content is None:
        path.mkdir()
    else:
        written(tmp_path, name, content)
    with pytest.raises(UserError, match=message):
        bring_in(study.folder, [good, path])
    # All files or none.
    assert not (study.folder / "returns").exists()
    assert not (study.folder / "ratings.jsonl").exists()


def test_half_a_character_in_a_comment(study, tmp_path):
    bring_in(study.folder, [written(tmp_path, "a.json", one_rating(study, comment="odd \ud83d"))])
    (row,) = of(study, "ratings.jsonl")
    assert row["comment"].startswith("odd ")
    bring_in(study.folder, [])


def test_a_result_that_was_pasted(study, tmp_path):
    bring_in(study.folder, [written(tmp_path, "mail.txt", "\ufeff\n" + json.dumps(result(study)))])
    assert len(rows(study.folder, "ratings.jsonl")) == len(candidates(study))


# ---- Conflicts


def twice(study, tmp_path, *changes):
    paths = []
    for n, change in enumerate(changes):
        at = {"rated_at": f"2026-11-30T0{n + 4}:00:00Z"}
        paths.append(written(tmp_path, f"{n}.json", one_rating(study, **at, **change)))
    return paths


def test_a_conflict_is_shown_and_not_resolved(study, tmp_path):
    paths = twice(study, tmp_path, {}, {"accuracy": choice("minor")})
    lines = bring_in(study.folder, paths)
    assert not of(study, "ratings.jsonl")
    waiting = of(study, "unresolved.jsonl")
    assert [row["score"] for row in waiting] == [1.0, 0.9]
    assert all("conflict: 2 different ratings" in row["reason"] for row in waiting)
    assert sum("conflict" in line for line in lines) == 2
    # All others agree, count once, and their copies are listed.
    assert len(rows(study.folder, "ratings.jsonl")) == len(candidates(study)) - 1
    assert len(rows(study.folder, "unused.jsonl")) == len(candidates(study)) - 1


@pytest.mark.parametrize(("which", "score"), [("last", 0.9), ("first", 1.0)])
def test_the_organiser_settles_it(study, tmp_path, which, score):
    paths = twice(study, tmp_path, {}, {"accuracy": choice("minor")})
    bring_in(study.folder, list(reversed(paths)))
    lines = bring_in(study.folder, [], settle=[f"a1={which}"])
    (row,) = of(study, "ratings.jsonl")
    assert row["score"] == score
    assert any(f"another rating of this answer counts ({which})" in line for line in lines)
    assert read_study(study.folder).settings["settled"] == {"a1": which}


def test_without_times_nothing_can_be_settled(study, tmp_path):
    paths = twice(study, tmp_path, {}, {"accuracy": choice("minor")})
    for path in paths:
        held = json.loads(path.read_text())
        held["saved_at"] = held["questions"][0]["ratings"][0]["rated_at"] = None
        path.write_text(json.dumps(held))
    bring_in(study.folder, paths, settle=["a1=last"])
    assert "last does not tell which" in of(study, "unresolved.jsonl")[0]["reason"]
    bring_in(study.folder, [], settle=["a1=1.json"])
    (row,) = of(study, "ratings.jsonl")
    assert row["score"] == 0.9


def test_a_fuller_state_of_the_same_form_is_no_conflict(study, tmp_path):
    paths = twice(study, tmp_path, {"clarity": None}, {"missed_essential": [1]})
    bring_in(study.folder, paths)
    (row,) = of(study, "ratings.jsonl")
    assert (row["score"], row["missed_essential"]) == (0.6, [1])
    assert any("an unfinished state" in r["reason"] for r in of(study, "unused.jsonl"))


def test_the_same_file_again_changes_nothing(study, tmp_path):
    path = written(tmp_path, "a.json", result(study))
    bring_in(study.folder, [path])
    before = (study.folder / "ratings.jsonl").read_bytes()
    assert "brought in before" in bring_in(study.folder, [path])[0]
    assert (study.folder / "ratings.jsonl").read_bytes() == before
    assert not rows(study.folder, "unused.jsonl")


@pytest.mark.parametrize("wish", ["a1", "a1=never", "a1=", "a9=last", "=last"])
def test_what_settles_nothing(study, wish):
    with pytest.raises(UserError, match="give RATER=last"):
        bring_in(study.folder, [], settle=[wish])


def test_superseded_forms_still_count(study, tmp_path):
    old = written(tmp_path, "a.json", result(study))
    expected = len(candidates(study))
    assign.extend_study(study.folder, [*study.raters.values(), Rater("a9", "architect", 40)], {})
    bring_in(study.folder, [old])
    assert len(rows(study.folder, "ratings.jsonl")) == expected
    assert ratings.rated_batches(study.folder)["a1", 1] == set(candidates(study))


# ---- The three forms say the same


Levels = st.sampled_from(["full", "minor", "major", None])
Names = {d: sorted(held.descriptors) for d, held in SHEET.dimensions.items()}


@st.composite
def judgements(draw) -> dict:
    """A rating in any state that a form can be left in."""
    out = {}
    for name in ("accuracy", "clarity"):
        level = draw(Levels)
        why = draw(st.lists(st.sampled_from(Names[name]), unique=True)) if level != "full" else []
        out[name] = choice(level, *sorted(why))
    out["missed_essential"] = draw(st.lists(st.integers(1, 2), unique=True).map(sorted))
    text = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs")), max_size=20)
    out["comment"] = draw(st.none() | text)
    return out


def as_json(study: Study, rated: list[dict], folder: Path, language: str) -> Path:
    whole = result(study, language=language)
    places = [one for question in whole["questions"] for one in question["ratings"]]
    for place, one in zip(places, rated, strict=True):
        place |= one
    return written(folder, "a.json", whole)


def as_xlsx(study: Study, rated: list[dict], folder: Path, language: str) -> Path:
    from openpyxl import Workbook

    book = Workbook()
    start = book.active
    start.title = "Start"
    start.append(["Read this first"])
    for name, value in (
        ("study", study.name), ("rubric", SHEET.version), ("rater", "a1"), ("batch", 1),
        ("consent", "Yes"),
    ):  # fmt: skip
        start.append([f"The {name}", value, name])
    sheet = book.create_sheet("Ratings")
    marks = [f"missed.{n}" for n in (1, 2)]
    marks += [f"{d}.{name}" for d in Names for name in Names[d]]
    heads = ["position", "item_id", "candidate", "", *marks]
    heads += ["accuracy.level", "clarity.level", "comment"]
    sheet.append(heads)
    sheet.append([f"heading {n}" for n in range(len(heads))])
    for name, one in zip(candidates(study), rated, strict=True):
        on = [f"missed.{n}" for n in one["missed_essential"]]
        on += [f"{d}.{why}" for d in Names for why in one[d]["descriptors"]]
        row = ["1", "?", name, "text", *("x" if m in on else None for m in marks)]
        for d in Names:
            level = SHEET.dimensions[d].levels.get(one[d]["level"])
            row.append(level.label[language] if level else None)
        sheet.append([*row, None])
        if one["comment"]:
            cell = sheet.cell(sheet.max_row, len(heads), one["comment"])
            cell.data_type = "s"
    path = folder / "a.xlsx"
    book.save(path)
    return path


def as_google(study: Study, rated: list[dict], folder: Path, language: str) -> Path:
    titles = ["Timestamp", "Email Address", "Do you agree? [consent]", "Your id [rater]"]
    titles += ["Batch [batch]"]
    cells = ["2026/11/03 3:05:09 PM GMT+8", "a@example.org", "I agree", "a1", "1"]
    for name, one in zip(candidates(study), rated, strict=True):
        points = study.questions[study.answers[name].item_id].essential_points
        titles.append(f"Missed? [{name} missed]")
        cells.append(", ".join(f"{n}. {points[n - 1]}" for n in one["missed_essential"]))
        for d, held in SHEET.dimensions.items():
            titles += [f"Step 1 [{name} {d}]", f"Step 2 [{name} {d}-why]"]
            level = held.levels.get(one[d]["level"])
            cells.append(text(level, language) if level else "")
            why = [text(held.descriptors[w], language) for w in one[d]["descriptors"]]
            cells.append(", ".join(why))
        titles.append(f"Comment [{name} comment]")
        cells.append(one["comment"] or "")
    out = io.StringIO()
    csv.writer(out).writerows([titles, cells])
    return written(folder, "a.csv", out.getvalue())


def text(one: rubric.Choice, language: str) -> str:
    return f"{one.label[language]}: {one.about[language]}"


@given(st.data())
@settings(
    deadline=None,
    max_examples=12,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_every_form_says_the_same(drawn, tmp_path_factory, data):
    study = read_study(drawn)
    folder = tmp_path_factory.mktemp("forms")
    language = data.draw(st.sampled_from(rubric.LANGUAGES))
    rated = [data.draw(judgements()) for _ in candidates(study)]
    found = []
    for write in (as_json, as_xlsx, as_google):
        path = write(study, rated, folder, language)
        found.append(read_file(path, study))
    for name, one, *same in zip(candidates(study), rated, *(f.ratings for f in found), strict=True):
        for held in same:
            assert (held.rater, held.batch, held.candidate) == ("a1", 1, name)
            assert not held.faults
            assert list(held.missed_essential) == one["missed_essential"]
            for d in ("accuracy", "clarity"):
                assert getattr(held, d).level == one[d]["level"]
                assert sorted(getattr(held, d).descriptors) == one[d]["descriptors"]
        comments = {held.comment for held in same}
        assert comments == {(one["comment"] or "").strip() or None}


# ---- Survey exports


def google(study, folder, *changes: dict, name="responses.csv", drop=()) -> Path:
    """An export of submissions in which every answer is right and clear; keys of `changes` are
    titles."""
    rows_ = []
    for change in changes:
        row = {"Timestamp": "2026/11/03 3:05:09 PM GMT+8", "Email Address": "chan@example.org"}
        row |= {"Consent [consent]": "I agree."}
        for candidate in candidates(study):
            row[f"A [{candidate} accuracy]"] = (
                SHEET.dimensions["accuracy"].levels["full"].label["en"]
            )
            row[f"C [{candidate} clarity]"] = SHEET.dimensions["clarity"].levels["full"].label["en"]
        rows_.append({k: v for k, v in (row | change).items() if k not in drop})
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(list(rows_[0]))
    writer.writerows(list(row.values()) for row in rows_)
    return written(folder, name, out.getvalue())


@pytest.fixture
def emails(tmp_path) -> Path:
    return written(tmp_path, "emails.csv", "E-mail,Rater\nCHAN@example.org,A1\n")


def test_addresses_become_ids_and_go(study, tmp_path, emails):
    comment = f"Comment [{candidates(study)[0]} comment]"
    path = google(study, tmp_path, {comment: "Write to chan@example.org, please"})
    bring_in(study.folder, [path], emails=emails)
    assert {r["rater"] for r in rows(study.folder, "ratings.jsonl")} == {"a1"}
    (row,) = of(study, "ratings.jsonl")
    assert row["comment"] == "Write to [e-mail removed], please"
    everything = b"".join(p.read_bytes() for p in study.folder.rglob("*") if p.is_file())
    assert b"example.org" not in everything


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"Email Address": "wong@example.org"}, "its e-mail address is not in the file"),
        ({"Email Address": ""}, "neither a rater id nor an e-mail address"),
        ({"Consent [consent]": ""}, "no consent was given"),
        ({"Consent [consent]": "I do not agree."}, "no consent was given"),
        ({"Consent [consent]": "我不同意。"}, "no consent was given"),
        ({"Consent [consent]": "Disagree"}, "no consent was given, but 'Disagree'"),
    ],
)
def test_submissions_that_do_not_count(study, tmp_path, emails, change, reason):
    path = google(study, tmp_path, {}, change)
    lines = bring_in(study.folder, [path], emails=emails)
    assert len(rows(study.folder, "ratings.jsonl")) == len(candidates(study))
    (row,) = rows(study.folder, "unused.jsonl")
    assert row["source"] == "responses.csv, row 3"
    assert reason in row["reason"]
    assert "example.org" not in "\n".join(lines)


@pytest.mark.parametrize(
    ("cell", "given"),
    [
        *(
            (text, True)
            for text in ("Yes", "TRUE", "I agree", "本人同意", "我已閱讀，並同意參與。", "x")
        ),
        *(
            (text, False)
            for text in ("Disagree", "本人不同意", "未同意", "I don’t agree", "No", "0")
        ),
        *((text, False) for text in ("", "N/A", "Maybe yes", "later", "I refuse to consent", "-")),
    ],
)
def test_consent_is_what_says_so(cell, given):
    assert agrees(cell) is given


@pytest.mark.parametrize(
    ("titles", "said", "counts"),
    [
        (("Do you consent to take part?",), ("No",), False),
        (("Consent", "Consent"), ("", "yes"), True),
        (("Consent", "Consent"), ("no", "yes"), False),
    ],
)
def test_consent_in_forms_made_by_hand(study, tmp_path, titles, said, counts):
    candidate = candidates(study)[0]
    head = ",".join((*titles, "Rater", "Candidate", "Accuracy", "Clarity"))
    row = ",".join((*said, "a1", candidate, "Fully accurate", "Clear and professional"))
    bring_in(study.folder, [written(tmp_path, "hand.csv", f"{head}\n{row}\n")])
    assert len(of(study, "ratings.jsonl")) == counts


def test_without_the_file_of_addresses(study, tmp_path):
    bring_in(study.folder, [google(study, tmp_path, {})])
    (row,) = rows(study.folder, "unused.jsonl")
    assert "give --emails FILE" in row["reason"]


def test_addresses_are_kept_elsewhere(study, tmp_path):
    inside = written(study.folder, "emails.csv", "email,rater\na@b.hk,a1\n")
    with pytest.raises(UserError, match="inside the study folder"):
        bring_in(study.folder, [], emails=inside)
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    inside = written(tmp_path / "repository", "emails.csv", "email,rater\na@b.hk,a1\n")
    with pytest.raises(UserError, match="inside a repository"):
        bring_in(study.folder, [], emails=inside)
    doubled = written(tmp_path, "emails.csv", "email,rater\na@b.hk,a1\nA@B.hk,a2\n")
    with pytest.raises(UserError, match="stands beside two raters"):
        bring_in(study.folder, [], emails=doubled)


def test_an_edited_submission_in_a_later_export(study, tmp_path, emails):
    """Google rewrites the row and its time: the first export and the second disagree."""
    title = f"A [{candidates(study)[0]} accuracy]"
    first = google(study, tmp_path, {}, name="monday.csv")
    change = {"Timestamp": "2026/11/04 9:00:00 AM GMT+8", title: "Small inaccuracy"}
    second = google(study, tmp_path, change, name="tuesday.csv")
    bring_in(study.folder, [first], emails=emails)
    bring_in(study.folder, [second], emails=emails)
    waiting = rows(study.folder, "unresolved.jsonl")
    assert {(r["candidate"], r["score"]) for r in waiting} == {
        (candidates(study)[0], 1.0),
        (candidates(study)[0], 0.9),
    }
    bring_in(study.folder, [], settle=["a1=last"])
    (row,) = of(study, "ratings.jsonl")
    assert (row["score"], row["source"]) == (0.9, "tuesday.csv, row 2")


def test_a_question_that_was_made_twice(study, tmp_path, emails):
    """Deleted and made again, a question has two columns of one title."""
    mine = candidates(study)[0]
    out = google(study, tmp_path, {}).read_text().splitlines()
    old = written(tmp_path, "old.csv", "\n".join([f"{out[0]},X [{mine} accuracy]", f"{out[1]},"]))
    bring_in(study.folder, [old], emails=emails)
    assert of(study, "ratings.jsonl")
    both = f"{out[1]},Small inaccuracy"
    two = written(tmp_path, "two.csv", "\n".join([f"{out[0]},X [{mine} accuracy]", both]))
    shutil.rmtree(study.folder / "returns")
    bring_in(study.folder, [two], emails=emails)
    (row,) = of(study, "unresolved.jsonl")
    assert "two columns for accuracy differ" in row["reason"]


def test_titles_without_tags_follow_the_order_of_the_batch(study, tmp_path):
    """A form made by hand after the paper's: one title for every candidate."""
    asked = candidates(study)
    titles = ["Timestamp", "Rater", *["Which options best describe it? *"] * (2 * len(asked))]
    accuracy = [
        "Fully accurate: no factual errors, at all",
        "Hallucination or fabricated content: it, too, is wrong, Omission of critical information",
        "minor factual inaccuracy",
    ]
    cells = ["2026/11/03", "a1"]
    for n in range(len(asked)):
        cells += [accuracy[n % 3], "Clear and professional: fluent, well-structured"]
    out = io.StringIO()
    csv.writer(out).writerows([titles, cells])
    bring_in(study.folder, [written(tmp_path, "hand.csv", out.getvalue())])
    scores = {r["candidate"]: r["score"] for r in rows(study.folder, "ratings.jsonl")}
    assert [scores[name] for name in asked] == [[1.0, 0.3, 0.9][n % 3] for n in range(len(asked))]
    short = io.StringIO()
    csv.writer(short).writerows([titles[:-2], cells[:-2]])
    shutil.rmtree(study.folder / "returns")
    bring_in(study.folder, [written(tmp_path, "short.csv", short.getvalue())])
    (row,) = rows(study.folder, "unused.jsonl")
    assert "fit 0 of the rater's batches" in row["reason"]


@pytest.mark.parametrize(
    ("stamp", "time"),
    [
        ("2026/11/03 3:05:09 PM GMT+8", "2026-11-03T15:05:09+08:00"),
        ("2026/11/03 下午 12:05:09 [GMT+8]", "2026-11-03T12:05:09+08:00"),
        ("2026/11/03 上午12:05:09", "2026-11-03T00:05:09"),
        ("2026年11月3日 15:05:09", "2026-11-03T15:05:09"),
        ("03.11.2026 15:05:09", "2026-11-03T15:05:09"),
        ("11/13/2026 15:05:09", "2026-11-13T15:05:09"),
        ("13/11/2026 15:05", "2026-11-13T15:05:00"),
        ("11/11/2026 15:05:09", "2026-11-11T15:05:09"),
        ("2026-11-03T07:05:09Z", "2026-11-03T07:05:09+00:00"),
        ("2026-11-03", "2026-11-03"),
        ("3/11/2026 15:05:09", None),
        ("2026/13/45 99:99:99", None),
        ("2026/11/03 13:05:09 PM", None),
        ("Dienstag, 3. November 2026 um 15:05:09", None),
        ("Tuesday", None),
        ("", None),
        (None, None),
    ],
)
def test_time_stamps(stamp, time):
    assert read_time(stamp) == time


# ---- What is published, and who withdraws


def test_published_ratings_name_nobody(study, tmp_path):
    first = one_rating(study, comment="=1+1 is no formula")
    bring_in(study.folder, [
        written(tmp_path, "a.json", first), written(tmp_path, "e.json", result(study, "e1"))
    ])  # fmt: skip
    public = rows(study.folder, "published/ratings.jsonl")
    assert {r["rater"] for r in public} == {"R1", "R2"}
    assert {r["role"] for r in public} == {None}
    assert {r["comment"] for r in public} == {None}
    assert not {"source", "rated_at"} & set(public[0])
    assert {r["run"] for r in public} == {"run0", "run1", "run2", None}
    sheet = study.folder / "comments.csv"
    assert "a1" in sheet.read_text("utf-8")
    assert "'=1+1" in sheet.read_text("utf-8")
    # Screened, it stands; and the mark outlives another import.
    sheet.write_text(sheet.read_text("utf-8").rstrip("\n") + "yes\n", "utf-8")
    for _ in range(2):
        bring_in(study.folder, [])
        public = rows(study.folder, "published/ratings.jsonl")
        assert [r["comment"] for r in public if r["comment"]] == ["=1+1 is no formula"]


def test_a_role_of_five_raters_is_published(study):
    from hk_fs_bench.human.publishing import published

    team = [Rater(f"a{n}", "architect", 9) for n in range(5)]
    team += [Rater(f"e{n}", "fire_engineer", 9) for n in range(4)]
    base = {"kind": "expert", "batch": 1, "position": 1, "comment": None}
    base |= {"candidate": candidates(study)[0]}
    listed = [base | {"rater": r.rater, "role": r.role} for r in team]
    roles = [r["role"] for r in published(listed, study, read_key(study.folder), {})]
    assert sorted(map(str, roles)) == ["None"] * 4 + ["architect"] * 5


def test_withdrawal_leaves_nothing(study, tmp_path, emails):
    mine = one_rating(study, comment="mine alone")
    bring_in(study.folder, [
        written(tmp_path, "first.json", mine),
        written(tmp_path, "e.json", result(study, "e1")),
        google(study, tmp_path, {"Timestamp": "2026/12/01 9:00:00 AM GMT+8"}),
    ], emails=emails, settle=["a1=last"])  # fmt: skip
    (study.folder / "forms").mkdir()
    for name in ("a1-1.html", "a1-2.xlsx", "a10-1.html", "e1-1.html"):
        written(study.folder / "forms", name, "a form")
    (study.folder / "report").mkdir()
    kept = [r for r in rows(study.folder, "ratings.jsonl") if r["rater"] != "a1"]
    lines = withdraw(study.folder, "a1")
    assert "2 forms deleted" in lines[0]
    assert rows(study.folder, "ratings.jsonl") == kept
    assert {p.name for p in (study.folder / "forms").iterdir()} == {"a10-1.html", "e1-1.html"}
    assert not (study.folder / "report").exists()
    names = ("assignment.jsonl", "unused.jsonl", "unresolved.jsonl", "comments.csv")
    for path in [*(study.folder / "returns").iterdir(), *(study.folder / n for n in names)]:
        content = path.read_text("utf-8")
        assert '"a1"' not in content
        assert "mine alone" not in content
        assert "first.json" not in content
    after = read_study(study.folder)
    assert "a1" not in after.raters
    assert after.settings["settled"] == {}
    # Their file by mistake once more: nothing of it is kept.
    bring_in(study.folder, [written(tmp_path, "a.json", mine)])
    assert rows(study.folder, "ratings.jsonl") == kept
    assert "withdrew" in rows(study.folder, "unused.jsonl")[-1]["reason"]
    assert all("mine alone" not in p.read_text() for p in (study.folder / "returns").iterdir())
    with pytest.raises(UserError, match="has no rater nobody"):
        withdraw(study.folder, "nobody")


def test_a_withdrawal_that_was_stopped_can_be_ended(study, tmp_path):
    bring_in(study.folder, [written(tmp_path, "a.json", result(study))])
    broken = study.folder / "returns" / "broken.json"
    broken.write_text("{", "utf-8")
    with pytest.raises(UserError, match="is broken"):
        withdraw(study.folder, "a1")
    broken.unlink()
    assert "a1: " in withdraw(study.folder, "a1")[0]
    assert not rows(study.folder, "ratings.jsonl")


def test_a_judge_is_a_rater_of_another_kind(study):
    given_ = [human_study.given("org/judge", c) for c in candidates(study)]
    held = returns.Return("model", "judge", "org/judge", "0" * 64, given_)
    returns.store(study.folder, held)
    found = ratings.rebuild(study.folder).ratings
    assert {(r["kind"], r["rater"], r["role"], r["batch"]) for r in found} == {
        ("model", "org/judge", None, None)
    }
    assert assign.disputed(ratings.read_ratings(study.folder)) == set()


def test_far_apart_ratings_call_a_third(study):
    name = next(
        n for n, one in read_key(study.folder)["candidates"].items()
        if one["kind"] == "model" and not one["repeat_of"]
        and study.questions[one["item_id"]].engineering_related is False
    )  # fmt: skip
    for low, called in (("omission", True), ("irrelevant_clause", False)):
        for n, one in enumerate([("full",), ("major", low)], 1):
            held = human_study.given(f"a{n}", name, *one)
            returns.store(study.folder, human_study.returned(held, source=f"{low}{n}.json"))
        ratings.rebuild(study.folder)
        assert bool(assign.disputed(ratings.read_ratings(study.folder))) is called
        shutil.rmtree(study.folder / "returns")


@pytest.mark.parametrize("name", ["study.json", "key.json", "assignment.jsonl", "returns/x.json"])
def test_broken_study_folders(study, name):
    (study.folder / "returns").mkdir()
    written(study.folder, name, '{"format": 1, "half')
    with pytest.raises(UserError, match=r"restore it|is broken|JSON"):
        bring_in(study.folder, [])
    with pytest.raises(UserError, match="holds no study"):
        bring_in(study.folder / "elsewhere", [])


# ---- Whatever comes back, nothing but a UserError comes out


Junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["full", "major", "omission", "yes", "a1", "html"]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def brought(study: Study, path: Path) -> None:
    try:
        held = read_file(path, study, {"a@b.hk": "a1"})
    except UserError:
        return
    found = ratings.derive(study, read_key(study.folder), [held])
    text = json.dumps([found.ratings, found.unresolved], allow_nan=False)
    assert "@" not in text


@given(st.data())
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_results_of_any_content(drawn, tmp_path_factory, data):
    study = read_study(drawn)
    whole = result(study)
    one = whole["questions"][0]["ratings"][0]
    place = data.draw(st.sampled_from([whole, whole["questions"][0], one, one["accuracy"]]))
    for _ in range(2):
        place[data.draw(st.sampled_from(sorted(place)))] = data.draw(Junk)
    path = tmp_path_factory.mktemp("junk") / "a.json"
    path.write_text(json.dumps(whole), "utf-8")
    brought(study, path)


@given(
    st.lists(
        st.lists(
            st.text(max_size=6)
            | st.sampled_from(["a1", "a@b.hk", "Fully accurate", "Clear", "Serious fault: x, y"]),
            min_size=5,
            max_size=7,
        ),
        max_size=4,
    ),
    st.sampled_from([",", ";", "\t"]),
)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_exports_of_any_content(drawn, tmp_path_factory, lines, delimiter):
    study = read_study(drawn)
    name = candidates(study)[0]
    out = io.StringIO()
    heads = ["Timestamp", "Rater", f"A [{name} accuracy]", f"C [{name} clarity]", "E-mail"]
    csv.writer(out, delimiter=delimiter).writerows([heads, *lines])
    path = tmp_path_factory.mktemp("junk") / "a.csv"
    path.write_text(out.getvalue(), "utf-8", errors="surrogatepass")
    brought(study, path)


def test_cells_that_a_spreadsheet_changed(study, tmp_path):
    """A formula, a date, a number, an error: said beside the rating, the others count."""
    from datetime import date

    from openpyxl import load_workbook

    whole = [
        {"accuracy": choice(), "clarity": choice(), "missed_essential": [], "comment": None}
        for _ in candidates(study)
    ]
    path = as_xlsx(study, whole, tmp_path, "en")
    book = load_workbook(path)
    sheet = book["Ratings"]
    heads = {cell.value: cell.column for cell in sheet[1] if cell.value}
    odd = [("accuracy.level", "=A1"), ("accuracy.level", date(2026, 11, 3))]
    odd += [("clarity.level", 100), ("missed.1", "=1"), ("comment", "=A1"), ("missed.1", "–")]
    for number, (head, value) in enumerate(odd, 3):
        sheet.cell(number, heads[head], value)
    book.save(path)
    bring_in(study.folder, [path])
    waiting = {row["reason"] for row in rows(study.folder, "unresolved.jsonl")}
    assert len(waiting) == 4
    assert any("is a formula" in reason for reason in waiting)
    assert any("was made a date" in reason for reason in waiting)
    assert any("'100' is no level" in reason for reason in waiting)
    assert len(rows(study.folder, "ratings.jsonl")) == len(candidates(study)) - 4


def test_a_folder_stands_for_its_files(study, tmp_path):
    folder = tmp_path / "returned"
    folder.mkdir()
    written(folder, "a1.json", result(study))
    written(folder, "~$open.xlsx", "a lock")
    written(folder, ".hidden", "")
    bring_in(study.folder, [folder])
    assert len(rows(study.folder, "ratings.jsonl")) == len(candidates(study))
    written(folder, "notes.ods", "")
    with pytest.raises(UserError, match=r"notes\.ods is no returned form.*save .* as \.xlsx"):
        bring_in(study.folder, [folder])


@pytest.mark.parametrize("name", ["a1.json", "pasted.txt"])
def test_a_result_that_windows_saved_as_unicode(study, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(json.dumps(result(study), indent=1).replace("\n", "\r\n").encode("utf-16"))
    bring_in(study.folder, [path])
    assert len(rows(study.folder, "ratings.jsonl")) == len(candidates(study))


def test_one_name_with_two_values_is_not_settled_unseen(study, tmp_path):
    text = json.dumps(result(study)).replace('"rater": "a1"', '"rater": "a2", "rater": "a1"')
    with pytest.raises(UserError, match="'rater' stands twice"):
        bring_in(study.folder, [written(tmp_path, "a.json", text)])


def test_a_file_name_of_another_encoding(study, tmp_path):
    path = tmp_path / "r\udce9sultat.json"
    path.write_text(json.dumps(result(study)), "utf-8")
    bring_in(study.folder, [path])
    assert bring_in(study.folder, [])[0].startswith(f"{len(candidates(study))} ratings")


def test_the_same_export_without_its_addresses_loses_nothing(study, tmp_path, emails):
    path = google(study, tmp_path, {})
    bring_in(study.folder, [path], emails=emails)
    before = (study.folder / "ratings.jsonl").read_bytes()
    bring_in(study.folder, [path])
    assert before
    assert (study.folder / "ratings.jsonl").read_bytes() == before


def test_rows_left_out_for_one_reason_are_one_line(study, tmp_path):
    lines = bring_in(study.folder, [written(tmp_path, "a.json", {**result(study), "rater": "zz"})])
    (line,) = [one for one in lines if one.startswith("not used")]
    assert f"a.json, {len(candidates(study))} rows: the study has no rater 'zz'" in line
    assert len(rows(study.folder, "unused.jsonl")) == len(candidates(study))


@pytest.mark.parametrize("encoding", ["big5hkscs", "utf-16", "utf-8-sig"])
def test_an_export_in_chinese_of_any_encoding(study, tmp_path, encoding):
    text = f"評核員編號,candidate,準確性,清晰度\r\na1,{candidates(study)[0]},完全準確,清晰專業\r\n"
    path = tmp_path / "export.csv"
    path.write_bytes(text.encode(encoding))
    bring_in(study.folder, [path])
    (row,) = of(study, "ratings.jsonl")
    assert (row["level"], row["clarity_level"]) == ("full", "full")


def test_a_place_that_is_a_file_or_locked(study, tmp_path):
    (study.folder / "returns").write_text("")
    with pytest.raises(UserError, match="can't be made a folder"):
        bring_in(study.folder, [written(tmp_path, "a.json", result(study))])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda book: book["Ratings"].delete_rows(1), "hidden first row"),
        (lambda book: book["Start"].delete_cols(3), "hidden column C"),
    ],
)
def test_a_workbook_without_its_ids_is_refused(study, tmp_path, spoil, message):
    from openpyxl import load_workbook

    blank = {n: choice() for n in Names} | {"missed_essential": [], "comment": None}
    path = as_xlsx(study, [blank] * len(candidates(study)), tmp_path, "en")
    book = load_workbook(path)
    spoil(book)
    book.save(path)
    with pytest.raises(UserError, match=message):
        bring_in(study.folder, [path])
