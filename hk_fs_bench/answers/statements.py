"""Explicit answer statements in prose ("The answer is B", "\\boxed{B}", "我選擇 C")."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from hk_fs_bench.answers.commitments import FINAL
from hk_fs_bench.answers.folding import LISTED, MARK, fold_plain, plain
from hk_fs_bench.answers.options import Options
from hk_fs_bench.answers.values import NOTHING, SEVERAL, Reading, read_value
from hk_fs_bench.answers.words import any_of, words


@dataclass(frozen=True)
class Statement:
    """An answer stated at `start` to `end` of plain prose.

    `final`: announced as the final one. `weak`: said without announcing an answer ("I choose B",
    "B is correct", a first line that is a bare label); counts where nothing stronger stands.
    """

    reading: Reading
    start: int
    end: int
    final: bool = False
    weak: bool = False


_DECOR = r"[\s\"'(\[{<|:#=-]{0,70}"
_FILL = (
    rf"(?:[\s\"'(]{{0,8}}{any_of(words('fillers'))}[\s:]{{0,8}}){{0,4}}"
    r"(?:not\s(?:option\s)?\(?[A-Z]\)?,?\sbut\s(?:rather\s)?)?"  # "is not A but B"
)
_ASIDE = (
    r"(?:\s+(?:to|for|from|among|of|here|in|sur|auf)\b[^.:;?!\n]{0,60}?|\s*\([^()\n]{0,60}\)"
    r"|,\s?[^,.:;?!\n]{0,30},)?"
)
_LINK = (
    rf"(?:\s*[:=|]\s*|\s+{any_of(words('links', 'spaced'))}\s*:?\s*|\s*(?:->|→|⇒|\s-{{1,3}}\s)\s*"
    rf"|\s*{any_of(words('links', 'unspaced'))}\s*:?\s*)"
)
# The announced value begins at the end; at `text` already, if it is an option that begins with a
# filler ("The answer is The lobby door").
_ANNOUNCED = re.compile(
    rf"(?:{MARK}|{any_of(words('nouns', 'spaced'))}[\"'\])]{{0,2}}"
    rf"(?:\s{any_of(words('nouns', 'after'))})?{_ASIDE}(?:{_LINK}|(?=[\s#=-]{{0,70}}\n))"
    rf"|{any_of(words('nouns', 'unspaced'))}[\"'\])]{{0,2}}{_LINK})\s*(?P<text>){_FILL}{_DECOR}",
    re.I,
)
_HEADING = re.compile(r"(?:^|\n)[^\w\n]{0,8}(?:(?:final|correct|the|my)\s){0,3}\Z", re.I)
_WEAK: tuple[str, ...] = (
    # "I choose C", "I would go with option B"
    r"\b(?:i|we)\b[^.\n!?]{0,25}?\b(?:choose|chose|pick|picked|select|selected|answer"
    r"|(?:go|going|went)\swith|opt(?:ed)?\sfor|vote\sfor)\s",
    # "It's B", "That leaves C"
    r"\b(?:it(?:'s|\s(?:is|must\sbe|should\sbe|has\sto\sbe|would\sbe))|(?:that|this|which)\sleaves)\s",
    # "Therefore, B."
    r"\b(?:therefore|thus|hence|so),?\s",
    r"(?:我(?:会|會)?|应|應|应该|應該|故|因此|所以|只能|最终|最終|正确)?(?:选择|選擇|选|選|揀)\s?:?",
)
_WEAK += (rf"{any_of(words('corrections', 'opening'))}[\s,:-]{{1,4}}(?:no[\s,]{{1,3}})?",)
_WEAK += (r"(?<=[\s.,;-])no,\s(?:it(?:'s|\sis)\s)?(?:rather\s)?",)  # "B ... no, C"
_CHOSEN = re.compile(rf"(?:{'|'.join(_WEAK)})\s*{_FILL}{_DECOR}", re.I)
_NOT_CJK = re.compile(r"[不非没沒未别別]\s?\Z")
# "Option B is the best answer", "只有选项B是对的"
_JUDGED = re.compile(
    r"(?<![A-Za-z0-9_.'-])(?P<label>[A-Z])(?![A-Za-z0-9])[)\]\"']{0,3}\s?"
    r"(?:\s(?:is|ist|est|es|remains)\s"
    r"(?:(?:the|my|die|la|clearly|only|single|most|therefore|thus)\s){0,3}"
    r"(?:(?:correct|right|best|appropriate|suitable|proper|only)"
    r"(?:\s(?:answer|option|choice|one|response|selection))?|answer|richtig|correcta?|correcte)"
    r"(?!\w)(?![,\s]{1,2}(?:that|in|about|for|if|when|only|insofar|as\sfar|to|but|under|on|where))"
    r"|(?:选项|選項|项|項)?[才がは]?[是為为]?(?:唯一)?(?:正确|正確|对的|對的|正解|最佳)(?![吗嗎?]))"
)
_JOINED = re.compile(r"(?:\b[A-Z]\W{0,3}(?:and|or|nor|[,/&和或])|neither|both|not)\W{0,3}\Z")
_NEGATED = re.compile(r"n't|\bnot\b|\bnever\b|\bcannot\b", re.I)
_CHOICE_ENDS = re.compile(rf"\s*(?:[.,;:!)\n项項选選]|\Z|{any_of(words('because'))})", re.I)
_LABEL = re.compile(
    r"(?P<label>[A-Z])(?![A-Za-z0-9\u00c0-\u036f]|'[a-z]|[.-]\w)(?P<closers>[)\]}>\"']{0,4})"
)
_FIELD = re.compile(r"(?P<label>[a-z])(?P<closers>[)\].\"']{0,2})(?=\s*(?:[,;}]|\Z))")
_SECOND = re.compile(
    r"(?:\s*\([^()\n]{0,80}\))?\s*"
    r"(?:(?P<joined>,?\s*(?:and|or|und|oder|et|ou|y|vs\.?|to|->|=>|[→/&+>和或及与與]))|[,;|-]|(?<=\s))"
    r"\s*(?:(?:option|choice|选项|選項)\s*)?[(\[\"']{0,3}(?P<label>[A-Z])(?![A-Za-z0-9'])"
    r"(?P<prose>\s+[a-z])?"
)
_LABEL_LINE = re.compile(r"(?m)^\W{0,8}(?:[Oo]ption\s?)?(?P<label>[A-Z])\W{0,4}$")
_NEXT_LINE = re.compile(r"[^\n]{0,3}\n[\s(\[>-]{0,12}(?P<label>[A-Z])[)\].]{0,3}[ \t]*(?:\n|\Z)")
_PREDICATE = re.compile(r"\s+(?:is|was|are|isn't|wasn't|would|could|might|may|seems|does|fails)\b")
_AFTER_ARTICLE = re.compile(
    rf"\s+(?:{any_of([*words('because'), 'and', 'or', 'is', 'not', 'over', 'than'])})", re.I
)
_SENTENCE_HEDGE = re.compile(any_of(words("hedges", "sentence")), re.I)
_CLAUSE_HEDGE = re.compile(any_of(words("hedges", "clause")), re.I)
_ASSURED = re.compile(any_of(words("hedges", "assured")), re.I)
_CLAUSE = re.compile(r"[,:]|\s-\s|\b(?:so|therefore|thus|hence|but|however|yet)\b", re.I)
_NOUN_HEDGE = re.compile(
    rf"(?:{any_of(words('hedges', 'noun'))}|{any_of(words('hedges', 'degree'))}\s[\w-]{{1,30}})"
    r"\s*(?:(?:the|correct|right|best|my|an|a)\s+){0,3}\Z",
    re.I,
)
_SENTENCE = re.compile(r"[.!?;\n]")
_REASON = re.compile(
    r"(?:^|\n)\W{0,6}(?:reason|reasons|reasoning|explanation|rationale|justification|analysis"
    r"|理由|原因|解释|解釋|解析|说明|說明|begründung)\s*[:\n]",
    re.I,
)


def statements(prose: str, options: Options) -> list[Statement]:
    """The statements of `prose`, which comes from `plain_prose`, in their order."""
    strong = list(_announced(prose, options))
    ends = [statement.end for statement in strong]
    found = list(strong)
    for weak in _weak(prose, options):
        place = bisect_right(ends, weak.start)
        if place == len(strong) or strong[place].start >= weak.end:
            found.append(weak)  # no strong one overlaps it
    return sorted(found, key=lambda statement: statement.start)


def plain_prose(text: str, options: Options) -> str:
    """Plain text in which lines that only repeat the options ("A) ...", "B) ...") have no label."""
    prose = plain(text, MARK)
    lines = prose.split("\n")
    listed: dict[int, re.Match[str]] = {}
    for place, line in enumerate(lines):
        if len(line) <= 2 * options.longest + 40:
            label = re.match(r"\W{0,8}([A-Z])\s?[).:-]\s?(.+)", line)
            if label and options.folded.get(label[1]) == fold_plain(label[2]):
                listed[place] = label
    if len({label[1] for label in listed.values()}) > 1:
        for place, label in listed.items():
            lines[place] = f"{LISTED} {label[2]}"
    return "\n".join(lines)


def _announced(prose: str, options: Options) -> Iterator[Statement]:
    at, reason_at = 0, None
    while found := _ANNOUNCED.search(prose, at):
        at = found.start() + 1
        marked = prose[found.start()] == MARK
        heads_line = bool(_HEADING.search(prose, max(0, found.start() - 40), found.start()))
        if not marked and _hedged(prose, found.start()):
            continue
        named = marked or bool(re.search(r"[:=|]", found[0]))
        if not named and "\n" in found[0] and not heads_line:
            continue  # only a heading "Answer" announces what the next line says
        by_label = marked or (heads_line and named) or _is_final(prose, found)
        if reason_at is not None and reason_at < found.start() and not by_label:
            continue  # a labelled reason below a labelled answer does not decide
        reading, end = _value_at(prose, found.end(), options, field=named)
        if reading is None and found.start("text") < found.end():
            reading, end = _value_at(prose, found.start("text"), options)
        if reading is None:
            continue
        if heads_line and reason_at is None:
            reason = _REASON.search(prose, end)
            reason_at = reason.start() if reason else len(prose)
        yield Statement(reading, found.start(), end, _is_final(prose, found))
        at = end


def _is_final(prose: str, found: re.Match[str]) -> bool:
    before = prose[max(0, found.start() - 30) : found.start()]
    return bool(FINAL.search(before.rpartition("\n")[2]) or FINAL.search(found[0]))


def _weak(prose: str, options: Options) -> Iterator[Statement]:
    for found in _CHOSEN.finditer(prose):
        # What costs least and rules out most goes first: prose is full of words like "so".
        reading, end = _value_at(prose, found.end(), options, label_only=True)
        if reading is None or not (reading.label is None or _CHOICE_ENDS.match(prose, end)):
            continue
        chinese = not found[0].isascii()
        if chinese and _NOT_CJK.search(prose[max(0, found.start() - 3) : found.start()]):
            continue
        if not _NEGATED.search(found[0]) and not _hedged(prose, found.start()):
            yield Statement(reading, found.start(), end, weak=True)
    for found in _JUDGED.finditer(prose):
        before = prose[max(0, found.start() - 30) : found.start()]
        asked = prose[found.end() : found.end() + 2].strip().startswith("?")
        if asked or _JOINED.search(before) or _NOT_CJK.search(before):
            continue
        if not _hedged(prose, found.start()):
            reading = _reading(found["label"], options)
            yield Statement(reading, found.start(), found.end(), weak=True)
    yield from _first_line(prose, options)


def _first_line(prose: str, options: Options) -> Iterator[Statement]:
    """A first line that is a label, alone or with its option's text, and the only such line."""
    limit = 2 * options.longest + 40
    lines = [line.strip() for line in prose.split("\n") if line.strip()]
    if not lines or len(lines[0]) > limit:
        return
    first = read_value(lines[0], options, free=False).label
    others = {line["label"] for line in _LABEL_LINE.finditer(prose)}
    if first and not others & set(options.labels.replace(first, "")):
        start = prose.index(lines[0])
        yield Statement(Reading(first, "repaired"), start, start + len(lines[0]), weak=True)


