"""Ask a model on your own machine: in batches, resumable, on one process or many.

    python scripts/run_local.py MODEL [--scale one-gpu] [--regime paper] [--gpus N] [--part K/N]

MODEL is a name of lm_eval_tasks/configs/, a Hub id, a model's folder or a YAML file. The same
command again goes on where it stopped. The run's folder is printed last, for scripts/score.py.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hk_fs_bench import commands
from hk_fs_bench.errors import UserError, run_command

if TYPE_CHECKING:
    from hk_fs_bench.local_batches import Progress
    from hk_fs_bench.local_configs import Config
    from hk_fs_bench.local_plan import Share

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    args = commands.parse(__file__, globals())
    from hk_fs_bench import local_configs

    if args.list:
        names = ", ".join(local_configs.models(args.regime))
        for line in (*local_configs.scale_lines(), f"models: {names}"):
            print(line)
        print("memory, by arithmetic:", *local_configs.memory_lines(), sep="\n")
        return 0
    if not args.model:
        raise UserError("name a model; --list shows them")
    if args.model_id and not re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", args.model_id):
        raise UserError(f"--model-id is org/name, a name and no path, not {args.model_id!r}")
    config = local_configs.resolve(args.model, args.scale, regime=args.regime, gpus=args.gpus)
    config.lm_eval["batch_size"] = args.batch or config.lm_eval["batch_size"]
    if args.max_new_tokens:
        config.lm_eval["gen_kwargs"]["max_gen_toks"] = args.max_new_tokens
    if args.print_config:
        if config.lm_eval["model"] is None:
            raise UserError(f"lm_eval runs nothing at the scale {args.scale}; its runner does")
        import yaml

        print(yaml.safe_dump(config.lm_eval, sort_keys=False), end="")
        return 0
    if config.scale.launch and "LOCAL_RANK" not in os.environ:
        return launch(args, config)
    return answer(args, config, share_of(args.part))


def share_of(part: str) -> Share:
    """This process's share: --part, dealt out again where a launcher started several."""
    from hk_fs_bench.local_plan import Share

    if not (found := re.fullmatch(r"(\d{1,6})/(\d{1,6})", part)):
        raise UserError(f"--part is K/N, as in 2/8, not {part}")
    share = Share(int(found[1]) - 1, int(found[2]))
    return share.split(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))


def launch(args: argparse.Namespace, config: Config) -> int:
    """Run the scale's launcher: accelerate with this command, or the API runner."""
    pretrained = config.model_args["pretrained"]
    if config.scale.name == "endpoint" and not args.base_url:
        raise UserError("the scale endpoint needs the server's address: --base-url")
    words = config.scale.words(
        python=sys.executable,
        gpus=args.gpus,
        pretrained=pretrained,
        base_url=args.base_url,
        regime=args.regime,
    )
    if config.scale.name == "endpoint":
        words += ["--tasks", args.tasks, "--out", str(args.out)]
        words += ["--limit", str(args.limit)] if args.limit else []
        words[1] = str(ROOT / words[1])
    else:
        enough_gpus(args)
        words = [str(Path(sys.executable).with_name(words[0])), *words[1:], __file__, *sys.argv[1:]]
    # What a child says is progress; standard output is for the folder's name.
    status = subprocess.run(words, stdout=sys.stderr).returncode
    if config.scale.name == "endpoint":
        slug = re.sub(r"[^\w.-]+", "-", pretrained)[:100].strip("-.")
        print(args.out / f"{slug}-{args.regime}")
    elif status == 0:
        from hk_fs_bench.local_plan import folder_of

        print(folder_of(config, args.out, args.model_id))
    return status


def enough_gpus(args: argparse.Namespace) -> None:
    """UserError where accelerate would end in a traceback of each process."""
    if args.gpus < 2:
        raise UserError(f"the scale {args.scale} needs --gpus, at least 2; one-gpu is for one")
    import torch

    if (there := torch.cuda.device_count()) < args.gpus:
        raise UserError(f"the scale {args.scale} is told of {args.gpus} GPUs, and {there} are here")


def answer(args: argparse.Namespace, config: Config, share: Share) -> int:
    # lm-eval warns of what is meant so, and draws a bar for every task's requests.
    logging.getLogger("lm_eval").setLevel(os.environ.get("LMEVAL_LOG_LEVEL", "ERROR"))
    os.environ.setdefault("TQDM_DISABLE", "1")
    from hk_fs_bench import items, local_plan, local_runs

    if Path(config.model_args["pretrained"]).is_dir():
        say("reading the weights, to know them again")
    job = local_plan.plan(
        config,
        items.load(args.dataset, args.revision),
        tasks=args.tasks.replace(",", " ").split(),
        out=args.out,
        share=share,
        limit=args.limit,
        model_id=args.model_id,
        metadata={
            f"hk_fs_{name}": value
            for name, value in (("dataset", args.dataset), ("revision", args.revision))
            if value
        },
    )
    say(f"{job.part}: {job.done} answered, {len(job.todo)} to ask")
    progress = local_runs.run(job, watch=show)
    if progress.halved:
        say(f"memory ran out {progress.halved} times; the batch is now {progress.batch}")
    print(job.folder)
    return 0 if job.manifest["complete"] else 1


def show(progress: Progress) -> None:
    left = progress.seconds_left or 0.0
    say(
        f"{progress.answered} of {progress.asked} answers, batch {progress.batch}, "
        f"{progress.answered / progress.seconds:.2f} answers/s, "
        f"{progress.tokens / progress.seconds:.0f} new tokens/s, {left / 60:.1f} min left"
    )


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    run_command(main)
