"""The index of the Code: typography to provisions, citations to ids, and the committed facts."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

import pytest

from hk_fs_bench import code_index, code_pdf
from hk_fs_bench.code_grams import grams_of_pdf, load_grams, shared_run
from hk_fs_bench.code_index import build_index, facts_json, load_facts, numbers_of
from hk_fs_bench.code_pdf import Line
from hk_fs_bench.code_refs import normalise_ref, resolve, within
from hk_fs_bench.errors import UserError
from hk_fs_bench.quantities import quantities, words_of


def line(text: str, font: str = "ArialMT", **more: object) -> Line:
    bold = font != "ArialMT"
    fields = {"sheet": 9, "page": "7", "top": 100.0, "size": 10.0, "boxed": False} | more
    return Line(font=font, bold_start=bold, text=text, **fields)  # type: ignore[arg-type]


BOLD, BLACK = "Arial-BoldMT", "Arial-Black"
MADE_UP = [
    line("Section 1 – General", BLACK),
    line("Subsection B7 – Widths of", BLACK),
    line("Made-up Things", BLACK),
    line("Clause B7.1", BLACK),
    line("A made-up door is 700mm wide, see Table B2."),
    line("Commentary", BOLD, boxed=True),
    line("Comments say 5 m.", boxed=True),
    line("The clause goes on to 9 m.", page="8"),
    line("Table B2: Invented widths", BOLD),
    line("1 - 30 persons 800"),
    line("Notes:"),
    line("1. A note of 60mm"),
    line("that runs on."),
    line("2. Another note: 1.5m."),
    line("Clause B7.2 With a title", BLACK),
    line("This mentions Clause B7.1 in bold", BOLD),
    line("Section 3 – Definitions", BLACK),
    line("“Made-up seal (MS)” means 3 things.", BOLD),
    line("Diagram B1: Not a real one", BLACK),
    line("6m", "ArialMT"),
    line("Part C", BOLD),
    line("This Part contains nothing"),
]


def test_headings_divide_the_text() -> None:
    found = {section.id: section for section in code_pdf.split(MADE_UP)}
    assert {name: section.kind for name, section in found.items()} == {
        "B7": "subsection",
        "B7.1": "clause",
        "B7.1-comm": "commentary",
        "Table B2": "table",
        "Table B2-note:1": "table_note",
        "Table B2-note:2": "table_note",
        "B7.2": "clause",
        "A-def:made-up-seal": "definition",
        "Diagram B1": "diagram",
    }
    assert found["B7"].lines[1] == "Made-up Things"
    assert found["B7.1"].lines[1:] == [
        "A made-up door is 700mm wide, see Table B2.",
        "The clause goes on to 9 m.",
    ]
    assert found["B7.1"].pages == ["7", "8"]
    assert found["B7.1-comm"].lines == ["Commentary", "Comments say 5 m."]
    assert found["Table B2-note:1"].lines == ["1. A note of 60mm", "that runs on."]
    assert found["Diagram B1"].lines[1:] == ["6m"]


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("Clause B11.6(a)", "B11.6"),
        ("clause B11.6 (b)(ii)", "B11.6"),
        ("B11.6(a)(i)", "B11.6"),
        ("Subsection B 11.6", "B11.6"),
        ("Cl. D3.1", "D3.1"),
        ("Part B, Clause B11.6", "B11.6"),
        ("Clause 11.6 of Part B", "B11.6"),
        ("§ B11.6", "B11.6"),
        ("B11", "B11"),
        ("table b2", "Table B2"),
        ("Note 7 to Table B1", "Table B1-note:7"),
        ("Table B1, note (7)", "Table B1-note:7"),
        ("Table B1-note:7", "Table B1-note:7"),
        ("Table G2 note a", "Table G2-note:a"),
        ("Diagram B5", "Diagram B5"),
        ("Commentary to Clause C9.3", "C9.3-comm"),
        ("C9.3-comm", "C9.3-comm"),
        ("Performance Requirement B1", "PR-B1"),
        ("PR-B1", "PR-B1"),
        ("definition of “Travel distance”", "A-def:travel-distance"),
        ("A-def:fireman’s-lift", "A-def:firemans-lift"),
        ("Appendix F1", "Appendix F1"),
        ("Annex A", "Annex A"),
        ("the Code's Foreword", "Foreword"),
        ("the exit doors", None),
        ("B", None),
        ("H4.2", None),
        ("", None),
    ],
)
def test_written_citations(written: str, wanted: str | None) -> None:
    assert normalise_ref(written) == wanted


def test_resolve_knows_what_exists() -> None:
    assert resolve("Clause B11.6(a)") == ("B11.6",)
    assert resolve("B11.99") == ()
    assert resolve("A5-comm") == ("A5.1-comm",)
    assert resolve("A8-comm") == ("A8-comm",)
    assert resolve("A7.1") == (), "Subsection A7 has no clauses"
    assert resolve("PR-B1") == ("PR-B1",) != resolve("B1")


def test_all_committed_ids_are_in_their_own_normal_form() -> None:
    for name in load_facts():
        assert normalise_ref(name) == name


def test_clauses_are_numbered_without_gaps() -> None:
    clauses: dict[str, list[int]] = {}
    for name, fact in load_facts().items():
        if fact.kind == "clause":
            subsection, number = name.split(".")
            clauses.setdefault(subsection, []).append(int(number))
    for subsection, numbers in clauses.items():
        assert numbers == list(range(1, len(numbers) + 1)), subsection


# Read on the printed pages, not taken from the index.
@pytest.mark.parametrize(
    ("name", "kind", "part", "page", "some", "not_in"),
    [
        ("Table A1", "table", "A", "7", {1, 8}, {9}),
        ("Table B1", "table", "B", "25", {0.5, 0.75, 4.5, 9, 10, 30, 450}, {0.6}),
        ("Table B2", "table", "B", "34", {750, 850, 1050, 1750, 2100, 2500, 18000, 12}, {1700}),
        ("Table B3", "table", "B", "41", {210, 498, 898, 32, 62, 1800}, {420}),
        ("Table B4", "table", "B", "41", {420, 708, 1238, 32, 62}, {210}),
        ("Table B5", "table", "B", "52", {2400, 2600, 10400, 24900}, {2700}),
        ("Table B6", "table", "B", "60", {300, 324, 7, 14, 26, 28, 12, 24}, {13}),
        ("Table B7", "table", "B", "60", {1100, 1200, 1350, 1500}, {100, 200, 350}),
        ("Table C1", "table", "C", "78", {2500, 10500, 7000, 28000, 60, 120}, {240}),
        ("Table C2-note:5", "table_note", "C", "81", {75}, {80}),
        ("Table D1", "table", "D", "114", {13, 17, 250, 150, 30, 15, 7000, 60, 9}, {45}),
        ("Table E2", "table", "E", "166", {225, 180, 160, 75, 190, 13, 240}, {220}),
        ("Table E6", "table", "E", "170", {450, 80, 70, 0.5}, {455}),
        ("Table G1", "table", "G", "215", {1.5, 1.7, 2, 22, 1200}, {1.6}),
        ("Table G1-note:2", "table_note", "G", "216", {93.6, 8.46, 2.3525, 1.77, 6.5}, {12}),
        ("Table G2", "table", "G", "221", {0.5, 15, 25, 30, 8}, {7}),
        ("Table G2-note:e", "table_note", "G", "221", {1}, {0.5}),
        ("Diagram B6", "diagram", "B", "73", {750, 1500, 3500, 1.2}, {900}),
        ("Diagram D8", "diagram", "D", "142", {8.1, 12, 13, 20}, {10}),
        ("B30.5", "clause", "B", "65", {50, 110}, set()),
        ("C16.1", "clause", "C", "96", set(), {7}),
        ("A-def:ultimate-place-of-safety", "definition", "A", "18", {1.5}, {1}),
        ("PR-B7", "performance_requirement", "A", "11", set(), {7}),
        ("Appendix F1", "appendix", "F", "183", set(), {99}),
        ("Foreword", "foreword", None, "i", set(), {41}),
    ],
)
def test_committed_facts_agree_with_the_page(
    name: str, kind: str, part: str, page: str, some: set[float], not_in: set[float]
) -> None:
    fact = load_facts()[name]
    assert (fact.kind, fact.part, fact.page) == (kind, part, page)
    values = {number.value for number in fact.numbers}
    assert some <= values
    assert not not_in & values


def test_facts_hold_no_sentence() -> None:
    text = resources.files("hk_fs_bench").joinpath("data", "code_facts.json").read_text("utf-8")
    kinds = {fact.kind for fact in load_facts().values()}
    longest = max((len(words_of(name)) for name in load_facts()), default=0)
    assert len(kinds) == 11
    assert longest <= 8
    assert shared_run(text) is None
    assert (
        shared_run((resources.files("hk_fs_bench") / "data" / "code_pages.yaml").read_text())
        is None
    )


def test_numbers_of_a_table_include_its_notes() -> None:
    assert within("Table B2", load_facts())[1:] == tuple(f"Table B2-note:{n}" for n in range(1, 5))
    assert 90 in numbers_of("Table B2")
    assert 90 not in {number.value for number in load_facts()["Table B2"].numbers}
    assert numbers_of("no such thing") == frozenset()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("10,500m² at 120/60/-", [(10500, "m2"), (120, ""), (60, "")]),
        ("1 100 mm and 1,050 mm", [(1100, "mm"), (1050, "mm")]),
        ("31-200 persons, 0.1m⁻¹, 60°C", [(31, ""), (200, "persons"), (0.1, ""), (60, "°C")]),
        ("Clause B11.6(a), Table B2, Use Classifications 1 and 2, 5a", []),
        ("Cap. 123, Regulation 41A, item 1.11, note 7, 5/F", []),
        ("the 2024 edition since 2011", []),
        ("2024 persons", [(2024, "persons")]),
        ("1. First\n(2) second 3 m", [(3, "m")]),
        ("Regulations 41, 41A and 41B, 5 m wide", [(5, "m")]),
        ("Regulation 7(1), type 3B, 12kN, 3rd floor", [(12, ""), (3, "")]),
        ("20 per cent or 7.5%", [(20, "%"), (7.5, "%")]),
        ("in C and D a 30 m corridor", [(30, "m")]),
        ("", []),
    ],
)
def test_quantities(text: str, wanted: list[tuple[float, str]]) -> None:
    assert [(n.value, n.unit) for n in quantities(text)] == wanted


def test_written_numerals_count_only_when_asked() -> None:
    assert quantities("two storeys, half") == []
    assert [(n.value, n.unit) for n in quantities("two storeys, half", words=True)] == [
        (2, "storeys"),
        (2, ""),
    ]


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_files_that_are_no_pdf(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        build_index(tmp_path / "absent.pdf")
    for content in (b"", b"hello", b"%PDF-1.7\nbroken"):
        with pytest.raises(UserError, match="not a readable PDF"):
            build_index(write(tmp_path / "bad.pdf", content))


@pytest.mark.parametrize(
    ("cover", "message"),
    [
        (["Code of Practice for", "Fire Safety in Buildings", "2011"], "only 0 provisions"),
        (
            [
                "Practice Note for Authorized Persons, Registered Structural Engineers",
                "APP-0: Code of Practice for Fire Safety in Buildings 2011",
            ],
            "“Practice Note for Authorized Persons",
        ),
        (["A cookery book"], "“A cookery book…”"),
        (
            ["Code of Practice for the", "Provision of Means of Escape in Case of Fire 1996"],
            "Provision of Means of Escape in Case of Fire",
        ),
    ],
)
def test_another_document_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cover: list[str], message: str
) -> None:
    pdf = write(tmp_path / "x.pdf", b"made up")
    monkeypatch.setattr(code_pdf, "read_lines", lambda _: [line(t, sheet=1) for t in cover])
    with pytest.raises(UserError, match=message):
        build_index(pdf, cache=False)


@pytest.mark.parametrize(
    ("title", "edition"),
    [
        ("Code of Practice for Fire Safety in Buildings 2011", "2011"),
        ("Code of Practice for Fire Safety in Buildings 2011 (2015 Edition)", "2015"),
        ("Code of Practice for Fire Safety in Buildings 2011 (2024 Edition)", "2024"),
        ("Code of Practice for Fire Safety in Buildings 2011 (October 2015 version)", "2015"),
    ],
)
def test_edition_from_the_cover_and_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, title: str, edition: str
) -> None:
    pdf = write(tmp_path / "x.pdf", title.encode())
    lines = [line(title, sheet=1), *MADE_UP]
    monkeypatch.setattr(code_pdf, "read_lines", lambda _: lines)
    monkeypatch.setattr(code_index, "_MIN_ENTRIES", 5)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    index = build_index(pdf)
    assert index.edition == edition
    assert [entry.id for entry in index.find("Clause B7.1(a)")] == ["B7.1"]
    # Typed entries belong to the edition they were typed from.
    assert index.entries["Diagram B1"].typed_from_page == (edition == "2024")
    monkeypatch.setattr(code_pdf, "read_lines", lambda _: pytest.fail("not read from the cache"))
    assert build_index(pdf) == index
    (cached,) = (tmp_path / "cache" / "hk-fs-bench" / "code").iterdir()
    cached.write_text("spoiled")
    monkeypatch.setattr(code_pdf, "read_lines", lambda _: lines)
    assert build_index(pdf) == index


def test_shared_runs_are_found() -> None:
    words = "one two three four five six seven eight nine ten eleven twelve thirteen"
    assert shared_run(words) is None
    assert len(load_grams()) > 50_000
    size = (resources.files("hk_fs_bench") / "data" / "code_12grams.bin").read_bytes()
    assert len(size) < 2**20


@pytest.mark.code
def test_committed_files_come_from_the_pdf() -> None:
    code_pdf_path = Path(os.environ["HK_FS_CODE_PDF"])
    index = build_index(code_pdf_path, cache=False)
    data = resources.files("hk_fs_bench") / "data"
    assert index.edition == "2024"
    assert facts_json(index) == (data / "code_facts.json").read_text("utf-8")
    assert grams_of_pdf(code_pdf_path) == (data / "code_12grams.bin").read_bytes()
    sentence = index.entries["B11.7"].text
    assert shared_run(sentence)
    # Every commentary stands in its box, so none of its text is taken for the clause's.
    for one in code_pdf.read_lines(code_pdf_path):
        if one.text in ("Commentary", "Commentary:") and "Bold" in one.font:
            assert one.boxed, one