def _hedged(prose: str, at: int) -> bool:
    """Whether the sentence so far makes what follows no commitment ("if", "the wrong ...")."""
    sentence = _SENTENCE.split(prose[max(0, at - 200) : at])[-1]
    clause = _ASSURED.sub("", _CLAUSE.split(sentence)[-1])
    return bool(
        _SENTENCE_HEDGE.search(sentence)
        or _CLAUSE_HEDGE.search(clause)
        or _NOUN_HEDGE.search(sentence)
    )


def _reading(label: str, options: Options) -> Reading:
    return Reading(label, "repaired") if label in options.labels else NOTHING


def _value_at(
    prose: str, at: int, options: Options, field: bool = False, label_only: bool = False
) -> tuple[Reading | None, int]:
    """What is announced at `at`, and where it ends; None if it is neither a label nor an option.

    `field`: it stands behind a colon, where a small letter is a label too.
    """
    line = prose[at : at + 2 * options.longest + 200].split("\n", 1)[0]
    by_text = None if label_only else _option_text(line, options)
    found = _LABEL.match(line) or (_FIELD.match(line) if field else None)
    if not found or (by_text and line[found.end() :][:1] == " "):
        return (Reading(by_text, "repaired") if by_text else None), at + len(line)
    label, rest, end = found["label"].upper(), line[found.end() :], at + found.end()
    if by_text not in (None, label):
        return SEVERAL, end  # options that are single letters themselves
    if rest.startswith("?") or (_PREDICATE.match(rest) and not _JUDGED.match(line)):
        return None, at
    if label in "AI" and re.match(r"\s+[a-z]", rest) and not _AFTER_ARTICLE.match(rest):
        own = options.folded.get(label, "")
        if not own or not fold_plain(rest).startswith(own):
            return None, at  # "A protected lobby ..."
    second = _SECOND.match(rest)
    if second and second["label"] != label and (second["joined"] or not second["prose"]):
        return SEVERAL, end
    below = _NEXT_LINE.match(prose, end)
    if below and below["label"] in options.labels.replace(label, ""):
        return SEVERAL, end
    if options.has_rival(label, rest):
        return SEVERAL, end
    if options.lists_another(label, rest) or _another_option(label, found, rest, options):
        return SEVERAL, end
    return _reading(label, options), end


