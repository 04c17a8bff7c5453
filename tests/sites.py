"""Sites for the tests of what the leaderboard shows: one as it should be, one of attacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hk_fs_bench.items import Dataset
from hk_fs_bench.leaderboard import site
from tests.boards import CHOICE, OPEN, board

QUESTIONS = 8
# One page of each type, of the site that `folder` builds.
TYPES = (
    "index.html",
    "plots.html",
    "questions.html",
    "entries/entry-2-0000000002.html",
    "questions/mcq-0374.html",
    "questions/oeq-0019.html",
)
# How an entry's answers come: by (task, item id).
Texts = dict[tuple[str, str], str]


def rated(value: float) -> dict[str, Any]:
    return {"value": value, "low": value - 0.05, "high": value + 0.05, "n": 68}


STUDY = {
    "study": "pilot",
    "rubric_version": "1",
    "dataset_version": "1.0.0",
    "raters": 4,
    "accuracy": rated(0.61),
    "clarity": rated(0.72),
    "unsafe_share": rated(0.2),
}
ENTRIES: tuple[dict[str, Any], ...] = (
    {"name": "acme/one", "skill": 0.95, "price": 0.002, "human": [STUDY]},
    {
        "name": "acme/two · search on",
        "skill": 0.9,
        "price": 0.01,
        "flags": ("search",),
        "warnings": ["half of the answers were late"],
        "differences": [
            {
                "task": CHOICE[0],
                "figure": "accuracy",
                "claimed": 0.5,
                "recomputed": 0.4,
                "claimed_signature": "old",
            }
        ],
        "judge": [STUDY],
    },
    {"name": "org/three", "skill": 0.7},
    {"name": "org/four", "skill": 0.5, "price": 0.0001},
    {"name": "house/claude", "skill": 0.9, "flags": ("drafter_family", "reviewer_family")},
    {"name": "tiny/five", "skill": 0.2, "flags": ("plumbing_check",)},
)


RANKED = ["acme/one", "org/three", "org/four"]
APART = ["acme/two · search on", "house/claude", "tiny/five"]


def texts_of(content: dict[str, Any], text: str) -> Texts:
    return {(task, name): text for task, names in content["questions"].items() for name in names}


def build_site(dataset: Dataset, folder: Path) -> dict[str, Any]:
    """The site of ENTRIES; returns its board."""
    content = board(dataset, ENTRIES, QUESTIONS)
    site.build(content, dataset, folder, lambda slug: texts_of(content, f"An answer of {slug}."))
    return content


# What strangers write, in every field.
PAYLOADS = (
    "<script>window.pwned = 1; alert(1)</script>",
    '<img src=x onerror="window.pwned = 1">',
    "\"' onmouseover='window.pwned = 1' autofocus onfocus='window.pwned = 1' x=\"",
    '</td></table></bdi><svg onload="window.pwned = 1"><style>*{display:none}</style>',
    "<!-- --><base href=//evil.example/><meta http-equiv=refresh content='0;url=//evil.example'>",
    "{{ 7 * 7 }}{% raw %}${7 * 7}|a|b\u202egnp.exe",
    "<a href=\"javascript:window.pwned = 1\">x</a><iframe srcdoc='<script>x</script>'>",
)


def poisoned(value: Any, number: Iterator[int]) -> Any:
    """A JSON value with a payload in each of its texts that is no slug, key or code."""
    if isinstance(value, dict):
        return {key: poisoned(inner, number) for key, inner in value.items()}
    if isinstance(value, list):
        return [poisoned(inner, number) for inner in value]
    if isinstance(value, str):
        return f"{value[:8]}{PAYLOADS[next(number) % len(PAYLOADS)]}"
    return value


# What build makes and the schema fixes; everything else in an entry is poisoned.
FIXED = {"slug", "kind", "outcomes", "contamination", "league", "label", "supersedes"}


def poison(entry: dict[str, Any], number: Iterator[int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in entry.items():
        if key in FIXED:
            found[key] = value
        elif key == "links":
            found[key] = {name: f"javascript:alert('{name}')" for name in ("model", "code")}
            found[key]["paper"] = 'https://example.org/" onmouseover="window.pwned = 1'
        elif key == "by":
            found[key] = {
                poisoned(field, number): {
                    poisoned(name, number): poisoned(figure, number)
                    for name, figure in groups.items()
                }
                for field, groups in value.items()
            }
        elif isinstance(value, dict):
            found[key] = poison(value, number)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            found[key] = [poison(own, number) for own in value]
        else:
            found[key] = poisoned(value, number)
    return found


def build_hostile(dataset: Dataset, folder: Path) -> None:
    """A site of entries whose every text attacks it, fields that the check refuses included."""
    content = board(dataset, ENTRIES, 4)
    numbers = iter(range(10**6))
    for entry in content["entries"]:
        kinds = [flag["kind"] for flag in entry["flags"]]
        entry |= {"notes": "n", "supersedes": "other", "superseded_by": PAYLOADS[0]}
        entry["declaration"]["statement"] = "s"
        entry["submitter"]["name"] = "name"
        entry["model"] |= {"revision": "r", "returned_ids": ["one"], "requested_id": "two"}
        for key, value in poison(entry, numbers).items():
            entry[key] = value
        for flag, kind in zip(entry["flags"], kinds, strict=True):
            flag["kind"] = kind
        entry["tasks"][OPEN]["outcomes"]["rows"][PAYLOADS[1]] = [0.5] * 4
        entry["tasks"][OPEN]["metrics"]["bertscore_f1@" + PAYLOADS[3]] = entry["tasks"][OPEN][
            "metrics"
        ]["meteor"]
    content["paper"] = poisoned(content["paper"], numbers)
    accuracy = {"value": None, "n": 0, "unit": "u", "ci95": None, "reason": "r"}
    one = {"accuracy": accuracy, "participants": 0}
    held = {"signature": "s", "conditions": {"closed": one, "open": one}}
    content["human_baseline"] = poisoned(held, numbers)
    content["families"] = {"drafters": list(PAYLOADS), "reviewers": list(PAYLOADS)}
    content["software"] = {"hk_fs_bench": PAYLOADS[0], "parser": PAYLOADS[1]}
    league = next(iter(content["leagues"].values()))
    league["protocol"] = {key: PAYLOADS[n % 6] for n, key in enumerate(("regime", "data"))}
    site.build(content, dataset, folder, lambda slug: texts_of(content, "".join(PAYLOADS)))
