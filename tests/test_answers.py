"""The parser against tables of outputs: our own, and the field's where its folder is near."""

import gc
import itertools
import json
import re
import time
from pathlib import Path

import pytest

from hk_fs_bench import items
from hk_fs_bench.answers import (
    CASCADE,
    PARSER_VERSION,
    STATUSES,
    ParsedAnswer,
    objects,
    parse_mcq,
    parse_oeq,
    status_of_cause,
)
from hk_fs_bench.answers.words import _lists

DATA = Path(__file__).parent / "data"
FIELD = Path(__file__).parents[2] / "shared" / "cases" / "A_mcq_answers.jsonl"
CHOICES = [
    "Paint the refuge floor a bright colour",
    "Keep the lobby door self-closing",
    "Fit a second lock to the exit gate",
    "Store spare chairs on the landing",
]


def rows(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def own_cases():
    options = json.loads((DATA / "mcq_options.json").read_text("utf-8"))
    for row in rows(DATA / "mcq_answers.jsonl"):
        keywords = {k: row[k] for k in ("finish_reason", "reasoning_open") if k in row}
        wanted = (row["expected"], row.get("status"))
        yield pytest.param(row["input"], options[row["options"]], keywords, *wanted, id=row["id"])


def field_cases():
    for row in rows(FIELD) if FIELD.exists() else ():
        keywords = {"finish_reason": row["context"].get("finish_reason")}
        options = list(row["context"]["options"].values())
        yield pytest.param(row["input"], options, keywords, row["expected"], None, id=row["id"])


@pytest.mark.parametrize(
    ("text", "choices", "keywords", "expected", "status"), [*own_cases(), *field_cases()]
)
def test_mcq(text, choices, keywords, expected, status):
    parsed = parse_mcq(text, choices, **keywords)
    assert (parsed.value or "invalid") == expected, parsed
    assert (parsed.value is not None) == (parsed.status in ("valid", "repaired"))
    assert status is None or parsed.status == status
    assert parsed.status in STATUSES
    assert parsed.method in CASCADE


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ('{"answer": "B", "reason": "x"}', "json"),
        ("{'answer': 'B'}", "repaired_json"),
        ('{\\"answer\\": \\"B\\"}', "decoded_json"),
        ("B", "whole_text"),
        ("I think the answer is B.", "statement"),
        ('The answer is B.\n{"answer": "B"}', "json"),
        ("<think>B", "reasoning"),
        ("", "empty"),
        ("no letter here", "none"),
    ],
)
def test_the_first_step_that_finds_an_answer_names_the_method(text, method):
    assert parse_mcq(text, CHOICES).method == method


def test_every_result_carries_the_parser_version():
    assert PARSER_VERSION == "1"
    assert ParsedAnswer("B", "json", "valid").parser_version == PARSER_VERSION
    assert parse_mcq("B", CHOICES).parser_version == PARSER_VERSION
    assert parse_oeq("text").parser_version == PARSER_VERSION


def test_real_options_are_read_in_every_form():
    """Options as they really are: ratings like "-/60/60", articles, numbers, long sentences.

    Of each question one option, A to D in turn.
    """
    for place, item in enumerate(items.load().items("mcq")):
        listed = [f"{label}) {choice}" for label, choice in zip("ABCD", item.choices, strict=True)]
        echo = item.question + "\n" + "\n".join(listed)
        label, text = "ABCD"[place % 4], item.choices[place % 4]
        other = item.choices[(place + 1) % 4]

        def read(output, choices=item.choices):
            return parse_mcq(output, choices).value

        assert read(echo) is None
        assert read(item.explanation) is None
        values = (label, text, f"{label}. {text}", f"{label}) {text[0].lower() + text[1:]}")
        for value in (*values, f"{text} ({label})", f"{label}: {' '.join(text.split()[:3])}"):
            pairs = {"answer": value, "reason": item.explanation}
            for output in (json.dumps(pairs), json.dumps(pairs)[1:-1], str(pairs)):
                assert read(output) == label, (item.id, output)
        for output in (
            f"{label}. {text}",
            text,
            f"{echo}\nAnswer: {label}",
            f"Answer: {label}. {text}\n\nExplanation: {item.explanation}",
            f"The correct answer is {label}) {text}",
            f"The answer is {text}",
            f"**{label}) {text}**\n\n{item.explanation}",
            f"{item.explanation}\n\nThe answer is {label}.",
        ):
            assert read(output) == label, (item.id, output)
        for output in (
            json.dumps({"answer": f"{label}. {other}", "reason": item.explanation}),
            f"Answer: {label}. {other}",
            f"{label}. {other}",
        ):
            assert read(output) is None, (item.id, output)


