"""benchmarks/local_throughput.py: its arithmetic by hand, and the GPU's code path on a CPU."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def roofline(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import roofline

    return roofline


def test_the_limit_by_hand(roofline):
    machine = roofline.Machine(bandwidth=1000.0, arithmetic=10_000.0)
    shape = roofline.Shape(100, 200, 3, layers=1, heads=2, head_size=5)
    one = roofline.limit(machine, shape, 1, prompt=10, new=20)
    # Cached on average: 10 + 20 / 2. Memory: (200 + 20 * 3) / 1000; arithmetic: 2 * 100 for the
    # weights and 4 * 1 * 2 * 5 * 20 for attention.
    assert (one.memory, one.arithmetic) == (0.26, 0.1)
    assert one.prefill == 0.2
    assert one.decoding == pytest.approx(1 / 0.26)
    assert one.whole == pytest.approx(20 / (0.2 + 20 * 0.26))
    many = roofline.limit(machine, shape, 10, prompt=10, new=20)
    assert (many.memory, many.arithmetic, many.prefill) == (0.8, 1.0, 2.0)
    assert many.decoding == pytest.approx(10 / 1.0)
    # Logits of a prompt's last token alone: 2 * 10 * (60 * 10 + 40) / 10_000.
    shape = roofline.Shape(100, 200, 3, layers=1, heads=2, head_size=5, output_weights=40)
    assert roofline.limit(machine, shape, 10, prompt=10, new=20).prefill == 1.28


def test_a_machine_is_what_it_was_at_best(roofline):
    slow, busy = roofline.Machine(1.0, 9.0), roofline.Machine(2.0, 3.0)
    assert slow.or_better(busy) == busy.or_better(slow) == roofline.Machine(2.0, 9.0)


def test_two_tasks_are_compared_by_all_their_seconds(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import local_report

    def told(generating, around):
        return {"n": 10, "generating": generating, "seconds": generating + around}

    rounds = [
        {"tasks": {"ours": told(8.0, 2.0), "own": told(3.0, 1.0)}},
        {"tasks": {"ours": told(2.0, 1.0), "own": told(3.0, 1.0)}},
    ]
    ratios, around = local_report.task_ratios(rounds)
    assert ratios == [4 / 10, 4 / 3]
    assert around == {"ours": [200.0, 100.0], "own": [100.0, 100.0]}


def ours(batches, generating, n=10, new=20):
    """What a round says of its local run."""
    counts = {"n": n, "tokens": n * new, "seconds": 2 * generating, "generating": generating}
    return counts | {"batches": batches, "prompt": 10.0, "halved": 0, "peak": 1e9}


def test_each_round_is_held_against_the_limit_of_its_own_batches(monkeypatch, roofline):
    import local_report

    machine = roofline.Machine(bandwidth=1000.0, arithmetic=10_000.0)
    shape = roofline.Shape(100, 200, 3, layers=1, heads=2, head_size=5)
    # A step at best, as by hand above: 0.26 s for one answer, 1.0 s for ten.
    rounds = [{"ours": ours({10: 1}, 40.0)}, {"ours": ours({1: 10}, 104.0)}]
    steps, whole = local_report.of_the_limit(machine, shape, rounds, 20)
    assert steps == [pytest.approx(20 / 40), pytest.approx(10 * 20 * 0.26 / 104)]
    assert whole == [pytest.approx(22 / 40), pytest.approx((52 + 10 * 0.2) / 104)]


class FakeBench:
    """Of a benchmark its rounds alone: the second one never ends well."""

    name = "fake"
    torch = SimpleNamespace(get_num_threads=lambda: 2)

    def __init__(self, args, folder):
        config = SimpleNamespace(_attn_implementation="packed_sdpa")
        self.args, self.fits = args, args.batch
        self.lm = SimpleNamespace(model=SimpleNamespace(dtype="float32", config=config))

    def warm_up(self):
        pass

    def round(self, number):
        if number:
            raise SystemExit("killed")
        task = {"n": 4, "seconds": 2.0, "generating": 1.0, "batch": 2}
        alone = {"n": 3, "seconds": 1.0}
        return {
            "ours": ours({2: 5}, 1.0),
            "alone": alone,
            "tasks": dict.fromkeys(("ours", "own"), task),
            "load": 0.0,
        }


def test_a_round_that_has_ended_is_kept_and_nothing_is_written_over(
    tmp_path, monkeypatch, roofline
):
    import local_throughput

    monkeypatch.setattr(local_throughput, "Bench", FakeBench)
    monkeypatch.setattr(roofline, "measure", lambda *_: roofline.Machine(1e3, 1e4))
    shape = roofline.Shape(100, 200, 3, layers=1, heads=2, head_size=5)
    monkeypatch.setattr(roofline.Shape, "of", lambda _: shape)
    monkeypatch.setattr(sys, "argv", ["local_throughput.py", "--out", str(tmp_path)])
    for _ in range(3):
        with pytest.raises(SystemExit, match="killed"):
            local_throughput.main()
    names = sorted(path.name for path in tmp_path.glob("*.txt"))
    first = min(names, key=len).removesuffix(".txt")
    assert names == sorted([f"{first}.txt", f"{first}-2.txt", f"{first}-3.txt"])
    assert len(list(tmp_path.glob("*.json"))) == 3
    for path in tmp_path.glob("*.json"):
        assert [one["ours"]["batches"] for one in json.loads(path.read_text())] == [{"2": 5}]
        text = path.with_suffix(".txt").read_text("utf-8")
        assert "1 rounds" in text
        # What was measured is not what a local run does there.
        assert "attention: packed_sdpa" in text
        assert "batches of 2 (5 of them)" in text


def test_tasks_for_which_memory_runs_out_begin_anew_at_half(monkeypatch, roofline):
    import local_contenders

    bench = local_contenders.Bench.__new__(local_contenders.Bench)
    bench.fits, tried = 8, []

    def task(which):
        tried.append((which, bench.fits))
        if bench.fits > 2 and len(tried) in (2, 3):
            raise RuntimeError("CUDA out of memory.")
        return {"n": 1, "seconds": 2.0, "generating": 1.0, "asked": "x"}

    bench.task = task
    found = bench.tasks()
    assert found["ours"] == {"n": 2, "seconds": 4.0, "generating": 2.0, "asked": "x", "batch": 2}
    assert found["own"] == found["ours"]
    assert [fits for _, fits in tried] == [8, 8, 4, 2, 2, 2, 2]


def fake_memory(batch, longest, args):
    config = SimpleNamespace(get_text_config=lambda: None)
    model = SimpleNamespace(config=config, dtype=None)
    lm = SimpleNamespace(tok_encode=str.split, model=model)
    return SimpleNamespace(batch=batch, longest=lambda: longest, args=args, lm=lm, fits=4)


def test_memory_that_runs_out_is_said(monkeypatch, roofline):
    import local_memory

    def batch(questions, new):
        if len(questions) > 2:
            raise RuntimeError("CUDA out of memory.")

    args = SimpleNamespace(alone_new=3, batch=4, device="cpu")
    bench = fake_memory(batch, [SimpleNamespace(context="a b")] * 4, args)
    peaks = iter([3e9, 5e9])
    monkeypatch.setattr(local_memory, "peak", lambda _: next(peaks))
    monkeypatch.setattr("hk_fs_bench.hf_model.answer_bytes", lambda *_: 1.5e9)
    assert local_memory.lines(bench) == [
        "peak memory, 3 new tokens, the longest prompts:",
        "  batch 1: 3.00 GB",
        "  batch 2: 5.00 GB",
        "  batch 4: memory ran out",
        "  growth: 2000.0 MB an answer of the batch; of 2 + 3 tokens, for which a run counts "
        "1500.0 MB",
    ]


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="no such file on this system"
)
def test_memory_that_was_freed_hides_no_peak(roofline):
    """Small blocks go back to the heap, and the heap stays with the process until it is trimmed."""
    import local_memory

    local_memory.reset_peak("cpu")
    begun = local_memory.peak("cpu")
    blocks = [b"x" * 60_000 for _ in range(4000)]
    pinned = blocks[-1]
    del blocks
    assert local_memory.peak("cpu") - begun > 200e6
    local_memory.reset_peak("cpu")
    assert local_memory.peak("cpu") - begun < 60e6
    assert len(pinned) == 60_000


def test_an_engine_that_fails_without_a_word_is_a_line(monkeypatch, roofline):
    import local_engines

    def batch(questions, new):
        raise RuntimeError()

    args = SimpleNamespace(alone_new=3)
    bench = fake_memory(batch, [SimpleNamespace(context="a b")] * 9, args)
    for name in ("static", "continuous"):
        monkeypatch.setattr(local_engines, name, lambda *_: 0.5)
    assert list(local_engines.lines(bench)) == [
        "engines of transformers, 4 prompts, 3 new tokens each:",
        "  as run: RuntimeError: RuntimeError",
        "  static cache, compiled: 24 tokens/s",
        "  continuous batching: 24 tokens/s",
    ]


def test_a_shape_is_read_off_a_model(roofline):
    from transformers import LlamaConfig, LlamaForCausalLM

    told = {"hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 2, "vocab_size": 30}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    for tied in (False, True):
        config = LlamaConfig(**told, **heads, tie_word_embeddings=tied)
        shape = roofline.Shape.of(LlamaForCausalLM(config))
        # A layer: q and o 8 x 8, k and v 8 x 4, three of 8 x 12, two norms; then norm and output.
        assert shape.weights == 2 * (2 * 64 + 2 * 32 + 3 * 96 + 2 * 8) + 8 + 30 * 8
        assert shape.weight_bytes == 4 * shape.weights
        assert shape.output_weights == 30 * 8
        assert shape.cache_bytes == 2 * 2 * 2 * 2 * 4


@pytest.mark.model
def test_the_whole_benchmark_with_a_tiny_shape(tmp_path):
    words = [sys.executable, BENCHMARKS / "local_throughput.py", "--shape", "tiny", "--rounds", "2"]
    words += ["--new", "4", "--items", "3", "--alone", "1", "--alone-new", "3", "--batch", "2"]
    words += ["--task-items", "3"]
    done = subprocess.run(
        list(map(str, [*words, "--out", tmp_path])),
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (text,) = tmp_path.glob("local_throughput-cpu-*.txt")
    assert text.read_text("utf-8") == done.stdout
    said = "ours / alone|our task / lm-eval's own|ours / limit of its steps|roofline|peak memory"
    assert all(part in done.stdout for part in said.split("|"))
    (path,) = tmp_path.glob("*.json")
    for found in json.loads(path.read_text("utf-8")):
        ours = found["ours"]
        assert (ours["n"], ours["tokens"], ours["halved"]) == (9, 36, 0)
        assert ours["batches"] == {"1": 3, "2": 3}
        assert 0 < ours["generating"] < ours["seconds"]
        assert found["alone"]["n"] == 3
        assert [found["tasks"][name]["n"] for name in ("ours", "own")] == [6, 6]
