"""Configs of local runs: a model's file (configs/<regime>/<model>.yaml) and a machine's scale."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from hk_fs_bench import prompts
from hk_fs_bench.errors import UserError

# Prompt and answer of one question, in tokens: the longest prompt has about 500, an answer 512.
TOKENS_A_QUESTION = 1024
REGIMES = ("paper", "greedy")
# Settings of a YAML file beside the maps: the values that hold here anyway, and who says others.
# What is not named is lm-eval's own, and no local run applies it.
_SETTINGS: dict[str, tuple[tuple[Any, ...], str]] = {
    "model": (("hf", "vllm"), "the scale does: --scale"),
    "device": (("cpu", "cuda"), "the scale does: --scale"),
    "batch_size": (("auto",), "name it with --batch"),
    "apply_chat_template": (
        (True, False),
        "it is true or false; a chat template of another name is put into the tokenizer's folder",
    ),
    "log_samples": ((True, False), "every answer is kept"),
    "tasks": ((["hk_fs"], "hk_fs"), "name them with --tasks"),
    "limit": ((), "name it with --limit"),
    "output_path": ((), "name the folder with --out"),
    "num_fewshot": ((0,), "the benchmark's questions have no examples"),
}
_LM_EVAL = "`lm_eval run` applies it (--print-config writes its --config file)"


@dataclass(frozen=True)
class Scale:
    """What a machine changes; the fields are those of configs/scales.yaml."""

    name: str
    says: str
    run_here: str
    needs: str
    larger: str | None = None
    model: str | None = None
    device: str | None = None
    model_args: dict[str, Any] | None = None
    batch: int = 1
    launch: tuple[str, ...] = ()

    @property
    def spreads(self) -> bool:
        """Whether --gpus decides how the scale runs."""
        return "{gpus}" in (*self.launch, *(self.model_args or {}).values())

    def words(self, **values: object) -> list[str]:
        """The launcher's words, with what stands in braces replaced."""
        return [word.format(**values) for word in self.launch]


@dataclass(frozen=True)
class Config:
    """A model at a scale: what lm-eval is told. `lm_eval` is what its --config file would hold."""

    name: str
    scale: Scale
    lm_eval: dict[str, Any]

    @property
    def model_args(self) -> dict[str, Any]:
        return dict(self.lm_eval["model_args"])

    @property
    def regime(self) -> str | None:
        return (self.lm_eval.get("metadata") or {}).get("hk_fs_regime")

    def for_lm_eval(
        self, tasks: list[str], limit: int | None, metadata: Mapping[str, str], batch: int | None
    ) -> dict[str, Any]:
        """What lm_eval's own --config file would hold.

        Args:
            metadata: hk_fs_dataset and hk_fs_revision, where the edition is not the packaged one.
            batch: None for what lm-eval finds out itself: it halves no batch that does not fit.
        """
        told = self.lm_eval | {"tasks": tasks, "batch_size": batch or "auto"}
        told["metadata"] = {**self.lm_eval["metadata"], **metadata}
        return told | ({"limit": limit} if limit else {})


def folder() -> Path:
    return prompts.tasks_folder() / "configs"


@lru_cache
def _file() -> dict[str, Any]:
    return dict(yaml.safe_load((folder() / "scales.yaml").read_text("utf-8")))


def scales() -> dict[str, Scale]:
    """Every scale by name."""
    return {
        name: Scale(name, **{**fields, "launch": tuple(fields.get("launch", ()))})
        for name, fields in _file()["scales"].items()
    }


def models(regime: str) -> list[str]:
    """The names of the models that have a file in that regime."""
    return sorted(path.stem for path in (folder() / regime).glob("*.yaml"))


