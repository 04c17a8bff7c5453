"""What holds for every output, not only for those in the tables."""

import html
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from hk_fs_bench.answers import CASCADE, STATUSES, folding, parse_mcq, parse_oeq

CHOICES = [
    "Paint the refuge floor a bright colour",
    "Keep the lobby door self-closing",
    "Fit a second lock to the exit gate",
    "Store spare chairs on the landing",
]
LABELS = st.sampled_from("ABCD")
# Pieces of outputs, so that random texts come near to answers.
PIECES = st.sampled_from(
    [
        '{"answer": "', '"answer":', "'answer': ", '"reason": "', '"}', "{", "}", "[", "]", '"',
        "'", "A", "B", "C", "E", " or ", " and ", "not ", ", ", "\n", "\\", "```json\n", "```",
        "<think>", "</think>", "Answer: ", "The answer is ", "\\boxed{", "Correction: ",
        "Question: ", "答案：", "<|im_end|>", "&quot;", "null", "true", "1", "“", "”", "｛",
        "\u200b", "\ud800", *CHOICES,
    ]
)  # fmt: skip
ANYTHING = st.one_of(
    st.none(),
    st.text(st.characters(codec=None), max_size=200),
    st.lists(PIECES | st.text(max_size=5), max_size=25).map("".join),
)
REASONS = st.one_of(
    st.text(st.characters(codec=None), max_size=80),
    st.lists(PIECES, max_size=10).map("".join),
    st.sampled_from(["The correct answer is C.", "A and D fail.", '{"answer": "A"}', "</think>"]),
)
PLAIN_REASONS = st.lists(
    st.sampled_from(["because", "option C", "the lobby", "A and D fail", "is right", "(B)"]),
    min_size=1,
).map(" ".join)
ENDINGS = st.sampled_from([None, "stop", "length", "content_filter", "refusal", "nonsense"])


def full_width(text):
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def fence(text):
    return f"```json\n{text}\n```"


# Each keeps an object's answer, whatever else was done to it before.
PACKAGING = [
    fence,
    lambda text: f"```\n{text}",
    lambda text: f"Here is the object:\n{text}\nTell me if you need more.",
    lambda text: "\ufeff" + text,
    lambda text: text.replace("\n", "\r\n"),
    lambda text: text + "<|im_end|>",
    lambda text: f"<think>Perhaps A? Perhaps C.</think>{text}",
    lambda text: f"Perhaps D.\n</think>\n{text}",
    lambda text: f"{text}\n{text}",
    lambda text: "\u200b".join(text),
    lambda text: f"Weak ones are {{A, C}}. {text}",
]
# Each is applied once, to the bare object.
ENCODINGS = [
    lambda text: text,
    full_width,
    lambda text: html.escape(text),
    json.dumps,
    lambda text: f"[{text}]",
    lambda text: f'{{"response": {text}}}',
    lambda text: json.dumps({"output": text}),
    lambda text: text.strip("{}"),
    lambda text: text.replace('"', "'"),
    lambda text: text.replace('": "', '": “').replace('",', "”,").replace('"}', "”}"),
    lambda text: text.removesuffix("}"),
    lambda text: text.replace("}", ",}"),
    lambda text: text.replace('"answer"', "answer").replace('"reason"', "reason"),
    lambda text: text.replace('"answer"', '"Answer"'),
    lambda text: text.replace(", ", ",\n"),
    lambda text: f"{{{text}}}",
    lambda text: text.replace(", ", " "),
]


@settings(max_examples=600, deadline=None)
@given(ANYTHING, st.lists(st.text(max_size=20), max_size=6), ENDINGS, st.booleans())
def test_never_raises_and_never_leaves_the_options(text, choices, ending, reasoning_open):
    for options in (CHOICES, choices):
        parsed = parse_mcq(text, options, finish_reason=ending, reasoning_open=reasoning_open)
        assert parsed.value is None or parsed.value in "ABCDEF"[: len(options)]
        assert (parsed.value is not None) == (parsed.status in ("valid", "repaired"))
        assert parsed.status in STATUSES
        assert parsed.method in CASCADE
    opened = parse_oeq(text, finish_reason=ending, reasoning_open=reasoning_open)
    assert opened.status in STATUSES
    assert opened.method in CASCADE
    assert (opened.answer is not None) >= (opened.status in ("valid", "repaired"))
    for part in (opened.answer, opened.reason):
        assert part is None or part.encode("utf-8")


