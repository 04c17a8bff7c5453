"""BLEU, METEOR and ROUGE-L against pycocoevalcap's own, and on texts that break it.

Our own table is tests/data/text_cases.jsonl. HK_FS_CASES may name a folder with a further table,
C_text_metrics.jsonl, in the same form. One METEOR serves all of it: it is run from a folder whose
path has a blank and an accent, under Java settings of a country that writes commas in numbers.
"""

import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from hk_fs_bench import items
from hk_fs_bench.metrics import java, meteor, text
from hk_fs_bench.metrics.common import Scored, Unavailable
from hk_fs_bench.metrics.text import Pair

HERE = Path(__file__).resolve().parent
FIELD = Path(os.environ.get("HK_FS_CASES") or HERE.parents[1] / "shared" / "cases")
NAMES = {"Bleu_4": "bleu4", "METEOR": "meteor", "ROUGE_L": "rouge_l"}
OTHER_METRICS = ("BERTScore", "BERTScore rescaled")


def table(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


CASES = table(HERE / "data" / "text_cases.jsonl")
if (FIELD / "C_text_metrics.jsonl").is_file():
    CASES += table(FIELD / "C_text_metrics.jsonl")
OVERLAP_CASES = [case for case in CASES if case["context"].get("metric") not in OTHER_METRICS]


def pairs_of(case: dict) -> list[Pair]:
    """The rows of a case; those of a dict pair by their ids."""
    candidate, references = case["input"]["candidate"], case["input"]["references"]
    if isinstance(candidate, dict):
        return [Pair(answer, (references["rows"][k],)) for k, answer in candidate["rows"].items()]
    if not isinstance(candidate, list):
        return [Pair(candidate, tuple(references))]
    return [Pair(c, tuple(r)) for c, r in zip(candidate, references, strict=True)]


def clean_pairs(n: int = 320) -> list[Pair]:
    """Sentences of the dataset against themselves with words left out, moved and exchanged."""
    dataset = items.load()
    texts = [i.question for i in dataset.items("mcq")]
    texts += [i.explanation for i in dataset.items("mcq")]
    texts += [i.reference_answer for i in dataset.items("oeq")]
    texts = [text.clean(t.encode("ascii", "ignore").decode()) for t in texts]
    generator = random.Random(6)
    found = []
    for number in range(n):
        words = texts[number % len(texts)].split(" ")
        kept = [word for word in words if generator.random() < 0.8]
        if number % 3 == 0:
            generator.shuffle(kept)
        kept += generator.choice(texts).split(" ")[: generator.randrange(12)]
        found.append(Pair(" ".join(kept), (" ".join(words),)))
    return found


DIRTY = [case for case in OVERLAP_CASES if not isinstance(case["input"]["candidate"], list | dict)]


@dataclass
class Outcome:
    """Ours and pycocoevalcap's own, all from one run of METEOR each."""

    cases: dict[str, dict[str, Scored]]
    clean: dict[str, Scored]
    own: dict[str, tuple[float, list[float]]]
    dirty: dict[str, list[float]]
    alone: dict[str, list[float]]


def ours(found: list[dict]) -> list[dict[str, Scored]]:
    for one in found:
        for scored in one.values():
            assert isinstance(scored, Scored), scored
    return found


def usable(pairs: list[Pair]) -> list[Pair]:
    return [p for p in pairs if not any(map(text.is_empty, p.references))]


@pytest.fixture(scope="session")
def outcome(tmp_path_factory) -> Outcome:
    from pycocoevalcap.meteor.meteor import Meteor

    theirs = Meteor()  # begins to load its tables
    patch = pytest.MonkeyPatch()
    try:
        brought = java.resource("meteor/meteor-1.5.jar").parent
        home = tmp_path_factory.mktemp("site packages é") / "meteor"
        shutil.copytree(brought, home)
        real = java.resource
        patch.setattr(
            meteor, "resource", lambda n: home / Path(n).name if "meteor" in n else real(n)
        )
        patch.setenv("JAVA_TOOL_OPTIONS", "-Duser.language=it -Duser.country=IT")
        patch.setenv("LC_ALL", "C")
        raw = [c for c in OVERLAP_CASES if c["context"].get("tokenizer", "").startswith("none")]
        rest = [case for case in OVERLAP_CASES if case not in raw]
        dirty = [pair for case in DIRTY for pair in usable(pairs_of(case))]
        wanted = [
            Pair(case["expected"][key], pair.references)
            for case in rest
            for key in ("same_as_candidate", "METEOR_same_as_candidate")
            if key in case["expected"]
            for pair in pairs_of(case)
        ]
        systems = [usable(pairs_of(case)) for case in rest]
        *found, clean, together, as_wanted = ours(
            text.overlap([*systems, clean_pairs(), dirty, wanted])
        )
        cases = {case["id"]: one for case, one in zip(rest, found, strict=True)}
        twins = iter(range(len(wanted)))
        for case in rest:
            for key in ("same_as_candidate", "METEOR_same_as_candidate"):
                if key in case["expected"]:
                    row = next(twins)
                    cases[f"{case['id']}:{key}"] = {n: s.rows[row] for n, s in as_wanted.items()}
        raw_pairs = [pairs_of(case) for case in raw]
        found = text.overlap(raw_pairs, ("bleu4", "rouge_l"), tokenized=True)
        cases |= {case["id"]: one for case, one in zip(raw, ours(found), strict=True)}
        for case, own in zip(raw, raw_pairs, strict=True):
            rows = {i: [pair.candidate] for i, pair in enumerate(own)}
            references = {i: list(pair.references) for i, pair in enumerate(own)}
            corpus, _ = theirs.compute_score(references, rows)
            cases[case["id"]]["meteor of pycocoevalcap"] = corpus
        patch.undo()
        return Outcome(
            cases=cases,
            clean=clean,
            own=by_pycocoevalcap(theirs, clean_pairs()),
            dirty={name: list(scored.rows) for name, scored in together.items()},
            alone=one_by_one(theirs, dirty),
        )
    finally:
        patch.undo()
        theirs.meteor_p.stdin.close()
        theirs.meteor_p.kill()


def by_pycocoevalcap(theirs, pairs: list[Pair]) -> dict[str, tuple[float, list[float]]]:
    """Its own tokenizer, its own three metrics."""
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.rouge.rouge import Rouge
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    n = len(pairs)
    captions = {i: [{"caption": pair.candidate}] for i, pair in enumerate(pairs)}
    captions |= {n + i: [{"caption": pair.references[0]}] for i, pair in enumerate(pairs)}
    tokens = PTBTokenizer().tokenize(captions)
    rows = {i: tokens[i] for i in range(n)}
    references = {i: tokens[n + i] for i in range(n)}
    bleu, bleu_rows = Bleu(4).compute_score(references, rows, verbose=0)
    rouge, rouge_rows = Rouge().compute_score(references, rows)
    corpus, meteor_rows = theirs.compute_score(references, rows)
    return {
        "bleu4": (bleu[3], bleu_rows[3]),
        "rouge_l": (float(rouge), rouge_rows.tolist()),
        "meteor": (corpus, meteor_rows),
    }


def one_by_one(theirs, pairs: list[Pair]) -> dict[str, list[float]]:
    """Each row through pycocoevalcap alone, cleaned: what the row is worth, whoever stands by."""
    found: dict[str, list[float]] = {"bleu4": [], "rouge_l": [], "meteor": []}
    for pair in pairs:
        own = Pair(text.clean(pair.candidate), (text.clean(pair.references[0]),))
        scores = by_pycocoevalcap(theirs, [own])
        for name, (_, rows) in scores.items():
            found[name].append(0.0 if text.is_empty(own.candidate) else rows[0])
    return found


@pytest.mark.java
@pytest.mark.parametrize("name", ["bleu4", "rouge_l", "meteor"])
def test_clean_text_scores_as_in_pycocoevalcap(outcome, name):
    corpus, rows = outcome.own[name]
    scored = outcome.clean[name]
    assert len(rows) >= 300
    assert scored.rows == pytest.approx(rows, abs=1e-9)
    assert scored.pooled(range(len(rows))).value == pytest.approx(corpus, abs=1e-9)
    estimate = scored.estimate(range(len(rows)))
    assert estimate.ci95[0] < corpus < estimate.ci95[1]


@pytest.mark.java
@pytest.mark.parametrize("name", ["bleu4", "rouge_l", "meteor"])
def test_dirty_rows_score_as_each_alone(outcome, name):
    assert outcome.dirty[name] == pytest.approx(outcome.alone[name], abs=1e-9)


@pytest.mark.java
@pytest.mark.parametrize("case", OVERLAP_CASES, ids=lambda case: case["id"])
def test_case(outcome, case):
    expected, context = case["expected"], case["context"]
    tolerance = context.get("tol", 1e-4)
    if expected.get("error_or_flag") == "empty reference":
        assert text.is_empty(case["input"]["references"][0])
        return
    scored = outcome.cases[case["id"]]
    sums = {n: s.sums.sum(axis=0) for n, s in scored.items() if isinstance(s, Scored)}
    values = {n: float(s.statistic(sums[n])) for n, s in scored.items() if isinstance(s, Scored)}
    values.setdefault("meteor", scored.get("meteor of pycocoevalcap"))
    assert all(math.isfinite(value) for value in values.values())
    for key, wanted in expected.items():
        if key in NAMES and isinstance(wanted, float):
            assert values[NAMES[key]] == pytest.approx(wanted, abs=tolerance), key
        elif key in ("Bleu_1", "Bleu_2", "Bleu_3"):
            bleu = float(text.bleu(sums["bleu4"], int(key[-1])))
            assert bleu == pytest.approx(wanted, abs=tolerance), key
        elif key == "Bleu_1_min":
            assert float(text.bleu(sums["bleu4"], 1)) >= wanted
        elif key == "Bleu_4":  # in words: about a value
            about = float(wanted.split()[1])
            assert values["bleu4"] == pytest.approx(about, rel=0.05)
        elif key in ("Bleu_4_max", "ROUGE_L_min"):
            value = values[NAMES[key[:-4]]]
            assert value <= wanted if key.endswith("max") else value >= wanted
        elif key in ("same_as_candidate", "METEOR_same_as_candidate"):
            twin = outcome.cases[f"{case['id']}:{key}"]
            for name in ("meteor",) if key.startswith("METEOR") else NAMES.values():
                assert scored[name].rows[0] == pytest.approx(twin[name], abs=1e-12)
        elif key == "each_row_BERT_or_ROUGE":
            assert scored["rouge_l"].rows == pytest.approx([wanted] * len(pairs_of(case)))
        elif key == "flag":
            candidate = case["input"]["candidate"]
            assert text.is_empty(candidate) == (wanted in ("empty", "missing"))
        else:
            told = ("finite", "row_aligned", "hang", "no_exception", "note")
            assert key in told or key.startswith("BERTScore"), f"the test does not know {key}"


def test_empty_and_cut():
    assert text.clean(None) == text.clean("\n\t ") == ""
    assert text.is_empty(None)
    assert text.is_empty("… ?!")
    assert not text.is_empty("防火門")
    long = "word " * 5000
    assert len(text.clean(long)) <= text.LONGEST
    assert text.is_cut(long)
    assert not text.is_cut("word" + " " * 50_000)
    assert text.clean("a\x00b\x85c\u2028d |||| e\ud800") == "a b c d e\ufffd"


def test_no_answers_at_all_need_no_java(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    for scored in text.overlap([[], []]):
        assert str(scored["meteor"]) == "no answer to count"
    assert text.overlap([]) == []


@pytest.mark.java
def test_a_run_without_answers_beside_one_with():
    none, some = text.overlap([[], [Pair("a door", ("the door",))]], ("bleu4", "rouge_l"))
    assert none["bleu4"].estimate([]).reason == "no answer to count"
    assert some["rouge_l"].rows == pytest.approx([0.5])


@pytest.mark.java
def test_huge_texts_end():
    rows = [Pair(t * 100_000, ("the door is closed",)) for t in ("a='", "door ", "x|||", "<a b='")]
    (found,) = text.overlap([rows], ("bleu4", "rouge_l"), deadline=60)
    assert all(np.isfinite(found[name].rows).all() for name in found)


FAKES = {
    "fails": ("echo 'Error: no JVM here' >&2; exit 1", "no JVM here"),
    "is silent": ("cat > /dev/null", "lost or made lines"),
    "says too much": ("yes | head -1000", "lost or made lines"),
    "hangs": ("exec sleep 600", "not done after"),
    "hangs reading": ("cat > /dev/null; exec sleep 600", "not done after"),
}


def children() -> list[str]:
    """Command lines of this process's children."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == os.getpid() and fields[0] != "Z":
                found.append((stat.parent / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


@pytest.fixture
def fake_java(tmp_path, monkeypatch):
    def make(script: str) -> None:
        path = tmp_path / "bin" / "java"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")

    return make


@pytest.mark.parametrize("kind", FAKES)
def test_a_java_that_misbehaves_is_a_reason(fake_java, kind):
    script, reason = FAKES[kind]
    fake_java(script)
    pairs = [Pair("a door", ("the door",))]
    (found,) = text.overlap([pairs], deadline=1.0)
    assert all(isinstance(lack, Unavailable) for lack in found.values())
    assert reason in str(found["bleu4"])
    assert not [line for line in children() if "java" in line or "sleep" in line]


def test_without_java_or_pycocoevalcap(monkeypatch):
    pairs = [Pair("a door", ("the door",))]
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (found,) = text.overlap([pairs])
    assert all("install a JRE" in str(lack) for lack in found.values())
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)
    (found,) = text.overlap([pairs])
    assert all("hk-fs-bench[score]" in str(lack) for lack in found.values())


def test_java_dies_with_its_parent(fake_java, tmp_path):
    if sys.platform != "linux":
        return  # Only Linux can end a child so.
    fake_java(f"echo $$ > {tmp_path}/pid; exec sleep 600")
    script = (
        "from hk_fs_bench.metrics import java; from pathlib import Path\n"
        "with java.Java(Path('/tmp'), [], []) as program: program.finish('x', 600)"
    )
    env = os.environ | {"PYTHONPATH": str(HERE.parent)}
    parent = subprocess.Popen([sys.executable, "-c", script], env=env)
    deadline = time.monotonic() + 30
    while not (tmp_path / "pid").is_file() or not (tmp_path / "pid").read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child = int((tmp_path / "pid").read_text())
    parent.send_signal(signal.SIGKILL)
    parent.wait(10)
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{child}").exists()
