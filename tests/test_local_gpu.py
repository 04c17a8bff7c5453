"""Local runs on CUDA devices: one, and a copy on each of several."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hk_fs_bench import lm_eval_runs
from hk_fs_bench.runs import read_run

pytestmark = [pytest.mark.gpu, pytest.mark.model]
ROOT = Path(__file__).resolve().parent.parent
ENV = os.environ | {"HF_HUB_OFFLINE": "1", "LMEVAL_LOG_LEVEL": "ERROR"}
# An odd number: two processes can't have the same share.
TASK, LIMIT = "hk_fs_mcq_hk", 7


def gpus() -> int:
    import torch

    return int(torch.cuda.device_count())


def run(*words):
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, env=ENV)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def local(model, out, scale, *more):
    words = [sys.executable, ROOT / "scripts/run_local.py", model, "--scale", scale]
    words += ["--tasks", TASK, "--limit", LIMIT, "--max-new-tokens", 8, "--out", out]
    return read_run(Path(run(*words, *more).splitlines()[-1]))


def prompts_of(found):
    return {key: row["prompt_sha256"] for key, row in found.rows.items()}


def test_one_gpu(tmp_path, small_model_folder):
    found = local(small_model_folder, tmp_path, "one-gpu")
    assert found.manifest["complete"] is True
    assert len(found.rows) == LIMIT
    assert "cuda" in found.manifest["sessions"][0]["device"]


def test_a_copy_on_each_gpu(tmp_path, small_model_folder):
    if gpus() < 2:
        pytest.skip("one CUDA device; lm-eval's hf is data-parallel on two and more")
    alone = local(small_model_folder, tmp_path / "one", "one-gpu")
    both = local(small_model_folder, tmp_path / "two", "data-parallel", "--gpus", 2)
    assert prompts_of(both) == prompts_of(alone)
    shares = [read_run(path).rows for path in (both.folder / "parts").iterdir()]
    assert sorted(map(len, shares)) == [LIMIT // 2, LIMIT - LIMIT // 2]
    assert not set(shares[0]) & set(shares[1])
    devices = {session["device"] for session in both.manifest["sessions"]}
    assert len(devices) == 2


def test_lm_evals_own_data_parallel_run_is_read_whole(tmp_path, dataset, small_model_folder):
    if gpus() < 2:
        pytest.skip("one CUDA device; lm-eval's hf is data-parallel on two and more")
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu"]
    launch += ["--num_machines", 1, "--num_processes", 2, "-m", "lm_eval", "run"]
    launch += ["--model", "hf", "--model_args", f"pretrained={small_model_folder}"]
    launch += ["--tasks", TASK, "--include_path", ROOT / "lm_eval_tasks", "--limit", LIMIT]
    launch += ["--batch_size", 4, "--apply_chat_template", "--log_samples"]
    run(*launch, "--gen_kwargs", "max_gen_toks=8", "--output_path", tmp_path / "out")
    found = lm_eval_runs.convert(tmp_path / "out", dataset=dataset)
    assert len(found.rows) == LIMIT
    assert {row["sample"] for row in found.rows.values()} == {0}
