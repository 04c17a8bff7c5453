"""Which of lm-eval's model_args a manifest records, and that no two models' answers mix by them."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from hk_fs_bench import run_manifest
from hk_fs_bench.errors import UserError
from hk_fs_bench.model_args import recorded
from hk_fs_bench.runs import Run, read_run
from tests.local_jobs import Engine, answer, edition, planner

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return edition(tmp_path_factory.mktemp("edition"))


@pytest.fixture
def job(tmp_path, small):
    return planner(tmp_path / "runs", small)


@pytest.mark.parametrize(
    ("args", "kept"),
    [
        ({"pretrained": "/models/x", "revision": "a", "dtype": "float16"}, {}),
        ({"parallelize": True, "tensor_parallel_size": 4, "max_memory_per_gpu": "10GiB"}, {}),
        ({"max_num_seqs": 8, "gpu_memory_utilization": 0.5, "seed": 3, "max_model_len": 9}, {}),
        ({"peft": None}, {}),
        ({"revision": "a", "tokenizer_revision": "a"}, {}),
        ({"revision": "a", "tokenizer_revision": "b"}, {"tokenizer_revision": "b"}),
        ({"load_in_4bit": True, "max_length": 900}, {"load_in_4bit": True, "max_length": 900}),
        ({"peft": "org/adapter"}, {"peft": "org/adapter"}),
        ({"chat_template_args": {"k": [1, None]}}, {"chat_template_args": {"k": [1, None]}}),
        ({"subfolder": "", "think_end_token": "</think>"},) * 2,
        ({"hf_overrides": "/home/me/over.json"}, {"hf_overrides": "local/over.json"}),
        ({"delta": "C:\\models\\gone\\"}, {"delta": "local/gone"}),
        ({"rope": float("inf")}, {"rope": "inf"}),
    ],
)
def test_what_decides_an_answer_is_kept(args, kept):
    assert recorded(args) == kept


def adapter(folder, weights):
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text("{}")
    (folder / "adapter_model.safetensors").write_bytes(weights)
    return folder


def test_a_folder_is_named_and_hashed(tmp_path):
    one, same, other = (
        adapter(tmp_path / n / "lora", w) for n, w in (("a", b"1"), ("b", b"1"), ("c", b"2"))
    )
    told = [recorded({"peft": str(path)})["peft"] for path in (one, same, other)]
    assert told[0] == told[1] != told[2]
    assert all(text.startswith("local/lora sha256:") for text in told)
    # Of a tokenizer the weights beside it decide nothing.
    assert len({recorded({"tokenizer": str(path)})["tokenizer"] for path in (one, other)}) == 1


@pytest.mark.parametrize(
    "args",
    [
        {"peft": "org/adapter"},
        {"delta": "org/delta"},
        {"load_in_4bit": True},
        {"quantization": "awq"},
        {"gguf_file": "x.Q4_K.gguf"},
        {"tokenizer": "org/other"},
        {"subfolder": "half"},
        {"chat_template_args": {"date": "1 Jan"}},
        {"add_bos_token": False},
        {"max_length": 600},
        {"think_end_token": "</think>"},
    ],
)
def test_answers_of_other_model_args_never_mix(job, args):
    answer(job(limit=1), Engine())
    with pytest.raises(
        UserError, match=f"holds answers with model_args None, .*{next(iter(args))}"
    ):
        job(limit=1, model_args=args)
    with pytest.raises(UserError, match="model_args"):
        job((1, 2), model_args=args)


def test_a_local_adapter_is_told_from_another_of_its_name(tmp_path, job):
    paths = [str(adapter(tmp_path / n / "lora", n.encode())) for n in ("a", "b")]
    mine = job(limit=1, model_args={"peft": paths[0]})
    answer(mine, Engine())
    assert str(tmp_path) not in (mine.folder / "run.json").read_text("utf-8")
    assert job(limit=1, model_args={"peft": paths[0]}).todo == []
    with pytest.raises(UserError, match="model_args"):
        job(limit=1, model_args={"peft": paths[1]})


def test_placement_is_no_matter_of_the_answer(job):
    answer(job(limit=1), Engine())
    assert job(limit=1, model_args={"max_memory_per_gpu": "10GiB", "device_map": "auto"}).todo == []


def test_a_run_of_before_goes_on(job):
    """Its manifest has no model_args; most runs need none."""
    mine = job(limit=1)
    answer(mine, Engine())
    path = mine.part / "run.json"
    held = json.loads(path.read_text("utf-8"))
    assert held["model"].pop("model_args") == {}
    path.write_text(json.dumps(held), "utf-8")
    assert job(limit=1).todo == []
    with pytest.raises(UserError, match="model_args"):
        job(limit=1, model_args={"peft": "org/adapter"})


def test_scoring_and_submissions_know_the_field(job):
    mine = job(limit=1, model_args={"peft": "org/adapter", "chat_template_args": {"a": {"b": 1}}})
    answer(mine, Engine())
    run = read_run(mine.folder)
    assert run.manifest["model"]["model_args"]["peft"] == "org/adapter"
    run_manifest.check(run)
    wrong = run.manifest | {"model": run.manifest["model"] | {"model_args": "peft=x"}}
    with pytest.raises(UserError, match="model_args that can't be read"):
        run_manifest.check(Run(run.folder, wrong, run.rows))
    schema = json.loads((ROOT / "leaderboard/schema/submission.schema.json").read_text("utf-8"))
    rules = schema["$defs"]["run"]["properties"]["model"]["properties"]
    whole = Draft202012Validator(rules["model_args"] | {"$defs": schema["$defs"]})
    whole.validate(run.manifest["model"]["model_args"])
    whole.validate(None)
    assert not whole.is_valid("peft=x")
