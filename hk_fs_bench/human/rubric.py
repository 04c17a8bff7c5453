"""The rubric of rubric.yaml: what may be chosen, and what a judgement is worth.

Scores are fractions in [0, 1]. The lowest score of the chosen descriptors counts.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

import yaml

LANGUAGES = ("en", "zh-Hant")
MAJOR = "major"
Texts = Mapping[str, str]


@dataclass(frozen=True)
class Choice:
    """A level or a descriptor: its `score` (None for the level that descriptors decide)."""

    id: str
    score: float | None
    label: Texts
    about: Texts
    paper: str
    unsafe: bool = False


@dataclass(frozen=True)
class Dimension:
    """One dimension; levels and descriptors by id, in the order in which they are shown."""

    id: str
    label: Texts
    about: Texts
    levels: Mapping[str, Choice]
    descriptors: Mapping[str, Choice]


@dataclass(frozen=True)
class Worth:
    """What a judgement scores; None with the `reason` where it decides nothing.

    `capped`: the score would have been higher, had no essential point been missed.
    """

    score: float | None
    reason: str | None = None
    capped: bool = False


@dataclass(frozen=True)
class Rubric:
    """A version of the rubric; `sha256` is of its file."""

    version: str
    sha256: str
    rule: Texts
    dimensions: Mapping[str, Dimension]
    cap_dimension: str
    cap_descriptor: str
    third_rater_gap: float

    def worth(
        self,
        dimension: str,
        level: str | None,
        descriptors: Sequence[str],
        missed_essential: Sequence[int] = (),
    ) -> Worth:
        """The score of a judgement.

        Args:
            level: id, or None where the form asked for descriptors only.
            missed_essential: numbers of the essential key points that the answer misses.
        """
        held = self.dimensions[dimension]
        if reason := self._contradiction(held, level, descriptors):
            return Worth(None, reason)
        chosen = [held.descriptors[name] for name in descriptors] or [held.levels[str(level)]]
        score = min(one.score for one in chosen if one.score is not None)
        cap = held.descriptors[self.cap_descriptor].score if dimension == self.cap_dimension else 1
        assert cap is not None
        if missed_essential and score > cap:
            return Worth(cap, capped=True)
        return Worth(score)

    @staticmethod
    def _contradiction(
        held: Dimension, level: str | None, descriptors: Sequence[str]
    ) -> str | None:
        if level is None and not descriptors:
            return f"{held.id}: nothing chosen"
        if level == MAJOR and not descriptors:
            return f"{held.id}: level {MAJOR} without a descriptor"
        if level is not None and level != MAJOR and descriptors:
            return f"{held.id}: level {level} contradicts {', '.join(descriptors)}"
        return None

    @property
    def unsafe(self) -> frozenset[str]:
        """The descriptors of accuracy that make an answer unsafe."""
        found = self.dimensions["accuracy"].descriptors.values()
        return frozenset(one.id for one in found if one.unsafe)

    @property
    def signature(self) -> str:
        """Version, hash and rule, for the signature of every figure."""
        return f"rubric {self.version} ({self.sha256[:12]}): {self.rule['en']}"


def fold(text: str) -> str:
    """Text for comparing labels and ids: NFKC, case and blanks folded."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


@lru_cache(maxsize=1)
def load() -> Rubric:
    """The rubric of this package."""
    raw = resources.files(__package__).joinpath("rubric.yaml").read_bytes()
    held = yaml.safe_load(raw)
    cap = held["rules"]["essential_point_missed"]
    return Rubric(
        version=held["version"],
        sha256=hashlib.sha256(raw).hexdigest(),
        rule=held["rule"],
        dimensions={
            name: Dimension(
                id=name,
                label=one["label"],
                about=one["about"],
                levels={key: Choice(id=key, **value) for key, value in one["levels"].items()},
                descriptors={k: Choice(id=k, **value) for k, value in one["descriptors"].items()},
            )
            for name, one in held["dimensions"].items()
        },
        cap_dimension=cap["dimension"],
        cap_descriptor=cap["descriptor"],
        third_rater_gap=held["rules"]["third_rater_gap"],
    )
