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
    words = SCALES["data-parallel"].words(gpus=8, python="python")
    assert words[:3] == ["python", "-m", "accelerate.commands.launch"]
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
    resolved = local_configs.resolve("qwen2.5-7b", "one-gpu")
    path.write_text(yaml.safe_dump(resolved.for_lm_eval(["hk_fs_oeq"], 3, {}, None)))
    told = yaml.safe_load(path.read_text()) | {"output_path": str(tmp_path)}
    path.write_text(yaml.safe_dump(told))
    config = EvaluatorConfig.from_config(path)
    assert (config.model, config.batch_size, config.device) == ("hf", "auto", "cuda")
    assert (config.tasks, config.limit) == (["hk_fs_oeq"], 3)


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


@pytest.mark.parametrize(
    ("setting", "instead"),
    [
        ({"num_fewshot": 3}, "have no examples"),
        ({"system_instruction": "You are careful."}, "lm_eval run` applies it"),
        ({"fewshot_as_multiturn": True}, "lm_eval run` applies it"),
        ({"tasks": ["hk_fs_oeq"]}, "--tasks"),
        ({"limit": 5}, "--limit"),
        ({"batch_size": 4}, "--batch"),
        ({"output_path": "x"}, "--out"),
        ({"apply_chat_template": "tool_use"}, "it is true or false"),
        ({"seed": 4}, "lm_eval run` applies it"),
        ({"use_cache": "x"}, "lm_eval run` applies it"),
        ({"no_such_setting": 1}, "lm_eval run` applies it"),
        ({"device": "cuda:1"}, "--scale"),
        ({"model": "sglang"}, "--scale"),
        ({"metadata": {"hk_fs_dataset": "x"}}, "--dataset"),
    ],
)
def test_a_setting_that_would_be_dropped_is_refused(tmp_path, setting, instead):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({"model_args": {"pretrained": "a/b"}} | setting))
    name = next(iter(setting))
    with pytest.raises(UserError, match=f"does not apply {name}.*{instead}"):
        local_configs.resolve(str(path), "cpu")


@pytest.mark.parametrize(
    ("settings", "scale", "message"),
    [
        ({"model": "vllm"}, "one-gpu", "names the model vllm, and the scale one-gpu has hf"),
        ({"device": "cuda"}, "cpu", "names the device cuda, and the scale cpu has cpu"),
        ({"model_args": {"tensor_parallel_size": 4}}, "vllm", "tensor_parallel_size.*--gpus"),
        ({"model_args": {"max_model_len": 256}}, "vllm", "max_model_len.*leave it out"),
    ],
)
def test_a_setting_that_a_scale_would_override_is_refused(tmp_path, settings, scale, message):
    path = tmp_path / "mine.yaml"
    args = {"pretrained": "a/b"} | settings.pop("model_args", {})
    path.write_text(yaml.safe_dump({"model_args": args} | settings))
    with pytest.raises(UserError, match=message):
        local_configs.resolve(str(path), scale)


def test_what_is_done_anyway_may_be_said(tmp_path):
    path = tmp_path / "mine.yaml"
    said = {"num_fewshot": 0, "system_instruction": None, "tasks": "hk_fs", "log_samples": True}
    said |= {"batch_size": "auto", "apply_chat_template": False, "model": "hf"}
    path.write_text(yaml.safe_dump({"model_args": {"pretrained": "a/b"}} | said))
    for scale in ("cpu", "vllm"):
        assert local_configs.resolve(str(path), scale).lm_eval["model"] == SCALES[scale].model


def test_a_length_of_ones_own_is_the_one_that_vllm_gets(tmp_path):
    """lm-eval takes max_length or max_model_len, not both."""
    path = tmp_path / "mine.yaml"
    path.write_text("model_args: {pretrained: a/b, max_length: 2048}")
    args = local_configs.resolve(str(path), "vllm").model_args
    assert args["max_length"] == 2048
    assert "max_model_len" not in args


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