def _option_text(line: str, options: Options) -> str | None:
    """The label of the one option whose whole text `line` is or begins with as a sentence."""
    folded = fold_plain(line)
    whole = [label for label, text in options.folded.items() if text == folded]
    if whole:
        return whole[0] if len(whole) == 1 else None
    first = fold_plain(re.split(r"[.;!](?:\s|\Z)|[\"']\s*[,}]", line, maxsplit=1)[0])
    begun = [label for label, text in options.folded.items() if text == first]
    return begun[0] if len(begun) == 1 else None


def _another_option(label: str, found: re.Match[str], rest: str, options: Options) -> bool:
    """Whether the text beside a label is another option's, or nearer to another's words."""
    folded, own = fold_plain(re.sub(r"^[\s).:,(-]+", "", rest)), options.folded.get(label, "")
    others = [text for name, text in options.folded.items() if name != label and text != own]
    rivals = [text for text in others if folded == text or folded.startswith(text + " ")]
    rivals += [text for text in others if folded.startswith((text + ".", text + ",", text + ")"))]
    if rivals:
        return not (folded.startswith(own) and len(own) > max(map(len, rivals)))
    # Behind a full stop comes a sentence of its own; behind these comes the option's text.
    attached = ")" in found["closers"] or rest.lstrip()[:1] in (":", "-", "(")
    return attached and options.leans_away(label, re.split(r"[.;]", rest, maxsplit=1)[0])
