"""The report of a study: complete, undefined figures with a reason, nobody named, one page."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from html.parser import HTMLParser

import pytest

from hk_fs_bench.errors import UserError
from hk_fs_bench.human import report as reporting
from hk_fs_bench.human import report_tables
from hk_fs_bench.human.report import write_report
from hk_fs_bench.leaderboard import studies
from tests.simulated_ratings import World, draw, rating, write_study

WORLD = World(questions=12, raters=9)
HOSTILE = '<script>alert("x")</script>{{ 7*7 }}'


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A study with all that there is, and its report: folder, runs, out, lines, report.json."""
    base = tmp_path_factory.mktemp("study")
    drawn = draw(2, WORLD, extras=True)
    for row in drawn.rows:
        row["rater"] = f"rater-{row['rater']}-Chan"
        row["comment"] = "SECRET comment"
        row["source"] = "secret-file.html"
    judged = [
        dict(row, rater="org/judge (none)", role=None, kind="model", form="judge", score=0.9)
        for row in {row["candidate"]: row for row in drawn.rows}.values()
        if not row["repeat"]
    ]
    runs = write_study(base / "pilot", drawn, judged=judged)
    key = json.loads((base / "pilot" / "key.json").read_text())
    key["runs"]["org-model-a"]["model"] = HOSTILE
    (base / "pilot" / "key.json").write_text(json.dumps(key))
    waiting = dict(drawn.rows[0], reason="conflict: 2 different ratings, secret-file.html")
    (base / "pilot" / "unresolved.jsonl").write_text(json.dumps(waiting) + "\n")
    out = base / "out"
    lines = write_report(base / "pilot", runs, out, publish=base / "studies")
    return base, runs, out, lines, json.loads((out / "report.json").read_text("utf-8"))


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.found += [v for k, v in attrs if k in ("src", "href", "action", "srcset", "data")]


def test_one_page_without_request_or_script(built):
    _, _, out, _, _ = built
    page = (out / "report.html").read_text("utf-8")
    links = Links()
    links.feed(page)
    assert all(link.startswith(("#", "data:image/svg+xml;base64,")) for link in links.found)
    assert {"script", "iframe", "link", "form", "object"}.isdisjoint(links.tags)
    assert links.tags.count("img") == 3
    assert "<script" not in page
    assert "{{ 7*7 }}" in page
    assert "&lt;script&gt;" in page
    assert "@import" not in page
    assert "url(" not in page


def test_nobody_is_named_and_comments_are_withheld(built):
    base, _, out, lines, _ = built
    texts = [path.read_text("utf-8") for path in (*out.iterdir(), *(base / "studies").iterdir())]
    assert len(texts) == 4
    for text in (*texts, "\n".join(lines)):
        assert "SECRET" not in text
        assert "secret-file" not in text
        assert "Chan" not in text
        # Six architects and three engineers: too few to name a role.
        assert not re.search("fire.engineer", text)


def test_roles_are_named_where_each_has_five_raters(tmp_path):
    write_study(tmp_path / "s", draw(1, World(questions=30, raters=18)), runs=False)
    text = "\n".join(write_report(tmp_path / "s", [], tmp_path / "out"))
    held = json.loads((tmp_path / "out" / "report.json").read_text())
    assert held["counts"]["roles"] == {"architect": 12, "fire_engineer": 6}
    assert held["by_role"]["fire_engineer"]["questions"] == 10
    assert "18 raters (architect 12, fire engineer 6)" in text
    assert "2 groups that share no answer" in text


def test_undefined_is_null_with_a_reason(built):
    _, _, _, _, held = built

    def walk(value, place):
        if isinstance(value, dict):
            if "value" in value and value["value"] is None:
                assert value["reason"], place
            for name, inner in value.items():
                walk(inner, f"{place}.{name}")
        if isinstance(value, list):
            for inner in value:
                walk(inner, place)
        assert value == value, place

    walk(held, "")
    assert held["agreement"]["accuracy"]["two_way"]["value"] is None


