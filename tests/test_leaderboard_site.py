"""The leaderboard's pages: their bytes, what they say, and what they must never let through."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
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
from tests.boards import CHOICE, OPEN, board
from tests.sites import (
    APART,
    ENTRIES,
    PAYLOADS,
    QUESTIONS,
    RANKED,
    STUDY,
    build_hostile,
    build_site,
    texts_of,
)

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def built(
    dataset: items.Dataset, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("board") / "site"
    return build_site(dataset, folder), folder


@pytest.fixture(scope="module")
def content(built: tuple[dict[str, Any], Path]) -> dict[str, Any]:
    return built[0]


@pytest.fixture(scope="module")
def folder(built: tuple[dict[str, Any], Path]) -> Path:
    return built[1]


@pytest.fixture(scope="module")
def hostile(dataset: items.Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hostile") / "site"
    build_hostile(dataset, made)
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


def said(slug: str) -> dict[tuple[str, str], str]:
    return {(OPEN, f"oeq-{n:04d}"): f"An answer of {slug}" for n in range(1, 400)}


def test_bytes_are_the_same_from_several_processes(tmp_path, content, dataset, monkeypatch):
    one = site.build(content, dataset, tmp_path / "one", said)
    monkeypatch.setattr(site, "_MANY", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert site.build(content, dataset, tmp_path / "three", said) == one
    assert digest(tmp_path / "three") == digest(tmp_path / "one")
    assert b"An answer of" in b"".join(p.read_bytes() for p in (tmp_path / "three").rglob("*.html"))


def test_a_process_that_fails_leaves_the_old_site(tmp_path, content, dataset, monkeypatch):
    site.build(content, dataset, tmp_path / "site")
    before = digest(tmp_path / "site")
    monkeypatch.setattr(site, "_MANY", 1)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    broken = json.loads(json.dumps(content))
    broken["entries"][-1]["slug"] = "../outside"
    with pytest.raises(UserError, match="slug"):
        site.build(broken, dataset, tmp_path / "site")
    assert digest(tmp_path / "site") == before
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


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


def test_each_study_has_its_column(dataset):
    """What one judge says never stands in the column of another."""
    judges = ("pilot, judged by one", "pilot, judged by two")
    first, second = (STUDY | {"study": name} for name in judges)
    entries = [
        {"name": "a/a", "skill": 0.5, "judge": [first, second]},
        {"name": "b/b", "skill": 0.5, "judge": [second | {"accuracy": None}]},
    ]
    content = board(dataset, entries, 3)
    found = [c for c in columns.columns(content["entries"]) if c.label.startswith("Judge")]
    assert [c.label for c in found if "accuracy" in c.label] == [
        f"Judge model, accuracy ({name})" for name in judges
    ]
    texts = [[columns.cell(c, entry).text for c in found] for entry in content["entries"]]
    assert texts == [["61.00", "61.00", "72.00", "72.00"], ["–", "–", "–", "72.00"]]


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
