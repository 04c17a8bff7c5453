"""Prompts: the task YAML is where their text lives; here it is found, resolved and rendered.

lm-eval is not imported (that takes seconds): a small loader resolves `include` and groups, and the
template is rendered with lm-eval's Jinja settings. A test holds the bytes equal to lm-eval's own.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, StrictUndefined, Template

from hk_fs_bench.errors import UserError


@dataclass(frozen=True)
class Task:
    """One evaluation, as its YAML states it. `max_gen_toks` binds the answer, in tokens."""

    name: str
    version: str
    subset: str
    context: bool
    rotations: int
    output_type: str
    doc_to_text: str
    max_gen_toks: int | None

    @property
    def data_options(self) -> dict[str, Any]:
        """What `items.docs` needs to build this task's documents."""
        return {"subset": self.subset, "context": self.context, "rotations": self.rotations}


class _Loader(yaml.SafeLoader):
    """Reads `!function` as plain text: this module needs the text of a task, not its hooks."""


_Loader.add_constructor("!function", lambda loader, node: str(node.value))

# The settings of lm_eval.utils.env: a template that names an unknown field fails, and the
# newlines of a template stand.
_JINJA = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)


def tasks_folder() -> Path:
    """Where the task YAML lies: beside the checkout's package, or inside the installed lm_eval."""
    checkout = Path(__file__).resolve().parent.parent / "lm_eval_tasks"
    if checkout.is_dir():
        return checkout
    spec = importlib.util.find_spec("lm_eval")
    for root in (spec.submodule_search_locations or []) if spec else []:
        if (folder := Path(root) / "tasks" / "hk_fs").is_dir():
            return folder
    raise UserError("the task files are missing; install hk-fs-bench again")


@lru_cache
def _configs() -> dict[str, dict[str, Any]]:
    """Every task and group of the folder by name, with `include` resolved."""
    configs = (_read(path) for path in sorted(tasks_folder().glob("*.yaml")))
    return {c["group"] if "group" in c else c["task"]: c for c in configs}


def _read(path: Path) -> dict[str, Any]:
    config: dict[str, Any] = yaml.load(path.read_text("utf-8"), _Loader)
    base = config.pop("include", None)
    return config if base is None else {**_read(path.parent / base), **config}


def expand(names: Sequence[str]) -> list[str]:
    """Task names with groups replaced by their members, each once, in order.

    Raises:
        UserError: a name that is neither a task nor a group; the message lists them all.
    """
    out: list[str] = []
    for name in names:
        config = _configs().get(name)
        if config is None:
            raise UserError(f"no task {name}; there are {', '.join(sorted(_configs()))}")
        out += expand(config["task"]) if "group" in config else [name]
    return list(dict.fromkeys(out))


def load_task(name: str) -> Task:
    """The task of that name (no group); UserError if there is none."""
    if expand([name]) != [name]:
        raise UserError(f"{name} is a group; name one of {', '.join(expand([name]))}")
    config = _configs()[name]
    data = config["dataset_kwargs"]["hk_fs_task"]
    return Task(
        name=name,
        version=str(config["metadata"]["version"]),
        subset=data["subset"],
        context=data["context"],
        rotations=data.get("rotations", 1),
        output_type=config["output_type"],
        doc_to_text=config["doc_to_text"],
        max_gen_toks=config.get("generation_kwargs", {}).get("max_gen_toks"),
    )


def render(task: Task, doc: Mapping[str, Any]) -> str:
    """The prompt of one document, without any chat template."""
    return _template(task.doc_to_text).render(**doc)


@lru_cache
def _template(text: str) -> Template:
    """Compiled once: a run renders the same template hundreds of times."""
    return _JINJA.from_string(text)


def template_sha256(task: Task) -> str:
    """The hash of a task's whole protocol: the template and what decides its branches."""
    parts = [task.doc_to_text, task.subset, str(task.context), task.output_type]
    return prompt_sha256("\n".join(parts))


def prompt_sha256(prompt: str) -> str:
    """The hash that runs and submissions record for a prompt."""
    return hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()