def test_every_figure_has_n_unit_and_interval(built):
    _, _, _, lines, held = built
    for own in held["models"].values():
        for name in ("accuracy", "clarity", "accuracy_pooled", "unsafe_share"):
            assert own[name]["n"] == 12
            assert own[name]["unit"] == "questions"
            assert own[name]["ci95"] or own[name]["interval"].startswith("none")
    assert held["signature"].startswith("rubric 1 (")
    assert "the lowest score counts" in held["signature"]
    assert "Where several descriptors apply, the lowest score counts." in "\n".join(lines)
    assert held["metrics"]["signatures"]["good"] == "good|simulated"
    # By hand: the mean over questions of the mean over raters.
    rows = [json.loads(x) for x in (built[0] / "pilot" / "ratings.jsonl").read_text().splitlines()]
    about = json.loads((built[0] / "pilot" / "key.json").read_text())["candidates"]
    by_item: dict = {}
    for row in rows:
        own = about[row["candidate"]]
        if own["run"] == "org-model-b" and row["kind"] == "expert" and not row["repeat"]:
            by_item.setdefault(row["item_id"], []).append(row["score"])
    mean = sum(sum(v) / len(v) for v in by_item.values()) / len(by_item)
    assert held["models"]["org-model-b"]["accuracy"]["value"] == pytest.approx(mean)


def test_the_judge_is_beside_people_and_never_in_their_means(built, tmp_path):
    _, _, _, _, held = built
    drawn = draw(2, WORLD, extras=True)
    write_study(tmp_path / "people", drawn, runs=False)
    write_report(tmp_path / "people", [], tmp_path / "out")
    alone = json.loads((tmp_path / "out" / "report.json").read_text())
    assert alone["models"] == held["models"]
    assert alone["agreement"] == held["agreement"]
    assert alone["judges"] == {}
    (judge,) = held["judges"].values()
    assert all(own["accuracy"]["value"] == pytest.approx(0.9) for own in judge["models"].values())
    assert judge["calls"] is None


def test_unresolved_rows_are_listed_without_their_source(built):
    _, _, _, lines, held = built
    assert held["counts"]["unresolved"] == 1
    assert held["unresolved"][0]["reason"] == "two different ratings by one rater came back"
    assert any("Unresolved: 1 ratings, not scored" in line for line in lines)


def test_published_scores(built):
    base, runs, _, _, held = built
    files = sorted(path.name for path in (base / "studies").iterdir())
    assert files[1] == "pilot.json"
    assert re.fullmatch(r"pilot-org-judge-none-[0-9a-f]{6}\.json", files[0])
    people = json.loads((base / "studies" / "pilot.json").read_text())
    assert set(people) == {
        "schema_version",
        "study",
        "rubric_version",
        "dataset_version",
        "kind",
        "models",
    }
    assert (people["schema_version"], people["study"], people["kind"]) == (1, "pilot", "expert")
    assert len(people["models"]) == len(runs) == 5
    raw = (runs[0] / "predictions.jsonl").read_bytes()
    for one, own in zip(people["models"], held["models"].values(), strict=True):
        assert set(one) == {"predictions_sha256", "accuracy", "clarity", "unsafe_share", "raters"}
        assert one["predictions_sha256"] == hashlib.sha256(raw).hexdigest()
        low, high = own["accuracy"]["ci95"]
        wanted = {"value": own["accuracy"]["value"], "low": low, "high": high, "n": 12}
        assert one["accuracy"] == pytest.approx(wanted)
        assert one["raters"] == 9
    judge = json.loads((base / "studies" / files[0]).read_text())
    assert (judge["kind"], judge["study"]) == ("model", "pilot, judged by org/judge (none)")
    # The board takes them as they are.
    found = studies.read(base / "studies")
    assert set(found) == {"expert", "model"}
    assert {one["raters"] for one in judge["models"]} == {1}


@pytest.fixture
def small(tmp_path):
    folder = tmp_path / "small"
    return folder, write_study(folder, draw(3, World(questions=4, raters=6)))


