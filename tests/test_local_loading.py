"""Loading a local run's model: what it is told, and the line that says why it can't be had."""

import json
import sys
from types import SimpleNamespace

import pytest
import torch

from hk_fs_bench import local_configs, local_runs
from hk_fs_bench.errors import UserError
from hk_fs_bench.local_batches import first_line
from hk_fs_bench.runs import read_run
from tests.local_jobs import Engine, edition, planner


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return edition(tmp_path_factory.mktemp("edition"))


@pytest.fixture
def job(tmp_path, small):
    return planner(tmp_path, small)


def at(job, scale, gpus=8):
    """A job at another scale than the tests' own."""
    mine = job()
    told = mine.config.lm_eval["metadata"]
    config = local_configs.resolve("some/model", scale, gpus=gpus)
    config.lm_eval["metadata"] = told
    mine.config = config
    return mine


def test_a_scale_for_a_gpu_says_so_where_there_is_none(job, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UserError, match="the scale one-gpu needs a CUDA device"):
        local_runs.run(at(job, "one-gpu"))


def test_vllm_gets_all_at_once(job, monkeypatch):
    """Not vLLM: a class with the interface that lm-eval's has."""
    seen = {}

    class Vllm(Engine):
        batch_size = "auto"
        device_name = "8 x GPU"

        @classmethod
        def create_from_arg_obj(cls, args, extra):
            seen.update(args=args, extra=extra)
            return cls()

    stand_in = SimpleNamespace(CountingVLLM=Vllm)
    monkeypatch.setitem(sys.modules, "hk_fs_bench.vllm_model", stand_in)
    mine = at(job, "vllm")
    local_runs.run(mine)
    assert seen["extra"] == {"batch_size": "auto"}
    assert seen["args"]["tensor_parallel_size"] == 8
    (session,) = read_run(mine.folder).manifest["sessions"]
    assert (seen["args"]["seed"], session["device"]) == (session["seed"], "8 x GPU")
    assert len(read_run(mine.folder).rows) == 18


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError("no file\nand more"), "some/model can't be loaded: no file$"),
        (ValueError("no such kind of model"), "can't be loaded: no such kind of model"),
        (ValueError(""), "some/model can't be loaded: ValueError"),
        (TypeError("got an unexpected keyword argument 'x'"), "unexpected keyword argument 'x'"),
        (TypeError("got multiple values for keyword argument 'device'"), "multiple values"),
        (RuntimeError("Engine core initialization failed. See root cause above."), "Engine core"),
        (ImportError("Using `device_map` requires Accelerate"), "loaded: Using `device_map` req"),
        (ModuleNotFoundError("ray is required for data parallelism"), "loaded: ray is required"),
        (AssertionError("Either max_length or max_model_len"), "loaded: Either max_length"),
        (
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
            "does not fit into memory at the scale cpu; take a smaller model",
        ),
        (MemoryError(), "does not fit into memory at the scale cpu"),
    ],
)
def test_a_model_that_cant_be_loaded_is_one_line(job, monkeypatch, error, message):
    def fail(*_):
        raise error

    monkeypatch.setattr("hk_fs_bench.hf_model.CountingHF.create_from_arg_obj", fail)
    with pytest.raises(UserError, match=message):
        local_runs.run(job())
    assert read_run(job().part).manifest["stopped"].startswith("UserError: ")


def test_a_model_too_large_for_one_gpu_names_a_scale(job, monkeypatch):
    def fail(*_):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr("hk_fs_bench.hf_model.CountingHF.create_from_arg_obj", fail)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    with pytest.raises(UserError, match="at the scale one-gpu; take model-parallel or vllm"):
        local_runs.run(at(job, "one-gpu"))


def test_a_fault_of_this_program_keeps_its_traceback(job, monkeypatch):
    def fail(*_):
        raise TypeError("'int' object is not iterable")

    monkeypatch.setattr("hk_fs_bench.hf_model.CountingHF.create_from_arg_obj", fail)
    with pytest.raises(TypeError):
        local_runs.run(job())


def test_an_engine_that_is_not_installed_is_one_line(job, monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(UserError, match="the scale vllm needs vllm: "):
        local_runs.run(at(job, "vllm"))


def test_an_error_without_words_is_told_by_its_kind(job):
    error = RuntimeError()
    assert first_line(error) == "RuntimeError"
    with pytest.raises(RuntimeError):
        local_runs.run(job(), load=lambda _: Engine(room=0, error=error))
    assert read_run(job().part).manifest["stopped"] == "RuntimeError: RuntimeError"


@pytest.mark.parametrize(("world", "joined"), [("1", 0), ("2", 1)])
def test_a_process_with_nothing_left_joins_the_others(job, monkeypatch, world, joined):
    """Under a launcher those that load a model wait until every process has joined."""
    said = []
    monkeypatch.setattr("accelerate.Accelerator", lambda: said.append("here"))
    local_runs.run(job(), load=lambda _: Engine())
    monkeypatch.setenv("WORLD_SIZE", world)
    local_runs.run(job(), load=lambda _: pytest.fail("loaded"))
    assert len(said) == joined


@pytest.mark.parametrize(
    ("gpus", "words"), [(1, "loading is not in it"), (2, "loading the copies")]
)
def test_seconds_hold_loading_only_where_copies_are_loaded(tmp_path, small, gpus, words):
    from hk_fs_bench import items, local_plan

    config = local_configs.resolve("some/model", "vllm-data-parallel", gpus=gpus)
    made = local_plan.plan(config, items.load(small), tasks=["hk_fs"], out=tmp_path)
    assert words in json.dumps(made.manifest["timing"])
