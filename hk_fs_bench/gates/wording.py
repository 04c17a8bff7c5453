"""Gates 5, 6, 7 and 9: how options and stems are worded."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from hk_fs_bench.gates.base import Item, asked, is_mcq, sentences, settings, texts, word_count
from hk_fs_bench.gates.report import Finding, GateReport
from hk_fs_bench.quantities import quantities

_ANSWER = re.compile(r"(yes|no)(?=\s?[,;:.–—]|$)", re.IGNORECASE)
_NONE = re.compile(r"(?:no|none|nil|not|un)\w*\b", re.IGNORECASE)


def options(item: Item) -> Iterator[Finding]:
    """Gate 5: four distinct options, none within another, none about the others, alike in form."""
    limits = settings()["options"]
    choices: Sequence[str] = item["choices"]
    bags = [_tokens(choice) for choice in choices]
    if len({tuple(bag) for bag in bags}) < len(choices):
        yield Finding("5 options", item["id"], "two options say the same")
    for a, inner in zip(choices, bags, strict=True):
        for b, outer in zip(choices, bags, strict=True):
            if a is not b and len(inner) < len(outer) and _contains(outer, inner, a):
                yield Finding("5 options", item["id"], f"“{a}” is contained in “{b}”")
    for choice in choices:
        for pattern in limits["banned"]:
            if re.search(pattern, choice, re.IGNORECASE):
                yield Finding("5 options", item["id"], f"an option about options: “{choice}”")
                break
    for message in _unlike(choices):
        yield Finding("5 options", item["id"], f"not parallel: {message}")


def _tokens(text: str) -> list[str]:
    """Words with their signs kept, so that -/60/- and 60/-/- differ."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return [word for token in folded.split() if (word := token.strip(".,;:()“”\"'"))]


def _contains(outer: Sequence[str], inner: Sequence[str], text: str) -> bool:
    """Whether an option's words all stand, in a row, in another; bare numbers don't count."""
    left = re.sub(r"[\d.,\s]+", "", text)
    if quantities(text) and len(left) <= 12 and len(inner) <= 3:
        return False
    return any(list(inner) == list(outer[n : n + len(inner)]) for n in range(len(outer)))


def _unlike(choices: Sequence[str]) -> Iterator[str]:
    """Ways in which one option differs in form from the other three."""
    limits = settings()["options"]
    if 0 < sum(choice.endswith(".") for choice in choices) < len(choices):
        yield "some options end with a full stop"
    letters = [next((c for c in choice if c.isalpha()), "") for choice in choices]
    starts = [c.isupper() for c, text in zip(letters, choices, strict=True) if text[:1].isalpha()]
    if len(set(starts)) > 1:
        yield "some options begin with a capital"
    answers = [match[1].lower() for choice in choices if (match := _ANSWER.match(choice))]
    if len(answers) in (1, 3) or (len(answers) == 4 and answers.count("yes") in (1, 3)):
        yield "one option alone begins, or doesn't begin, with yes or no"
    bare = [choice for choice in choices if re.match(r"\s*[-–\d]", choice)]
    others = [choice for choice in choices if choice not in bare]
    if len(bare) == 3 and not _NONE.match(others[0]) and word_count(others[0]) > 3:
        yield f"three options are numbers, “{others[0]}” isn't"
    if len(bare) == 1:
        yield f"“{bare[0]}” alone begins with a number"
    counts = sorted(word_count(choice) for choice in choices)
    if counts[-1] > limits["length_from"] and counts[-1] > limits["length_ratio"] * counts[0]:
        yield f"options of {counts[0]} and {counts[-1]} words"


def negatives(items: Sequence[Item], report: GateReport) -> None:
    """Gate 5: few negative stems, no double negative."""
    limits = settings()["options"]
    negative = [item for item in items if is_negative(item["question"])]
    share = len(negative) / len(items) if items else 0.0
    report.measure(
        "5 negatives", "negative stems", share, None, limits["negative_share"], n=len(items)
    )
    for item in items:
        question = asked(item["question"])
        if re.search(limits["double_negative"], question, re.IGNORECASE):
            report.extend([Finding("5 negatives", item["id"], f"double negative: “{question}”")])


