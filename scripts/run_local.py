"""Ask a model on your own machine: in batches, resumable, on one process or many.

    python scripts/run_local.py MODEL [--scale one-gpu] [--regime paper] [--gpus N] [--part K/N]

MODEL is a name of lm_eval_tasks/configs/, a Hub id, a model's folder or a YAML file. The same
command again goes on where it stopped. The run's folder is printed last, for scripts/score.py.
"""

from __future__ import annotations

import argparse
import contextlib
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
    from collections.abc import Iterator
    from typing import TextIO

    from hk_fs_bench.local_batches import Progress
    from hk_fs_bench.local_configs import Config
    from hk_fs_bench.local_plan import Share

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    args = commands.parse(__file__, globals())
    from hk_fs_bench import local_configs, local_launch

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
    if args.base_url and args.scale != "endpoint":
        raise UserError(f"--base-url is for the scale endpoint, not for {args.scale}")
    config = local_configs.resolve(args.model, args.scale, regime=args.regime, gpus=args.gpus)
    if args.print_config:
        return print_config(args, config)
    config.lm_eval["batch_size"] = args.batch or config.lm_eval["batch_size"]
    if args.max_new_tokens:
        config.lm_eval["gen_kwargs"]["max_gen_toks"] = args.max_new_tokens
    if "LOCAL_RANK" not in os.environ:
        local_launch.check_gpus(args, config)
        if config.scale.launch:
            return launch(args, config)
    return answer(args, config, share_of(args.part))


def print_config(args: argparse.Namespace, config: Config) -> int:
    """What `lm_eval run --config` reads, with the options that it can hold."""
    if config.lm_eval["model"] is None:
        raise UserError(f"lm_eval runs nothing at the scale {args.scale}; its runner does")
    if args.part != "1/1":
        raise UserError("--print-config is of a whole run; --samples of lm_eval deals it out")
    import yaml

    if args.max_new_tokens:
        config.lm_eval["gen_kwargs"]["max_gen_toks"] = args.max_new_tokens
    told = config.for_lm_eval(tasks_of(args), args.limit, edition_of(args), args.batch)
    print(yaml.safe_dump(told, sort_keys=False), end="")
    return 0


def tasks_of(args: argparse.Namespace) -> list[str]:
    return str(args.tasks).replace(",", " ").split()


def edition_of(args: argparse.Namespace) -> dict[str, str]:
    """What the tasks are told of an edition that is not the packaged one."""
    given = {"hk_fs_dataset": args.dataset, "hk_fs_revision": args.revision}
    return {name: value for name, value in given.items() if value}


def share_of(part: str) -> Share:
    """This process's share: --part, dealt out again where a launcher started several."""
    from hk_fs_bench.local_plan import Share

    if not (found := re.fullmatch(r"(\d{1,6})/(\d{1,6})", part)):
        raise UserError(f"--part is K/N, as in 2/8, not {part}")
    share = Share(int(found[1]) - 1, int(found[2]))
    return share.split(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))


def launch(args: argparse.Namespace, config: Config) -> int:
    """Run the scale's launcher: accelerate with this command, or the API runner."""
    from hk_fs_bench import local_launch

    if config.scale.name == "endpoint":
        words, folder = local_launch.server_run(args, config, ROOT)
    else:
        from hk_fs_bench.local_plan import folder_of

        words = local_launch.accelerated(args, config, [__file__, *sys.argv[1:]])
        folder = folder_of(config, args.out, args.model_id)
    # What a child says is progress; standard output is for the folder's name.
    status = subprocess.run(words, stdout=sys.stderr).returncode
    if status == 0 or config.scale.name == "endpoint":
        print(folder)
    return status


def answer(args: argparse.Namespace, config: Config, share: Share) -> int:
    # lm-eval warns of what is meant so, and draws a bar for every task's requests.
    logging.getLogger("lm_eval").setLevel(os.environ.get("LMEVAL_LOG_LEVEL", "ERROR"))
    os.environ.setdefault("TQDM_DISABLE", "1")
    from hk_fs_bench import items, local_plan, local_runs

    with only_for_the_folder() as out:
        if Path(config.model_args["pretrained"]).is_dir():
            say("reading the weights, to know them again")
        job = local_plan.plan(
            config,
            items.load(args.dataset, args.revision),
            tasks=tasks_of(args),
            out=args.out,
            share=share,
            limit=args.limit,
            model_id=args.model_id,
            metadata=edition_of(args),
        )
        say(f"{job.part}: {job.done} answered, {len(job.todo)} to ask")
        progress = local_runs.run(job, watch=show)
        if progress.halved:
            say(f"memory ran out {progress.halved} times; the batch is now {progress.batch}")
        print(job.folder, file=out)
    return 0 if progress.answered == len(job.todo) else 1


@contextlib.contextmanager
def only_for_the_folder() -> Iterator[TextIO]:
    """Standard output for one line alone; what engines and their processes write there is progress.

    vLLM logs to standard output, and so do the processes that it and Ray start.
    """
    sys.stdout.flush()
    with open(os.dup(1), "w", encoding="utf-8", errors="surrogateescape") as out:
        os.dup2(2, 1)
        try:
            yield out
        finally:
            sys.stdout.flush()
            os.dup2(out.fileno(), 1)


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
