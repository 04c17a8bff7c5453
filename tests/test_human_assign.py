"""Assignments: what every draw must keep, whatever the raters, models and questions."""

import re
from collections import Counter, defaultdict
from itertools import combinations, pairwise
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hk_fs_bench.errors import UserError
from hk_fs_bench.human import assign, ratings, workload
from hk_fs_bench.human.draw import Draw, deal_batches, draw_blocks
from hk_fs_bench.human.study import ASSIGNMENT, KEY, SETTINGS, Rater, read_key, read_study
from tests import human_study
from tests.human_study import TEAM, draw, part_of, shown

NOTHING = assign.Controls()


def held(study):
    """Rater → questions on forms that are out, repeats aside."""
    found = defaultdict(list)
    for screens in study.batches().values():
        for screen in screens:
            if not screen.repeat:
                found[screen.rater].append(screen.item_id)
    return found


def raters_of(study):
    """Question → its raters."""
    found = defaultdict(set)
    for rater, questions in held(study).items():
        for question in questions:
            found[question].add(rater)
    return found


def check(study, key, per_question):
    """What holds in every study."""
    about = key["candidates"]
    models = defaultdict(set)
    for name, one in about.items():
        assert name in study.answers
        if one["kind"] == "model" and not one["repeat_of"]:
            models[one["item_id"]].add(name)
    for question, raters in raters_of(study).items():
        assert len(raters) == per_question
        related = study.questions[question].engineering_related
        roles = {study.raters[rater].role for rater in raters}
        assert roles <= ({"fire_engineer"} if related else {"architect"})
    assert set(raters_of(study)) == set(study.questions)
    for rater, questions in held(study).items():
        assert len(questions) == len(set(questions)) <= study.raters[rater].capacity
    ordinary = Counter()
    for (_, number), screens in study.batches().items():
        assert number >= 1
        assert [s.position for s in screens] == list(range(1, len(screens) + 1))
        first = [s for s in screens if not s.repeat]
        assert len(first) <= 10
        kinds = Counter()
        for screen in first:
            # The whole unit: every model's answer of the question, and no other's.
            ids = [c for c in screen.candidates if about[c]["kind"] == "model"]
            assert set(ids) == models[screen.item_id]
            assert len(ids) == len(set(ids)) <= 5
            assert {about[c]["item_id"] for c in screen.candidates} == {screen.item_id}
            kinds.update(about[c]["kind"] for c in screen.candidates)
            ordinary.update(about[c]["run"] for c in ids)
        assert kinds["known_bad"] == 1
        assert kinds["expert"] == (study.settings["controls"]["expert"] is not None)
        repeats = [s for s in screens if s.repeat]
        assert len(repeats) == (len(first) >= 4)
        for screen in repeats:
            assert screen is screens[-1]
            (again,) = screen.candidates
            source = about[again]["repeat_of"]
            place = next(s.position for s in first if source in s.candidates)
            assert place <= max(1, len(first) // 3)
            assert study.answers[again].answer == study.answers[source].answer
    return ordinary


QUESTIONS = st.lists(st.integers(0, 99), min_size=4, max_size=40, unique=True)


@given(
    QUESTIONS,
    st.integers(1, 8),
    st.integers(2, 3),
    st.lists(st.integers(8, 40), min_size=3, max_size=6),
    st.lists(st.integers(8, 40), min_size=3, max_size=5),
    st.integers(0, 10**6),
)
@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.filter_too_much])
def test_every_draw(tmp_path_factory, dataset, places, models, per, architects, engineers, seed):
    edition = part_of(dataset, *places)
    team = [Rater(f"a{n}", "architect", c) for n, c in enumerate(architects)]
    team += [Rater(f"e{n}", "fire_engineer", c) for n, c in enumerate(engineers)]
    roles = Counter(workload.role_of(i.engineering_related) for i in edition.items("oeq"))
    needs = workload.needs(roles, models, team, per)
    folder = tmp_path_factory.mktemp("study") / "s"
    if any(need.missing for need in needs):
        with pytest.raises(UserError, match="can't rate every question") as refused:
            draw(folder, edition, models=models, team=team, seed=seed, per_question=per)
        assert refused.value.details
        assert not folder.exists()
        return
    study = draw(folder, edition, models=models, team=team, seed=seed, per_question=per)
    check(study, read_key(folder), per)
    # As equal as the capacities allow: who has two questions more than another of the role could
    # give one to nobody.
    for role in roles:
        own = {r.rater: len(held(study)[r.rater]) for r in team if r.role == role}
        open_ = [n for r, n in own.items() if n < min(study.raters[r].capacity, roles[role])]
        assert max(own.values()) - min(open_, default=max(own.values())) <= 1


