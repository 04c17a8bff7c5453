"""The model of a local run's config, loaded by lm-eval's engines, or one line that says why not."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from hk_fs_bench.errors import UserError
from hk_fs_bench.local_batches import first_line, out_of_memory
from hk_fs_bench.local_plan import Job

# What goes wrong where a model can't be had, or the engine can't run it with these model_args.
# Other errors are faults of this program, and keep their traceback.
_EXPECTED = (OSError, ValueError, ImportError, AssertionError, RuntimeError, MemoryError)
_ENGINES = {
    "hf": ("hk_fs_bench.hf_model", "CountingHF"),
    "vllm": ("hk_fs_bench.vllm_model", "CountingVLLM"),
}


def load_model(job: Job) -> Any:
    """lm-eval's model of a job's config, on its device. Takes as long as the weights take.

    Raises:
        UserError: the engine or the device is missing, or the model can't be loaded.
    """
    told, scale = job.config.lm_eval, job.config.scale
    extra = {"batch_size": told["batch_size"], "device": told.get("device")}
    args: dict[str, Any] = job.config.model_args
    if revision := job.manifest["model"]["revision"]:
        args["revision"] = revision  # "main" may be another commit tomorrow.
    if told["model"] == "vllm":
        # The engine batches by itself; what it is given at once is `batch`.
        extra = {"batch_size": "auto"}
        # It draws with a seed of its own, and takes the tokenizer's commit apart from the weights'.
        args.setdefault("seed", job.manifest["sessions"][-1]["seed"])
        if revision:
            args.setdefault("tokenizer_revision", revision)
    try:
        module, name = _ENGINES[told["model"]]
        engine = getattr(import_module(module), name)
        if told.get("device") == "cuda" and told["model"] == "hf":
            import torch

            if not torch.cuda.is_available():
                raise UserError(f"the scale {scale.name} needs a CUDA device; take cpu")
        return engine.create_from_arg_obj(args, extra)
    except (*_EXPECTED, TypeError) as error:
        if isinstance(error, TypeError) and "keyword argument" not in str(error):
            raise
        raise UserError(_reason(job, error)) from error


def _reason(job: Job, error: Exception) -> str:
    scale, model = job.config.scale, job.manifest["model"]["id"]
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"the scale {scale.name} needs {error.name}: {first_line(error)}"
    if out_of_memory(error):
        return f"{model} does not fit into memory at the scale {scale.name}; take {scale.larger}"
    return f"{model} can't be loaded: {first_line(error)}"
