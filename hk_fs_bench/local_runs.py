"""Answering on one's own machine: lm-eval's tasks and engines, every answer kept as it comes.

lm-eval builds the requests and generates; here they are dealt out in batches, timed, and appended
to the part of a run folder. Nothing that is in the folder is asked again.
"""

from __future__ import annotations

import datetime
import os
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from hk_fs_bench import items, prompts, run_parts, runs
from hk_fs_bench.lm_eval_model import limit_of
from hk_fs_bench.local_batches import Progress, Question, Watch, answers, first_line, length
from hk_fs_bench.local_models import load_model
from hk_fs_bench.local_plan import Job, settings_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

INTERRUPTED = "stopped by Ctrl-C"


def questions(lm: Any, job: Job) -> list[Question]:
    """What is to be asked, as lm-eval builds it, by task, longest prompt first."""
    from lm_eval.tasks import TaskManager

    manager = TaskManager(
        include_path=str(prompts.tasks_folder()),
        include_defaults=False,
        metadata=job.config.lm_eval["metadata"],
    )
    wanted = set(job.todo)
    names = [task.name for task in job.tasks if any(key[0] == task.name for key in job.todo)]
    loaded = manager.load(names)["tasks"]
    found: list[Question] = []
    for task in (task for task in job.tasks if task.name in loaded):
        theirs = loaded[task.name]
        if task.output_type == "generate_until":
            theirs.set_config("generation_kwargs", settings_of(job.config, task), update=True)
        theirs.set_config("num_fewshot", 0)
        used = job.manifest["protocol"]["chat_template_used"]
        docs = enumerate(items.docs(job.dataset, **task.data_options))
        theirs.build_all_requests(
            samples=[n for n, doc in docs if _key(task, doc) in wanted],
            apply_chat_template=used,
            fewshot_as_multiturn=used,
            chat_template=lm.apply_chat_template if used else None,
            tokenizer_name=lm.tokenizer_name if used else "",
        )
        grouped: dict[runs.Key, list[Any]] = {}
        for request in theirs.instances:
            grouped.setdefault(_key(task, request.doc), []).append(request)
        own = [_question(task, key, tuple(requests)) for key, requests in grouped.items()]
        found += sorted(own, key=lambda question: (-length(lm, question), question.key))
    return found


def _key(task: prompts.Task, doc: Mapping[str, Any]) -> runs.Key:
    return task.name, doc["id"], doc["variant"], 0


def _question(task: prompts.Task, key: runs.Key, requests: tuple[Any, ...]) -> Question:
    prompt, asked = prompts.render(task, requests[0].doc), str(requests[0].args[0])
    generates = task.output_type == "generate_until"
    limit = limit_of(requests[0].args[1]) if generates else None
    sha256 = prompts.prompt_sha256(prompt if prompt in asked else asked)
    return Question(key, requests, sha256, limit)


def run(
    job: Job, *, load: Callable[[Job], Any] = load_model, watch: Watch = lambda _: None
) -> Progress:
    """Answer a job's share, and rebuild the run of all parts that are there.

    Args:
        load: makes the model; not called when nothing is left to ask.
        watch: called after every batch.

    Raises:
        UserError: another process writes to this part, the disk is full, or one answer alone does
            not fit into memory.
    """
    with runs.PredictionLog(job.part) as log:
        progress = Progress(len(job.todo), int(job.config.lm_eval["batch_size"]))
        if job.todo:
            _session(job, log, progress, load, watch)
        else:
            _join_the_others()
            _write_manifest(job, log, progress)
    merge(job.folder, job.dataset, job.model_id)
    return progress


def _join_the_others() -> None:
    """Under a launcher, where processes that load a model wait until all have said hello."""
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        from accelerate import Accelerator

        Accelerator()


def _session(
    job: Job,
    log: runs.PredictionLog,
    progress: Progress,
    load: Callable[[Job], Any],
    watch: Watch,
) -> None:
    job.manifest["started_at"] = job.manifest["started_at"] or _now()
    # Another seed each time, lest a session that goes on repeats what the one before drew.
    seed = zlib.crc32(f"{job.part.name}, {job.done} answered".encode())
    session: dict[str, Any] = {"started_at": _now(), "seed": seed, "answered": 0}
    job.manifest["sessions"].append(session)
    job.manifest["stopped"] = "it did not end"  # What a kill leaves behind.
    _write_manifest(job, log, progress)
    try:
        begun = time.monotonic()
        lm = load(job)
        _seed(seed)
        asked = questions(lm, job)
        session["device"] = _device(lm)
        session["loading_seconds"] = round(time.monotonic() - begun, 1)
        progress.started = time.monotonic()
        for row in answers(lm, asked, progress, watch):
            log.append(row)
            session["answered"] += 1
        job.manifest["stopped"] = None
    except KeyboardInterrupt:
        job.manifest["stopped"] = INTERRUPTED
        raise
    except Exception as error:
        job.manifest["stopped"] = f"{type(error).__name__}: {first_line(error)[:200]}"
        raise
    finally:
        session["seconds"] = round(progress.seconds, 1)
        session["batch"] = progress.batch
        job.done += session["answered"]
        _write_manifest(job, log, progress)
        if job.manifest["stopped"]:
            merge(job.folder, job.dataset, job.model_id)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _device(lm: Any) -> str | None:
    """What the engine says it runs on, a GPU by its name."""
    if name := getattr(lm, "device_name", None):
        return str(name)
    device = getattr(lm, "device", None)
    if getattr(device, "type", None) != "cuda":
        return None if device is None else str(device)
    import torch

    return f"{device} {torch.cuda.get_device_name(device)}"


def _seed(seed: int) -> None:
    from lm_eval.utils import set_torch_seed

    set_torch_seed(seed)


def _write_manifest(job: Job, log: runs.PredictionLog, progress: Progress) -> None:
    job.manifest["complete"] = job.done >= sum(job.manifest["planned"].values())
    job.manifest["software"]["batch_size"] = progress.batch
    runs.write_json(log.folder / "run.json", job.manifest)


def merge(
    folder: Path, dataset: items.Dataset | None = None, model_id: str | None = None
) -> runs.Run:
    """The run of all the parts that a folder of local runs holds now.

    Args:
        dataset, model_id: for parts that lm-eval itself wrote (see lm_eval_runs.convert).
    """
    with _alone(folder):
        parts = [run_parts.read(part, dataset, model_id) for part in run_parts.folders(folder)]
        return run_parts.merge(folder, parts)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time: the last to merge has seen every part."""
    with FileLock(folder / ".merge.lock"):
        yield
