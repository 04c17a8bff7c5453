"""Local runs with a real small model: as lm-eval answers, split, killed and resumed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hk_fs_bench import local_configs, local_plan, local_runs, scoring
from hk_fs_bench.runs import read_run

pytestmark = pytest.mark.model
ROOT = Path(__file__).resolve().parent.parent
TASKS = ["hk_fs_mcq_hk", "hk_fs_oeq"]
LIMIT, TOKENS = 2, 4


@pytest.fixture(scope="module")
def engine(small_model_folder):
    import torch

    from hk_fs_bench.hf_model import CountingHF

    torch.set_num_threads(1)  # Several, beside other work, wait for one another.
    return CountingHF(pretrained=str(small_model_folder), dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def plan(dataset, small_model_folder):
    def make(out, part=(0, 1), model=small_model_folder, limit=LIMIT):
        config = local_configs.resolve(str(model), "cpu")
        config.lm_eval["batch_size"] = 1
        config.lm_eval["gen_kwargs"]["max_gen_toks"] = TOKENS
        share = local_plan.Share(*part)
        return local_plan.plan(config, dataset, tasks=TASKS, out=out, share=share, limit=limit)

    return make


def answers(folder):
    return {
        key: (row["output"], row["finish_reason"], row["token_usage"])
        for key, row in read_run(folder).rows.items()
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory, plan, engine):
    """One process's answers, one at a time."""
    mine = plan(tmp_path_factory.mktemp("whole"))
    local_runs.run(mine, load=lambda _: engine)
    return answers(mine.folder)


def test_shards_of_a_real_model_equal_one_process(tmp_path, plan, engine, whole):
    for part in range(3):
        local_runs.run(plan(tmp_path, (part, 3)), load=lambda _: engine)
    parts = [read_run(plan(tmp_path, (part, 3)).part).rows for part in range(3)]
    assert sum(map(len, parts)) == len(set().union(*parts)) == len(whole) == LIMIT * len(TASKS)
    assert answers(plan(tmp_path).folder) == whole


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A model of random weights, quick enough for processes of their own."""
    import torch

    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        import random_model
    folder = tmp_path_factory.mktemp("tiny") / "model"
    random_model.make("tiny", folder, "cpu", torch.float32).save_pretrained(folder)
    return folder


def command(model, out, limit):
    words = [ROOT / "scripts/run_local.py", model, "--scale", "cpu", "--tasks", ",".join(TASKS)]
    words += ["--limit", limit, "--max-new-tokens", TOKENS, "--batch", 1, "--out", out]
    return [sys.executable, *map(str, words)]


def here(job):
    """What that command does, in this process."""
    local_runs.run(job)
    return job.folder


ENV = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}


def test_a_killed_process_goes_on_where_it_was(tmp_path, plan, tiny):
    process = subprocess.Popen(
        command(tiny, tmp_path / "killed", 50), stderr=subprocess.PIPE, text=True, env=ENV
    )
    for line in process.stderr:
        if line.startswith("3 of 100 answers"):
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()
    (part,) = (tmp_path / "killed").glob("*/parts/1-of-1")
    kept = answers(part)
    assert 3 <= len(kept) < 100
    folder = here(plan(tmp_path / "killed", model=tiny, limit=50))
    lines = (part / "predictions.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == len(answers(folder)) == 100
    assert kept.items() <= answers(folder).items()
    manifest = read_run(folder).manifest
    assert manifest["complete"] is True
    assert [session["answered"] for session in manifest["sessions"]][1] == 100 - len(kept)


def test_two_processes_of_a_launcher_share_the_work(tmp_path, plan, dataset, tiny):
    """Under a launcher each process answers its own share, on a CPU too."""
    # What accelerate starts its processes with; its own --cpu wants MPI.
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
    words = [*launch, "--standalone", *command(tiny, tmp_path / "two", 3)[1:]]
    done = subprocess.run(words, capture_output=True, text=True, env=ENV)
    assert done.returncode == 0, done.stderr[-3000:]
    folder = Path(done.stdout.splitlines()[-1])
    parts = [read_run(folder / "parts" / f"{k}-of-2").rows for k in (1, 2)]
    assert list(map(len, parts)) == [3, 3]
    assert answers(folder) == answers(here(plan(tmp_path / "one", model=tiny, limit=3)))
    assert read_run(folder).manifest["complete"] is True
    assert scoring.score(read_run(folder), dataset)["tasks"][TASKS[0]]["answered"] == 3


def ask(model, *prompts, until=(), tokens=24):
    from lm_eval.api.instance import Instance

    settings = {"until": list(until), "max_gen_toks": tokens, "do_sample": False}
    model.batch_size_per_gpu = len(prompts)
    return model.generate_until(
        [Instance("generate_until", {}, (text, dict(settings)), 0) for text in prompts],
        disable_tqdm=True,
    )


def test_answers_and_counts_are_lm_evals(engine, small_model_folder):
    """The look for the end token's text that is left out changes no answer."""
    from lm_eval.models.huggingface import HFLM

    plain = HFLM(pretrained=str(small_model_folder), dtype="float32", device="cpu")
    told = ("What is 1 + 1? Give the number alone.", "Write the numbers from 1 to 100.")
    prompts = [engine.apply_chat_template([{"role": "user", "content": text}]) for text in told]
    texts = ask(engine, *prompts)
    assert texts == ask(plain, *prompts)
    ends = {prompt: (text, tokens, end) for prompt, text, tokens, end in engine.ends}
    assert [ends[prompt][0] for prompt in prompts] == texts
    counted = [len(engine.tokenizer(text, add_special_tokens=False)["input_ids"]) for text in texts]
    # The end token is generated too, and is in no text.
    assert [ends[prompt][1:] for prompt in prompts] == [(counted[0] + 1, "stop"), (24, "length")]


def test_a_stop_text_that_is_no_end_token_still_stops(engine):
    (text,) = ask(engine, "Exit signs are", until=[" "])
    assert " " not in text
    ((_, _, tokens, end),) = engine.ends
    assert (tokens < 24, end) == (True, "stop")
