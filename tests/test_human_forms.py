"""Forms as raters meet them: filled in by a real browser, read back by the import."""

from __future__ import annotations

import csv
import json
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hk_fs_bench.errors import UserError
from hk_fs_bench.human import form_content, forms, results, rubric, statement, surveys
from hk_fs_bench.human.study import read_study, write_study
from tests.human_forms import MARKUP, MODEL, ORGANISER, make_study

PAGE = Path(forms.__file__).parent / "form_page"
HAN = re.compile(r"[\u4e00-\u9fff]")


def made(tmp_path: Path, *formats: str, **study: Any) -> tuple[Path, list[Path]]:
    folder = tmp_path / "study"
    make_study(folder, **study)
    return folder, forms.write_forms(folder, tmp_path / "forms", formats or forms.FORMATS)


# ---- What is refused


@pytest.mark.parametrize("name", ORGANISER)
@pytest.mark.parametrize("value", [None, "", "  ", "<name of whoever>", {"en": "only English"}, []])
def test_a_form_without_every_detail_of_the_organiser_is_refused(
    tmp_path: Path, name: str, value: Any
) -> None:
    make_study(tmp_path)
    held = {**ORGANISER, name: value}
    (tmp_path / "organiser.yaml").write_text(yaml.safe_dump(held, allow_unicode=True), "utf-8")
    with pytest.raises(UserError, match=f"{name}: "):
        forms.write_forms(tmp_path, tmp_path / "forms")
    assert not (tmp_path / "forms").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "is missing"),
        ("", "is empty"),
        ("- a list", "mapping"),
        ("title: [", "no YAML"),
        ("mail: somebody", "line 1: mail is no detail"),
        ("title: a\ntitle: b\n", "title"),
    ],
)
def test_a_broken_file_of_the_organiser_is_named(
    tmp_path: Path, text: str | None, says: str
) -> None:
    make_study(tmp_path)
    path = tmp_path / "organiser.yaml"
    path.unlink() if text is None else path.write_text(text, "utf-8")
    with pytest.raises(UserError, match=says):
        forms.write_forms(tmp_path, tmp_path / "forms")


def test_unknown_formats_and_studies_without_batches_are_refused(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    with pytest.raises(UserError, match="pdf is no kind of form"):
        forms.write_forms(tmp_path, tmp_path / "forms", ["pdf"])
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="can't be made a folder"):
        forms.write_forms(tmp_path, tmp_path / "file")
    study.settings["withdrawn"] = ["a1"]
    write_study(study)
    with pytest.raises(UserError, match="no batch"):
        forms.write_forms(tmp_path, tmp_path / "forms")