@given(
    st.integers(6, 14),
    st.integers(1, 60),
    st.integers(2, 5),
    st.integers(0, 10**6),
)
@settings(deadline=None, max_examples=40)
def test_blocks_are_balanced(models, questions, size, seed):
    names = [f"m{n}" for n in range(models)]
    blocks = draw_blocks([f"q{n}" for n in range(questions)], names, size, Random(seed))
    shown = Counter(dict.fromkeys(names, 0))
    for block in blocks.values():
        assert len(block) == len(set(block)) == size
        shown.update(block)
    assert max(shown.values()) - min(shown.values()) <= 1


def test_pairs_of_models_meet_about_equally_often():
    """Seven models in 21 blocks of five: ten meetings a pair, were it exact."""
    names = [f"m{n}" for n in range(7)]
    blocks = draw_blocks([f"q{n}" for n in range(21)], names, 5, Random(1))
    met = Counter(p for b in blocks.values() for p in combinations(sorted(b), 2))
    assert len(met) == 21
    assert set(met.values()) <= {9, 10, 11}


def test_loads_move_along_where_capacities_are_uneven():
    """c has to take every question: no draw that fills a and b first would do."""
    draw_ = Draw({"a": 10, "b": 10, "c": 20}, {}, Random(1))
    assert sum(draw_.add(f"q{n}", "abc", 2) for n in range(20)) == 0
    assert {r: len(q) for r, q in draw_.found.items()} == {"a": 10, "b": 10, "c": 20}


def test_raters_meet_in_many_pairs(dataset, tmp_path):
    """So that severity can be told from the questions: no rater is apart from the others."""
    team = [Rater(f"a{n}", "architect", 30) for n in range(6)] + TEAM[4:]
    study = draw(tmp_path / "s", dataset, team=team)
    pairs = Counter(frozenset(r) for r in raters_of(study).values() if min(r).startswith("a"))
    assert len(pairs) == 15
    assert max(pairs.values()) - min(pairs.values()) <= 3


@given(st.integers(1, 45), st.integers(0, 45), st.integers(0, 99))
@settings(deadline=None)
def test_batches_are_even_and_share_the_expert_questions(count, first, seed):
    questions = [f"q{n}" for n in range(count)]
    expert = set(questions[:first])
    batches = deal_batches(questions, expert, 10, Random(seed))
    assert sorted(q for b in batches for q in b) == sorted(questions)
    sizes = [len(b) for b in batches]
    assert max(sizes) <= 10
    assert max(sizes) - min(sizes) <= 1
    shares = [len(expert & set(b)) for b in batches]
    assert max(shares) - min(shares) <= 1


def files(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name != SETTINGS}


def test_the_same_seed_gives_the_same_study(dataset, tmp_path):
    first, again, other = (tmp_path / name for name in ("s", "t", "u"))
    draw(first, dataset, models=6)
    draw(again, dataset, models=6)
    draw(other, dataset, models=6, seed=8)
    assert files(first) == files(again)
    assert files(first)[ASSIGNMENT] != files(other)[ASSIGNMENT]
    assert files(first)[KEY] != files(other)[KEY]


def test_order_differs_by_rater_and_ids_tell_nothing(dataset, tmp_path):
    study = draw(tmp_path / "s", dataset, models=5)
    key = read_key(study.folder)["candidates"]
    orders = defaultdict(set)
    places = defaultdict(Counter)
    for screen in study.assignment:
        ids = [c for c in screen.candidates if key[c]["kind"] == "model"]
        if not screen.repeat:
            orders[screen.item_id].add(tuple(ids))
            for place, name in enumerate(ids):
                places[key[name]["run"]][place] += 1
    assert sum(len(found) == 2 for found in orders.values()) > 90
    for counts in places.values():
        assert min(counts.values()) > 20  # of 200, 40 a place are expected
    # Sorted by id, the kinds and runs are mixed as by chance.
    runs = [key[name]["run"] for name in sorted(key) if key[name]["kind"] == "model"]
    alike = sum(a == b for a, b in pairwise(runs))
    assert alike < 0.3 * len(runs)
    for path in ("questions.jsonl", "answers.jsonl", "assignment.jsonl"):
        assert "run0" not in (study.folder / path).read_text("utf-8")


