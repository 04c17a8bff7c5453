"""benchmarks/local_throughput.py: its arithmetic by hand, and the GPU's code path on a CPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

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


def test_two_tasks_are_compared_by_all_their_seconds(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import local_throughput

    def told(generating, around):
        return {"n": 10, "generating": generating, "seconds": generating + around}

    rounds = [
        {"tasks": {"ours": told(8.0, 2.0), "own": told(3.0, 1.0)}},
        {"tasks": {"ours": told(2.0, 1.0), "own": told(3.0, 1.0)}},
    ]
    ratios, around = local_throughput.task_ratios(rounds)
    assert ratios == [4 / 10, 4 / 3]
    assert around == {"ours": [200.0, 100.0], "own": [100.0, 100.0]}


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
