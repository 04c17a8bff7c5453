"""Other people's tables, as they really come, become editions; faults are named by place."""

import codecs
import csv
import io
import json

import openpyxl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hk_fs_bench import items, tables
from hk_fs_bench.errors import UserError
from hk_fs_bench.import_mapping import read_mapping
from hk_fs_bench.importing import import_file
from hk_fs_bench.validating import validate
from tests.test_tasks import evaluate

HEAD = ["No.", "Stem", "Opt 1", "Opt 2", "Opt 3", "Opt 4", "Right", "Why"]
ROW = ["7", "How wide?", "750 mm", "900 mm", "1050 mm", "1200 mm", "C", "Because of the table."]
COLUMNS = {
    "id": "No.",
    "question": "Stem",
    "options": ["Opt 1", "Opt 2", "Opt 3", "Opt 4"],
    "key": "Right",
    "explanation": "Why",
}


def mapping(tmp_path, **changes):
    path = tmp_path / "mapping.yaml"
    path.write_text(yaml.safe_dump({"type": "mcq", "columns": COLUMNS} | changes), "utf-8")
    return read_mapping(path)


def as_csv(rows, delimiter=",", **options):
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, **options).writerows(rows)
    return text.getvalue()


def row(**changes):
    """ROW with cells changed by column name, its blanks as _ and its full stop left out."""
    names = [name.replace(" ", "_").rstrip(".") for name in HEAD]
    return [changes.get(name, old) for name, old in zip(names, ROW, strict=True)]


def load(tmp_path, content, name="set.csv", **changes):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    import_file(path, mapping(tmp_path, **changes), tmp_path / "out")
    return items.load(tmp_path / "out").items("mcq")


def workbook(tmp_path, rows, edit=lambda sheet: None, name="set.xlsx"):
    book = openpyxl.Workbook()
    for cells in rows:
        book.active.append(cells)
    edit(book.active)
    book.save(tmp_path / name)
    return (tmp_path / name).read_bytes()


def test_twenty_rows_of_somebody_elses_run_through_a_task(tmp_path):
    """Semicolons, their column names, keys as text, a title row; then lm-eval itself."""
    rows = [["Item", "Question text", "a", "b", "c", "d", "Correct answer", "Remark"]]
    for n in range(1, 21):
        options = [f"{n * k} metres" for k in (1, 2, 3, 4)]
        rows.append([f"Q {n}", f"Case {n}: what distance?", *options, options[n % 4], ""])
    (tmp_path / "theirs.csv").write_text(as_csv(rows, ";"), "utf-8")
    theirs = mapping(
        tmp_path,
        columns={
            "id": "Item",
            "question": "Question text",
            "options": ["a", "b", "c", "d"],
            "key": "Correct answer",
        },
        key_is="text",
    )
    done = import_file(tmp_path / "theirs.csv", theirs, tmp_path / "out")
    assert (done.split, done.count) == ("mcq/test", 20)
    assert done.notes == ["signs that an id can't hold were made dashes"]
    edition = items.load(tmp_path / "out")
    assert {i.id: i.answer for i in edition.items("mcq")} == {
        f"Q-{n}": "ABCD"[n % 4] for n in range(1, 21)
    }
    right = {i.id: i.answer for i in edition.items("mcq")}
    model, found = evaluate(
        "hk_fs_mcq_hk",
        lambda prompt, doc: json.dumps({"answer": right[doc["id"]], "reason": "x"}),
        metadata={"hk_fs_dataset": str(tmp_path / "out")},
    )
    assert found["results"]["hk_fs_mcq_hk"]["acc,parsed"] == 1
    assert len(model.requests) == 20
    assert any("Case 7: what distance?\nA) 7 metres\n" in request[0] for request in model.requests)
    assert validate(tmp_path / "out", probe=False).ok


GOOD = {
    "plain": as_csv([HEAD, ROW]).encode(),
    "bom": codecs.BOM_UTF8 + as_csv([HEAD, ROW]).encode(),
    "utf-16": as_csv([HEAD, ROW]).encode("utf-16"),
    "semicolons": as_csv([HEAD, ROW], ";").encode(),
    "tabs": as_csv([HEAD, ROW], "\t").encode(),
    "unix line ends, no last one": as_csv([HEAD, ROW]).replace("\r\n", "\n").strip().encode(),
    "empty rows around": as_csv([[], HEAD, [], ROW, [""] * 8, [" "] * 8, []]).encode(),
    "extra unmapped columns": as_csv([[*HEAD, "x", ""], [*ROW, "y", ""]]).encode(),
    "trailing delimiters": as_csv([HEAD, [*ROW, "", ""]]).encode(),
    "blanks around cells": as_csv([HEAD, [f" {c}\xa0" for c in ROW]]).encode(),
}