LONG = "Doors open outwards. " * 30

OEQ = [
    # text, answer, reason, status
    ('{"answer": "Doors open.", "reason": "Crowds."}', "Doors open.", "Crowds.", "valid"),
    ('```json\n{"answer": "Two.", "reason": "x y"}\n```', "Two.", "x y", "valid"),
    ('Sure:\n{"answer": "Two.", "reason": ""}', "Two.", None, "valid"),
    ("{'answer': 'The door's swing', 'reason': None}", "The door's swing", None, "repaired"),
    ('{"answer": "First.\nSecond.", "reason": "x"}', "First.\nSecond.", "x", "repaired"),
    ('{"answer": "a "protected" lobby", "reason": "x"}', 'a "protected" lobby', "x", "repaired"),
    ('"answer": "Two.", "reason": "x y"', "Two.", "x y", "repaired"),
    (json.dumps(json.dumps({"answer": "Two.", "reason": "x"})), "Two.", "x", "repaired"),
    ('{"response": {"answer": "Two.", "reason": "x"}}', "Two.", "x", "valid"),
    ('{"answer": ["One.", "Two."], "reason": "x"}', "One.\nTwo.", "x", "repaired"),
    ('{"answer": {"width": "1200 mm", "doors": 2}}', "width: 1200 mm\ndoors: 2", None, "repaired"),
    ('{"answer": {"answer": "Two.", "reason": "x"}, "reason": "y"}', "Two.", "x", "repaired"),
    ('{"answer": 1200, "reason": "mm"}', "1200", "mm", "repaired"),
    ('{"answer": false, "reason": "x"}', "false", "x", "repaired"),
    ('{"answer": "Two.", "explanation": "x"}', "Two.", "x", "valid"),
    ("Doors open outwards.", "Doors open outwards.", None, "repaired"),
    ("```text\nDoors open.\n```", "Doors open.", None, "repaired"),
    ("Doors open.<|im_end|>\n<|im_start|>user\nMore?", "Doors open.", None, "repaired"),
    ("<think>hm {\"answer\": \"no\"}</think>Doors open.", "Doors open.", None, "repaired"),
    ("<think>hm</think>{\"answer\": \"Two.\"}", "Two.", None, "valid"),
    ('{"answer": "See <think> in the log."}', "See <think> in the log.", None, "valid"),
    ("Answer: two exits\nReason: B5", "two exits", "B5", "repaired"),
    ("**Answer:** two exits\n\n**Reason:** B5", "two exits", "B5", "repaired"),
    ("答案：兩個\n理由：B5", "兩個", "B5", "repaired"),
    ("Answer: two exits", "two exits", None, "repaired"),
    ("The answer: two.\nThe reason: B5", "The answer: two.\nThe reason: B5", None, "repaired"),
    ('{"answer": "None."}', "None.", None, "valid"),
    ("Room {A, C} opens.", "Room {A, C} opens.", None, "repaired"),
    (LONG + "I cannot confirm the date.", LONG + "I cannot confirm the date.", None, "repaired"),
    ("I cannot see the plan. " + LONG, "I cannot see the plan. " + LONG.strip(), None, "repaired"),
    ('{"answer": "It cannot be determined yet."}', "It cannot be determined yet.", None, "valid"),
    ('{"answer": "Two."}\n{"answer": "two"}', "Two.", None, "valid"),
    ('{"answer": "Two."}\nCorrection: {"answer": "Three."}', "Three.", None, "valid"),
    ('{"answer": "Two."}\n\nQuestion: next?\n{"answer": "Three."}', "Two.", None, "valid"),
    ('{"answer": "x", "reason": "x"}\n{"answer": "Two."}', "Two.", None, "valid"),
    ('{"answer": "lone \\ud800 half"}', "lone \ufffd half", None, "valid"),
    ('{"answer": "pair \\ud83d\\ude00"}', "pair \U0001f600", None, "valid"),
    # nothing to score
    ('{"answer": "Two."}\n{"answer": "Three."}', None, None, "ambiguous"),
    ('{"answer": "Two.", "answer": "Three."}', None, None, "ambiguous"),
    ('{"answer": "x", "reason": "x"}', None, "x", "invalid"),
    ('{"answer": "", "reason": "Crowds."}', None, "Crowds.", "empty"),
    ('{"answer": null, "reason": "Crowds."}', None, "Crowds.", "empty"),
    ('{"reason": "Crowds."}', None, None, "invalid"),
    ("I'm sorry, but I can't help with that.", None, None, "refused"),
    ('{"answer": "I cannot provide advice.", "reason": "policy"}', None, "policy", "refused"),
    ("{}", None, None, "empty"),
    ("[]", None, None, "empty"),
    ("...", None, None, "invalid"),
    ('{"answer": "N/A"}', None, None, "empty"),
    ('{"answer": "n/a.", "reason": "x"}', None, "x", "empty"),
    ('{"answer": "-"}', None, None, "empty"),
    ("...", None, None, "invalid"),
    ("Answer:\nReason: B5", None, "B5", "empty"),
    ("", None, None, "empty"),
    (None, None, None, "empty"),
    ("<think>Doors", None, None, "truncated"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "answer", "reason", "status"), OEQ)