def is_negative(question: str) -> bool:
    """Whether the question asks for what is not so."""
    return bool(re.search(settings()["options"]["negative_stem"], asked(question)))


def stems(item: Item) -> Iterator[Finding]:
    """Gate 6: no stem asks what the law forbids; what decides the key is stated."""
    limits = settings()["stems"]
    found = re.search(limits["law"], item["question"], re.IGNORECASE)
    if found:
        message = f"“{found[0]}”: ask what the provisions call for, not what the law forbids"
        yield Finding("6 stems", item["id"], message)
    if item.get("level") not in ("scenario", "calculation"):
        return
    cited = set(item.get("references") or ())
    shown = " ".join([item["question"], *(item.get("choices") or ())])
    for condition in limits["stated"]:
        hit = cited & set(condition["cites"])
        if hit and not re.search(condition["words"], shown, re.IGNORECASE):
            message = f"cites {', '.join(sorted(hit))} and doesn't state the {condition['name']}"
            yield Finding("6 stems", item["id"], message, "report")


def cue(item: Item) -> Iterator[Finding]:
    """Gate 7: the label of the jurisdiction cue is true of the stem."""
    limits = settings()["cue"]
    stem = item["question"].replace("’", "'")
    label = item.get("jurisdiction_cue")
    explicit = re.search(limits["explicit"], stem, re.IGNORECASE)
    implicit = re.search(limits["implicit"], stem, re.IGNORECASE)
    perhaps = re.search(limits["perhaps"], stem, re.IGNORECASE)
    if explicit and label != "explicit":
        yield Finding("7 cue", item["id"], f"labelled {label}, but names “{explicit[0]}”")
    elif label == "explicit" and not explicit:
        yield Finding("7 cue", item["id"], "labelled explicit, but names no place, Code or office")
    elif label == "none" and implicit:
        yield Finding("7 cue", item["id"], f"labelled none, but says “{implicit[0]}”")
    elif label == "none" and perhaps:
        yield Finding("7 cue", item["id"], f"labelled none, but says “{perhaps[0]}”", "report")
    elif label == "implicit" and not (implicit or perhaps):
        yield Finding("7 cue", item["id"], "labelled implicit, but no local term found", "report")


def cue_share(items: Sequence[Item], report: GateReport) -> None:
    """Gate 7: few stems do the naming that the prompt's condition should do."""
    named = sum(item.get("jurisdiction_cue") == "explicit" for item in items)
    limit = settings()["cue"]["explicit_share"]
    share = named / len(items) if items else 0.0
    report.measure("7 cue", "explicit stems", share, None, limit, n=len(items))


def length(item: Item) -> Iterator[Finding]:
    """Gate 9: no text is longer than a reader under time pressure can hold."""
    limits = settings()["length"]
    described = not is_mcq(item) or item.get("level") in ("scenario", "calculation")
    most = limits["stem_described" if described else "stem"]
    words = word_count(item["question"])
    if words > most:
        yield Finding("9 length", item["id"], f"stem of {words} words, {most} are allowed")
    for choice in item.get("choices") or ():
        if word_count(choice) > limits["option"]:
            message = f"option of {word_count(choice)} words, {limits['option']} are allowed"
            yield Finding("9 length", item["id"], message)
    if not is_mcq(item):
        low, high = limits["reference_answer"]
        words = word_count(item["reference_answer"])
        if not low <= words <= high:
            message = f"reference answer of {words} words, {low} to {high} are wanted"
            yield Finding("9 length", item["id"], message)
    count = len(sentences(item.get("explanation") or ""))
    if count > limits["explanation_sentences"]:
        yield Finding("9 length", item["id"], f"explanation of {count} sentences")
    for field, text in texts(item):
        clauses = [part for whole in sentences(text) for part in re.split(r"[;:]\s", whole)]
        longest = max((word_count(part) for part in clauses), default=0)
        if longest > limits["sentence"]:
            message = f"{field}: {longest} words without a stop, {limits['sentence']} are allowed"
            yield Finding("9 length", item["id"], message)
