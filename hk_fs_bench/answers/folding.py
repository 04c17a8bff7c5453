"""Text as a reader sees it: without invisible characters, packaging and typography.

All functions take any string, lone surrogates included, and run in linear time. NFKC is applied
character by character: on a whole text its reordering of combining marks is quadratic.
"""

from __future__ import annotations

import html
import re
import unicodedata
from functools import cache, lru_cache

CHAT_TOKEN = (
    r"(?:<[|｜][^<>|｜\n]{1,40}[|｜]>|</?s>|\[/?INST\]|<</?SYS>>|</?(?:start|end)_of_turn>"
    r"|<(?:eos|bos|pad|unk|eot|eod)>|<0x[0-9A-Fa-f]{2}>|\[/?(?:EOS|BOS|ASSISTANT)\])"
)
"""A token of a chat template that leaked into the text."""
# A turn of the user, which only the model can have written.
USER_TURN = re.compile(
    r"(?:<[|｜](?:im_start|start_header_id|start)[|｜]>|<start_of_turn>)\s?user\b"
    r"|<[|｜]user[|｜]>|\[INST\]",
    re.I,
)
FENCE = r"(?:```|~~~)[ \t]?(?:[\w+-]{2,20}(?=[ \t]*(?:\n|$)))?"
MARK = "\ue000"
"""Stands in `plain` text where a box or an answer tag announced an answer."""
LISTED = "\ue001"
"""Stands in prose for the label of an option that is only repeated."""

_SHORT = 60
_LINE_ENDS = re.compile(r"\r\n?|[\x0b\x0c]")
# These are allowed inside the strings of JSON, so they stay until prose is read.
_RARE_LINE_ENDS = dict.fromkeys(map(ord, "\x85\u2028\u2029"), "\n")
_BLANKS = re.compile(r"(\s{64})\s+")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]{2,8});")
_TYPOGRAPHY = {
    **dict.fromkeys("‘’‚‛′´", "'"),
    **dict.fromkeys("“”„‟″«»「」『』", '"'),
    **dict.fromkeys("‐‑‒–—―−", "-"),
    **dict.fromkeys("【〔〖", "["),
    **dict.fromkeys("】〕〗", "]"),
    **dict.fromkeys("《〈⟨", "<"),
    **dict.fromkeys("》〉⟩", ">"),
    **dict.fromkeys("✅✔☑👉➡•●▪■◆🔹", " "),
    "。": ".",
    "、": ",",
}
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~")
_BLOCK = re.compile(
    r"</?(?:br|p|div|li|ul|ol|pre|h[1-6]|response|output|result)(?:\s[^<>]{0,100})?/?>", re.I
)
_INLINE = re.compile(r"</?(?:strong|em|span|code|mark|font)(?:\s[^<>]{0,100})?>", re.I)
# A lone <B> may be a label in brackets, so these go in pairs only.
_LETTER_TAGS = re.compile(r"<([biu])>([^<>]{0,300})</\1>", re.I)
_ANSWER_TAG = re.compile(r"<(/?)\s?(?:final|correct)?[_ -]?(?:answer|choice)\s?>", re.I)
_LATEX = re.compile(
    r"\\(?:mbox|text[a-z]{0,6}|math[a-z]{0,6}|operatorname|bm|boldsymbol)\s?\{([^{}]{0,400})\}"
)
_BOX = re.compile(r"\\(?:boxed|fbox)\s?\{([^{}]{0,400})\}")
# What JSON makes of "\boxed" and "\text" when the backslash was not escaped.
_BROKEN_LATEX = re.compile(r"\x08(?=oxed\{)|\t(?=ext(?:bf|it|rm)?\{)")
_LATEX_MARKS = re.compile(r"\\[()\[\],;!]|\$")
_EMPHASIS = re.compile(r"[*`]+|(?<![^\W_])_+|_+(?![^\W_])")
# A character with which all of the above begin, in ASCII. Most prose has none.
_MARKED = re.compile(r"[&<\[\\$*`_~\x08\t]")