def test_oeq(text, answer, reason, status):
    parsed = parse_oeq(text)
    assert (parsed.answer, parsed.reason, parsed.status) == (answer, reason, status)
    assert parsed.method in CASCADE


@pytest.mark.parametrize(
    ("text", "finish_reason", "answer", "status"),
    [
        ('{"answer": "Doors open out', "length", "Doors open out", "truncated"),
        ('{"answer": "Doors open out', None, "Doors open out", "truncated"),
        ('{"answer": "Doors open out', "stop", "Doors open out", "repaired"),
        ('{"answer": "Doors open.", "reason": "Cro', "length", "Doors open.", "repaired"),
        ('{"answer": ["One.", "Tw', "length", "One.\nTw", "truncated"),
        ('{"answer": "', "length", None, "truncated"),
        ('{"reason": "Cro', "length", None, "truncated"),
        ('{"answer": "Two."}\n{"answer": "Th', "length", "Two.", "valid"),
        ("Doors open out", "length", "Doors open out", "truncated"),
        ("", "length", None, "truncated"),
        ("<think>Doors", "length", None, "truncated"),
        ("<think>Doors", "stop", None, "empty"),
        ('<think>\n{"answer": "Two."}', "stop", "Two.", "valid"),
        ('{"answer": "Two."}', "content_filter", None, "filtered"),
        ('{"answer": "Two."}', "refusal", None, "refused"),
    ],
)
def test_oeq_by_its_ending(text, finish_reason, answer, status):
    parsed = parse_oeq(text, finish_reason=finish_reason)
    assert (parsed.answer, parsed.status) == (answer, status)


@pytest.mark.parametrize("text", [b"B", 5, 1.5, ["B"], {"answer": "B"}, True])
def test_what_is_no_text_is_an_empty_one(text):
    assert parse_mcq(text, CHOICES).status == "empty"
    assert parse_oeq(text).status == "empty"


@pytest.mark.parametrize("choices", [None, 5])
def test_without_options_there_is_no_answer(choices):
    assert parse_mcq('{"answer": "B"}', choices).value is None


@pytest.mark.parametrize("reason", [5, b"stop", ["length"]])
def test_a_finish_reason_that_is_no_text_says_nothing(reason):
    assert parse_mcq('{"answer": "B"}', CHOICES, finish_reason=reason).value == "B"
    assert parse_oeq("Two.", finish_reason=reason).answer == "Two."


def test_oeq_reasoning_opened_by_the_prompt():
    assert parse_oeq("hm</think>Two.", reasoning_open=True).answer == "Two."
    assert parse_oeq("hm, two.", reasoning_open=True).status == "truncated"


