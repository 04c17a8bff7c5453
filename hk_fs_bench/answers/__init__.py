"""Model text to a parsed answer: pure, total, never raises.

    statuses       what a parsed answer is, the order of the steps, the table of causes
    words          the word lists of data/answer_words.yaml as patterns
    folding        text without packaging and typography
    objects        JSON objects, with the slips that models make
    visible        an output as prose and objects, without reasoning
    options        the options, and how a text stands to them
    values         one value against the options
    statements     explicit answer statements in prose
    commitments    several answers: which is the final one
    mcq, oeq       the two cascades

An answer counts only if exactly one option is committed to. Packaging and syntax slips are
forgiven; doubt never is: nothing is guessed.
"""

from typing import TYPE_CHECKING, Any

from hk_fs_bench.answers.statuses import (
    CASCADE,
    PARSER_VERSION,
    STATUSES,
    ParsedAnswer,
    ParsedOpenAnswer,
    status_of_cause,
)

if TYPE_CHECKING:
    from hk_fs_bench.answers.mcq import parse_mcq
    from hk_fs_bench.answers.oeq import parse_oeq

__all__ = [
    "CASCADE",
    "PARSER_VERSION",
    "STATUSES",
    "ParsedAnswer",
    "ParsedOpenAnswer",
    "parse_mcq",
    "parse_oeq",
    "status_of_cause",
]


def __getattr__(name: str) -> Any:
    """Load the parser when it is first used: its patterns cost a tenth of a second to compile."""
    if name == "parse_mcq":
        from hk_fs_bench.answers.mcq import parse_mcq

        return parse_mcq
    if name == "parse_oeq":
        from hk_fs_bench.answers.oeq import parse_oeq

        return parse_oeq
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