def clean(text: str) -> str:
    """Drop what no reader sees and unify line ends; runs of blanks end after 64 characters.

    The bound on blanks keeps every later look-ahead across blanks short.
    """
    text = _LINE_ENDS.sub("\n", text)
    invisible = {ord(char): None for char in set(text) if _is_invisible(char)}
    return _BLANKS.sub(r"\1", text.translate(invisible) if invisible else text)


@lru_cache(maxsize=4096)
def _is_invisible(char: str) -> bool:
    if "\ufe00" <= char <= "\ufe0f" or char in ("\u034f", MARK, LISTED):
        return True  # variation selectors, the grapheme joiner, our own marks
    return unicodedata.category(char) in ("Cf", "Cc") and char not in "\n\t\x85"


def compat(text: str) -> str:
    """NFKC of every character, and plain quotes, dashes and brackets for typographic ones."""
    if text.isascii():
        return text
    return text.translate({ord(char): _plain(char) for char in set(text) if char > "\x7f"})


@cache
def _plain(char: str) -> str:
    folded = unicodedata.normalize("NFKC", char)
    # A few characters stand for whole phrases; those are no letters.
    return _TYPOGRAPHY.get(char) or (folded if len(folded) <= 4 else char)


def unescape_html(text: str) -> str:
    # html.unescape alone raises on a numeric entity of many digits.
    return _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)


def plain(text: str, mark: str = "") -> str:
    """`text` without typography, entities, chat tokens, fences, markdown, HTML and LaTeX.

    `mark` is written where a box or an answer tag opens. Runs of blanks are bounded as in `clean`.
    """
    return _plain_short(text, mark) if len(text) <= _SHORT else _made_plain(text, mark)


# Labels, keys and the blanks between objects are the same in most answers.
@lru_cache(maxsize=4096)
def _plain_short(text: str, mark: str) -> str:
    return _made_plain(text, mark)


def _made_plain(text: str, mark: str) -> str:
    if text.isascii() and not _MARKED.search(text):
        return _BLANKS.sub(r"\1", text)
    return _unmarked(text, mark)


def _unmarked(text: str, mark: str) -> str:
    text = text.translate(_RARE_LINE_ENDS)
    text = _BROKEN_LATEX.sub(lambda char: "\\b" if char[0] == "\b" else "\\t", text)
    text = USER_TURN.sub("\nUser:\n", unescape_html(compat(text)))
    text = re.sub(CHAT_TOKEN, "\n", text)
    text = _ANSWER_TAG.sub(lambda tag: "\n" if tag[1] or not mark else f"\n{mark} ", text)
    text = _LETTER_TAGS.sub(r"\2", _INLINE.sub("", _BLOCK.sub("\n", text)))
    for _ in range(2):  # \textbf{\text{B}}; deeper nesting says nothing
        text = _LATEX.sub(r"\1", text)
    text = _BOX.sub(rf"\n{mark} \1\n" if mark else r"\1", text)
    text = re.sub(FENCE, "\n", _LATEX_MARKS.sub("", text))
    return _BLANKS.sub(r"\1", _EMPHASIS.sub("", _STRUCK.sub(" ", text)))


def fold(text: str) -> str:
    """A form in which two spellings of one option are equal: case, blanks, end punctuation."""
    return fold_plain(plain(text))


def fold_plain(text: str) -> str:
    """`fold` for text that is `plain` already.

    A dash at the start goes too: behind a label it can't be told from a mark ("B - text"), and
    ratings such as "-/60/60" begin with one.
    """
    return " ".join(text.casefold().split()).lstrip("\"'-/ ").rstrip(".,;:!?\"' ")


def fold_key(key: str) -> str:
    """A key of an object, reduced to its letters and digits."""
    return _fold_short_key(key) if len(key) <= _SHORT else _folded_key(key)


@lru_cache(maxsize=4096)
def _fold_short_key(key: str) -> str:
    return _folded_key(key)


def _folded_key(key: str) -> str:
    return "".join(char for char in compat(key).casefold() if char.isalnum())


def well_formed(text: str) -> str:
    """`text` with surrogate pairs joined and lone ones replaced, so that it can be written."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