@pytest.mark.parametrize("raw", GOOD.values(), ids=GOOD)
def test_ways_to_write_one_table(tmp_path, raw):
    (item,) = load(tmp_path, raw)
    assert item.id == "7"
    assert item.question == "How wide?"
    assert item.choices == ROW[2:6]
    assert item.answer == "C"
    assert item.explanation == ROW[7]


def test_cp1252_is_read_and_said(tmp_path):
    text = as_csv([HEAD, row(Stem="Door of the café – which?")])
    (tmp_path / "set.csv").write_bytes(text.encode("cp1252"))
    done = import_file(tmp_path / "set.csv", mapping(tmp_path), tmp_path / "out")
    assert items.load(tmp_path / "out").by_id["7"].question == "Door of the café – which?"
    assert done.notes == [
        "no UTF-8 (line 2), read as Windows-1252: check accents and signs, or name its encoding"
    ]


def test_a_named_encoding(tmp_path):
    raw = as_csv([HEAD, row(Stem="防火門幾時要關？")]).encode("big5")
    assert load(tmp_path, raw, encoding="big5")[0].question == "防火門幾時要關？"
    for encoding, message in (("ascii", "set.csv is not ascii throughout"), ("runic", "no encod")):
        with pytest.raises(UserError, match=message):
            import_file(tmp_path / "set.csv", mapping(tmp_path, encoding=encoding), tmp_path / "o")


@pytest.mark.parametrize(
    ("key", "key_is", "letter"),
    [
        ("b", "letter", "B"),
        ("(B)", "letter", "B"),
        ("B.", "letter", "B"),
        ("Option D", "letter", "D"),
        ("B) 900 mm", "letter", "B"),
        ("4", "number", "D"),
        ("1", "number", "A"),
        ("0", "zero_based", "A"),
        ("3", "zero_based", "D"),
        ("900 MM.", "text", "B"),
        ("B) 900  mm", "text", "B"),
    ],
)
def test_ways_to_write_a_key(tmp_path, key, key_is, letter):
    (item,) = load(tmp_path, as_csv([HEAD, row(Right=key)]), key_is=key_is)
    assert item.answer == letter


@pytest.mark.parametrize(
    ("changes", "key_is", "message"),
    [
        ({"Right": ""}, "letter", "row 2, column Right: is empty"),
        ({"Right": "E"}, "letter", "row 2, column Right: E is outside the options A to D"),
        ({"Right": "B) 750 mm"}, "letter", "names B, whose text is another"),
        ({"Right": "A or B"}, "letter", "'A or B' is no letter"),
        ({"Right": "2"}, "letter", "'2' is no letter; the mapping says key_is: letter"),
        ({"Right": "0"}, "number", "'0' is no number from 1 to 4"),
        ({"Right": "4"}, "zero_based", "'4' is no number from 0 to 3"),
        ({"Right": "2.5"}, "number", "'2.5' is no number from 1 to 4"),
        ({"Right": "800 mm"}, "text", "'800 mm' is the text of 0 options"),
        ({"Stem": " "}, "letter", "row 2, column Stem: is empty"),
        ({"Opt_2": ""}, "letter", "row 2, column Opt 2: is empty"),
        ({"Opt_2": "750 mm"}, "letter", "row 2: two options of `choices` are the same text"),
        ({"No": "?!"}, "letter", "row 2, column No.: '?!' has no letter or digit"),
    ],
)
def test_faulty_cells_are_named(tmp_path, changes, key_is, message):
    with pytest.raises(UserError, match="1 faults, nothing was written") as caught:
        load(tmp_path, as_csv([HEAD, row(**changes)]), key_is=key_is)
    assert len(caught.value.details) == 1
    assert message in caught.value.details[0]
    assert not (tmp_path / "out").exists()


