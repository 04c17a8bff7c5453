"""scripts/run_local.py: what it starts, what it refuses, and what it prints."""

import importlib.util
import logging
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from hk_fs_bench import api_manifest, local_configs, local_launch
from hk_fs_bench.errors import UserError

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def script(monkeypatch):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    # The command quiets lm-eval for its own process, which here is that of all tests.
    monkeypatch.setenv("TQDM_DISABLE", "1")
    logger = logging.getLogger("lm_eval")
    level = logger.level
    spec = importlib.util.spec_from_file_location("run_local", ROOT / "scripts/run_local.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["run_local.py", *map(str, words)])
        return module.main()

    module.call = call
    yield module
    logger.setLevel(level)


@pytest.fixture
def started(script, monkeypatch):
    """The words of the processes that would have been started."""
    found = []

    def run(words, stdout):
        found.append(words)
        assert stdout is sys.stderr
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(script.subprocess, "run", run)
    return found


def own(tmp_path, **settings):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({"model_args": {"pretrained": "a/b"}} | settings))
    return path


@pytest.fixture
def answered(script, monkeypatch, tmp_path):
    """Without a model: a run that writes to standard output as vLLM and its processes do."""
    from hk_fs_bench import items, local_plan, local_runs

    told = {"todo": [1, 2], "answered": 2}

    def run(job, watch):
        os.write(1, b"INFO an engine\n")
        subprocess.run([sys.executable, "-c", "print('INFO a process of it')"], check=True)
        return SimpleNamespace(halved=0, answered=told["answered"])

    job = SimpleNamespace(part="part", done=0, todo=told["todo"], folder=tmp_path / "the-run")
    monkeypatch.setattr(items, "load", lambda *_: None)
    monkeypatch.setattr(local_plan, "plan", lambda *_, **__: job)
    monkeypatch.setattr(local_runs, "run", run)
    return told


def test_standard_output_is_the_folder_alone(script, answered, tmp_path, capfd):
    for _ in range(2):  # And it is given back.
        assert script.call("a/b", "--scale", "cpu") == 0
        out, err = capfd.readouterr()
        assert out == f"{tmp_path / 'the-run'}\n"
        assert err.count("INFO") == 2


def test_a_run_that_stops_short_is_told_by_its_status(script, answered, capfd):
    answered["answered"] = 1
    assert script.call("a/b", "--scale", "cpu") == 1


def test_accelerate_is_this_interpreters(script, started, monkeypatch, capsys):
    """Beside the interpreter of a system there may be none, or another one's."""
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    assert script.call("a/b", "--scale", "data-parallel", "--gpus", "4") == 0
    (words,) = started
    assert words[:3] == [sys.executable, "-m", "accelerate.commands.launch"]
    assert importlib.util.find_spec(words[2])
    at = words.index(str(ROOT / "scripts/run_local.py"))
    assert words[at - 2 : at] == ["--num_processes", "4"]
    assert words[at + 1 :] == ["a/b", "--scale", "data-parallel", "--gpus", "4"]
    assert capsys.readouterr().out == "runs/a-b-greedy\n"


@pytest.mark.parametrize(
    ("words", "there", "message"),
    [
        ("--scale cpu --gpus 2", 0, "the scale cpu uses no --gpus; data-parallel"),
        ("--scale one-gpu --gpus 4", 4, "the scale one-gpu uses no --gpus"),
        ("--scale endpoint --gpus 4 --base-url http://x", 4, "the scale endpoint uses no --gpus"),
        ("--scale data-parallel", 4, "needs --gpus, at least 2"),
        ("--scale data-parallel --gpus 4", 2, "is told of 4 GPUs, and 2 are here$"),
        ("--scale model-parallel --gpus 2", 4, "2 GPUs, and 4 are here; it takes all"),
        ("--scale model-parallel --gpus 4", 2, "4 GPUs, and 2 are here; it takes all"),
    ],
)
def test_gpus_that_would_change_nothing_are_refused(
    script, started, monkeypatch, words, there, message
):
    monkeypatch.setattr("torch.cuda.device_count", lambda: there)
    with pytest.raises(UserError, match=message):
        script.call("a/b", *words.split())
    assert not started


@pytest.mark.parametrize("gpus", [1, 4])
def test_model_parallel_over_all_gpus_is_what_it_does(monkeypatch, gpus):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    config = local_configs.resolve("a/b", "model-parallel", gpus=gpus)
    local_launch.check_gpus(SimpleNamespace(gpus=gpus), config)


SERVER = ("--scale", "endpoint", "--base-url", "http://127.0.0.1:1/v1")