def test_publishing_needs_every_run_and_writes_nothing_without(small, tmp_path):
    folder, runs = small
    with pytest.raises(UserError, match="give the run of org-model-a"):
        write_report(folder, runs[1:], tmp_path / "out", publish=tmp_path / "studies")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "studies").exists()


def test_the_same_again(small, tmp_path):
    folder, runs = small
    one, two = (write_report(folder, runs, tmp_path / name) for name in "ab")
    for name in ("report.json", "report.html"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert [x for x in one if not x.startswith("written")] == [
        x for x in two if not x.startswith("written")
    ]


def test_an_edition_without_a_version(small, tmp_path):
    folder, runs = small
    held = json.loads((folder / "study.json").read_text())
    held["dataset"]["version"] = None
    (folder / "study.json").write_text(json.dumps(held))
    text = "\n".join(write_report(folder, runs, tmp_path / "out", publish=tmp_path / "studies"))
    assert "Dataset None" not in text
    assert "data:None" not in text
    (raters,) = studies.read(tmp_path / "studies")["expert"].values()
    assert raters[0]["dataset_version"] == "sha256 dddddddddddd"


def test_metrics_that_are_missing_say_why(small, tmp_path):
    folder, runs = small
    (runs[0] / "items.jsonl").unlink()
    changed = [json.loads(line) for line in (runs[1] / "items.jsonl").read_text().splitlines()]
    changed[0]["answer"] = "Another answer."
    (runs[1] / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in changed))
    with pytest.raises(UserError, match="org-model-b was answered again"):
        write_report(folder, runs, tmp_path / "out", publish=tmp_path / "studies")
    write_report(folder, runs[:-1], tmp_path / "out")
    held = json.loads((tmp_path / "out" / "report.json").read_text())
    notes = held["metrics"]["notes"]
    assert any(note.startswith("org-model-a: not scored yet") for note in notes)
    assert any(note.startswith("org-model-b: 1 answers are not the text") for note in notes)
    assert any(note.startswith("org-model-e: its run was not given") for note in notes)
    answers = next(
        row
        for row in held["metrics"]["correlations"]
        if (row["level"], row["metric"], row["dimension"]) == ("answers", "good", "accuracy")
    )
    # b lacks one of four, c and d are whole, a and e have none.
    assert answers["n"] == 11


def test_an_empty_answer_is_the_placeholder_that_was_shown(small, tmp_path):
    folder, runs = small
    rows = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    for row in rows:
        if row["candidate"] == "c0-0":
            row["answer"] = "(No answer was given.)"
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    scored = [json.loads(line) for line in (runs[0] / "items.jsonl").read_text().splitlines()]
    for row in scored:
        if row["item_id"] == "oeq-0000":
            row["answer"] = None
    (runs[0] / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in scored))
    write_report(folder, runs, tmp_path / "out")
    assert json.loads((tmp_path / "out" / "report.json").read_text())["metrics"]["notes"] == []


def spoil(path, content: bytes):
    def do(folder, runs):
        (folder.parent / path).write_bytes(content)
        return folder, runs

    return do