def test_known_bad_answers_are_of_other_questions(dataset, tmp_path):
    study = draw(tmp_path / "s", dataset)
    key = read_key(study.folder)["candidates"]
    bad = {name: one for name, one in key.items() if one["kind"] == "known_bad"}
    assert len(bad) == 100
    same_part = 0
    for name, one in bad.items():
        mine, other = (dataset.by_id[i] for i in (one["item_id"], one["taken_from"]))
        assert not set(mine.references) & set(other.references)
        same_part += mine.part == other.part
        assert f"to {other.id}:" in study.answers[name].answer
    # The questions of the smallest Parts share a provision with all their neighbours.
    assert same_part >= 95


def test_a_known_bad_answer_of_ones_own(dataset, tmp_path):
    edition = part_of(dataset, 0, 1, 2, 3)
    item = edition.items("oeq")[0].id
    study = draw(tmp_path / "s", edition, controls=assign.Controls(None, {item: "Nonsense."}))
    (name,) = (
        name
        for name, one in read_key(study.folder)["candidates"].items()
        if one["kind"] == "known_bad" and one["item_id"] == item
    )
    assert study.answers[name].answer == "Nonsense."
    assert study.settings["controls"] == {"expert": None, "known_bad": "built"}


def test_few_expert_answers_reach_every_batch(dataset, tmp_path):
    """Nine architectural questions for sixteen batches, four of engineering for six."""
    few = {}
    for related, count in ((False, 9), (True, 4)):
        found = [i for i in dataset.items("oeq") if i.engineering_related is related]
        few |= {item.id: f"My own words on {item.id}." for item in found[:count]}
    for seed in range(3):
        controls = assign.Controls(few, {}, {"expert": "x.csv"})
        study = draw(tmp_path / str(seed), dataset, controls=controls, seed=seed)
        check(study, read_key(study.folder), 2)


def test_too_few_expert_answers_are_refused(dataset, tmp_path):
    few = assign.Controls({dataset.items("oeq")[0].id: "Mine."}, {}, {"expert": "x.csv"})
    with pytest.raises(UserError, match="no question with an expert-written answer: a1"):
        draw(tmp_path / "s", dataset, controls=few)
    assert not (tmp_path / "s").exists()


def test_an_edition_without_annotations_may_be_rated_by_all(dataset, tmp_path):
    bare = part_of(dataset, *range(12))
    plain = [i.model_copy(update={"engineering_related": None}) for i in bare.items("oeq")]
    bare.splits["oeq/test"][:] = plain
    study = draw(tmp_path / "s", bare, team=[TEAM[0], TEAM[4]], controls=NOTHING)
    assert all(found == {"a1", "e1"} for found in raters_of(study).values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"team": TEAM[:4]}, "question ratings without a rater: 60 of fire_engineer"),
        ({"team": TEAM[:5]}, "30 of fire_engineer"),
        ({"per_question": 1}, "at least two raters"),
        ({"most": 0}, "at least one question"),
    ],
)
def test_infeasible_wishes(dataset, tmp_path, change, message):
    with pytest.raises(UserError, match=message):
        draw(tmp_path / "s", dataset, **change)
    assert not (tmp_path / "s").exists()


def test_what_is_missing_is_said_by_role():
    team = [Rater("a1", "architect", 50), Rater("a2", "architect", 60), TEAM[4]]
    needs = workload.needs({"architect": 70, "fire_engineer": 30}, 5, team)
    assert [n.missing for n in needs] == [
        "capacity for 30 questions more",
        "1 raters, at least 2 are needed",
    ]
    # Ten questions of five answers, two controls and a repeat: about 90 minutes.
    (one,) = workload.needs({"architect": 5}, 5)
    assert one.hours * 60 == pytest.approx(89, abs=2)


def rate_some(study, share):
    """(rater, batch) → candidates, of the first batch of every `share`-th rater."""
    found = defaultdict(set)
    for rater, batch, candidate in shown(study):
        if batch == 1 and list(study.raters).index(rater) % share == 0:
            found[rater, batch].add(candidate)
    return dict(found)


def rows(study, **wanted):
    return [s for s in study.assignment if all(getattr(s, k) == v for k, v in wanted.items())]


def test_raters_added_later_keep_what_was_rated(dataset, tmp_path):
    before = draw(tmp_path / "s", dataset)
    done = rate_some(before, 2)
    new = [*TEAM, Rater("a9", "architect", 40)]
    assign.extend_study(before.folder, new, done)
    after = read_study(before.folder)
    for rater, batch in done:
        assert rows(after, rater=rater, batch=batch) == rows(before, rater=rater, batch=batch)
    check(after, read_key(after.folder), 2)
    # What was out and not begun stands as superseded, so that it still counts if it comes back.
    old = [s for s in before.assignment if (s.rater, s.batch) not in done]
    assert {(s.rater, s.batch, s.item_id) for s in old} == {
        (s.rater, s.batch, s.item_id) for s in after.assignment if s.superseded
    }
    loads = {r: len(q) for r, q in held(after).items() if r.startswith("a")}
    assert loads["a9"] == 28
    assert max(loads.values()) - min(loads.values()) <= 1
    numbers = Counter((s.rater, s.batch, s.position) for s in after.assignment)
    assert max(numbers.values()) == 1