def test_every_fault_is_listed(tmp_path):
    rows = [HEAD, row(), row(), row(No="8", Right="X"), row(No="9", Stem=""), row(Right="")]
    with pytest.raises(UserError, match="5 faults") as caught:
        load(tmp_path, as_csv(rows))
    assert sorted(caught.value.details) == [
        "set.csv row 3, column No.: id 7 stands in row 2 already",
        "set.csv row 4, column Right: X is outside the options A to D",
        "set.csv row 5, column Stem: is empty",
        "set.csv row 6, column No.: id 7 stands in row 2 already",
        "set.csv row 6, column Right: is empty",
    ]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "set.csv is empty"),
        (b"\r\n,,\r\n", "set.csv is empty"),
        (as_csv([HEAD]).encode(), "has a head and no rows"),
        (as_csv([HEAD[:-1], ROW[:-1]]).encode(), "no column 'Why' that the mapping names"),
        (as_csv([[*HEAD, "Stem"], [*ROW, "x"]]).encode(), "two columns are called Stem"),
        (as_csv([HEAD, [*ROW, "surplus"]]).encode(), "row 2 has 9 cells, the head has 8"),
        (b'No.,Stem\r\n1,"open', "row 2 .line 2.: .*are the quotes"),
        (b"No.,Stem\x00\r\n", "NUL bytes"),
        (b"No.,Stem\r\n1,caf\x81\r\n", "line 2: neither UTF-8 nor Windows-1252"),
    ],
)
def test_unreadable_tables(tmp_path, raw, message):
    with pytest.raises(UserError, match=message):
        load(tmp_path, raw)


def numeric(sheet):
    """What a spreadsheet makes of the numbers that somebody typed."""
    for place, value in {"A2": 7, "C2": 1, "D2": 2.5, "E2": 0.5, "F2": 1200.0}.items():
        sheet[place] = value
    sheet["E2"].number_format = "0%"


def test_xlsx_with_numbers_title_and_empty_tail(tmp_path):
    def edit(sheet):
        numeric(sheet)
        sheet["B9"] = " "
        sheet["K12"].font = openpyxl.styles.Font(bold=True)

    (item,) = load(tmp_path, workbook(tmp_path, [HEAD, ROW], edit), "set.xlsx")
    assert item.id == "7"
    assert item.choices == ["1", "2.5", "50%", "1200"]


HOSTILE = {
    "merged key": (lambda s: s.merge_cells("G2:G3"), "row 2, column Right: is part of the merged"),
    "formula": (lambda s: s.__setitem__("G2", '="C"'), "column Right: is a formula"),
    "error": (lambda s: s.__setitem__("C2", "#N/A"), "column Opt 1: holds the error #N/A"),
    "date": (
        lambda s: s.__setitem__("C2", __import__("datetime").date(2026, 2, 1)),
        "column Opt 1: was made a date",
    ),
}


@pytest.mark.parametrize(("edit", "message"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_xlsx(tmp_path, edit, message):
    raw = workbook(tmp_path, [HEAD, ROW, row(No="8")], edit)
    with pytest.raises(UserError) as caught:
        load(tmp_path, raw, "set.xlsx")
    assert message in caught.value.details[0]


def test_faults_in_columns_that_nobody_maps_don_t_matter(tmp_path):
    def edit(sheet):
        sheet["I1"], sheet["I2"] = "Note", "=NOW()"
        sheet.merge_cells("J2:J3")

    raw = workbook(tmp_path, [HEAD, ROW, row(No="8")], edit)
    assert len(load(tmp_path, raw, "set.xlsx")) == 2


def test_sheets(tmp_path):
    def edit(sheet):
        sheet.title = "Key"
        other = sheet.parent.create_sheet("Readme")
        other["A1"] = "About this file"

    raw = workbook(tmp_path, [HEAD, ROW], edit)
    with pytest.raises(UserError, match=r"several sheets .*Key, Readme"):
        load(tmp_path, raw, "set.xlsx")
    assert len(load(tmp_path, raw, "set.xlsx", sheet="Key")) == 1


@pytest.mark.parametrize("raw", [b"PK\x03\x04broken", b"\xd0\xcf\x11\xe0old", b""])
def test_no_workbook(tmp_path, raw):
    with pytest.raises(UserError, match="can't be read as XLSX"):
        load(tmp_path, raw, "set.xlsx")


def test_json_with_nested_fields_and_a_list_of_options(tmp_path):
    raw = {
        "licence": "x",
        "items": [
            {
                "meta": {"id": 3},
                "q": "Which?",
                "opts": ["A) one", "B) two", "C) three", "D) four"],
                "gold": 1,
                "eng": "Yes",
                "refs": ["B11.6", "Table B2"],
            }
        ],
    }
    columns = {"id": "meta.id", "question": "q", "options": "opts", "key": "gold"}
    columns |= {"engineering_related": "eng", "references": "refs"}
    (item,) = load(
        tmp_path, json.dumps(raw), "set.json", columns=columns, key_is="zero_based",
        constants={"part": "B"},
    )  # fmt: skip
    assert (item.id, item.answer, item.part) == ("3", "B", "B")
    assert item.choices == ["one", "two", "three", "four"]
    assert item.engineering_related is True
    assert item.references == ["B11.6", "Table B2"]


def test_both_subsets_make_one_edition(tmp_path):
    load(tmp_path, as_csv([HEAD, ROW]))
    rows = [{"n": "o-1", "ask": "Why?", "ref": "Because."}, {"n": "7", "ask": "How?", "ref": "So."}]
    path = tmp_path / "open.jsonl"
    oeq = {"id": "n", "question": "ask", "reference_answer": "ref"}
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), "utf-8")
    with pytest.raises(UserError) as caught:
        import_file(path, mapping(tmp_path, type="oeq", columns=oeq), tmp_path / "out")
    assert "row 2, column n: id 7 stands in data/mcq/test.jsonl already" in caught.value.details[0]
    path.write_text(json.dumps(rows[0]) + "\n", "utf-8")
    import_file(path, mapping(tmp_path, type="oeq", columns=oeq), tmp_path / "out")
    edition = items.load(tmp_path / "out")
    assert [i.id for i in edition.items("oeq")] == ["o-1"]
    assert [i.id for i in edition.items("mcq")] == ["7"]
    with pytest.raises(UserError, match=r"has data/oeq/test\.jsonl already"):
        import_file(path, mapping(tmp_path, type="oeq", columns=oeq), tmp_path / "out")


