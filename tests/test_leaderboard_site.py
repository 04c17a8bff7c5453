"""The leaderboard's site: its bytes, what it must never let through, and its pages in chromium."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from hk_fs_bench import items
from hk_fs_bench.errors import UserError
from hk_fs_bench.leaderboard import site
from hk_fs_bench.leaderboard.site import columns, plots, shown
from hk_fs_bench.leaderboard.site.board import page_of
from hk_fs_bench.leaderboard.site.pages import render
from tests.boards import CHOICE, OPEN, board

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = 8
# One page of each type, of the site that `folder` builds.
TYPES = (
    "index.html",
    "plots.html",
    "questions.html",
    "entries/entry-2-0000000002.html",
    "questions/mcq-0374.html",
    "questions/oeq-0019.html",
)
# How an entry's answers come: by (task, item id).
Texts = dict[tuple[str, str], str]


def rated(value: float) -> dict[str, Any]:
    return {"value": value, "low": value - 0.05, "high": value + 0.05, "n": 68}


STUDY = {
    "study": "pilot",
    "rubric_version": "1",
    "dataset_version": "1.0.0",
    "raters": 4,
    "accuracy": rated(0.61),
    "clarity": rated(0.72),
    "unsafe_share": rated(0.2),
}
ENTRIES: tuple[dict[str, Any], ...] = (
    {"name": "acme/one", "skill": 0.95, "price": 0.002, "human": [STUDY]},
    {
        "name": "acme/two · search on",
        "skill": 0.9,
        "price": 0.01,
        "flags": ("search",),
        "warnings": ["half of the answers were late"],
        "differences": [
            {
                "task": CHOICE[0],
                "figure": "accuracy",
                "claimed": 0.5,
                "recomputed": 0.4,
                "claimed_signature": "old",
            }
        ],
        "judge": [STUDY],
    },
    {"name": "org/three", "skill": 0.7},
    {"name": "org/four", "skill": 0.5, "price": 0.0001},
    {"name": "house/claude", "skill": 0.9, "flags": ("drafter_family", "reviewer_family")},
    {"name": "tiny/five", "skill": 0.2, "flags": ("plumbing_check",)},
)


RANKED = ["acme/one", "org/three", "org/four"]
APART = ["acme/two · search on", "house/claude", "tiny/five"]


def texts_of(content: dict[str, Any], text: str) -> Texts:
    return {(task, name): text for task, names in content["questions"].items() for name in names}


@pytest.fixture(scope="module")
def content(dataset: items.Dataset) -> dict[str, Any]:
    return board(dataset, ENTRIES, QUESTIONS)


@pytest.fixture(scope="module")
def folder(
    content: dict[str, Any], dataset: items.Dataset, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    made = tmp_path_factory.mktemp("board") / "site"
    site.build(content, dataset, made, lambda slug: texts_of(content, f"An answer of {slug}."))
    return made


# ---- the content, held against the schema that the board has


def test_boards_of_these_tests_hold_the_schema(content):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "leaderboard/schema/leaderboard.schema.json").read_text("utf-8"))
    jsonschema.validate(json.loads(json.dumps(content)), schema)


# ---- bytes


def digest(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


BUILD = """
import json, sys
from pathlib import Path
from hk_fs_bench import items
from hk_fs_bench.leaderboard import site
content = json.loads(Path(sys.argv[1]).read_text("utf-8"))
site.build(content, items.load(), Path(sys.argv[2]))
"""


def test_bytes_are_the_same_in_another_process(tmp_path, content, dataset):
    """Another hash seed, locale, time zone and folder change nothing."""
    (tmp_path / "board.json").write_text(json.dumps(content), "utf-8")
    surroundings = {"PYTHONHASHSEED": "7", "LC_ALL": "C", "TZ": "Asia/Hong_Kong"}
    other = tmp_path / "elsewhere" / "s"
    subprocess.run(
        [sys.executable, "-c", BUILD, str(tmp_path / "board.json"), str(other)],
        check=True,
        cwd=tmp_path,
        env=os.environ | surroundings,
    )
    site.build(content, dataset, tmp_path / "site")
    assert digest(other) == digest(tmp_path / "site")


def test_a_site_is_replaced_whole(tmp_path, content, dataset):
    folder = tmp_path / "site"
    pages = site.build(content, dataset, folder)
    assert pages == 3 + len(ENTRIES) + 2 * QUESTIONS
    before = digest(folder)
    assert len([name for name in before if name.endswith(".html")]) == pages
    smaller = board(dataset, ENTRIES[:2], 3)
    site.build(smaller, dataset, folder)
    assert len(list((folder / "entries").iterdir())) == 2
    assert len(list((folder / "questions").iterdir())) == 6
    site.build(content, dataset, folder)
    assert digest(folder) == before
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def broken_slug(content: dict[str, Any]) -> dict[str, Any]:
    return content | {"entries": [content["entries"][0] | {"slug": "../../x"}]}


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (lambda c, d, f: (c, replace(d, sha256="0" * 64), f), "stands on dataset"),
        (lambda c, d, f: ((f.mkdir(), (f / "thesis.txt").touch()), (c, d, f))[1], "thesis.txt"),
        (lambda c, d, f: (f.write_text("mine"), (c, d, f))[1], "is a file"),
        (lambda c, d, f: (broken_slug(c), d, f), "../../x"),
    ],
)
def test_what_is_refused_leaves_the_folder_as_it_was(tmp_path, content, dataset, spoil, text):
    folder = tmp_path / "site"
    arguments = spoil(content, dataset, folder)
    before = digest(tmp_path)
    with pytest.raises(UserError, match=re.escape(text)):
        site.build(*arguments)
    assert digest(tmp_path) == before
    assert {path.name for path in tmp_path.iterdir()} <= {"site"}


def test_a_folder_that_can_not_be_written(tmp_path, content, dataset):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="can't be written"):
        site.build(content, dataset, tmp_path / "file" / "site")


# ---- what a page says


def read(folder: Path, name: str) -> str:
    return (folder / name).read_text("utf-8")


def test_only_pages_with_items_carry_the_canary_and_noindex(folder, content):
    for path in folder.rglob("*.html"):
        name, text = path.relative_to(folder).as_posix(), path.read_text("utf-8")
        shows_items = name not in ("index.html", "plots.html")
        assert (content["dataset"]["canary"] in text) == shows_items, name
        assert ('name="robots" content="noindex' in text) == shows_items, name
        assert "default-src 'none'" in text, name
    assert not any(
        item.question[:40] in read(folder, "index.html") for item in items.load().items("mcq")
    )


def test_a_question_is_shown_as_it_is(folder, dataset):
    text = read(folder, "questions/mcq-0374.html")
    page = text_of(text)
    item = dataset.by_id["mcq-0374"]
    for said in (item.question, *item.choices, item.explanation, item.distractors["B"].why):
        assert said in page
    assert text_of(read(folder, "questions/oeq-0019.html")).count(
        dataset.by_id["oeq-0019"].reference_answer
    )


def test_first_comes_what_the_figures_are_not(folder):
    page = text_of(read(folder, "index.html"))
    said = [
        page.index(text)
        for text in (
            "Our own questions, not the authors'.",
            "Not reviewed by registered professionals.",
            "Scores are advisory only.",
            "Drafted by: Claude (Anthropic)",
            "acme/one",
        )
    ]
    assert said == sorted(said)


def groups(folder: Path) -> dict[str, str]:
    """Heading of a group of the table → its text."""
    table = read(folder, "index.html").split("<table", 2)[1]
    found = [text_of(f"<tbody>{body}") for body in table.split("<tbody>")[1:]]
    heads = re.findall(r'<tr class="group">.*?<span>(.*?)<small>', table)
    return dict(zip(heads, found, strict=True))


def test_marked_entries_stand_apart_with_their_marks(folder):
    found = groups(folder)
    assert list(found) == ["Ranked", "Not ranked with the rest"]
    ranked, apart = found.values()
    for name in RANKED:
        assert name in ranked
        assert name not in apart
    for name in APART:
        assert name in apart
        assert name not in ranked
    for mark in ("web search", "drafter's family", "reviewer's family", "plumbing check"):
        assert mark in apart
        assert mark not in ranked
    assert "Rank 1" not in apart
    assert "tie group" not in apart
    # The paper's rows are in a table of their own.
    assert "Llama3-70B" not in ranked + apart
    paper = text_of(read(folder, "index.html").split("<table", 2)[2])
    assert "Llama3-70B" in paper
    assert "77.75 (78.73)" in paper
    # What the paper does not report stays unknown.
    assert '7.32</td><td class="n">–</td>' in read(folder, "index.html")


def test_two_protocols_are_ranked_by_themselves(dataset, tmp_path):
    content = board(dataset, ENTRIES, 3)
    other = "ba9876543210"
    entry = content["entries"][3]
    entry["tasks"][CHOICE[0]] |= {
        "league": other,
        "rank": {"best": 1, "worst": 1, "of": 1, "tie_group": 1},
    }
    first = next(iter(content["leagues"].values()))
    content["leagues"][other] = first | {
        "protocol": first["protocol"] | {"regime": "paper"},
        "entries": [entry["slug"]],
    }
    site.build(content, dataset, tmp_path / "site")
    found = groups(tmp_path / "site")
    by_themselves = "Ranked by themselves: regime paper"
    assert list(found) == ["Ranked", by_themselves, "Not ranked with the rest"]
    assert "org/four" in found[by_themselves]
    assert "ranks do not compare" in found[by_themselves]
    assert "org/four" not in found["Ranked"]


@pytest.mark.parametrize(
    ("entries", "said"),
    [((), "No entry yet."), (ENTRIES[5:], "No entry is ranked yet"), (ENTRIES[2:3], "org/three")],
)
def test_a_board_with_little_on_it(dataset, tmp_path, entries, said):
    site.build(board(dataset, entries, 3), dataset, tmp_path / "site")
    assert said in text_of(read(tmp_path / "site", "index.html"))


def test_an_entry_that_ran_one_task_only(dataset, tmp_path):
    content = board(dataset, ENTRIES[:1], 3)
    (entry,) = content["entries"]
    entry["tasks"] = {OPEN: entry["tasks"][OPEN]}
    entry["context"] = None
    site.build(content, dataset, tmp_path / "site")
    assert "Without the ranked task" in read(tmp_path / "site", "index.html")
    assert "Answers beside the keys" not in read(tmp_path / "site", f"entries/{entry['slug']}.html")


def test_a_question_that_was_not_asked_is_no_answer(dataset, tmp_path):
    """After an erratum an older entry has a blank there."""
    content = board(dataset, ENTRIES[:2], 3)
    for entry in content["entries"][:1]:
        for task in (*CHOICE, OPEN):
            outcomes = entry["tasks"][task]["outcomes"]
            outcomes["status"] = " " + outcomes["status"][1:]
            if "chosen" in outcomes:
                outcomes["chosen"] = " " + outcomes["chosen"][1:]
    site.build(content, dataset, tmp_path / "site")
    for task in (CHOICE[0], OPEN):
        page = read(tmp_path / "site", f"questions/{content['questions'][task][0]}.html")
        assert "acme/two" in page
        assert "acme/one" not in page
    assert "0 of 0" in read(
        tmp_path / "site", f"questions/{content['questions'][CHOICE[0]][0]}.html"
    )


def test_columns_of_people_and_judges_come_with_their_figures(dataset, folder, tmp_path):
    site.build(board(dataset, ENTRIES[2:], 3), dataset, tmp_path / "site")
    heads = ("Experts, accuracy", "Judge model, accuracy")
    with_none, with_some = (read(f, "index.html") for f in (tmp_path / "site", folder))
    for head in heads:
        column = re.compile(f"<th [^>]*data-key[^>]*>{head}</th>")
        assert column.search(with_some)
        assert not column.search(with_none)
    entry = text_of(read(folder, "entries/entry-1-0000000001.html"))
    assert "61.00 (56.0–66.0), n 68" in entry


def test_each_encoder_has_its_column(dataset):
    content = board(dataset, ENTRIES[:2], 3)
    first, second = (entry["tasks"][OPEN]["metrics"] for entry in content["entries"])
    first["bertscore_f1"] = second["bertscore_f1@MiniLM.L6"] = first["meteor"]
    labels = [column.label for column in columns.columns(content["entries"])]
    assert [label for label in labels if label.startswith("BERT")] == [
        "BERTScore F1",
        "BERTScore F1 (MiniLM.L6)",
    ]


def test_long_and_broken_answers(dataset, tmp_path):
    content = board(dataset, ENTRIES[:1], 3)
    site.build(
        content, dataset, tmp_path / "site", lambda slug: texts_of(content, "x\ud800" * 9000)
    )
    page = read(tmp_path / "site", f"entries/{content['entries'][0]['slug']}.html")
    assert page.count("x?") <= 3 * 2100
    assert "cut here" in page


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://example.org/a?b=c#d", True),
        ("http://example.org:8080", True),
        ("javascript:alert(1)", False),
        ("JaVaScRiPt:alert(1)", False),
        ("data:text/html,x", False),
        ('https://example.org/" onmouseover="x', False),
        ("https://user:pw@example.org", False),
        ("//example.org", False),
        ("https://example.org/\u202egro", False),
        (" https://example.org", False),
        ("https://example.org\n", False),
        (None, False),
    ],
)
def test_links(url, allowed):
    assert (shown.link(url) is not None) == allowed


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: shown.percent(0.7775), "77.75"),
        (lambda: shown.percent(None), "–"),
        (lambda: shown.span([0.7348, 0.8158]), "73.5–81.6"),
        (lambda: shown.span(None), ""),
        (lambda: shown.points(-0.0125), "−1.25"),
        (lambda: shown.points(0.0125), "+1.25"),
        (lambda: shown.points(-0.0000001), "0.00"),
        (lambda: shown.points_span([-0.00001, 0.08]), "0.0 to +8.0"),
        (lambda: shown.number(12345.6), "12,346"),
        (lambda: shown.usd(0.00021905), "0.00022"),
        (lambda: shown.usd(12.3), "12.30"),
        (lambda: shown.usd(0.0), "0"),
        (lambda: page_of("mcq-0374"), "mcq-0374"),
        (lambda: page_of("../Q 1")[:2], "q-"),
    ],
)
def test_what_is_shown(call: Callable[[], str], text):
    assert call() == text


def test_scales_stand_in_their_bounds():
    scale = plots.share_scale([0.71, 0.93])
    assert (scale.low, scale.high) == (0.7, 1.0)
    assert scale.at(0.85) == "50.00%"
    assert scale.up(1.0) == "0.00%"
    assert scale.within(0.25) is None
    assert [label for _, label in plots.share_ticks(scale)] == ["70", "80", "90", "100"]
    for values in ([0.0], [1.0], [0.5, 0.5], []):
        scale = plots.share_scale(values)
        assert 0 <= scale.low < scale.high <= 1
    money = plots.log_scale([0.0002, 12.0])
    labels = [label for _, label in plots.log_ticks(money)]
    assert labels == ["0.001", "0.01", "0.1", "1", "10"]
    assert [label for _, label in plots.log_ticks(plots.log_scale([2.75]))] == ["2"]


def test_plots_leave_out_what_the_table_has(dataset, tmp_path):
    entries = [{"name": f"org/m{n}", "skill": 0.5, "price": 0.001} for n in range(45)]
    site.build(board(dataset, entries, 3), dataset, tmp_path / "site")
    page = read(tmp_path / "site", "plots.html")
    assert page.count("5 more entries stand in the") == 2
    # Names for the first forty alone, dots for all.
    assert ">40</text>" in page
    assert ">41</text>" not in page
    assert page.count('r="5"') == 2 * 45


def test_many_entries_make_no_big_page(dataset, tmp_path):
    """A page grows with the entries by what one row takes."""
    sizes = []
    for many in (100, 200):
        entries = [{"name": f"org/model-{n}", "skill": 0.5} for n in range(many)]
        site.build(board(dataset, entries, 4), dataset, tmp_path / f"site{many}")
        pages = ("index.html", "questions/mcq-0374.html", "questions/oeq-0019.html")
        sizes.append([(tmp_path / f"site{many}" / name).stat().st_size for name in pages])
    index, choice, opened = (after - before for before, after in zip(*sizes, strict=True))
    assert index < 100 * 3_500
    assert choice < 100 * 350
    assert opened < 100 * 350


# ---- what strangers write


class Tags(HTMLParser):
    """The tags of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    return tags