@given(
    st.sets(st.sampled_from([r.rater for r in TEAM]), max_size=2),
    st.integers(0, 2),
    st.sets(st.integers(0, 14)),
    st.sets(st.integers(0, 23), max_size=5),
    st.booleans(),
    st.integers(0, 99),
)
@settings(deadline=None, max_examples=25)
def test_every_second_draw(tmp_path_factory, dataset, gone, new, begun, disputed, keep, seed):
    """Whoever leaves or comes: what was rated stays, and every question has its raters."""
    folder = tmp_path_factory.mktemp("study") / "s"
    before = draw(folder, part_of(dataset, *range(24)), seed=seed)
    keys = sorted(before.batches())
    done = {
        keys[n]: {c for s in before.batches()[keys[n]][:2] for c in s.candidates}
        for n in begun
        if n < len(keys)
    }
    third = {list(before.questions)[n] for n in disputed}
    team = [r for r in TEAM if r.rater not in gone]
    team += [Rater(f"x{n}", "architect", 40) for n in range(new)]
    try:
        assign.extend_study(folder, team, done, third, keep_sent=keep)
    except UserError:
        engineers = sum(r.role == "fire_engineer" for r in team)
        assert engineers <= 2 or sum(r.role == "architect" for r in team) <= 2
        return
    after = read_study(folder)
    stand = [s for s in after.assignment if not s.superseded]
    for (rater, batch), names in done.items():
        kept = [s for s in stand if (s.rater, s.batch) == (rater, batch)]
        assert names <= {c for s in kept for c in s.candidates}
    per = defaultdict(set)
    for screen in stand:
        per[screen.item_id].add(screen.rater)
    for question, raters in per.items():
        assert len(raters) >= 2 + (question in third)
        if not done or keep or not new:
            assert len(raters) <= 2 + (question in third) + len(gone)
    assert set(per) == set(before.questions)
    places = Counter((s.rater, s.item_id) for s in stand if not s.repeat)
    assert max(places.values()) == 1
    numbers = Counter((s.rater, s.batch, s.position) for s in after.assignment)
    assert max(numbers.values()) == 1
    if keep or not new:
        active = [s for s in before.assignment if s.rater not in gone]
        assert [s for s in after.assignment if s in active] == active


def test_batches_that_are_out_can_stay(dataset, tmp_path):
    before = draw(tmp_path / "s", dataset)
    lines = assign.extend_study(
        before.folder, [*TEAM, Rater("a9", "architect", 40)], {}, keep_sent=True
    )
    assert "nothing to draw" in lines[0]
    after = read_study(before.folder)
    assert after.assignment == before.assignment
    assert "a9" in after.raters


def test_drawing_again_without_a_change_changes_nothing(dataset, tmp_path):
    before = draw(tmp_path / "s", dataset)
    kept = files(before.folder)
    assign.extend_study(before.folder, TEAM, {})
    assert files(before.folder) == kept


def test_a_rater_who_leaves_is_replaced(dataset, tmp_path):
    before = draw(tmp_path / "s", dataset, team=[*TEAM, Rater("a9", "architect", 40)])
    rated = {c for s in rows(before, rater="a1", batch=1)[:3] for c in s.candidates}
    team = [r for r in before.raters.values() if r.rater != "a1"]
    assign.extend_study(before.folder, team, {("a1", 1): rated})
    after = read_study(before.folder)
    assert after.raters["a1"].left
    kept = rows(after, rater="a1", superseded=False)
    assert {c for s in kept for c in s.candidates} == rated
    counts = Counter(s.item_id for s in after.assignment if not s.superseded and not s.repeat)
    assert set(counts.values()) == {2}
    others = [s for s in before.assignment if s.rater != "a1"]
    assert all(s in after.assignment for s in others)


def test_a_third_rater_sees_the_whole_question(dataset, tmp_path):
    before = draw(tmp_path / "s", dataset)
    wanted = list(before.questions)[:5]
    assign.extend_study(before.folder, TEAM, {}, wanted)
    after = read_study(before.folder)
    found = raters_of(after)
    assert {q for q, raters in found.items() if len(raters) == 3} == set(wanted)
    new = [s for s in after.assignment if s not in before.assignment]
    models = {q: {s.item_id: set() for s in new} for q in wanted}
    assert {s.item_id for s in new} == set(models)
    for screen in new:
        assert screen.repeat or len(screen.candidates) >= 3


