"""Hooks of the task YAML. Data and parsing live in hk_fs_bench; here they meet lm-eval."""

import json
import logging
from collections import defaultdict
from dataclasses import asdict

import datasets

from hk_fs_bench import answers, items
from hk_fs_bench.errors import UserError

log = logging.getLogger("lm_eval.hk_fs")
REGIMES = ("paper", "greedy")


def load(**kw):
    """Build the splits of a task.

    lm-eval passes the task's metadata, `--metadata` and the model's own arguments in one heap, so
    only the keys that begin with `hk_fs_` are read: `dataset` and `revision` from the user, and
    `task` (subset, context, rotations) from the task's YAML, under a name that no user's key
    meets. `regime` is for the record: lm-eval writes it into its results, where scripts/score.py
    finds it.
    """
    options = {k.removeprefix("hk_fs_"): v for k, v in kw.items() if k.startswith("hk_fs_")}
    task = options.pop("task")
    try:
        unknown = set(options) - {"dataset", "revision", "regime"}
        if unknown:
            raise UserError(
                f"--metadata has no key {', '.join(f'hk_fs_{k}' for k in sorted(unknown))}; "
                "it takes hk_fs_dataset, hk_fs_revision and hk_fs_regime"
            )
        for name, value in options.items():
            if value is not None and not isinstance(value, str):
                raise UserError(f"--metadata has hk_fs_{name} {value!r}; a text is expected")
        if (regime := options.get("regime")) not in (None, *REGIMES):
            raise UserError(f"no regime {regime}; hk_fs_regime is {' or '.join(REGIMES)}")
        dataset = items.load(options.get("dataset"), options.get("revision"))
        rows = items.docs(dataset, **task)
        shots = []
        if f"{task['subset']}/dev" in dataset.splits:
            shots = items.docs(dataset, **task | {"rotations": 1}, split="dev")
    except UserError as error:
        # lm-eval's command would print a traceback; a user's mistake is one line.
        raise SystemExit(f"error: {error}") from None
    return {"test": datasets.Dataset.from_list(rows), "dev": datasets.Dataset.from_list(shots)}


def shot(doc):
    """A worked example's answer: the JSON object that the prompt asks for."""
    answer = doc["answer"] or doc["reference_answer"]
    return json.dumps({"answer": answer, "reason": doc["explanation"]}, ensure_ascii=False)


def parse_mcq(resps, docs):
    # lm-eval logs what a filter returns as text, so the parsed answer travels as JSON.
    return [
        [json.dumps(asdict(answers.parse_mcq(text, doc["choices"]))) for text in texts]
        for texts, doc in zip(resps, docs, strict=True)
    ]


def parse_oeq(resps, docs):
    return [[json.dumps(asdict(answers.parse_oeq(text))) for text in texts] for texts in resps]


def score_mcq(doc, results):
    parsed = json.loads(results[0])
    right = float(parsed["value"] == doc["answer"])
    counted = parsed["status"] in ("valid", "repaired")
    rates = {status: float(parsed["status"] == status) for status in answers.STATUSES}
    return {"acc": right, "acc_valid": right if counted else None, **rates}


def mean_of_valid(scores):
    """Mean over the answers that could be read; not a number where there is none."""
    counted = [score for score in scores if score is not None]
    if not counted:
        log.warning(
            "NOT ONE OF %d ANSWERS COULD BE READ. The model was probably asked wrongly: an "
            "instruct model needs --apply_chat_template. Read the samples before using a figure.",
            len(scores),
        )
        return float("nan")
    return sum(counted) / len(counted)


def score_rotated(doc, results):
    parsed = json.loads(results[0])
    option = items.unrotate(parsed["value"], doc["variant"])
    return {
        "acc": float(parsed["value"] == doc["answer"]),
        "consistency": (doc["id"], option),
    }


def share_alike(pairs):
    """Share of questions, asked in all four orders, whose four answers name one option."""
    options = defaultdict(list)
    for item_id, option in pairs:
        options[item_id].append(option)
    whole = [found for found in options.values() if len(found) == 4]
    if not whole:
        return float("nan")
    return sum(None not in found and len(set(found)) == 1 for found in whole) / len(whole)


def score_oeq(doc, results):
    parsed = json.loads(results[0])
    return {
        "answer_in_json": float(parsed["method"].endswith("json")),
        "answer_words": float(len((parsed["answer"] or "").split())),
    }