def edit(path, old: str, new: str):
    def do(folder, runs):
        place = folder.parent / path
        text = place.read_text("utf-8")
        assert old in text
        place.write_text(text.replace(old, new, 1), "utf-8")
        return folder, runs

    return do


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda f, r: (f, [*r, f.parent / "other"]), "no run of this study"),
        (lambda f, r: (f, [r[0], r[0]]), "two runs are named"),
        (lambda f, r: (f.parent / "nowhere", r), "holds no study"),
        (
            spoil("org-model-a/items.jsonl", b'{"task": "hk_fs_oeq"}\n'),
            "items.jsonl line 1 is broken",
        ),
        (spoil("org-model-a/items.jsonl", b"\xff\xfe\n"), "items.jsonl"),
        (spoil("org-model-a/items.jsonl", b"[]\n"), "items.jsonl"),
        (spoil("small/ratings.jsonl", b"{broken\n"), "ratings.jsonl"),
        (spoil("small/ratings.jsonl", b""), "nothing to report"),
        (spoil("small/unresolved.jsonl", b"{broken\n"), "unresolved.jsonl"),
        (spoil("small/key.json", b"{}"), "key.json was changed"),
        (edit("small/ratings.jsonl", '"score": ', '"score": 7'), "is no score"),
        (edit("small/ratings.jsonl", '"kind": "expert"', '"kind": 1'), "0.kind"),
    ],
)
def test_mistakes_are_one_line_and_nothing_is_written(small, tmp_path, mistake, message):
    folder, runs = mistake(*small)
    with pytest.raises(UserError, match=message):
        write_report(folder, runs, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_place_that_is_a_file(small, tmp_path):
    folder, runs = small
    (tmp_path / "out").write_text("mine")
    with pytest.raises(UserError, match="can't be made"):
        write_report(folder, runs, tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"


@pytest.mark.parametrize("questions", [1, 2, 3])
@pytest.mark.parametrize("per_question", [1, 2])
@pytest.mark.parametrize("models", [1, 2])
def test_however_little_there_is(tmp_path, questions, per_question, models):
    world = World((0.8, 0.6)[:models], questions=questions, raters=6, per_question=per_question)
    folder = tmp_path / "s"
    runs = write_study(folder, draw(1, world))
    write_report(folder, runs, tmp_path / "out")
    held = json.loads((tmp_path / "out" / "report.json").read_text())
    assert len(held["models"]) == models
    if per_question == 1:
        assert held["agreement"]["accuracy"]["single"]["reason"].startswith("needs at least two")
        assert "does not link" in held["agreement"]["accuracy"]["components"]["raters"]["reason"]
    for row in held["metrics"]["correlations"]:
        assert row["verdict"] in ("undefined", "untested", "none")


def test_all_ratings_alike(tmp_path):
    drawn = draw(1, World(questions=4, raters=6))
    drawn.rows = [
        rating(r["rater"], r["role"], r["item_id"], r["candidate"], {"accuracy": 1, "clarity": 1})
        | {"run": r["run"]}
        for r in drawn.rows
    ]
    write_study(tmp_path / "s", drawn, runs=False)
    write_report(tmp_path / "s", [], tmp_path / "out")
    held = json.loads((tmp_path / "out" / "report.json").read_text())
    assert "no variance" in held["agreement"]["accuracy"]["single"]["reason"]
    assert "constant" in held["metrics"]["correlations"][0]["reason"]
    assert "100.00 (no interval: all questions alike)" in (tmp_path / "out/report.html").read_text()
    low, high = held["models"]["org-model-a"]["unsafe_share"]["ci95"]
    assert low == 0 < high


def test_terminal_and_page_have_the_same_tables(built):
    _, _, out, lines, held = built
    page = (out / "report.html").read_text("utf-8")
    titles = [t.title for s in report_tables.sections(held) for t in s.tables]
    assert len(titles) == len(set(titles)) >= 14
    text = " ".join(" ".join(lines).split())
    for title in titles:
        assert title.replace("'", "&#39;") in page
        assert title in text, title
    assert reporting.PAGE in lines[-4]


@pytest.mark.browser
def test_in_a_browser(built):
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    _, _, out, _, _ = built
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for width in (390, 1280):
            page = browser.new_page(viewport={"width": width, "height": 900}, bypass_csp=True)
            asked, said = [], []
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            page.on("console", lambda message, said=said: said.append(message.text))
            page.on("dialog", lambda dialog: pytest.fail(dialog.message))
            page.goto((out / "report.html").as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            shown = "[...document.images].every(one => one.complete && one.naturalWidth > 100)"
            assert page.evaluate(shown)
            assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
            assert said == []
            found = Axe().run(page)
            assert found.violations_count == 0, found.generate_report()
            assert re.search(r"alert\(", page.inner_text("body"))
        browser.close()