def test_a_later_draw_does_with_the_expert_answers_there_are(dataset, tmp_path):
    some = [i for i in dataset.items("oeq") if not i.engineering_related][:20]
    some += [i for i in dataset.items("oeq") if i.engineering_related][:20]
    texts = {item.id: "Mine." for item in some}
    controls = assign.Controls(texts, {}, {"expert": "x.csv"})
    study = draw(tmp_path / "s", dataset, controls=controls)
    bare = next(q for q in study.questions if q not in texts)
    lines = assign.extend_study(study.folder, TEAM, {}, [bare])
    assert "1 batches have no question with an expert-written answer: a" in lines[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda team: [Rater("a1", "fire_engineer", 9), *team[1:]], "the role of a1 changed"),
        (lambda team: team[:4], "question ratings without a rater"),
    ],
)
def test_mistakes_of_a_second_draw(dataset, tmp_path, change, message):
    study = draw(tmp_path / "s", dataset)
    kept = files(study.folder)
    with pytest.raises(UserError, match=message):
        assign.extend_study(study.folder, change(TEAM), {})
    assert files(study.folder) == kept


def test_a_study_is_never_drawn_over(dataset, tmp_path):
    draw(tmp_path / "s", dataset)
    with pytest.raises(UserError, match="holds a study"):
        draw(tmp_path / "s", dataset)


def test_runs_are_told_apart(tmp_path):
    from hk_fs_bench.human.candidates import run_names

    folders = [tmp_path / name for name in ("a/m", "b/m", "c")]
    assert run_names(folders) == ["a/m", "b/m", "c"]
    with pytest.raises(UserError, match="given twice"):
        run_names([tmp_path / "a", tmp_path / "a/../a"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,role\na,architect\n", "lacks the column capacity"),
        ("id,role,capacity\na@b.hk,architect,3\n", "must not be an e-mail address"),
        ("id,role,capacity\na,lawyer,3\n", "'lawyer' is none of"),
        ("id,role,capacity\na,architect,many\n", "no whole number"),
        ("id,role,capacity\na,architect,3\nA,architect,3\n", "stands in an earlier row"),
        ("id,role,capacity\n../a,architect,3\n", "must be up to 40 letters"),
        ("", "is empty"),
    ],
)
def test_faulty_files_of_raters(tmp_path, text, message):
    path = tmp_path / "raters.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(UserError) as refused:
        workload.read_raters(path)
    assert message in "\n".join([str(refused.value), *refused.value.details])


def test_raters_as_people_write_them(tmp_path):
    path = tmp_path / "raters.csv"
    path.write_bytes("\ufeffRater;Role;Capacity\n陳-1;Fire Engineer;20\n".encode())
    assert workload.read_raters(path) == [Rater("陳-1", "fire_engineer", 20)]


def test_answers_that_name_a_model_are_pointed_out(dataset):
    from hk_fs_bench.human import candidates

    one = human_study.sources(part_of(dataset, 0), 1)[0]
    about = dict(one.about, model="Qwen/Qwen2.5-7B-Instruct · thinking on")
    named = candidates.Source("q", about, {"oeq-0019": "I am Qwen, made by …"})
    assert candidates.give_aways([named]) == ["the answer of q to oeq-0019 names 'Qwen'"]


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("assignment.jsonl", '"batch": 1', '"batch": "x"', "0.batch"),
        ("assignment.jsonl", '"rater": "a1"', '"rater": "zz"', "names the rater 'zz'"),
        ("assignment.jsonl", '"candidates": ["', '"candidates": ["00', "which answers.jsonl lacks"),
        ("questions.jsonl", '"item_id": "oeq', '"item_id": "xoeq', "which questions.jsonl lacks"),
        ("questions.jsonl", '"essential_points": [', '"essential": [', "essential_points"),
        ("answers.jsonl", '"candidate": "', '"candidate": "00', "lacks"),
        ("study.json", '"settled": {}', '"settled": 5', "settled"),
        ("study.json", '"withdrawn": []', '"withdrawn": null', "withdrawn"),
        ("key.json", '"run": "run0"', '"run": "run9"', "'run9'"),
        ("key.json", '"kind": "model"', '"kind": 5', "kind"),
    ],
)
def test_a_study_that_was_edited_is_refused_whole(tmp_path, dataset, name, old, new, message):
    study = draw(tmp_path / "study", part_of(dataset, *range(8)))
    path = study.folder / name
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(UserError, match=re.escape(message)):
        ratings.rebuild(study.folder)