def test_a_servers_run_gets_every_option(script, started, tmp_path, capsys):
    words = ["--tasks", "hk_fs_oeq", "--limit", "3", "--out", str(tmp_path)]
    words += ["--dataset", "/an/edition", "--revision", "v1", "--model-id", "org/name"]
    assert script.call("a/b", *SERVER, *words) == 0
    (given,) = started
    runner = str(ROOT / "api_runners" / "run.py")
    assert given[:3] == [sys.executable, runner, "local-server"]
    told = dict(zip(given[3::2], given[4::2], strict=True))
    assert (
        told
        == {
            "--id": "a/b",
            "--base-url": SERVER[3],
            "--regime": "greedy",  # A Hub id is asked so at every scale.
            **dict(zip(words[::2], words[1::2], strict=True)),
        }
    )
    assert capsys.readouterr().out == f"{tmp_path / 'a-b-greedy'}\n"


@pytest.mark.parametrize("regime", ["paper", "greedy"])
def test_a_servers_run_of_a_named_model_has_its_regime(script, started, regime):
    script.call("qwen2.5-7b", *SERVER, "--regime", regime)
    (given,) = started
    assert given[given.index("--regime") + 1] == regime


def test_a_servers_folder_is_the_one_that_its_runner_makes(script, started, tmp_path, capsys):
    model = tmp_path / "models" / "mine"
    model.mkdir(parents=True)
    script.call(model, *SERVER, "--out", tmp_path)
    name = api_manifest.folder_name(api_manifest.shown_id(str(model)))
    assert capsys.readouterr().out == f"{tmp_path / name}-greedy\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--part 1/2", "takes no --part"),
        ("--batch 4", "takes no --batch"),
        ("--max-new-tokens 9", "takes no --max-new-tokens"),
    ],
)
def test_options_that_no_server_gets_are_refused(script, started, words, message):
    with pytest.raises(UserError, match=f"the scale endpoint {message}"):
        script.call("a/b", *SERVER, *words.split())
    assert not started


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"gen_kwargs": {"temperature": 0.7, "do_sample": True}}, "gen_kwargs.do_sample"),
        ({"gen_kwargs": {"until": ["\n"]}}, "gen_kwargs.until"),
        (
            {"gen_kwargs": {"do_sample": False}, "metadata": {"hk_fs_regime": "paper"}},
            "gen_kwargs.do_sample",
        ),
        ({"apply_chat_template": False}, "apply_chat_template: false"),
        ({"model_args": {"pretrained": "a/b", "peft": "c/d"}}, "model_args.peft"),
        ({"model_args": {"pretrained": "a/b", "enable_thinking": True}}, "enable_thinking"),
    ],
)
def test_settings_that_no_server_gets_are_refused(script, started, tmp_path, settings, named):
    with pytest.raises(UserError, match=f"can't set .*{named}"):
        script.call(own(tmp_path, **settings), *SERVER)
    assert not started


def test_a_greedy_file_of_ones_own_may_ask_a_server(script, started, tmp_path):
    greedy = {"gen_kwargs": {"do_sample": False, "repetition_penalty": 1.0}}
    assert script.call(own(tmp_path, **greedy), *SERVER) == 0


def printed(script, capsys, *words):
    assert script.call(*words, "--print-config") == 0
    return yaml.safe_load(capsys.readouterr().out)


def test_a_printed_config_has_what_the_command_has(script, capsys):
    plain = printed(script, capsys, "qwen2.5-7b")
    assert (plain["batch_size"], plain["tasks"], "limit" in plain) == ("auto", ["hk_fs"], False)
    assert plain["metadata"] == {"hk_fs_regime": "paper"}
    words = ["--tasks", "hk_fs_oeq,hk_fs_mcq_hk", "--limit", "5", "--batch", "7"]
    words += ["--dataset", "/an/edition", "--revision", "v1", "--max-new-tokens", "9"]
    told = printed(script, capsys, "qwen2.5-7b", *words)
    assert told["tasks"] == ["hk_fs_oeq", "hk_fs_mcq_hk"]
    assert (told["limit"], told["batch_size"], told["gen_kwargs"]["max_gen_toks"]) == (5, 7, 9)
    assert told["metadata"] == {
        "hk_fs_regime": "paper",
        "hk_fs_dataset": "/an/edition",
        "hk_fs_revision": "v1",
    }


def test_a_printed_config_can_be_a_file_of_ones_own(script, capsys, tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(printed(script, capsys, "qwen2.5-7b")))
    again = local_configs.resolve(str(path), "one-gpu")
    assert again.lm_eval == local_configs.resolve("qwen2.5-7b", "one-gpu").lm_eval


def test_an_address_is_of_a_server_alone(script):
    with pytest.raises(UserError, match="--base-url is for the scale endpoint, not for cpu"):
        script.call("a/b", "--scale", "cpu", "--base-url", "http://x")


def test_a_part_is_no_matter_of_a_config(script):
    with pytest.raises(UserError, match="--print-config is of a whole run"):
        script.call("qwen2.5-7b", "--print-config", "--part", "1/2")
