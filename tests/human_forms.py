"""A small study for the tests of forms, with texts that try to be more than text."""

from __future__ import annotations

from pathlib import Path

import yaml

from hk_fs_bench.human import rubric
from hk_fs_bench.human.study import Answer, Question, Rater, Screen, Study, write_study
from hk_fs_bench.runs import write_json

ORGANISER = {
    "title": {"en": "Rating answers on the Code", "zh-Hant": "評核有關《守則》的答案"},
    "organiser": "Example Institute",
    "purpose": {
        "en": "We compare answers with each other and publish the figures.",
        "zh-Hant": "我們比較各份答案並發表數字。",
    },
    "recipients": {"en": "Two researchers of ours.", "zh-Hant": "本所兩名研究員。"},
    "storage": {"en": "On one encrypted disk.", "zh-Hant": "存放於一個加密硬碟。"},
    "retention": {
        "en": "Until 31 December 2027, then deleted.",
        "zh-Hant": "保留至2027年底，其後刪除。",
    },
    "withdrawal": {"en": "Write to us by 30 June 2027.", "zh-Hant": "請於2027年6月底前通知我們。"},
    "contact": "Data Officer",
    "address": "1 Example Street, Hong Kong",
    "return_to": {"en": "Ms Chan by e-mail", "zh-Hant": "陳女士（電郵）"},
}
MARKUP = (
    '</script><script>window.hurt=1</script><img src=x onerror="window.hurt=1">'
    "<b>bold</b> &lt; {q0c0_accuracy} {{7*7}} <!-- \u2028 ${1+1} [x](javascript:alert(1))"
)
MODEL = "acme/secret-model-7b"


def make_study(folder: Path, questions: int = 2, candidates: int = 2, nasty: bool = False) -> Study:
    """A study of one architect with one batch; the last screen repeats an answer."""
    extra = " " + MARKUP if nasty else ""
    held = {
        f"oeq-{q}": Question(
            f"oeq-{q}",
            f"Question {q}: may the door be left out?{extra}",
            ["B11.6", "Table B2"],
            [f"First point of question {q}.{extra}", "Second point."],
            f"No. The door of question {q} is needed, and it must close by itself.{extra}",
            False,
        )
        for q in range(1, questions + 1)
    }
    answers = {
        f"k{q}c{c}": Answer(
            f"k{q}c{c}", f"oeq-{q}", f"=1+1 Candidate {c} says of question {q}: yes.{extra}"
        )
        for q in range(1, questions + 1)
        for c in range(1, candidates + 1)
    }
    answers["k9"] = Answer("k9", "oeq-1", answers["k1c1"].answer)
    screens = [
        Screen("a1", 1, q, f"oeq-{q}", [f"k{q}c{c}" for c in range(1, candidates + 1)])
        for q in range(1, questions + 1)
    ]
    screens.append(Screen("a1", 1, questions + 1, "oeq-1", ["k9"], repeat=True))
    held_rubric = rubric.load()
    settings = {
        "format": 1,
        "name": "pilot",
        "seed": 1,
        "dataset": {"version": "1.0.0", "sha256": "0" * 64},
        "rubric": {"version": held_rubric.version, "sha256": held_rubric.sha256},
        "raters_per_question": 2,
        "batch_size": 10,
        "most_candidates": 5,
        "controls": {"expert": None, "known_bad": "built"},
        "settled": {},
        "withdrawn": [],
    }
    study = Study(folder, settings, {"a1": Rater("a1", "architect", 10)}, held, answers, screens)
    write_study(study)
    key = {
        name: {
            "item_id": one.item_id,
            "kind": "model",
            "run": "run1",
            "repeat_of": "k1c1" if name == "k9" else None,
            "taken_from": None,
        }
        for name, one in answers.items()
    }
    runs = {"run1": {"model": MODEL, "mode": "none", "folder": "secret-folder"}}
    write_json(folder / "key.json", {"runs": runs, "candidates": key})
    organiser = yaml.safe_dump(ORGANISER, allow_unicode=True)
    (folder / "organiser.yaml").write_text(organiser, "utf-8")
    return study
