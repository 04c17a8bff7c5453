"""lm_eval_tasks/configs: one file a model and regime, each of which lm-eval can run."""

from pathlib import Path

import pytest
import yaml

from hk_fs_bench import prompts

FILES = sorted((prompts.tasks_folder() / "configs").glob("*/*.yaml"))
PAPER_MODELS = {
    "Qwen/Qwen2.5-7B-Instruct",
    "meta-llama/Llama-3.1-8B-Instruct",
    "mistralai/Mistral-7B-Instruct-v0.3",
    "deepseek-ai/deepseek-llm-7b-chat",
    "meta-llama/Llama-3.3-70B-Instruct",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
}


def read(path: Path) -> dict:
    return yaml.safe_load(path.read_text("utf-8"))


@pytest.mark.parametrize("regime", ["paper", "greedy"])
def test_every_open_model_of_the_paper_has_its_config(regime):
    configs = [read(path) for path in FILES if path.parent.name == regime]
    assert {config["model_args"]["pretrained"] for config in configs} == PAPER_MODELS


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_config(path):
    config = read(path)
    regime = path.parent.name
    assert config["metadata"] == {"hk_fs_regime": regime}
    assert config["tasks"] == ["hk_fs"]
    assert config["apply_chat_template"] is config["log_samples"] is True
    assert len(config["model_args"]["revision"]) == 40
    # It would destroy the raw text, and a path would be somebody's.
    assert "think_end_token" not in config["model_args"]
    assert not {"output_path", "include_path", "use_cache"} & set(config)
    sampling = config["gen_kwargs"]
    if regime == "greedy":
        assert sampling == {"do_sample": False, "repetition_penalty": 1.0}
    elif sampling["do_sample"]:
        # do_sample alone makes lm-eval send temperature 0.
        assert {"temperature", "top_p", "top_k", "repetition_penalty"} <= set(sampling)
    assert "max_gen_toks" not in sampling  # the task's 512 stands


@pytest.fixture(scope="module")
def tiny_model(small_model_folder):
    from lm_eval.models.huggingface import HFLM

    return HFLM(pretrained=str(small_model_folder), dtype="float32", device="cpu", batch_size=1)


@pytest.mark.model
@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_settings_generate(path, tiny_model):
    from lm_eval.api.instance import Instance

    settings = {"until": [], "max_gen_toks": 3, "do_sample": False} | read(path)["gen_kwargs"]
    request = Instance("generate_until", {}, ("Exit signs are", settings), 0)
    (text,) = tiny_model.generate_until([request], disable_tqdm=True)
    assert isinstance(text, str)
