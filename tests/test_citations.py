"""Clause grounding: which provisions an answer cites, whether they exist, whose they are."""

import pytest

from hk_fs_bench.metrics.citations import cited, grounding


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Clause B6.1(b) and Table B2 apply.", ["B6.1", "Table B2"]),
        ("under B5.1, B5.2(a)(i) and C9.3.", ["B5.1", "B5.2", "C9.3"]),
        ("(B6.1) [clause b6.1] §B6.1 Cl. B6.1 paras B6.1", ["B6.1"]),
        ("See Tables B1 and B2, Diagram B5.", ["Table B1", "Table B2", "Diagram B5"]),
        ("Note 7 to Table B1; Table B1, Note (7)", ["Table B1-note:7"]),
        ("Subsections B5 to B7; Section C9", ["B5", "B7", "C9"]),
        ("clause 11.6 of Part B", ["B11.6"]),
        ("PR-B1 and Performance Requirement C2", ["PR-B1", "PR-C2"]),
        ("commentary to Clause B6.1", ["B6.1-comm"]),
        ("Clause B6.1 of the Code of Practice for Fire Safety in Buildings 2011", ["B6.1"]),
        ("Regulation 41(1), and clause B6.1 of the Code", ["B6.1"]),
        # Not the Code's.
        ("section 4 of the Buildings Ordinance (Cap. 123)", []),
        ("BS 9999 clause 5.2; NFPA 101, Section 7.2", []),
        ("clause 5.2 of BS 9999", []),
        # No citation.
        ("in basement B2, floors B1 to B3, option A, Part B", []),
        ("a width of 1.05 m and 45 minutes", []),
        ("", []),
    ],
)
def test_cited(text, found):
    assert [citation.id for citation in cited(text)] == found


@pytest.mark.parametrize(
    "text", ["Clause B99.1", "Clause H4.2", "clause 4.2.3", "Table 7", "B6.1.2", "Diagram Z9"]
)
def test_what_is_not_in_the_code_does_not_exist(text):
    (citation,) = cited(text)
    assert citation.entries == ()


@pytest.mark.parametrize("text", ["Clause B6.1", "Table B2", "PR-B1", "Subsection B5"])
def test_what_is_in_the_code_exists(text):
    (citation,) = cited(text)
    assert citation.entries


def test_grounding():
    answers = ["By B6.1 and Table B99.", "Keep the stair clear.", "See B5.1 and C9.3.", None]
    references = [["B6.1"], ["B6.1"], ["Table B2-note:1"], None]
    found = grounding(answers, references)
    questions = ["q1", "q2", "q3", "q4"]
    cites = found["cites"].estimate(questions)
    assert (cites.value, cites.n) == (2 / 4, 4)
    exist = found["citations_exist"].estimate(questions)
    assert (exist.value, exist.n) == (3 / 4, 2)
    hit = found["citations_hit"].estimate(questions)
    assert hit.value == 1 / 4
    assert found["citations_hit"].rows == [0.5, None, 0.0, None]
    assert found["cites"].rows == [1.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("answer", "own", "hit"),
    [
        ("Table B1", "Table B1-note:7", True),
        ("Note 7 to Table B1", "Table B1", True),
        ("Commentary to B6.1", "B6.1", True),
        ("Clause B6.1(d)", "B6.1", True),
        ("Subsection B6", "B6.1", False),
        ("B6.1", "B6.10", False),
    ],
)
def test_what_counts_as_the_items_own(answer, own, hit):
    ids = {"Table B1", "Table B1-note:7", "B6.1", "B6.10", "B6.1-comm", "B6"}
    assert grounding([answer], [[own]], ids)["citations_hit"].rows == [float(hit)]


def test_no_citation_is_a_reason_of_its_own():
    found = grounding(["No."], [["B6.1"]])
    assert found["citations_exist"].estimate(["q"]).reason == "no citation to count"
    assert found["cites"].estimate(["q"]).value == 0


def test_a_share_of_questions_has_wilsons_interval():
    found = grounding(["By B6.1.", "No.", "No."], [["B6.1"]] * 3)["cites"].estimate("abc")
    assert found.interval == "wilson"
    assert found.ci95 == pytest.approx((0.0615, 0.7923), abs=1e-4)


def test_all_alike_is_no_certainty():
    """15 of 15 answers that cite: Wilson's interval, where a bootstrap has none."""
    found = grounding(["By B6.1."] * 15, [["B6.1"]] * 15)["cites"].estimate(range(15))
    assert found.value == 1
    assert found.ci95[0] == pytest.approx(0.796, abs=1e-3)


def test_hostile_texts_end():
    for text in (
        "Clause B6.1, " * 20_000,
        "clause B1(a)" + "(b)" * 50_000,
        "Table B1 and " * 20_000,
    ):
        assert len(cited(text)) <= 2
