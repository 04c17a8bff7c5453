"""One value against the options: which label does it commit to, if any?"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hk_fs_bench.answers.folding import fold_plain, plain
from hk_fs_bench.answers.objects import (
    PARTS,
    STRONG,
    WEAK,
    Cut,
    LastWord,
    Node,
    Record,
    answers_of,
    inner_records,
)
from hk_fs_bench.answers.options import BECAUSE, Options
from hk_fs_bench.answers.statuses import Ending
from hk_fs_bench.answers.words import any_of, words


@dataclass(frozen=True)
class Reading:
    """What a value says. Without a label, `status` says why; an echo only repeats the prompt.

    With one, the status is "valid" where a label stands, "repaired" where only the text does.
    """

    label: str | None
    status: str = "valid"
    echo: bool = False


NOTHING = Reading(None, "invalid")
SEVERAL = Reading(None, "ambiguous")
UNSURE = Reading(None, "invalid")  # unlike NOTHING, no statement in it is looked for

_LEADS = any_of(words("value_leads"))
REFUSAL = re.compile(any_of(words("refusals", "own") + words("refusals", "question")), re.I)
_ENUM, _TYPE = frozenset({"enum"}), frozenset({"type"})
_JSON_TYPES = ("string", "object", "array", "number", "integer", "boolean")
_PLACEHOLDERS = frozenset(words("placeholders"))
# Possessive repeats keep long runs of punctuation linear.
_LEAD = rf"(?:\s*+{_LEADS}[\s:.#=-]*+){{0,6}}+"
_UNSURE = re.compile(
    rf"\W{{0,8}}(?:(?:the|my|correct|best|answer|is|it's|it\sis)\s){{0,5}}{any_of(words('unsure'))}",
    re.I,
)
_LABEL_ALONE = re.compile(rf"{_LEAD}[\s(\[{{<\"'.:#-]*+([A-Za-z])[\s)\]}}>\"'.,:;!-]*+\Z", re.I)
_LABEL_FIRST = re.compile(
    rf"{_LEAD}[\s(\[{{<\"']*+(?P<label>[A-Za-z])(?![A-Za-z0-9'])(?P<closers>[)\]}}>\"']*+)"
    r"(?P<gap>\s*[.:,;=|]++\s+|\s*-++>?\s+|\s*\n\s*|\s*[(\[]|\s*[.:=|-]\s*|\s*)(?=\S)",
    re.I,
)
_IS_RIGHT = re.compile(
    r"is\s(?:the\s)?(?:only\s|most\s)?(?:correct|right|best|appropriate)"
    r"(?:\s(?:answer|option|choice|one))?[\s.!]*\Z",
    re.I,
)
_LABEL_LAST = re.compile(
    r"(?:[\s,;:-]+|(?=[(\[]))(?P<mark>[(\[]?(?:option|choice|answer|label)?\s?(?P<label>[A-Z])"
    r"[)\]. ]*)\Z",
    re.I,
)


def read_value(value: str, options: Options, free: bool = True) -> Reading:
    """A value: a label with decoration, or the text of exactly one option.

    `free` allows prose beside a delimited label that does not speak against it.
    """
    visible = plain(value).strip()
    if not visible:
        return Reading(None, "empty")
    if _is_echo(visible, options):
        return Reading(None, "invalid", echo=True)
    named_text = options.named_by_text(value.strip(), visible)
    named = set(named_text)
    if free and not named and _UNSURE.match(visible):
        return UNSURE
    label = _label_of(visible, options, free)
    if named and label and (label not in options.labels or re.match(r"\w\s+\w", visible)):
        label = None  # an option that is a letter itself or begins with an article
    if label is not None:
        named |= set(label)
        if not label or (label not in named_text and options.has_rival(label, visible)):
            return SEVERAL
    if len(named) == 1:
        (only,) = named
        return (
            Reading(only, "valid" if label else "repaired") if only in options.labels else NOTHING
        )
    if len(named) > 1:
        return SEVERAL
    if REFUSAL.search(visible[:300]):
        return Reading(None, "refused")
    return SEVERAL if len(visible) < 60 and _many_labels(visible, options) else NOTHING


def _label_of(visible: str, options: Options, free: bool) -> str | None:
    """The label that a value states: "" if it contradicts itself, None if it states none."""
    alone = _LABEL_ALONE.match(visible)
    if alone:
        # A sentence may end in the article "a"; only a field or a lone letter may be small.
        small = alone[1].islower() and not free and len(visible.split()) > 2
        return None if small else alone[1].upper()
    first = _LABEL_FIRST.match(visible)
    found = _label_first(first, visible[first.end() :], options, free) if first else None
    return _label_last(visible, options) if found is None else found


def _label_first(first: re.Match[str], rest: str, options: Options, free: bool) -> str | None:
    label, closers, gap = first["label"].upper(), first["closers"], first["gap"]
    if rest.startswith("?"):
        return None
    bracketed = gap[-1:] in ("(", "[")
    if bracketed:
        rest = rest.removesuffix(")").removesuffix("]")
    stands = options.beside(label, rest) if label in options.labels else "free"
    delimited = bool(closers or gap.strip() or "\n" in gap)
    tight = not closers and bool(gap) and not gap[-1].isspace() and not bracketed
    if first["label"].islower() and not (delimited and (closers or gap[:1] in ".:")):
        return None
    if stands == "own":
        return label
    explained = BECAUSE.match(rest) or _IS_RIGHT.match(rest)
    if delimited and not tight:
        if stands == "against":
            return ""
        return label if free or explained else None
    return label if gap and not gap.strip() and explained else None


def _label_last(visible: str, options: Options) -> str | None:
    last = _LABEL_LAST.search(visible, max(0, len(visible) - 30))
    if not last or not last["label"].isupper():
        return None
    # The dash before the label may belong to the option ("-/120/- (A)").
    heads = visible[: last.start()].strip(), visible[: last.start("mark")].strip()
    by_text = options.named_by_text(heads[0], heads[0]) or options.named_by_text(heads[1], heads[1])
    if not by_text:
        return None
    return last["label"] if last["label"] in by_text else ""


def is_placeholder(visible: str) -> bool:
    """Whether a value is the prompt's "x" or another stand-in for an answer."""
    bare = visible[:40].strip(" <>[](){}\"'.").casefold()
    return len(visible) <= 40 and (bare in _PLACEHOLDERS or visible.strip() in _PLACEHOLDERS)