def text_of(text: str) -> str:
    return " ".join("".join(parsed(text).text).split())


PAYLOADS = (
    "<script>window.pwned = 1; alert(1)</script>",
    '<img src=x onerror="window.pwned = 1">',
    "\"' onmouseover='window.pwned = 1' autofocus onfocus='window.pwned = 1' x=\"",
    '</td></table></bdi><svg onload="window.pwned = 1"><style>*{display:none}</style>',
    "<!-- --><base href=//evil.example/><meta http-equiv=refresh content='0;url=//evil.example'>",
    "{{ 7 * 7 }}{% raw %}${7 * 7}|a|b\u202egnp.exe",
    "<a href=\"javascript:window.pwned = 1\">x</a><iframe srcdoc='<script>x</script>'>",
)


def poisoned(value: Any, number: Iterator[int]) -> Any:
    """A JSON value with a payload in each of its texts that is no slug, key or code."""
    if isinstance(value, dict):
        return {key: poisoned(inner, number) for key, inner in value.items()}
    if isinstance(value, list):
        return [poisoned(inner, number) for inner in value]
    if isinstance(value, str):
        return f"{value[:8]}{PAYLOADS[next(number) % len(PAYLOADS)]}"
    return value


# What build makes and the schema fixes; everything else in an entry is poisoned.
FIXED = {"slug", "kind", "outcomes", "contamination", "league", "label", "supersedes"}