def test_names_are_taken_as_they_are_written(tmp_path):
    """YAML reads No, Yes and 1 as false, true and a number; columns are called so."""
    path = tmp_path / "mapping.yaml"
    path.write_text(
        "type: mcq\nversion: 1.0\nsheet: 2024\n"
        "columns: {id: No, question: Y, options: [1, 2, 3, 4], key: On, engineering_related: Off}\n"
        "values: {engineering_related: {Ja: true, Nein: no}, part: {No: B}}\n"
        "constants: {edition_sensitive: yes}\n",
        "utf-8",
    )
    found = read_mapping(path)
    assert (found.version, found.sheet) == ("1.0", "2024")
    assert found.columns_used() == ["No", "Y", "1", "On", "Off", "2", "3", "4"]
    assert found.values == {"engineering_related": {"Ja": True, "Nein": False}, "part": {"No": "B"}}
    assert found.constants == {"edition_sensitive": True}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"colour": 1}, "field `colour` is not one of the format"),
        ({"columns": {"id": "a", "question": "b"}}, "mcq needs columns.options and columns.key"),
        ({"columns": COLUMNS | {"options": ["a", "b"]}}, "must name four columns"),
        ({"type": "oeq"}, "oeq needs columns.reference_answer"),
        ({"key_is": "roman"}, "key_is"),
    ],
)
def test_faulty_mappings(tmp_path, changes, message):
    with pytest.raises(UserError, match=r"mapping\.yaml: ") as caught:
        mapping(tmp_path, **changes)
    assert message in str(caught.value)


def test_ten_thousand_rows(tmp_path):
    rows = [HEAD, *([f"q{n}", f"Question {n}?", *ROW[2:]] for n in range(10_000))]
    assert len(load(tmp_path, as_csv(rows))) == 10_000
    raw = workbook(tmp_path, [*rows, [None] * 8, row(No="q5")])
    with pytest.raises(UserError) as caught:
        import_file(tmp_path / "set.xlsx", mapping(tmp_path), tmp_path / "second")
    assert raw
    assert caught.value.details == ["set.xlsx row 10003, column No.: id q5 stands in row 7 already"]


@given(st.lists(st.lists(st.text(max_size=8), min_size=8, max_size=8), max_size=5))
def test_any_table_is_read_or_refused(tmp_path_factory, rows):
    """Whatever stands in the cells, there is a table or one line that says what is wrong."""
    path = tmp_path_factory.mktemp("any") / "set.csv"
    path.write_text(as_csv([HEAD, *rows]), "utf-8", errors="surrogatepass")
    refused = None
    try:
        found = len(tables.read_table(path).rows)
    except UserError as error:
        found, refused = 0, str(error)
    assert found <= len(rows)
    assert refused is None or refused.startswith("set.csv")