@settings(max_examples=600, deadline=None)
@given(
    ANYTHING | st.text(st.characters(max_codepoint=127), max_size=60), st.sampled_from(["", "*"])
)
def test_text_without_marks_takes_a_short_way_to_the_same_end(text, mark):
    text = folding.clean(text or "")
    assert folding._made_plain(text, mark) == folding._unmarked(text, mark)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from([*"ABCDE", "x", "", "A or B", *CHOICES]), REASONS, st.booleans())
def test_the_reason_never_decides(value, reason, reason_first):
    pairs = {"answer": value, "reason": reason}
    if reason_first:
        pairs = {"reason": reason, "answer": value}
    for ascii_only in (True, False):
        text = json.dumps(pairs, ensure_ascii=ascii_only)
        plain = json.dumps({"answer": value, "reason": "short"})
        assert parse_mcq(text, CHOICES) == parse_mcq(plain, CHOICES)


@settings(max_examples=400, deadline=None)
@given(
    LABELS,
    PLAIN_REASONS,
    st.sampled_from(ENCODINGS),
    st.lists(st.sampled_from(PACKAGING), max_size=3),
)
def test_packaging_and_slips_change_no_answer(label, reason, encode, packaging):
    text = encode(json.dumps({"answer": label, "reason": reason}))
    for wrap in packaging:
        text = wrap(text)
    assert parse_mcq(text, CHOICES).value == label


@given(LABELS, st.data())
def test_decoration_changes_no_answer(label, data):
    text = CHOICES["ABCD".index(label)]
    decorated = (
        *(label, label.lower(), f"{label})", f"({label})", f"**{label}**", f"{label}.", text),
        *(f"\\boxed{{{label}}}", f"Option {label}", f"{label}. {text}", f"{label}: {text}."),
        *(full_width(label), text.upper(), f"{text} ({label})", f" {label}\n"),
    )
    value = data.draw(st.sampled_from(decorated))
    assert parse_mcq(json.dumps({"answer": value}), CHOICES).value == label


@given(st.permutations("ABCD"), st.sampled_from([", ", " or ", " and ", "/", "; ", " "]))
def test_two_labels_are_none(order, between):
    value = between.join(order[:2])
    assert parse_mcq(json.dumps({"answer": value, "reason": "x"}), CHOICES).value is None
    assert parse_mcq(f"Answer: {value}", CHOICES).value is None
    assert parse_mcq(value, CHOICES).value is None


@given(st.permutations("ABCD"))
def test_label_against_text_is_none(order):
    value = f"{order[0]}. {CHOICES['ABCD'.index(order[1])]}"
    assert parse_mcq(json.dumps({"answer": value}), CHOICES).value is None
    assert parse_mcq(f"Answer: {value}", CHOICES).value is None


@given(st.lists(LABELS, min_size=2, max_size=5))
def test_several_objects_count_only_if_they_agree(labels):
    text = "\n".join(json.dumps({"answer": label, "reason": "x"}) for label in labels)
    expected = labels[0] if len(set(labels)) == 1 else None
    assert parse_mcq(text, CHOICES).value == expected


@given(st.permutations(range(4)), LABELS)
def test_an_options_text_means_its_label_in_every_order(order, label):
    choices = [CHOICES[place] for place in order]
    text = choices["ABCD".index(label)]
    assert parse_mcq(json.dumps({"answer": text, "reason": "x"}), choices).value == label


@settings(deadline=None)
@given(LABELS, PLAIN_REASONS, st.data())
def test_a_cut_never_makes_another_answer(label, reason, data):
    whole = json.dumps({"answer": label, "reason": reason})
    text = whole[: data.draw(st.integers(0, len(whole)))]
    complete = len(text) > len('{"answer": "B"') - 1
    parsed = parse_mcq(text, CHOICES, finish_reason="length")
    assert parsed.value == (label if complete else None)
    assert complete or parsed.status == "truncated"


@settings(deadline=None)
@given(st.text(min_size=1, max_size=200), st.text(max_size=60))
def test_an_open_answer_comes_back_as_it_was_written(answer, reason):
    parsed = parse_oeq(json.dumps({"answer": f"Doors: {answer} end", "reason": reason}))
    assert parsed.status == "valid"
    kept = "".join(parsed.answer.split())
    # Invisible characters may go; nothing else may.
    assert [c for c in kept if c.isalnum()] == [
        c for c in f"Doors:{answer}end" if c.isalnum() and not c.isspace()
    ]