def poison(entry: dict[str, Any], number: Iterator[int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in entry.items():
        if key in FIXED:
            found[key] = value
        elif key == "links":
            found[key] = {name: f"javascript:alert('{name}')" for name in ("model", "code")}
            found[key]["paper"] = 'https://example.org/" onmouseover="window.pwned = 1'
        elif key == "by":
            found[key] = {
                poisoned(field, number): {
                    poisoned(name, number): poisoned(figure, number)
                    for name, figure in groups.items()
                }
                for field, groups in value.items()
            }
        elif isinstance(value, dict):
            found[key] = poison(value, number)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            found[key] = [poison(own, number) for own in value]
        else:
            found[key] = poisoned(value, number)
    return found


@pytest.fixture(scope="module")
def hostile(dataset: items.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of entries whose every text attacks it, fields that the check refuses included."""
    content = board(dataset, ENTRIES, 4)
    numbers = iter(range(10**6))
    for entry in content["entries"]:
        kinds = [flag["kind"] for flag in entry["flags"]]
        entry |= {"notes": "n", "supersedes": "other", "superseded_by": PAYLOADS[0]}
        entry["declaration"]["statement"] = "s"
        entry["submitter"]["name"] = "name"
        entry["model"] |= {"revision": "r", "returned_ids": ["one"], "requested_id": "two"}
        for key, value in poison(entry, numbers).items():
            entry[key] = value
        for flag, kind in zip(entry["flags"], kinds, strict=True):
            flag["kind"] = kind
        entry["tasks"][OPEN]["outcomes"]["rows"][PAYLOADS[1]] = [0.5] * 4
        entry["tasks"][OPEN]["metrics"]["bertscore_f1@" + PAYLOADS[3]] = entry["tasks"][OPEN][
            "metrics"
        ]["meteor"]
    content["paper"] = poisoned(content["paper"], numbers)
    content["families"] = {"drafters": list(PAYLOADS), "reviewers": list(PAYLOADS)}
    content["software"] = {"hk_fs_bench": PAYLOADS[0], "parser": PAYLOADS[1]}
    league = next(iter(content["leagues"].values()))
    league["protocol"] = {key: PAYLOADS[n % 6] for n, key in enumerate(("regime", "data"))}
    made = tmp_path_factory.mktemp("hostile") / "site"
    site.build(content, dataset, made, lambda slug: texts_of(content, "".join(PAYLOADS)))
    return made


ALLOWED = {
    *("html", "head", "meta", "title", "link", "script", "body", "a", "header", "nav", "main"),
    *("footer", "div", "p", "span", "strong", "small", "bdi", "h1", "h2", "h3", "ul", "ol", "li"),
    *("dl", "dt", "dd", "details", "summary", "table", "caption", "thead", "tbody", "tr", "th"),
    *("td", "form", "fieldset", "legend", "label", "input", "select", "option", "button"),
    *("output", "svg", "line", "circle", "text"),
}


def test_no_text_becomes_markup(hostile):
    for path in hostile.rglob("*.html"):
        tags = parsed(path.read_text("utf-8")).tags
        assert {tag for tag, _ in tags} <= ALLOWED, path
        for tag, attributes in tags:
            assert not [name for name in attributes if name.startswith("on")], (path, attributes)
            assert "style" not in attributes
            if tag == "script":
                assert attributes.get("src", "").endswith("static/site.js")
            if tag == "meta":
                assert (attributes.get("http-equiv") or "Content-Security-Policy") == (
                    "Content-Security-Policy"
                )
            if (url := attributes.get("href")) and urlsplit(url).scheme:
                assert urlsplit(url).scheme in ("http", "https")
                assert "noopener" in (attributes.get("rel") or "")
            elif url:
                assert not url.startswith("/")


def test_what_strangers_write_is_shown_as_they_wrote_it(hostile):
    """Escaped once: nothing is lost, nothing doubled."""
    page = parsed(read(hostile, "entries/entry-2-0000000002.html")).text
    text = "".join(page)
    for payload in PAYLOADS:
        assert payload in text
    assert "&lt;" not in text
    assert "49" not in text.split("window.pwned")[-1][:3]


def test_links_of_a_page_lead_somewhere(folder):
    tags = {path.resolve(): parsed(path.read_text("utf-8")).tags for path in folder.rglob("*.html")}
    ids = {path: {own.get("id") for _, own in found} for path, found in tags.items()}
    for path, found in tags.items():
        for _, attributes in found:
            for name in ("href", "src"):
                url = urlsplit(attributes.get(name) or "")
                if url.scheme or not (url.path or url.fragment):
                    continue
                target = (path.parent / unquote(url.path)).resolve() if url.path else path
                assert target.is_file(), (path, url)
                if url.fragment:
                    assert url.fragment in ids[target], (path, url)


# ---- in chromium


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


@pytest.mark.browser
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


@pytest.mark.browser
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


@pytest.mark.browser
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


@pytest.mark.browser
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


@pytest.mark.browser
@pytest.mark.parametrize(
    "hash_", ["sort=nothing&dir=up&mark=nobody&view=none", "%", "=&&=", "main", "__proto__=1&q=%00"]
)
def test_addresses_that_mean_nothing(watch, hash_):
    page = watch().go(f"index.html#{hash_}")
    assert len(names(page)) in (0, 6)
    assert page.get_by_label("Overview").is_checked()
    assert page.locator("[aria-sort]").count() == 0


@pytest.mark.browser
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


@pytest.mark.browser
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


@pytest.mark.browser
def test_dark_and_light(watch):
    def ground(scheme: str) -> list[int]:
        page = watch(color_scheme=scheme).go("index.html")
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return [int(part) for part in re.findall(r"\d+", colour)]

    assert sum(ground("dark")) < 120
    assert sum(ground("light")) > 700


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", TYPES)
def test_accessibility_checker(watch, name, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = watch(color_scheme=scheme).go(name)
    for details in page.locator("details").all()[:3]:
        details.evaluate("own => own.open = true")
    found = axe.Axe().run(page, options={"preload": False}).response["violations"]
    assert not [(v["id"], [node["html"][:120] for node in v["nodes"][:3]]) for v in found]


@pytest.mark.browser
def test_attacks_do_nothing(watch, hostile):
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


@pytest.mark.browser
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


@pytest.mark.browser
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


@pytest.mark.browser
def test_a_link_to_an_answer_opens_it(watch):
    page = watch().go("questions/oeq-0019.html")
    page.locator("table[data-table] tbody tr").first.locator("td a").click()
    answer = page.locator("details#oeq-0019")
    assert answer.get_attribute("open") is not None
    assert "An answer of entry-" in answer.inner_text()
    assert page.url.endswith("#oeq-0019")


@pytest.mark.browser
def test_answers_beside_the_keys(watch, content):
    page = watch().go("entries/entry-1-0000000001.html")
    rows = page.locator("table[data-table] tbody tr:visible")
    assert rows.count() == QUESTIONS
    page.get_by_label("Answer with context").select_option("right")
    value = content["entries"][0]["tasks"][CHOICE[0]]["accuracy"]["value"]
    assert rows.count() == round(QUESTIONS * value)
    for row in rows.all():
        key, answer = row.locator("td").nth(3).inner_text(), row.locator("td").nth(4).inner_text()
        assert answer == f"{key} right"


@pytest.mark.browser
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