def test_a_study_drawn_for_another_rubric_is_refused(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    study.settings["rubric"]["version"] = "0"
    write_study(study)
    with pytest.raises(UserError, match="rubric 0"):
        forms.write_forms(tmp_path, tmp_path / "forms")


# ---- What every form holds and does not hold


def test_no_form_tells_which_model_an_answer_is_of(tmp_path: Path) -> None:
    _, written = made(tmp_path)
    assert [path.name for path in written] == ["a1-1.html", "a1-1.xlsx", "a1-1.gs"]
    for path in written:
        content = path.read_bytes()
        if path.suffix == ".xlsx":
            with zipfile.ZipFile(path) as held:
                content = b"".join(held.read(name) for name in held.namelist())
        shown = content.decode("utf-8")
        data = shown.partition('id="form-data">')[2].partition("</script>")[0] or shown
        assert "Candidate 1 says" in data
        for secret in (MODEL, "secret", "run1", "known_bad", "repeat"):
            assert secret not in data, (path, secret)
        assert MODEL not in shown


def test_the_same_study_makes_the_same_files(tmp_path: Path) -> None:
    folder, written = made(tmp_path)
    before = [path.read_bytes() for path in written]
    forms.write_forms(folder, tmp_path / "forms")
    assert [path.read_bytes() for path in written] == before
    # Nor does a workbook hold when it was made, which two quick runs may share.
    with zipfile.ZipFile(next(path for path in written if path.suffix == ".xlsx")) as book:
        assert {one.date_time[0] for one in book.infolist()} == {1980}
        dates = re.findall(rb"\d{4}-\d\d-\d\dT[^<]*", book.read("docProps/core.xml"))
        assert set(dates) == {b"2000-01-01T00:00:00Z"}


def test_every_text_stands_in_both_languages_with_the_same_names() -> None:
    def texts(held: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
        if isinstance(held, dict) and "en" in held:
            yield place, held
        elif isinstance(held, dict | list):
            pairs = held.items() if isinstance(held, dict) else enumerate(held)
            for name, value in pairs:
                yield from texts(value, f"{place}.{name}")

    files = [*PAGE.glob("*.yaml"), PAGE.parent / "statement.yaml"]
    assert len(files) == 6
    for path in files:
        for place, held in texts(yaml.safe_load(path.read_text("utf-8")), path.name):
            assert set(held) == {"en", "zh-Hant"}, place
            english, chinese = held["en"], held["zh-Hant"]
            assert len(english) == len(chinese) if isinstance(english, list) else True, place
            names = [sorted(re.findall(r"\{\w+\}", str(text))) for text in (english, chinese)]
            assert names[0] == names[1], place
            bare = re.sub(r"\{\w+\}|\W", "", str(chinese))
            assert HAN.search(str(chinese)) or not bare, place


def test_vendored_files_are_small_licensed_and_sole() -> None:
    vendored = {path.name: path for path in (PAGE / "vendor").iterdir()}
    licence = vendored.pop("LICENSE.txt").read_text("utf-8")
    assert "MIT License" in licence
    for name, path in vendored.items():
        assert path.stat().st_size < 2_000_000
        assert name in licence
        assert b"</script" not in path.read_bytes()


def test_the_statement_covers_what_the_ordinance_asks_for(tmp_path: Path) -> None:
    make_study(tmp_path)
    held = statement.read_statement(tmp_path / "organiser.yaml", "rating")
    for language in rubric.LANGUAGES:
        text = "\n".join(part["text"][language] for part in held.parts)
        for name, given in ORGANISER.items():
            if name not in ("title", "return_to"):
                assert (given if isinstance(given, str) else given[language]) in text
    english = "\n".join(part["heading"]["en"] + part["text"]["en"] for part in held.parts)
    for word in ("voluntary", "receive", "copy", "corrected", "withdraw", "deleted", "no e-mail"):
        assert word in english
    google = statement.read_statement(tmp_path / "organiser.yaml", "rating", "google")
    assert "Google" in str(google.parts)
    assert google.version != held.version


# ---- The spreadsheet


def test_the_spreadsheet_is_locked_listed_and_read_back(tmp_path: Path) -> None:
    from openpyxl import load_workbook

    folder, (path,) = made(tmp_path, "xlsx", nasty=True)
    book = load_workbook(path)
    start, sheet = book["Start"], book["Ratings"]
    ids = [cell.value for cell in sheet[1]]
    assert sheet.row_dimensions[1].hidden
    assert sheet.protection.sheet
    column = {name: place for place, name in enumerate(ids, 1)}
    answer = sheet.cell(3, column["answer"])
    assert answer.data_type == "s"
    assert answer.value.startswith("=1+1 Candidate")
    open_ids = {
        ids[c.column - 1] for row in sheet.iter_rows(3) for c in row if not c.protection.locked
    }
    levels = {f"{d}.{x}" for d, held in rubric.load().dimensions.items() for x in held.descriptors}
    wanted = levels | {"accuracy.level", "clarity.level", "comment", "missed.1", "missed.2"}
    assert open_ids == wanted
    listed = {next(iter(r.sqref.ranges)).bounds[0] for r in sheet.data_validations.dataValidation}
    assert listed == {column[name] for name in wanted - {"comment"}}
    for rule in sheet.data_validations.dataValidation:
        assert len(rule.formula1) <= 257
    said = "\n".join(str(c.value) for row in start.iter_rows() for c in row)
    for dimension in rubric.load().dimensions.values():
        for one in (*dimension.levels.values(), *dimension.descriptors.values()):
            assert all(one.about[language] in said for language in rubric.LANGUAGES)
    assert not any("@" in str(c.value) for row in start.iter_rows() for c in row)

    place = {start.cell(n, 3).value: n for n in range(1, start.max_row + 1)}
    assert results.read_xlsx_result(path, read_study(folder)).unused[0].reason == (
        "no consent was given"
    )
    start.cell(place["consent"], 2).value = "yes"
    sheet.cell(3, column["accuracy.level"]).value = "Serious fault"
    sheet.cell(3, column["accuracy.omission"]).value = "x"
    sheet.cell(3, column["missed.2"]).value = "x"
    sheet.cell(3, column["clarity.level"]).value = "清晰專業"
    sheet.cell(3, column["comment"]).value = "fine"
    book.save(path)
    back = results.read_xlsx_result(path, read_study(folder))
    first, *others = back.ratings
    assert (first.rater, first.candidate, first.batch) == ("a1", "k1c1", 1)
    assert (first.accuracy.level, list(first.accuracy.descriptors)) == ("major", ["omission"])
    assert (first.clarity.level, list(first.missed_essential)) == ("full", [2])
    assert first.comment == "fine"
    assert [one.candidate for one in others] == ["k1c2", "k2c1", "k2c2", "k9"]
    assert all(one.blank and not one.faults for one in others)


def test_points_that_a_question_lacks_stay_empty_and_odd_characters_are_marked(
    tmp_path: Path,
) -> None:
    from dataclasses import replace

    from openpyxl import load_workbook

    study = make_study(tmp_path / "study")
    study.questions["oeq-2"] = replace(study.questions["oeq-2"], essential_points=[])
    study.answers["k1c1"] = replace(
        study.answers["k1c1"], answer="bell \x07\ud800\uffff " + "long " * 8000
    )
    study.answers["k1c2"] = replace(study.answers["k1c2"], answer="  ")
    write_study(study)
    written = forms.write_forms(tmp_path / "study", tmp_path / "forms")
    sheet = load_workbook(written[1])["Ratings"]
    ids = [cell.value for cell in sheet[1]]
    assert sheet.cell(5, ids.index("missed.1") + 1).value is None
    assert sheet.cell(5, ids.index("missed.1") + 1).protection.locked
    long = sheet.cell(3, ids.index("answer") + 1).value
    assert "bell \ufffd\ufffd\ufffd" in long
    assert "cut" in long[-60:]
    assert "empty" in sheet.cell(4, ids.index("answer") + 1).value


# ---- The page, in a browser


Browse = Callable[..., Any]


@pytest.fixture(scope="module")
def browsers() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        yield play.chromium


@pytest.fixture(scope="module")
def chromium(browsers: Any) -> Iterator[Any]:
    browser = browsers.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
    yield browser
    browser.close()


class Watched:
    """A page whose requests, errors and policy violations are written down."""

    def __init__(self, page: Any, path: Path) -> None:
        self.page, self.requests, self.complaints = page, [], []
        page.set_default_timeout(8000)
        page.on("request", lambda one: self.requests.append(one.url))
        page.on("pageerror", lambda one: self.complaints.append(str(one)))
        page.on("console", lambda one: self.complaints.append(one.text))
        page.goto(path.as_uri())

    def tick(self, value: str, name: str) -> None:
        self.page.locator(f'[data-name="{name}"] label:has(input[value="{value}"])').click()

    def consent(self) -> None:
        self.tick("agree", "consent")

    def next(self) -> None:
        self.page.locator(".sd-navigation__next-btn").click()

    def title(self) -> str:
        return str(self.page.locator("#page-title").text_content())

    def go_to(self, text: str) -> None:
        if self.page.locator("#overview").get_attribute("open") is None:
            self.page.locator("#overview summary").click()
        self.page.locator("#overview button", has_text=text).first.click()

    def result(self, folder: Path) -> Path:
        self.go_to("Send back")
        with self.page.expect_download() as caught:
            self.page.locator("#download").click()
        path = folder / caught.value.suggested_filename
        caught.value.save_as(path)
        return path


@pytest.fixture
def browse(chromium: Any) -> Iterator[Browse]:
    contexts = []

    def opened(path: Path, width: int = 1000, init: str = "", **options: Any) -> Watched:
        context = chromium.new_context(viewport={"width": width, "height": 740}, **options)
        contexts.append(context)
        page = context.new_page()
        if init:
            page.add_init_script(init)
        return Watched(page, path)

    yield opened
    for context in contexts:
        context.close()


def rate(form: Watched, q: int, c: int, level: str = "full") -> None:
    form.tick("none" if level == "full" else "2", f"q{q}c{c}_missed")
    form.tick(level, f"q{q}c{c}_accuracy")
    if level == "major":
        form.tick("fabrication", f"q{q}c{c}_accuracy_descriptors")
        form.tick("omission", f"q{q}c{c}_accuracy_descriptors")
    form.tick("minor", f"q{q}c{c}_clarity")


@pytest.mark.browser
def test_filled_in_by_clicks_sent_back_and_read(tmp_path: Path, browse: Browse) -> None:
    folder, (path,) = made(tmp_path, "html")
    form = browse(path)
    form.consent()
    form.next()
    assert "two examples" in form.title()
    form.next()
    state = form.page.locator(".state").first
    wanted = "Still to do for this answer: Essential points; Accuracy, step 1; Clarity, step 1"
    assert state.text_content() == wanted
    form.tick("major", "q0c0_accuracy")
    assert state.text_content() == wanted.replace("step 1; Cl", "step 2; Cl")
    rate(form, 0, 0, "major")
    assert state.text_content() == "This answer is rated."
    rate(form, 0, 1)
    comment = form.page.locator('[data-name="q0c0_comment"] textarea')
    comment.fill('=SUM(A1) "quoted" <i>面</i>')
    assert form.page.locator("#progress span").text_content() == "2 of 5 answers rated"
    form.next()
    rate(form, 1, 0)
    form.go_to("Send back")
    notice = form.page.locator("main .notice")
    assert "Question 2: 1 left" in str(notice.text_content())
    assert "Question 3: 1 left" in str(notice.text_content())
    half = json.loads(form.result(tmp_path).read_text("utf-8"))
    assert half["complete"] is False
    form.go_to("Question 2")
    rate(form, 1, 1)
    form.next()
    rate(form, 2, 0)
    sent = form.result(tmp_path)
    assert sent.name == "pilot-a1-1.json"
    assert "Ms Chan by e-mail" in str(form.page.locator("#handed-in").text_content())
    held = json.loads(sent.read_text("utf-8"))
    assert held["complete"] is True
    assert held["consent"]["given"] is True
    assert held["consent"]["at"] <= held["questions"][0]["ratings"][0]["rated_at"]
    assert all(question["seconds"] > 0 for question in held["questions"])
    back = results.read_html_result(sent, read_study(folder))
    assert not back.unused
    assert [one.candidate for one in back.ratings] == ["k1c1", "k1c2", "k2c1", "k2c2", "k9"]
    first = back.ratings[0]
    assert first.accuracy.level == "major"
    assert sorted(first.accuracy.descriptors) == ["fabrication", "omission"]
    assert list(first.missed_essential) == [2]
    assert first.comment == '=SUM(A1) "quoted" <i>面</i>'
    for other in back.ratings[1:]:
        assert (other.accuracy.level, other.clarity.level) == ("full", "minor")
        assert not other.missed_essential
        assert not other.faults
    assert [url for url in form.requests if not url.startswith("blob:")] == [path.as_uri()]
    assert not form.complaints


@pytest.mark.browser
def test_filled_in_by_keyboard_alone(tmp_path: Path, browse: Browse) -> None:
    folder, (path,) = made(tmp_path, "html", questions=1)
    form = browse(path)
    keys = form.page.keyboard

    def tab_to(selector: str) -> None:
        for _ in range(60):
            keys.press("Tab")
            if form.page.evaluate("s => document.activeElement.matches(s)", selector):
                return
        raise AssertionError(f"Tab does not reach {selector}")

    def press_next() -> None:
        tab_to(".sd-navigation__next-btn")
        keys.press("Enter")

    tab_to("input[value=agree]")
    keys.press("Space")
    press_next()
    assert form.page.evaluate("document.activeElement.id") == "page-title"
    press_next()
    for q, candidates in enumerate([2, 1]):
        assert form.title().startswith(f"Question {q + 1}")
        for c in range(candidates):
            tab_to(f'[data-name="q{q}c{c}_missed"] input')
            keys.press("Space")
            tab_to(f'[data-name="q{q}c{c}_accuracy"] input')
            keys.press("ArrowDown")
            keys.press("ArrowDown")
            tab_to(f'[data-name="q{q}c{c}_accuracy_descriptors"] input[value=misunderstanding]')
            keys.press("Space")
            tab_to(f'[data-name="q{q}c{c}_clarity"] input')
            keys.press("Space")
            tab_to(f'[data-name="q{q}c{c}_comment"] textarea')
            keys.type("typed")
        press_next()
    tab_to("#download")
    with form.page.expect_download() as caught:
        keys.press("Enter")
    sent = tmp_path / "sent.json"
    caught.value.save_as(sent)
    back = results.read_html_result(sent, read_study(folder))
    assert len(back.ratings) == 3
    for one in back.ratings:
        assert one.accuracy.level == "major"
        assert list(one.accuracy.descriptors) == ["misunderstanding"]
        assert (one.clarity.level, one.comment) == ("full", "typed")
        assert list(one.missed_essential) == [1]


@pytest.mark.browser
def test_closed_half_way_and_opened_again(tmp_path: Path, browsers: Any) -> None:
    _, (path,) = made(tmp_path, "html")

    def opened() -> tuple[Any, Watched]:
        context = browsers.launch_persistent_context(
            tmp_path / "profile",
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox"],
            accept_downloads=True,
        )
        return context, Watched(context.new_page(), path)

    context, form = opened()
    form.consent()
    form.next()
    form.next()
    rate(form, 0, 0, "major")
    form.page.locator('[data-name="q0c0_comment"] textarea').fill("half-way")
    assert "Kept in this browser" in str(form.page.locator("#kept").text_content())
    context.close()

    context, form = opened()
    assert form.title() == "Question 1 of 3"
    assert form.page.locator("#progress span").text_content() == "1 of 5 answers rated"
    rate(form, 0, 1)
    held = json.loads(form.result(tmp_path).read_text("utf-8"))
    first, second = held["questions"][0]["ratings"]
    assert first["comment"] == "half-way"
    assert second["accuracy"]["level"] == "full"
    # Another content under the same name does not take these entries up.
    make_study(tmp_path / "study", candidates=1)
    forms.write_forms(tmp_path / "study", tmp_path / "forms", ["html"])
    form.page.reload()
    assert form.title() == "Before you begin"
    context.close()


@pytest.mark.browser
def test_nothing_goes_on_without_consent(tmp_path: Path, browse: Browse) -> None:
    _, (path,) = made(tmp_path, "html")
    form = browse(path)
    box = form.page.locator("input[value=agree]")
    assert not box.is_checked()
    assert form.page.locator("#overview").is_hidden()
    form.next()
    assert form.title() == "Before you begin"
    assert "Without your consent" in str(form.page.locator("main").text_content())
    assert form.page.evaluate("document.activeElement.value") == "agree"
    form.consent()
    form.next()
    form.go_to("Your consent")
    form.consent()
    assert not box.is_checked()
    form.next()
    assert form.title() == "Before you begin"
    assert form.page.locator("#overview").is_hidden()


@pytest.mark.browser
def test_markup_and_placeholders_in_texts_stay_text(tmp_path: Path, browse: Browse) -> None:
    _, (path,) = made(tmp_path, "html", nasty=True)
    assert MARKUP not in path.read_text("utf-8")
    form = browse(path)
    form.consent()
    form.next()
    form.next()
    rate(form, 0, 0)
    for selector in (".asked", ".question li", ".question p:last-child", ".candidate > p"):
        assert str(form.page.locator(selector).first.text_content()).endswith(MARKUP), selector
    choice = form.page.locator('[data-name="q0c0_missed"] label').first.text_content()
    assert str(choice).replace("\u2060", "").endswith(MARKUP)
    assert form.page.evaluate("window.hurt") is None
    assert form.page.locator("#survey img, #survey b, #survey a").count() == 0
    assert form.requests == [path.as_uri()]
    assert not form.complaints


@pytest.mark.browser
def test_where_nothing_can_be_kept_the_form_says_so_and_goes_on_from_a_file(
    tmp_path: Path, browse: Browse
) -> None:
    _, (path,) = made(tmp_path, "html")
    refuse = (
        "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('no'); }})"
    )
    form = browse(path, init=refuse)
    assert form.page.locator("#refused").is_visible()
    assert "Don't close" in str(form.page.locator("#refused").text_content())
    form.consent()
    form.next()
    form.next()
    rate(form, 0, 0, "major")
    rate(form, 0, 1)
    sent = form.result(tmp_path)

    again = browse(path, init=refuse)
    again.page.locator("footer summary").click()
    again.page.locator("#resume").set_input_files(sent)
    again.page.locator("#progress span", has_text="2 of 5").wait_for()
    before, after = (
        json.loads(p.read_text("utf-8")) for p in (sent, again.result(tmp_path / "again"))
    )
    for held in (before, after):
        held.pop("saved_at")
        for question in held["questions"]:
            question.pop("seconds")
    assert after == before

    other = tmp_path / "other.json"
    other.write_text(json.dumps({**before, "rater": "a2"}))
    again.page.locator("footer summary").click()
    again.page.locator("#resume").set_input_files(other)
    again.page.locator("#resumed", has_text="no result of this form").wait_for()


@pytest.mark.browser
def test_the_result_can_be_copied_as_text(tmp_path: Path, browse: Browse) -> None:
    folder, (path,) = made(tmp_path, "html")
    form = browse(path)
    form.consent()
    form.next()
    form.go_to("Send back")
    form.page.locator("main summary").click()
    form.page.locator("#copy").click()
    form.page.locator("#handed-in", has_text=re.compile("copied|copy it yourself")).wait_for()
    pasted = tmp_path / "pasted.json"
    pasted.write_text(form.page.locator("#result-text").input_value(), "utf-8")
    assert len(results.read_html_result(pasted, read_study(folder)).ratings) == 5


@pytest.mark.browser
def test_two_tabs_do_not_undo_each_other(tmp_path: Path, browse: Browse) -> None:
    _, (path,) = made(tmp_path, "html")
    first = browse(path)
    first.consent()
    first.next()
    first.next()
    second = Watched(first.page.context.new_page(), path)
    rate(second, 0, 0)
    first.page.locator("#progress span", has_text="1 of 5").wait_for()
    rate(first, 0, 1)
    second.page.locator("#progress span", has_text="2 of 5").wait_for()


@pytest.mark.browser
@pytest.mark.parametrize(("language", "width"), [("en", 360), ("zh-Hant", 1280)])
def test_every_page_is_accessible_and_fits_the_screen(
    tmp_path: Path, browse: Browse, language: str, width: int
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    _, (path,) = made(tmp_path, "html", nasty=True)
    form = browse(path, width=width, locale="zh-HK" if language == "zh-Hant" else "en-GB")

    def check() -> None:
        found = Axe().run(form.page).response["violations"]
        assert [(v["id"], v["nodes"][0]["html"][:200]) for v in found] == []
        assert form.page.evaluate("document.documentElement.scrollWidth") <= width
        assert form.page.locator("html").get_attribute("lang") == language
        if language == "zh-Hant":
            shown = form.page.evaluate(
                "(() => { const copy = document.body.cloneNode(true);"
                "copy.querySelectorAll('[lang=en], script, noscript, style, textarea, svg')"
                ".forEach(x => x.remove()); return copy.textContent; })()"
            )
            for text in filter(lambda one: isinstance(one, str), ORGANISER.values()):
                shown = shown.replace(text, "")
            shown = re.sub("「.*?」", "", shown)
            assert re.findall(r"[A-Za-z]{4,} [A-Za-z]{3,}", shown) == []

    form.next()
    check()
    form.consent()
    form.next()
    check()
    form.next()
    form.tick("major", "q0c0_accuracy")
    form.page.locator("#overview summary").click()
    form.page.locator(".candidate summary").first.click()
    check()
    form.page.locator("#overview button").last.click()
    form.page.locator("main summary").click()
    form.page.locator("footer summary").click()
    check()


@pytest.mark.browser
def test_the_language_changes_without_losing_anything(tmp_path: Path, browse: Browse) -> None:
    _, (path,) = made(tmp_path, "html")
    form = browse(path)
    form.consent()
    form.next()
    form.next()
    rate(form, 0, 0, "major")
    form.page.locator("#language").click()
    assert form.title() == "第 1 題，共 3 題"
    assert form.page.locator("#progress span").text_content() == "已評 1 份，共 5 份答案"
    assert form.page.locator('[data-name="q0c0_accuracy"] input[value=major]').is_checked()
    asked = form.page.locator(".asked")
    assert asked.get_attribute("lang") == "en"
    assert str(asked.text_content()).startswith("Question 1: may")
    assert form.page.evaluate("document.activeElement.id") == "language"


@pytest.mark.browser
def test_without_scripts_the_page_says_what_to_do(tmp_path: Path, browse: Browse) -> None:
    _, (path,) = made(tmp_path, "html")
    form = browse(path, java_script_enabled=False)
    text = form.page.locator("noscript").inner_text()
    assert "needs JavaScript" in text
    assert HAN.search(text)


# ---- The script for Google, against a stand-in

STAND_IN = """
function recorded(name, calls) {
  return new Proxy({}, { get: (_, method) => (...given) => {
    calls.push([name, method, given]);
    if (method === "createChoice") return { text: given[0], goes: given[1] };
    if (method.startsWith("add")) return recorded(method.slice(3), calls);
    return method.startsWith("get") ? "address" : undefined;
  }});
}
var calls = [];
var FormApp = {
  create: (title) => {
    calls.push(["FormApp", "create", [title]]);
    return recorded("form", calls);
  },
  PageNavigationType: { SUBMIT: "SUBMIT", CONTINUE: "CONTINUE" },
};
var Logger = { log: (text) => calls.push(["Logger", "log", [text]]) };
"""


def run_script(page: Any, path: Path, function: str) -> list[list[Any]]:
    code = f"(() => {{ {STAND_IN}\n{path.read_text('utf-8')}\n{function}(); return calls; }})()"
    calls: list[list[Any]] = page.evaluate(code)
    return calls


def items_of(calls: list[list[Any]]) -> list[dict[str, Any]]:
    """The items that the calls built, each with what was set on it."""
    items: list[dict[str, Any]] = []
    for name, method, given in calls:
        if name == "form" and method.startswith("add"):
            items.append({"kind": method[3:]})
        elif name not in ("form", "FormApp", "Logger") and method != "createChoice":
            items[-1][method] = given[0]
    return items


@pytest.mark.browser
@pytest.mark.parametrize(
    ("function", "language"), [("createEnglishForm", "en"), ("createChineseForm", "zh-Hant")]
)
def test_the_script_builds_the_same_form(
    tmp_path: Path, chromium: Any, function: str, language: str
) -> None:
    folder, (path,) = made(tmp_path, "gs", nasty=True)
    assert "NOT RUN ON GOOGLE" in path.read_text("utf-8")
    page = chromium.new_page()
    calls = run_script(page, path, function)
    page.close()
    assert ["form", "setCollectEmail", [False]] in calls
    items = items_of(calls)
    study = read_study(folder)
    helps = [item.get("setHelpText", "") for item in items]
    shown = [text for text in helps if "Candidate" in text]
    wanted = [study.answers[c].answer for s in study.assignment for c in s.candidates]
    assert shown == wanted
    consent = items[0]
    assert consent["setRequired"] is True
    assert [one["goes"] for one in consent["setChoices"]] == ["CONTINUE", "SUBMIT"]
    assert not any("mail" in item["setTitle"].lower() for item in items)

    # A response as Google exports it, read by the import.
    def answer(item: dict[str, Any]) -> str:
        tag = item["setTitle"].rpartition("[")[2].rstrip("]")
        options = item.get("setChoiceValues") or [one["text"] for one in item.get("setChoices", [])]
        field = tag.partition(" ")[2]
        if tag in ("consent", "rater", "batch"):
            return str(options[0])
        picked = {"accuracy": [2], "accuracy-why": [1, 2], "clarity": [0], "missed": [1]}
        return ", ".join(options[n] for n in picked.get(field, [])) if options else "noted"

    asked = [item for item in items if item["kind"] not in ("PageBreakItem", "SectionHeaderItem")]
    titles = [item["setTitle"] for item in asked]
    assert len(set(titles)) == len(titles)
    export = tmp_path / "export.csv"
    with export.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["Timestamp", *(item["setTitle"] for item in asked)])
        writer.writerow(["2026/11/03 3:05:09 pm GMT+8", *map(answer, asked)])
        refusal = ["2026/11/03", items[0]["setChoices"][1]["text"], "a1", "1"]
        writer.writerow([*refusal, *[""] * (len(asked) + 1 - len(refusal))])
    back = surveys.read_survey(export, study)
    (declined,) = back.unused
    assert declined.reason.startswith("no consent was given, but ")
    assert [one.candidate for one in back.ratings] == ["k1c1", "k1c2", "k2c1", "k2c2", "k9"]
    for one in back.ratings:
        assert not one.faults
        assert (one.accuracy.level, one.clarity.level) == ("major", "full")
        assert list(one.accuracy.descriptors) == ["omission", "fabrication"]
        assert list(one.missed_essential) == [2]
        assert (one.comment, one.batch) == ("noted", 1)


@pytest.mark.parametrize(
    ("references", "shown"),
    [
        ([], ""),
        (["B11.6", "Table B2"], "B11.6; Table B2"),
        (["A-def:fire-resistance-rating"], "Part A, definition of fire resistance rating"),
        (["C9.3-comm", "Table C1-note:6"], "C9.3 (commentary); Table C1, note 6"),
        (["PR-B1", "Diagram C2"], "Performance Requirement B1; Diagram C2"),
    ],
)
def test_provisions_bear_the_names_that_readers_know(references: list[str], shown: str) -> None:
    assert form_content.clauses(references) == shown


def test_the_examples_use_the_rubrics_own_labels() -> None:
    used = {
        "accuracy": ["full", "major", "omission", "fabrication"],
        "clarity": ["full", "minor"],
    }
    for language in rubric.LANGUAGES:
        guide = form_content.page_yaml("guide.yaml")
        said = str([one["rating"][language] for one in guide["examples"]])
        for name, chosen in used.items():
            held = rubric.load().dimensions[name]
            for one in chosen:
                label = {**held.levels, **held.descriptors}[one].label[language]
                assert label in said, (language, label)
        assert rubric.load().dimensions["accuracy"].descriptors["omission"].label[language] in str(
            guide["steps"][language]
        )


def test_texts_of_files_never_miss(tmp_path: Path) -> None:
    """Every text that Python asks for is there, in both languages."""
    source = "".join(p.read_text("utf-8") for p in PAGE.parent.glob("form_*.py"))
    keys = set(re.findall(r'(?:say|_both|coded)\(\s*"(\w+)"', source))
    assert len(keys) > 20
    for key in keys - {"your_"}:
        for language in rubric.LANGUAGES:
            values = dict.fromkeys(("n", "all", "number", "label", "level"), "1")
            assert form_content.say(key, language, **values)
