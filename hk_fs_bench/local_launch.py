"""What a scale starts beside this process: accelerate's processes, or the API runner for a server.

Options that the scale would ignore are refused here.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from hk_fs_bench import model_args
from hk_fs_bench.errors import UserError
from hk_fs_bench.local_configs import Config

GREEDY = {"do_sample": False, "repetition_penalty": 1.0}


def check_gpus(args: argparse.Namespace, config: Config) -> None:
    """UserError where --gpus would change nothing, or processes would end in tracebacks."""
    scale = config.scale
    if scale.launch and scale.spreads and args.gpus < 2:
        raise UserError(f"the scale {scale.name} needs --gpus, at least 2; one-gpu is for one")
    if args.gpus < 2 or scale.model == "vllm":
        return  # vLLM says itself what it lacks, in one line.
    parallelize = config.model_args.get("parallelize")
    if not scale.spreads and not parallelize:
        raise UserError(
            f"the scale {scale.name} uses no --gpus; data-parallel, model-parallel, vllm and "
            "vllm-data-parallel do"
        )
    import torch

    there = torch.cuda.device_count()
    if there < args.gpus or (parallelize and there != args.gpus):
        hint = "; it takes all, and CUDA_VISIBLE_DEVICES chooses them" if parallelize else ""
        raise UserError(
            f"the scale {scale.name} is told of {args.gpus} GPUs, and {there} are here{hint}"
        )


def accelerated(args: argparse.Namespace, config: Config, command: list[str]) -> list[str]:
    """The words that start a command in a process for each GPU."""
    return [*config.scale.words(python=sys.executable, gpus=args.gpus), *command]


def server_run(args: argparse.Namespace, config: Config, root: Path) -> tuple[list[str], Path]:
    """The API runner's words for a server of one's own, and the folder that its run will have.

    Args:
        root: the checkout, which holds the runner.

    Raises:
        UserError: no address, or settings that only the server's own start can set.
    """
    from hk_fs_bench.api_manifest import folder_name, shown_id

    if not args.base_url:
        raise UserError("the scale endpoint needs the server's address: --base-url")
    given = {"--part": args.part != "1/1", "--batch": args.batch}
    given["--max-new-tokens"] = args.max_new_tokens
    if option := next((name for name, value in given.items() if value), None):
        raise UserError(f"the scale endpoint takes no {option}")
    if setting := _server_sets(args, config):
        raise UserError(
            f"the scale endpoint can't set {setting} of {args.model}; leave it out, and start the "
            "server with it"
        )
    pretrained = config.model_args["pretrained"]
    words = config.scale.words(
        python=sys.executable,
        pretrained=pretrained,
        base_url=args.base_url,
        regime=config.regime,
    )
    words[1] = str(root / words[1])
    for name in ("tasks", "out", "limit", "dataset", "revision", "model_id"):
        if (value := getattr(args, name)) is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    name = folder_name(shown_id(pretrained)) or "local-server"
    return words, args.out / f"{name}-{config.regime}"


def _server_sets(args: argparse.Namespace, config: Config) -> str | None:
    """The first setting that a chat request of ours does not carry."""
    # A greedy request is one of temperature 0; one of the paper's regime has the model's defaults,
    # which the named models' files only state.
    carried = GREEDY if config.regime == "greedy" else {}
    sampling = config.lm_eval["gen_kwargs"]
    if args.model.endswith((".yaml", ".yml")):
        if name := next((n for n, value in sampling.items() if carried.get(n) != value), None):
            return f"gen_kwargs.{name}"
        if not config.lm_eval.get("apply_chat_template", True):
            return "apply_chat_template: false"
    told = config.model_args
    found = [*model_args.recorded(told), *(told.keys() & {"enable_thinking"})]
    return f"model_args.{found[0]}" if found else None
