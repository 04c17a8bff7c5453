"""The leaderboard's site in chromium, from files: no server, no network."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hk_fs_bench import items
from hk_fs_bench.leaderboard import site
from hk_fs_bench.leaderboard.site.pages import render
from tests.boards import CHOICE, board
from tests.sites import APART, QUESTIONS, RANKED, TYPES, build_hostile, build_site

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def built(
    dataset: items.Dataset, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("board") / "site"
    return build_site(dataset, folder), folder


@pytest.fixture(scope="module")
def folder(built: tuple[dict[str, Any], Path]) -> Path:
    return built[1]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as driver:
        made = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield made
        made.close()


class Watch:
    """A page whose requests, errors and dialogs are kept."""

    def __init__(self, browser: Any, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.faults: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", lambda message: self.faults.append(message.text))
        self.page.on("dialog", lambda dialog: (self.faults.append("dialog"), dialog.dismiss()))

    def go(self, name: str) -> Any:
        # From a blank page, so that an address that differs in its hash alone is loaded anew.
        self.page.goto("about:blank")
        self.page.goto(f"file://{self.folder}/{name}")
        return self.page

    def left(self) -> list[str]:
        """The requests that left the site."""
        return [url for url in self.requests if not url.startswith(f"file://{self.folder}/")]


@pytest.fixture
def watch(browser: Any, folder: Path) -> Iterator[Callable[..., Watch]]:
    made: list[Watch] = []

    def open_one(at: Path = folder, **options: Any) -> Watch:
        size = {"width": 1280, "height": 900}
        made.append(Watch(browser, at, **({"viewport": size} | options)))
        return made[-1]

    yield open_one
    for one in made:
        one.context.close()
        assert not one.faults
        assert not one.left()


def names(page: Any) -> list[str]:
    """The entries that are seen, in their order."""
    rows = "table[data-table] tbody tr:not(.group) th bdi"
    return page.evaluate(
        f"[...document.querySelectorAll('{rows}')].filter(e => e.checkVisibility())"
        ".map(e => e.textContent)"
    )


def test_sorting(watch):
    page = watch().go("index.html")
    assert page.get_by_role("button", name="Rank", exact=True).count() == 1
    first = names(page)
    assert sorted(first[:3]) == sorted(RANKED)
    assert sorted(first[3:]) == sorted(APART)
    head = page.get_by_role("columnheader", name="Entry")
    button = head.get_by_role("button")
    assert head.get_attribute("aria-sort") is None
    button.click()
    assert names(page) == ["acme/one", "org/four", "org/three", *sorted(APART)]
    assert head.get_attribute("aria-sort") == "ascending"
    button.click()
    assert names(page) == ["org/three", "org/four", "acme/one", *sorted(APART, reverse=True)]
    assert head.get_attribute("aria-sort") == "descending"

    money = page.get_by_role("columnheader", name="US$ per 1,000 answers")
    money.get_by_role("button").click()
    assert head.get_attribute("aria-sort") is None
    assert money.get_attribute("aria-sort") == "ascending"
    # 0.1, 2, unknown; the ranked never mix with the rest.
    assert names(page)[:3] == ["org/four", "acme/one", "org/three"]
    money.get_by_role("button").click()
    # What is unknown stays last.
    assert names(page)[:3] == ["acme/one", "org/four", "org/three"]
    assert names(page)[3] == "acme/two · search on"


def test_filtering(watch):
    page = watch().go("index.html")
    shown_count = page.get_by_role("status", name="Entries shown")
    assert shown_count.inner_text() == "6 entries"
    page.get_by_label("Find").fill("ORG four")
    assert names(page) == ["org/four"]
    assert shown_count.inner_text() == "1 of 6 entries"
    # A group without rows has no heading.
    assert page.locator("tr.group:visible").count() == 1
    page.get_by_label("Find").fill("no such model")
    assert names(page) == []
    assert shown_count.inner_text() == "0 of 6 entries"
    page.get_by_role("button", name="Reset").click()
    assert len(names(page)) == 6
    page.get_by_label("Mark").select_option("reviewer's family")
    assert names(page) == ["house/claude"]
    page.get_by_label("Mark").select_option("none")
    assert sorted(names(page)) == sorted(RANKED)
    page.get_by_label("Ran", exact=True).select_option("local")
    assert names(page) == ["org/three"]


def test_views_show_their_columns(watch):
    page = watch().go("index.html")

    def heads() -> list[str]:
        return page.locator("table[data-table] thead th:visible button").all_inner_texts()

    assert "Unsafe %" in heads()
    assert "BLEU-4" not in heads()
    page.get_by_label("Open answers").check()
    assert "BLEU-4" in heads()
    assert "Unsafe %" not in heads()
    page.get_by_label("All", exact=True).check()
    assert {"Unsafe %", "BLEU-4", "Tokens out", "Submitter", "Experts, clarity"} <= {*heads()}
    cells = page.locator("table[data-table] tbody tr:not(.group)").first.locator(":scope > *")
    assert cells.count() == len(heads())


def test_permalinks(watch):
    page = watch().go("index.html")
    page.get_by_label("Find").fill("org & <b>#")
    page.get_by_label("Find").fill("o/ r")
    page.get_by_label("Find").fill("org")
    page.get_by_label("Mark").select_option("none")
    page.get_by_label("Time and cost").check()
    page.get_by_role("button", name="Accuracy % (valid)").dblclick()
    address = page.url
    wanted = names(page)
    assert sorted(wanted) == ["org/four", "org/three"]

    other = watch().go("index.html#" + address.split("#")[1])
    assert names(other) == wanted
    assert other.get_by_label("Find").input_value() == "org"
    assert other.get_by_label("Mark").input_value() == "none"
    assert other.get_by_label("Time and cost").is_checked()
    head = other.get_by_role("columnheader", name="Accuracy % (valid)")
    assert head.get_attribute("aria-sort") == "ascending"
    # An address typed into the same page is followed; what it does not say is as at first.
    other.evaluate("location.hash = 'sort=name&dir=desc'")
    other.wait_for_function("document.querySelector('[name=q]').value === ''")
    assert names(other)[:3] == ["org/three", "org/four", "acme/one"]
    assert other.get_by_label("Overview").is_checked()
    other.get_by_role("button", name="Reset").click()
    other.wait_for_function("location.hash === ''")
    assert len(names(other)) == 6


@pytest.mark.parametrize(
    "hash_", ["sort=nothing&dir=up&mark=nobody&view=none", "%", "=&&=", "main", "__proto__=1&q=%00"]
)
def test_addresses_that_mean_nothing(watch, hash_):
    page = watch().go(f"index.html#{hash_}")
    assert len(names(page)) in (0, 6)
    assert page.get_by_label("Overview").is_checked()
    assert page.locator("[aria-sort]").count() == 0


def test_keyboard_alone(watch):
    page = watch().go("index.html")

    def focused(script: str) -> Any:
        return page.evaluate(f"(() => {{ const e = document.activeElement; return {script} }})()")

    page.keyboard.press("Tab")
    assert focused("e.textContent") == "Skip to the content"
    assert focused("e.getBoundingClientRect().left >= 0")
    page.keyboard.press("Enter")
    assert focused("e.id") == "main"
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(focused("e.closest('th')?.dataset.key ?? e.name ?? e.localName"))
        width = focused("parseFloat(getComputedStyle(e).outlineWidth)")
        assert width >= 2, seen[-1]
        if seen[-1] == "accuracy":
            break
    assert seen[:2] == ["q", "league"]
    assert "view" in seen
    assert seen[-1] == "accuracy"
    page.keyboard.press("Enter")
    head = page.locator("th[data-key=accuracy]")
    assert head.get_attribute("aria-sort") == "descending"
    page.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "ascending"
    # Still there, so that the next key goes on from there.
    assert focused("e.closest('th').dataset.key") == "accuracy"
    page.get_by_label("Overview").focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_label("Multiple choice").is_checked()
    page.get_by_label("Find").focus()
    page.keyboard.type("three")
    page.keyboard.press("Enter")
    assert names(page) == ["org/three"]


@pytest.mark.parametrize("name", TYPES)
def test_narrow(watch, name):
    """At 360 pixels the page itself never scrolls sideways, and text keeps its size."""
    page = watch(viewport={"width": 360, "height": 740}).go(name)
    for details in page.locator("details").all()[:3]:
        details.evaluate("own => own.open = true")
    if page.get_by_label("All", exact=True).count():
        page.get_by_label("All", exact=True).check()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.evaluate("scrollTo(400, 0)")
    assert page.evaluate("scrollX") == 0
    smallest = page.evaluate(
        "Math.min(...[...document.querySelectorAll('main *')].filter(e => e.textContent.trim())"
        ".map(e => parseFloat(getComputedStyle(e).fontSize)))"
    )
    assert smallest >= 12
    for table in page.locator(".scroll:has(> table)").all():
        inside, outside = table.evaluate("own => [own.scrollWidth, own.clientWidth]")
        if inside > outside:
            assert table.get_attribute("tabindex") == "0"


def test_dark_and_light(watch):
    def ground(scheme: str) -> list[int]:
        page = watch(color_scheme=scheme).go("index.html")
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return [int(part) for part in re.findall(r"\d+", colour)]

    assert sum(ground("dark")) < 120
    assert sum(ground("light")) > 700


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", TYPES)
def test_accessibility_checker(watch, name, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = watch(color_scheme=scheme).go(name)
    for details in page.locator("details").all()[:3]:
        details.evaluate("own => own.open = true")
    found = axe.Axe().run(page, options={"preload": False}).response["violations"]
    assert not [(v["id"], [node["html"][:120] for node in v["nodes"][:3]]) for v in found]


def test_attacks_do_nothing(watch, dataset, tmp_path):
    hostile = tmp_path / "site"
    build_hostile(dataset, hostile)
    one = watch(hostile)
    pages = ("index.html", "plots.html", "questions.html", "questions/mcq-0374.html",
             "questions/oeq-0019.html", "entries/entry-1-0000000001.html",
             "entries/entry-2-0000000002.html")  # fmt: skip
    for name in pages:
        page = one.go(f"{name}#q=%3Cscript%3E&sort=name&<img src=x onerror=alert(1)>")
        page.evaluate(
            "document.querySelectorAll('a, td, th, summary, bdi').forEach(e => "
            "['mouseover', 'focus'].forEach(kind => "
            "e.dispatchEvent(new Event(kind, {bubbles: true}))))"
        )
        assert page.evaluate("window.pwned") is None
        assert page.evaluate("document.scripts.length") == 1
        assert page.evaluate("document.querySelectorAll('img, iframe, base, object').length") == 0
        assert page.url.startswith(f"file://{hostile}/{name}")
        if page.get_by_label("Find").count():
            page.get_by_label("Find").fill("<img src=x onerror=alert(1)>")


def test_the_policy_forbids_what_is_not_of_the_site(browser, folder, tmp_path):
    """Were a text to become markup after all, nothing of it would run or load."""
    copy = tmp_path / "site"
    shutil.copytree(folder, copy)
    attack = (
        '<script>window.pwned = 1</script><img src="https://evil.example/x.png" '
        'onerror="window.pwned = 1"><p style="color: red" id="p">x</p>'
        '<link rel="stylesheet" href="https://evil.example/x.css">'
        '<iframe src="https://evil.example"></iframe></main>'
    )
    page = copy / "index.html"
    page.write_text(page.read_text("utf-8").replace("</main>", attack), "utf-8")
    one = Watch(browser, copy)
    opened = one.go("index.html")
    assert opened.evaluate("window.pwned") is None
    assert (
        opened.evaluate("getComputedStyle(document.getElementById('p')).color") != "rgb(255, 0, 0)"
    )
    assert any("Content Security Policy" in fault for fault in one.faults)
    one.context.close()


def test_without_script_everything_is_there(watch):
    page = watch(java_script_enabled=False).go("index.html")
    assert page.locator("tbody tr:not(.group) th bdi").count() == 6 + 1
    assert page.locator("th[data-key=bleu4]").is_visible()
    assert page.locator("th[data-key=submitter]").is_visible()
    assert not page.locator("form").is_visible()
    assert page.locator("th button").count() == 0
    page.get_by_role("link", name="acme/one").click()
    assert page.get_by_role("heading", name="acme/one").is_visible()
    assert page.get_by_text("Signature:").first.is_visible()


def test_a_link_to_an_answer_opens_it(watch):
    page = watch().go("questions/oeq-0019.html")
    page.locator("table[data-table] tbody tr").first.locator("td a").click()
    answer = page.locator("details#oeq-0019")
    assert answer.get_attribute("open") is not None
    assert "An answer of entry-" in answer.inner_text()
    assert page.url.endswith("#oeq-0019")


def test_answers_beside_the_keys(watch, built):
    content = built[0]
    page = watch().go("entries/entry-1-0000000001.html")
    rows = page.locator("table[data-table] tbody tr:visible")
    assert rows.count() == QUESTIONS
    page.get_by_label("Answer with context").select_option("right")
    value = content["entries"][0]["tasks"][CHOICE[0]]["accuracy"]["value"]
    assert rows.count() == round(QUESTIONS * value)
    for row in rows.all():
        key, answer = row.locator("td").nth(3).inner_text(), row.locator("td").nth(4).inner_text()
        assert answer == f"{key} right"


def test_a_thousand_entries(watch, dataset, tmp_path):
    entries = [{"name": f"org/model-{n}", "skill": (n % 70) / 70} for n in range(1000)]
    name, text = next(render(board(dataset, entries, 1), dataset, None))
    shutil.copytree(Path(site.__file__).parent / "static", tmp_path / "static")
    (tmp_path / name).write_text(text, "utf-8")
    page = watch(tmp_path).go(name)
    page.get_by_label("All", exact=True).check()
    page.get_by_role("columnheader", name="Entry").get_by_role("button").click()
    assert names(page) == [f"org/model-{n}" for n in range(250)]
    page.get_by_label("Find").fill("model-99")
    assert len(names(page)) == 11  # those beyond the first 250 are found too
    # The table scrolls in its own place, so what is below stays within reach.
    page.get_by_label("Find").fill("")
    page.get_by_role("button", name="Show the other 750").click()
    assert names(page) == [f"org/model-{n}" for n in range(1000)]
    assert page.evaluate("document.documentElement.scrollHeight") < 4000
