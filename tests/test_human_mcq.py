"""Practitioners' multiple choice: the draw, the page in a browser, and the figures."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hk_fs_bench.errors import UserError
from hk_fs_bench.human import forms, mcq_baseline
from hk_fs_bench.items import Dataset
from tests.human_forms import ORGANISER


@pytest.fixture
def organiser(tmp_path: Path) -> Path:
    path = tmp_path / "organiser.yaml"
    path.write_text(yaml.safe_dump(ORGANISER, allow_unicode=True), "utf-8")
    return path


def result(
    dataset: Dataset, rights: dict[str, list[bool | None]], who: str = "p1"
) -> dict[str, Any]:
    """A result file: by condition, whether each drawn question was answered right (None: open)."""
    drawn = mcq_baseline.draw(dataset, 1, 6)
    answers = []
    for condition, said in rights.items():
        for item, right in zip(drawn, said, strict=False):
            wrong = "ABCD"[("ABCD".index(item.answer) + 1) % 4]
            letter = None if right is None else item.answer if right else wrong
            row = {"item_id": item.id, "condition": condition, "answer": letter, "seconds": 10.0}
            answers.append(row)
    return {
        "format": mcq_baseline.FORMAT,
        "version": 1,
        "rater": who,
        "dataset": {"version": dataset.version, "sha256": dataset.sha256},
        "consent": {"given": True},
        "answers": answers,
    }


def read(tmp_path: Path, dataset: Dataset, *held: Any) -> list[mcq_baseline.Answered]:
    paths = []
    for n, one in enumerate(held):
        paths.append(tmp_path / f"r{n}.json")
        paths[-1].write_text(one if isinstance(one, str) else json.dumps(one), "utf-8")
    return mcq_baseline.read_results(paths, dataset)


def test_the_draw_is_stratified_and_its_seeds_own(dataset: Dataset) -> None:
    drawn = mcq_baseline.draw(dataset, 7)
    assert len({item.id for item in drawn}) == 60
    assert drawn == mcq_baseline.draw(dataset, 7)
    assert {i.id for i in drawn} != {i.id for i in mcq_baseline.draw(dataset, 8)}
    whole = dataset.items("mcq")
    for field in ("part", "engineering_related"):
        shares = Counter(getattr(item, field) for item in whole)
        mine = Counter(getattr(item, field) for item in drawn)
        for value, count in shares.items():
            # A seat of rounding for every stratum that the value is spread over.
            assert abs(mine[value] - 60 * count / len(whole)) < 7, (field, value)
    assert len(mcq_baseline.draw(dataset, 1, 10_000)) == len(whole)


def test_without_results_every_figure_is_null_and_says_why(dataset: Dataset) -> None:
    held = mcq_baseline.figures([], dataset)
    for condition in mcq_baseline.CONDITIONS:
        accuracy = held["conditions"][condition]["accuracy"]
        assert accuracy["value"] is None
        assert accuracy["reason"] == "no practitioner has answered yet"
    assert held["gain"]["value"] is None


def test_figures_by_hand(tmp_path: Path, dataset: Dataset) -> None:
    first = result(
        dataset,
        {
            "closed": [True, False, False, None, True, False],
            "open": [True, True, False, True, True, None],
        },
    )
    first["answers"][1]["answer"] = "?"
    second = result(dataset, {"closed": [False] * 6, "open": []}, "p2")
    rows = read(tmp_path, dataset, first, second)
    held = mcq_baseline.figures(rows, dataset)
    closed, opened = (held["conditions"][name] for name in mcq_baseline.CONDITIONS)
    assert closed["accuracy"]["value"] == pytest.approx(2 / 11)
    assert (closed["participants"], closed["answers"], closed["left_open"]) == (2, 11, 1)
    assert (closed["cannot_tell"], closed["seconds_median"]) == (1, 10.0)
    assert closed["accuracy"]["n"] == 6
    assert closed["accuracy"]["unit"] == "questions"
    low, high = closed["accuracy"]["ci95"]
    assert low < 2 / 11 < high
    assert dataset.sha256[:12] in closed["accuracy"]["signature"]
    assert opened["accuracy"]["value"] == pytest.approx(4 / 5)
    # Four questions that p1 answered both times: 0, +1, 0, 0.
    assert held["gain"]["value"] == pytest.approx(1 / 4)
    assert held["gain"]["n"] == 4
    assert json.loads(json.dumps(held, allow_nan=False)) == held


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"format": "else"}, "no result of the form"),
        ({"version": 2}, "no result of the form"),
        ({"rater": ""}, "names no participant"),
        ({"rater": 7}, "names no participant"),
        ({"consent": {"given": "true"}}, "no consent"),
        ({"consent": None}, "no consent"),
        ({"dataset": {"sha256": "0"}}, "another edition"),
        ({"answers": []}, "no answers"),
        ({"answers": "A"}, "no answers"),
        ({"answers": [1]}, "no object"),
        ({"answers": [{"item_id": "oeq-0001"}]}, "no test question"),
        ({"answers": [{"item_id": ["a"]}]}, "no test question"),
    ],
)
def test_a_file_that_is_no_result_is_refused(
    tmp_path: Path, dataset: Dataset, changes: dict[str, Any], says: str
) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path, dataset, {**result(dataset, {"closed": [True]}), **changes})
    assert says in caught.value.details[0]
    assert "r0.json" in caught.value.details[0]


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("condition", "shut", "none of the form's"),
        ("condition", ["closed"], "none of the form's"),
        ("answer", "E", "no option"),
        ("answer", ["A"], "no option"),
        ("answer", "AB", "no option"),
        ("seconds", -1, "no time"),
        ("seconds", math.inf, "no time"),
        ("seconds", math.nan, "no time"),
        ("seconds", 10**400, "no time"),
        ("seconds", True, "no time"),
        ("seconds", "5", "no time"),
    ],
)
def test_an_answer_that_can_be_none_is_refused(
    tmp_path: Path, dataset: Dataset, field: str, value: Any, says: str
) -> None:
    held = result(dataset, {"closed": [True]})
    held["answers"][0][field] = value
    with pytest.raises(UserError) as caught:
        read(tmp_path, dataset, held)
    assert says in caught.value.details[0]


def test_doubles_and_unreadable_files_are_listed_together(tmp_path: Path, dataset: Dataset) -> None:
    twice = result(dataset, {"closed": [True]})
    twice["answers"] *= 2
    good = result(dataset, {"closed": [True]}, "p9")
    with pytest.raises(UserError) as caught:
        read(tmp_path, dataset, twice, good, good, "{", "[" * 100_000)
    assert len(caught.value.details) == 4
    with pytest.raises(UserError, match="1 of 1"):
        mcq_baseline.read_results([tmp_path], dataset)


def test_pages_hold_no_key_and_no_address(
    tmp_path: Path, organiser: Path, dataset: Dataset
) -> None:
    written = forms.write_mcq_forms(tmp_path / "out", dataset, 1, organiser, ["p1", "p2", "p1"])
    assert [path.name for path in written] == ["mcq-p1.html", "mcq-p2.html"]
    page = written[0].read_text("utf-8")
    data = json.loads(page.partition('id="form-data">')[2].partition("</script>")[0])
    assert [set(one) for one in data["questions"]] == [{"item_id", "question", "choices"}] * 60
    for item in mcq_baseline.draw(dataset, 1):
        assert str(item.explanation) not in page
        assert item.choices == next(
            one["choices"] for one in data["questions"] if one["item_id"] == item.id
        )
    before = [path.read_bytes() for path in written]
    forms.write_mcq_forms(tmp_path / "out", dataset, 1, organiser, ["p1", "p2"])
    assert [path.read_bytes() for path in written] == before
    for name in ("a@b.example", "../up", "", "x" * 41):
        with pytest.raises(UserError, match="no id"):
            forms.write_mcq_forms(tmp_path / "out", dataset, 1, organiser, [name])
    with pytest.raises(UserError, match="at least one"):
        forms.write_mcq_forms(tmp_path / "out", dataset, 1, organiser, [])
    with pytest.raises(UserError, match="missing"):
        forms.write_mcq_forms(tmp_path / "out", dataset, 1, tmp_path / "none.yaml", ["p1"])


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield browser
        browser.close()


@pytest.mark.browser
def test_closed_book_then_open_book_in_a_browser(
    tmp_path: Path, organiser: Path, dataset: Dataset, chromium: Any
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    (path,) = forms.write_mcq_forms(tmp_path, dataset, 1, organiser, ["p1"], count=3)
    keys = [item.answer for item in mcq_baseline.draw(dataset, 1, 3)]
    page = chromium.new_page(viewport={"width": 360, "height": 740})
    page.set_default_timeout(8000)
    requests: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda one: requests.append(one.url))
    page.on("console", lambda one: complaints.append(one.text))
    page.goto(path.as_uri())
    following = page.locator(".sd-navigation__next-btn")
    title = page.locator("#page-title")

    def tick(value: str) -> None:
        page.locator(f'#survey label:has(input[value="{value}"])').click()

    def check() -> None:
        assert Axe().run(page).response["violations"] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 360

    following.click()
    assert title.text_content() == "Before you begin"
    tick("agree")
    following.click()
    assert page.locator("#progress span").text_content() == "0 of 6 answered"
    check()
    following.click()
    for n in range(3):
        assert title.text_content() == f"Closed book: question {n + 1} of 3"
        if n == 0:
            check()
        tick("?" if n == 2 else keys[n])
        following.click()
    assert title.text_content() == "Now open the book"
    check()
    page.locator("#overview summary").click()
    names = page.locator("#overview button").all_text_contents()
    assert not any(name.startswith("Open 1") for name in names)
    following.click()
    assert title.text_content() == "Open book: question 1 of 3"
    assert page.locator(".sd-navigation__prev-btn").count() == 0
    names = page.locator("#overview button").all_text_contents()
    assert not any(name.startswith("Closed") for name in names)
    # The second time starts from nothing, and the closed book stays shut after a reload.
    assert page.locator("#survey input:checked").count() == 0
    page.reload()
    assert title.text_content() == "Open book: question 1 of 3"
    assert page.locator(".sd-navigation__prev-btn").count() == 0
    tick(keys[0])
    following.click()
    assert page.locator(".sd-navigation__prev-btn").count() == 1
    tick(keys[1])
    page.locator("#overview summary").click()
    page.locator("#overview button").last.click()
    assert "Open 3: 1 left" in str(page.locator("main .notice").text_content())
    check()
    with page.expect_download() as caught:
        page.locator("#download").click()
    sent = tmp_path / "sent.json"
    caught.value.save_as(sent)
    page.close()
    rows = mcq_baseline.read_results([sent], dataset)
    assert [row.answer for row in rows] == [*keys[:2], "?", *keys[:2], None]
    assert all(row.seconds is not None and row.seconds > 0 for row in rows[:5])
    held = mcq_baseline.figures(rows, dataset)
    assert held["conditions"]["closed"]["accuracy"]["value"] == pytest.approx(2 / 3)
    assert held["conditions"]["open"]["accuracy"]["value"] == 1
    assert json.loads(sent.read_text("utf-8"))["complete"] is False
    assert {re.sub("^blob:.*", "blob", url) for url in requests} <= {path.as_uri(), "blob"}
    assert not complaints


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    script = Path(__file__).resolve().parent.parent / "scripts" / "human_eval.py"
    return subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True, check=False
    )


def test_the_command_writes_forms_and_figures(
    tmp_path: Path, organiser: Path, dataset: Dataset
) -> None:
    out = str(tmp_path / "mcq")
    done = command("forms", "--mcq", "--out", out)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--organiser" in done.stderr
    given = ["--participant", "p1", "--organiser", str(organiser)]
    assert command("forms", "--mcq", "--out", out, *given).returncode == 0
    assert (tmp_path / "mcq" / "mcq-p1.html").is_file()
    done = command("import", out, "--mcq")
    assert "closed book: no figure, no practitioner has answered yet" in done.stdout
    sent = tmp_path / "sent.json"
    sent.write_text(json.dumps(result(dataset, {"closed": [True, False, True]})))
    done = command("import", out, str(sent), "--mcq")
    assert "closed book: 66.7% right (95% " in done.stdout
    held = json.loads((tmp_path / "mcq" / "baseline.json").read_text())
    assert held["conditions"]["open"]["accuracy"]["value"] is None
