"""Scales: what a machine changes in a model's config, and nothing that changes an answer."""

import pytest
import yaml

from hk_fs_bench import local_configs
from hk_fs_bench.errors import UserError

SCALES = local_configs.scales()
LOCAL = [name for name in SCALES if name != "endpoint"]
BIG = ("llama3.3-70b", "qwen3-next-80b")


@pytest.mark.parametrize("regime", ["paper", "greedy"])
@pytest.mark.parametrize("scale", LOCAL)
def test_a_scale_leaves_every_protocol_setting_alone(regime, scale):
    for model in local_configs.models(regime):
        path = local_configs.folder() / regime / f"{model}.yaml"
        own = yaml.safe_load(path.read_text("utf-8"))
        config = local_configs.resolve(model, scale, regime=regime, gpus=4)
        for name in ("gen_kwargs", "apply_chat_template", "metadata", "tasks"):
            assert config.lm_eval[name] == own[name]
        for name in ("pretrained", "revision"):
            assert config.model_args[name] == own["model_args"][name]
        assert config.model_args.get("parallelize", False) == (scale == "model-parallel")
        if scale.startswith("vllm"):
            at = "data" if scale.endswith("data-parallel") else "tensor"
            assert config.model_args[f"{at}_parallel_size"] == 4


def test_the_launcher_gets_the_number_of_gpus():
    words = SCALES["data-parallel"].words(gpus=8)
    assert words[:2] == ["accelerate", "launch"]
    assert words[-2:] == ["--num_processes", "8"]


def test_every_scale_and_model_says_what_it_needs_and_what_was_run():
    assert all(scale.says and scale.needs and scale.run_here for scale in SCALES.values())
    lines = local_configs.memory_lines()
    for model in local_configs.models("paper"):
        pretrained = local_configs.resolve(model, "cpu").model_args["pretrained"]
        (line,) = [line for line in lines if line.startswith(pretrained)]
        assert "GB a copy" in line
    # By hand: 28 layers x 4 heads x 128 x keys and values x 2 bytes x 1024 tokens = 59 MB.
    assert "weights 15 GB a copy, cache 59 MB an answer" in lines[0]


def test_lm_eval_reads_a_resolved_config(tmp_path):
    from lm_eval.config.evaluate_config import EvaluatorConfig

    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(local_configs.resolve("qwen2.5-7b", "one-gpu").lm_eval))
    told = yaml.safe_load(path.read_text()) | {"output_path": str(tmp_path)}
    path.write_text(yaml.safe_dump(told))
    config = EvaluatorConfig.from_config(path)
    assert (config.model, config.batch_size, config.device) == ("hf", 512, "cuda")


def test_any_model_is_asked_greedily(tmp_path):
    for model in ("some/model", str(tmp_path)):
        config = local_configs.resolve(model, "cpu")
        assert config.lm_eval["gen_kwargs"] == {"do_sample": False, "repetition_penalty": 1.0}
        assert config.regime == "greedy"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: [", "is no config of lm-eval"),
        (b"tasks: [hk_fs]", "model_args.pretrained is missing"),
        (b"\xff\xfe", "no UTF-8"),
        (b"[]", "it is no map of settings"),
        (b"model_args: {pretrained: 5}", "model_args.pretrained is missing, or no text"),
        (b"model_args: pretrained=a/b", "model_args is no map"),
        (b"model_args: {pretrained: a/b}\ngen_kwargs: do_sample=true", "gen_kwargs is no map"),
        (b"model_args: {pretrained: a/b}\nmetadata: text", "metadata is no map"),
        (b"model_args: {pretrained: a/b}\nmetadata: {hk_fs_regime: x}", "paper or greedy"),
        (b"model_args: {pretrained: a/b, tp_plan: auto}", "take the scale model-parallel or vllm"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path, content, message):
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        local_configs.resolve(str(path), "cpu")


def test_the_shortest_file_names_a_model_alone(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("model_args: {pretrained: a/b}")
    config = local_configs.resolve(str(path), "cpu")
    assert (config.name, config.regime, config.lm_eval["gen_kwargs"]) == ("mine", "greedy", {})


@pytest.mark.parametrize("scale", ["vllm", "vllm-data-parallel"])
def test_vllm_gets_the_tokenizer_of_the_commit(scale):
    """lm-eval has a name for it apart from the weights', whose default is main."""
    args = local_configs.resolve("qwen2.5-7b", scale).model_args
    assert args["tokenizer_revision"] == args["revision"]


@pytest.mark.parametrize(
    ("model", "scale", "message"),
    [
        ("qwen2.5-7b", "moon", "no scale moon; there are cpu, one-gpu"),
        ("qwen", "cpu", "no model qwen in the regime paper; there are deepseek-7b"),
        ("/no/file.yaml", "cpu", "can't be read: No such file"),
    ],
)
def test_an_unknown_name_says_what_there_is(model, scale, message):
    with pytest.raises(UserError, match=message):
        local_configs.resolve(model, scale)
