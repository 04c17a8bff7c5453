"""What a parsed answer is, its statuses, and the order in which the parser looks for it."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

PARSER_VERSION = "1"

STATUSES = (
    "valid",  # a JSON object that any JSON reader reads, alone or in packaging
    "repaired",  # the answer is beyond doubt, but the output is not that object
    "ambiguous",  # several answers, or one that contradicts itself
    "refused",  # the model declined
    "truncated",  # the token limit came before the answer
    "empty",  # no text, or an answer without content
    "filtered",  # the provider's filter ended the reply
    "invalid",  # none of these: no option is committed to
)

CASCADE = (
    "finish_reason",  # a filter or a refusal that ended the reply outweighs any text
    "empty",  # nothing to see, perhaps beside reasoning
    "reasoning",  # reasoning is removed; reasoning that never ended leaves no answer
    "json",  # objects that a strict JSON reader reads
    "repaired_json",  # objects with syntax slips, without braces, or cut after the answer
    "decoded_json",  # the same in text that was escaped once more (JSON in JSON, HTML entities)
    "whole_text",  # the visible text is one value: a label or a whole option (OEQ: any text)
    "statement",  # an explicit answer statement in prose ("The answer is B", \boxed{B})
    "none",  # nothing of these
)
"""The steps in their order, whose names are the `method` of an answer.

The first step that finds an answer names the method. The steps `json` and `repaired_json` look at
one text together, and an explicit statement beside an object must agree with it. Any change of
order or of rule is a new PARSER_VERSION.
"""

# Finish reasons of the providers stand beside our own causes: they end a row for the same reasons.
_STATUS_OF_CAUSE = MappingProxyType(
    {
        "reasoning_budget": "truncated",
        "length": "truncated",
        "max_tokens": "truncated",
        "max_new_tokens": "truncated",
        "max_output_tokens": "truncated",
        "model_length": "truncated",
        "empty": "empty",
        "empty_beside_reasoning": "empty",
        "content_filter": "filtered",
        "safety": "filtered",
        "recitation": "filtered",
        "blocklist": "filtered",
        "prohibited_content": "filtered",
        "spii": "filtered",
        "refusal": "refused",
    }
)
# Reasons that mean the model itself ended its reply, so that nothing more was to come.
_FINISHED = frozenset({"stop", "eos", "eos_token", "end_turn", "stop_sequence", "completed"})


def status_of_cause(cause: str) -> str:
    """The answer status of a row without an answer, from the cause that the runner recorded.

    Raises ValueError for a cause that is not in the table: a new one has to be placed by hand.
    """
    try:
        return _STATUS_OF_CAUSE[cause]
    except KeyError:
        known = ", ".join(sorted(_STATUS_OF_CAUSE))
        raise ValueError(f"unknown cause {cause!r}; known are {known}") from None


@dataclass(frozen=True)
class Ending:
    """How a reply ended: the status it implies if no answer is found (None: it implies none)."""

    status: str | None
    finished: bool

    @classmethod
    def of(cls, finish_reason: str | None) -> Ending:
        reason = finish_reason.lower() if isinstance(finish_reason, str) else ""
        return cls(_STATUS_OF_CAUSE.get(reason), reason in _FINISHED)

    @property
    def overrules(self) -> bool:
        """Whether the reply is void whatever its text says."""
        return self.status in ("filtered", "refused")

    @property
    def cut(self) -> bool:
        return self.status == "truncated"


@dataclass(frozen=True)
class ParsedAnswer:
    """An answer to a multiple-choice question.

    `value` is a label ("A", "B", ...) exactly when `status` is valid or repaired, else None.
    """

    value: str | None
    method: str
    status: str
    parser_version: str = PARSER_VERSION


@dataclass(frozen=True)
class ParsedOpenAnswer:
    """An answer to an open question.

    `answer` is None where there is nothing to score; with status "truncated" it may hold the part
    that was written before the cut. `reason` is None where none was given.
    """

    answer: str | None
    reason: str | None
    method: str
    status: str
    parser_version: str = PARSER_VERSION
