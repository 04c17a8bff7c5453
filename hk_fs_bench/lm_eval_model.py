"""What lm-eval's settings say of a model: its identity, its tokenizer, how it was asked."""

from __future__ import annotations

import hashlib
import logging
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

from hk_fs_bench import prompts
from hk_fs_bench.errors import UserError

LIMIT_NAMES = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")
log = logging.getLogger(__name__)
WEIGHTS = ("*.safetensors", "*.bin", "*.gguf", "*.pt", "*.pth")


@dataclass
class RecordedModel:
    """What lm-eval recorded of the model, and its tokenizer if it can be had."""

    config: dict[str, Any]
    tokenizer_name: str | None

    @cached_property
    def args(self) -> dict[str, Any]:
        args = self.config["model_args"] or {}
        if isinstance(args, str):
            args = dict(pair.split("=", 1) for pair in args.split(",") if "=" in pair)
        return dict(args)

    @cached_property
    def name(self) -> str:
        return str(self.args.get("pretrained") or self.args.get("model") or self.config["model"])

    @cached_property
    def folder(self) -> Path | None:
        path = Path(self.name).expanduser()
        return path if path.is_dir() else None

    @cached_property
    def tokenizer(self) -> Any | None:
        if self.args.get("gguf_file") and self.tokenizer_name is None:
            return None  # reading a tokenizer out of GGUF takes a minute; --tokenizer can name one
        name = self.tokenizer_name or self.args.get("tokenizer") or self.args.get("pretrained")
        if name is None:
            return None
        try:
            if not Path(str(name)).expanduser().is_dir():
                ask_hub_once()
            from transformers import AutoTokenizer

            return AutoTokenizer.from_pretrained(str(name), revision=self.args.get("revision"))
        except (ImportError, OSError, ValueError) as error:
            if self.tokenizer_name is not None:
                raise UserError(f"--tokenizer {name} can't be loaded: {error}") from None
            return None

    @cached_property
    def revision(self) -> str | None:
        """The commit of a Hub model, where it can be found out; else what the arguments name."""
        named: str | None = self.args.get("revision")
        if self.folder is not None or re.fullmatch("[0-9a-f]{40}", named or ""):
            return named
        try:
            ask_hub_once()
            from transformers import AutoConfig

            config = AutoConfig.from_pretrained(self.name, revision=named or "main")
        except (ImportError, OSError, ValueError):
            return named
        return getattr(config, "_commit_hash", None) or named

    def count(self, text: str) -> int | None:
        """Tokens of a text, special tokens as they stand in it and none added."""
        if self.tokenizer is None:
            return None
        clean = text.encode("utf-8", "replace").decode("utf-8")
        return len(self.tokenizer(clean, add_special_tokens=False)["input_ids"])

    @cached_property
    def weights_sha256(self) -> str | None:
        """One hash over the weight files of a local folder; None for a Hub id."""
        if self.folder is None:
            return None
        lines = []
        for path in sorted(p for pattern in WEIGHTS for p in self.folder.glob(pattern)):
            with path.open("rb") as file:
                lines.append(f"{path.name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n")
        return hashlib.sha256("".join(lines).encode()).hexdigest() if lines else None


@cache
def ask_hub_once() -> None:
    """Have this process do without the Hub where one short request does not reach it.

    Without this, every file of a model that is not there is asked for six times over half a minute.
    """
    from huggingface_hub import constants, get_session

    if constants.HF_HUB_OFFLINE:
        return
    try:
        get_session().head(constants.ENDPOINT, timeout=10)
    except Exception as error:  # Of whichever HTTP library that version of the client has.
        log.warning(
            "the Hub can't be reached (%s: %s); only what is cached here is used",
            type(error).__name__,
            error,
        )
        constants.HF_HUB_OFFLINE = True  # What is_offline_mode() says from now on.


def limit_of(settings: dict[str, Any]) -> Any | None:
    """The limit of new tokens among generation settings, under whichever of its names."""
    return next((v for name in LIMIT_NAMES if (v := settings.get(name))), None)


def regime_of(settings: list[dict[str, Any]], label: str | None, model: RecordedModel) -> str:
    """What was sent, whatever the label says: paper, greedy or custom."""
    if not settings:
        return "greedy"  # Probabilities alone: nothing samples.
    if label == "paper":
        paper = _paper_settings(str(model.args.get("pretrained")))
        if paper is not None and all(_bare(sent) == paper for sent in settings):
            return "paper"
    greedy = all(not sent.get("do_sample") and not sent.get("temperature") for sent in settings)
    return "greedy" if greedy and label != "paper" else "custom"


def _bare(settings: dict[str, Any]) -> dict[str, Any]:
    """Generation settings without the limit, and without stop strings where there are none."""
    return {
        name: value
        for name, value in settings.items()
        if name not in LIMIT_NAMES and (name, value) != ("until", [])
    }


def _paper_settings(pretrained: str) -> dict[str, Any] | None:
    """The gen_kwargs of a model's file in configs/paper; None if there is none."""
    for path in sorted((prompts.tasks_folder() / "configs" / "paper").glob("*.yaml")):
        config = yaml.safe_load(path.read_text("utf-8"))
        if config["model_args"]["pretrained"] == pretrained:
            return _bare(config["gen_kwargs"])
    return None


def thinking_mode(value: Any) -> str:
    """lm-eval's enable_thinking, a boolean or its text, as the name of a mode."""
    return {"true": "on", "false": "off"}.get(str(value).lower(), "none")