def resolve(model: str, scale: str, *, regime: str = "paper", gpus: int = 1) -> Config:
    """The config of a model at a scale.

    Args:
        model: a name of configs/<regime>/, a YAML file of that form, a model's folder, or a Hub id
            "org/name". The last two are asked greedily, with their own default dtype.
        gpus: how many GPUs the scale spreads over.

    Raises:
        UserError: no such scale, model, file or regime, or a file of another form.
    """
    known = scales()
    if scale not in known:
        raise UserError(f"no scale {scale}; there are {', '.join(known)}")
    chosen = known[scale]
    config = _model_file(model, regime)
    for name, own in (("model", chosen.model), ("device", chosen.device)):
        # A model's file may say hf, which the scale replaces.
        if (named := config.get(name)) not in (None, "hf", own):
            raise UserError(
                f"{model} names the {name} {named}, and the scale {scale} has {own or 'its own'}"
            )
    args = {k: v for k, v in config["model_args"].items() if k != "parallelize"}
    changed = {k: gpus if v == "{gpus}" else v for k, v in (chosen.model_args or {}).items()}
    if "max_length" in args:
        changed.pop("max_model_len", None)  # vLLM's name of the same, and lm-eval takes one.
    for name, value in changed.items():
        if name != "dtype" and args.get(name, value) != value:
            hint = "--gpus says it" if name.endswith("_parallel_size") else "leave it out"
            raise UserError(
                f"{model} names model_args.{name}, which the scale {scale} sets; {hint}"
            )
    args |= changed
    if args.get("tp_plan"):
        raise UserError(
            "tp_plan has several processes work on one question, and local runs deal them out; "
            "take the scale model-parallel or vllm"
        )
    if chosen.model == "vllm" and "revision" in args:
        args.setdefault("tokenizer_revision", args["revision"])  # lm-eval's default is main.
    config |= {"model": chosen.model, "model_args": args, "batch_size": chosen.batch}
    if chosen.device:
        config["device"] = chosen.device
    return Config(Path(model).stem if model.endswith((".yaml", ".yml")) else model, chosen, config)


def _model_file(model: str, regime: str) -> dict[str, Any]:
    path = folder() / regime / f"{model}.yaml"
    if model.endswith((".yaml", ".yml")):
        path = Path(model)
    elif not path.is_file():
        if not Path(model).is_dir() and model.count("/") != 1:
            raise UserError(
                f"no model {model} in the regime {regime}; there are {', '.join(models(regime))}, "
                "or name a folder, a Hub id org/name, or a YAML file"
            )
        return {
            "model_args": {"pretrained": model},
            "tasks": ["hk_fs"],
            "apply_chat_template": True,
            "gen_kwargs": {"do_sample": False, "repetition_penalty": 1.0},
            "metadata": {"hk_fs_regime": "greedy"},
        }
    try:
        return _checked(path, yaml.safe_load(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8"
        raise UserError(f"{path} can't be read: {reason}") from None
    except yaml.YAMLError as error:
        reason = str(error).replace("\n", " ")
        raise UserError(f"{path} is no config of lm-eval: it is no YAML: {reason}") from None


def _checked(path: Path, config: Any) -> dict[str, Any]:
    """A model's file with what may be left out of it; UserError if it is of another form."""
    wrong = None
    if not isinstance(config, dict):
        wrong = "it is no map of settings"
    else:
        config = {"gen_kwargs": {}, "metadata": {}} | config
        maps = ("model_args", "gen_kwargs", "metadata")
        wrong = next(
            (
                f"{name} is no map (name: value, a line each)"
                for name in maps
                if not isinstance(config.get(name, {}), dict)
            ),
            None,
        )
    if wrong is None:
        if not isinstance((config.get("model_args") or {}).get("pretrained"), str):
            wrong = "model_args.pretrained is missing, or no text"
        elif (label := config["metadata"].setdefault("hk_fs_regime", "greedy")) not in REGIMES:
            wrong = f"metadata.hk_fs_regime is {label}, and can be {' or '.join(REGIMES)}"
    if wrong is None and (dropped := _not_applied(config)):
        raise UserError(f"{path}: a local run does not apply {dropped}")
    if wrong:
        raise UserError(f"{path} is no config of lm-eval: {wrong}")
    return dict(config)


def _not_applied(config: Mapping[str, Any]) -> str | None:
    """The first setting that would be dropped, and what to do about it."""
    for name, value in config.items():
        if name in ("model_args", "gen_kwargs", "metadata") or value is None:
            continue
        held, instead = _SETTINGS.get(name, ((), _LM_EVAL))
        if value not in held:
            return f"{name}: {value}; {instead}"
    for name in sorted(config["metadata"].keys() - {"hk_fs_regime"}, key=str):
        return f"metadata.{name}; another edition is named with --dataset and --revision"
    return None


def memory_lines() -> list[str]:
    """What each model needs: computed from its shape in bfloat16, not measured."""
    lines = []
    for name, shape in _file()["models"].items():
        weights = 2 * shape["parameters"]
        answer = shape["cache_bytes"] * TOKENS_A_QUESTION / 1e6
        lines.append(
            f"{name}: weights {weights:.0f} GB a copy, cache {answer:.0f} MB an answer "
            f"of the batch ({TOKENS_A_QUESTION} tokens), at least {shape['gpus_of_80_gb']} x 80 GB "
            "a copy"
        )
    return lines


def scale_lines() -> list[str]:
    """Every scale: what it is for, what memory it needs, what was run of it."""
    return [
        f"{name}: {s.says}. Needs: {s.needs}. Run: {s.run_here}." for name, s in scales().items()
    ]