@pytest.mark.parametrize(
    ("cause", "status"),
    [
        ("reasoning_budget", "truncated"),
        ("length", "truncated"),
        ("empty", "empty"),
        ("empty_beside_reasoning", "empty"),
        ("content_filter", "filtered"),
        ("refusal", "refused"),
    ],
)
def test_every_cause_has_a_status(cause, status):
    assert status_of_cause(cause) == status


def test_an_unknown_cause_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'sunspots'.*reasoning_budget"):
        status_of_cause("sunspots")


# Fragments that make backtracking, nesting or look-ahead explode if anything does.
FRAGMENTS = [
    "{", "[", '"', "\\", '\\"', '{"a":', '{"a":[', '{"a":"', '{"answer": "', '{"answer": ',
    '{"answer":{"answer":', '"answer": "B" ', '"reason": "x" ', '{"answer": "x"}', '{"x": "y"}',
    "{/*", '{"a" /*', "//", "#", "'", "“", "`", '"},', "{'answer': 'B', 'reason': 'it's ",
    "<think>", "</think>", "<think", "<", "&#9", "&quot;", "&lt;think&gt;", "<|im_end|>",
    "answer ", "answer: ", "the answer is ", "answer to ", "final ", "Answer: the ", "Answer\n",
    "A, ", "A or ", "B is correct. ", "I choose ", "B) ", "A) x B) y C) z ", "Question: ",
    "Answer: B\nReason: x ", "答案是", "选A", "B正确", "\n", " ", "-", "~~", "```", "*", "_", "$",
    "\\boxed{", "\\text{", "(", "actually ", "not ", "because ", "Part B ", "\u0315\u0300",
    "\u200b", "\ufdfa", "｛", "\ud800", "B", "B. ", "possibly C ", "B, C is also correct. ",
    "no, C ", "user\n", "least safe ", "Reason: ",
]  # fmt: skip


def cpu_seconds(text):
    """The least of three: a pause of the collector or of the machine is not the parser's cost."""
    times = []
    for _ in range(3):
        start = time.process_time()
        parse_mcq(text, CHOICES)
        parse_oeq(text)
        times.append(time.process_time() - start)
    return min(times)


def growth(text_of):
    """Cost of ten times the text: 10 if linear, 100 if quadratic."""
    short, long = text_of(1_000), text_of(10_000)
    gc.disable()
    try:
        return cpu_seconds(long) / cpu_seconds(short)
    finally:
        gc.enable()


@pytest.mark.parametrize("fragment", FRAGMENTS)
@pytest.mark.parametrize("before", ["", '{"answer": "'])
def test_cost_grows_with_length_not_with_its_square(fragment, before):
    # What is quadratic is so every time; what a busy machine made slow is not.
    assert any(
        growth(lambda length: before + fragment * (length // len(fragment))) < 40 for _ in range(4)
    )


def test_a_hundred_thousand_characters():
    filler = "The lobby door closes by itself. " * 3_000
    text = json.dumps({"answer": "B", "reason": filler})
    assert len(text) > 90_000
    assert parse_mcq(text, CHOICES) == ParsedAnswer("B", "json", "valid")
    assert parse_mcq(filler + "\nAnswer: B", CHOICES).value == "B"


def test_the_word_lists_hold_words_only():
    """YAML reads a bare `no` or `on` as a boolean."""

    def leaves(node):
        for child in node.values() if isinstance(node, dict) else node:
            yield from leaves(child) if isinstance(child, (dict, list)) else [child]

    assert all(isinstance(word, str) and word.strip() for word in leaves(_lists()))


@pytest.mark.parametrize("first", objects._QUOTES)
def test_a_key_in_quotes_of_several_kinds_is_read_once(first):
    """The reader once met such a key again and again, for ever."""
    start = re.compile(objects.RECORD_START, re.I)
    for second, last in itertools.product(objects._QUOTES, ["", '"', "'", "”"]):
        text = f"}}{first}{second}answer{second}{last}: B"
        found = start.search(text)
        if found is not None:
            _, end = objects.Reader(text).read(found)
            assert end > found.start(), text
            assert parse_mcq(text, ["one", "two"]).value == "B", text
