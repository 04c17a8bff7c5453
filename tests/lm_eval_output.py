"""Writes what `lm_eval --log_samples --output_path` writes, for answers that a test chooses."""

import json
from pathlib import Path

from hk_fs_bench import items, prompts

STAMP = "2026-11-30T00-00-00.000000"


def write(folder: Path, outputs: dict[str, list], *, stamp: str = STAMP, **changes) -> Path:
    """`outputs` maps a task to the texts of its first documents, one or a list of repeats each."""
    home = folder / "some__model"
    home.mkdir(parents=True, exist_ok=True)
    dataset = items.load()
    config = {"model": "hf", "model_args": {"pretrained": "some/model"}, "limit": None}
    results = {
        "config": config | changes.pop("config", {}),
        "versions": dict.fromkeys(outputs, 1.0),
        "configs": {},
        "n-shot": dict.fromkeys(outputs, 0),
        "chat_template": "{{ messages }}",
        "total_evaluation_time_seconds": "12.0",
        "lm_eval_version": "0.4.13",
    }
    for name, texts in outputs.items():
        task = prompts.load_task(name)
        settings = {"until": [], "max_gen_toks": 512, "do_sample": False}
        results["configs"][name] = {"generation_kwargs": settings, "metadata": {}}
        docs = items.docs(dataset, **task.data_options)
        with (home / f"samples_{name}_{stamp}.jsonl").open("w", encoding="utf-8") as file:
            for doc, text in zip(docs, texts, strict=False):
                asked = f"<user>{prompts.render(task, doc)}<assistant>"
                row = {
                    "doc": doc,
                    "arguments": {"gen_args_0": {"arg_0": asked, "arg_1": settings}},
                    "resps": [text if isinstance(text, list) else [text]],
                }
                file.write(json.dumps(row) + "\n")
    (home / f"results_{stamp}.json").write_text(json.dumps(results | changes), "utf-8")
    return folder