def _is_echo(visible: str, options: Options) -> bool:
    """Whether a value repeats the prompt's placeholder or the list of all labels."""
    if is_placeholder(visible):
        return visible not in options.labels and fold_plain(visible) not in options.folded.values()
    letters = re.sub(r"(?i)\b(?:or|and|to|one of|oder|ou)\b|[^A-Za-z]", "", visible)
    first, last = options.labels[:1], options.labels[-1:]
    return len(options.labels) > 2 and (
        letters.upper() == options.labels
        or bool(re.fullmatch(rf"\W*{first}\s?(?:-|to|\.{{2,3}})\s?{last}\W*", visible))
    )


def _many_labels(visible: str, options: Options) -> bool:
    packed = re.sub(r"[^A-Za-z]|(?i:\b(?:and|or)\b)", "", visible)
    together = 1 < len(packed) <= len(options.labels) and set(packed) <= set(options.labels)
    return together or len(options.labels_in(visible)) > 1


def read_node(node: Node, options: Options, ending: Ending, depth: int = 1) -> Reading:
    """The value of an answer key as it stands in an object."""
    if node is None:
        return Reading(None, "empty")
    if isinstance(node, bool):
        return NOTHING
    if isinstance(node, list):
        if not node:
            return Reading(None, "empty")
        if depth == 0 or len(node) > 26:
            return NOTHING
        depths = [0 if isinstance(child, list) else depth for child in node]
        inner = zip(node, depths, strict=True)
        return agreed([read_node(child, options, ending, d) for child, d in inner], options)
    if isinstance(node, Record):
        return _read_record(node, options, ending, depth)
    if isinstance(node, Cut):
        return _read_cut(node, options, ending)
    for encoded in inner_records(node) if depth else ():
        if answers_of(encoded):
            return _read_record(encoded, options, ending, depth)
    return read_value(node, options)


def _read_record(record: Record, options: Options, ending: Ending, depth: int) -> Reading:
    if record.values(_ENUM) or any(kind in _JSON_TYPES for kind in record.values(_TYPE)):
        return Reading(None, "invalid", echo=True)  # a JSON schema
    if depth == 0:
        return NOTHING
    nodes = record.values(STRONG) or record.values(WEAK | PARTS)
    if not nodes and len(record.pairs) == 1:
        key, value = record.pairs[0]
        if isinstance(value, str):
            nodes = [f"{key.strip(' :')}: {value}"]
    readings = [read_node(node, options, ending, 0) for node in nodes]
    return agreed(readings, options) if readings else NOTHING


def _read_cut(text: str, options: Options, ending: Ending) -> Reading:
    """A value whose end is missing: read it only if nothing more can have been meant."""
    quote = re.search(r"[\"“”'’]", text)
    if quote and text[: quote.start()].strip():
        return read_value(text[: quote.start()], options)
    complete = ending.finished or (isinstance(text, LastWord) and not ending.cut)
    if complete and text.strip():
        return read_value(text, options)
    return Reading(None, "empty" if ending.finished else "truncated")


def agreed(readings: list[Reading], options: Options) -> Reading:
    """The one reading of several values for one key, or none if they differ."""
    if len({reading.label for reading in readings}) == 1:
        return readings[0]
    labels = {reading.label for reading in readings}
    if len(labels) == len(options.labels) > 2 and None not in labels:
        return Reading(None, "invalid", echo=True)
    return SEVERAL
