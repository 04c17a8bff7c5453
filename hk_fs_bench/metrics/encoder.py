"""An encoder for BERTScore: loaded by bert_score's own functions, its limits made known."""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hk_fs_bench.metrics.common import Unavailable, library

if TYPE_CHECKING:
    import torch

    # A text's embedding (tokens, width) and the weight of each token (tokens).
    Embedded = tuple[torch.Tensor, torch.Tensor]

# Tokens in a batch, padding included: what bounds the memory.
_BATCH_TOKENS = 8192
_WEIGHTS = ("*.safetensors", "*.bin")


class Encoder:
    """An encoder at a layer; its files are read when they are first needed.

    Args:
        model: a Hub id or a folder.
        layers: the layer whose output is compared; known for the models that bert_score knows.
        device: of torch; CUDA where there is one by default.

    Raises:
        Unavailable: bert_score is not installed, the model can't be had, or its layer isn't known.
    """

    def __init__(self, model: str, layers: int | None = None, device: str | None = None) -> None:
        self.versions = {"lib": library("bert-score"), "on": library("transformers")}
        library("torch")
        folder = Path(model).expanduser()
        self._source = str(folder.resolve()) if folder.is_dir() else model
        self.name = f"local/{folder.resolve().name}" if folder.is_dir() else model
        self.layers = self._usual_layer() if layers is None else layers
        self._device = device

    def _usual_layer(self) -> int:
        from bert_score.utils import model2layers

        if self.name not in model2layers:
            raise Unavailable(
                f"bert_score knows no layer for {self.name}: name one with --bertscore-layers"
            )
        return int(model2layers[self.name])

    @cached_property
    def revision(self) -> str:
        """The commit of a Hub model, the hash of a folder's weights."""
        folder = Path(self._source)
        if not folder.is_dir():
            from transformers import AutoConfig

            with self._loading():
                return str(AutoConfig.from_pretrained(self._source)._commit_hash or "unknown")
        digest = hashlib.sha256()
        for path in sorted(p for pattern in _WEIGHTS for p in folder.glob(pattern)):
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()

    @cached_property
    def baseline(self) -> float | None:
        """The F1 of unrelated English texts, from bert_score's files; None where it has none."""
        import bert_score
        import pandas as pd

        folder = Path(bert_score.__file__).parent / "rescale_baseline" / "en"
        path = folder / f"{self.name}.tsv"
        return float(pd.read_csv(path).iloc[self.layers]["F"]) if path.is_file() else None

    @property
    def limit(self) -> int:
        """How many tokens it takes, the two special ones included."""
        return int(self._tokenizer.model_max_length)

    def is_cut(self, text: str) -> bool:
        """Whether the limit leaves an end of the text out."""
        if len(text) < self.limit // 2 or len(self._ids(text)) < self.limit:
            return False
        return len(self._tokenizer(text, verbose=False)["input_ids"]) > self.limit

    def embed(self, texts: Iterable[str]) -> Iterator[tuple[str, Embedded]]:
        """Each text, none of them blank, with its embedding; in an order of the encoder's own."""
        import torch
        from bert_score.utils import bert_encode, padding

        specials = {self._tokenizer.cls_token_id, self._tokenizer.sep_token_id}
        for batch in self._batches(texts):
            ids = [self._ids(text) for text in batch]
            padded, _, mask = padding(ids, self._tokenizer.pad_token_id or 0)
            hidden = bert_encode(self._model, padded.to(self._on), mask.to(self._on))
            for text, row, own in zip(batch, hidden, ids, strict=True):
                weights = torch.tensor([float(i not in specials) for i in own], device=self._on)
                yield text, (row[: len(own)].clone(), weights)

    def _batches(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """Texts of like lengths together; the longest first, so that want of memory shows soon."""
        batch: list[str] = []
        for text in sorted(texts, key=lambda text: (-len(self._ids(text)), text)):
            if batch and len(self._ids(batch[0])) * (len(batch) + 1) > _BATCH_TOKENS:
                yield batch
                batch = []
            batch.append(text)
        if batch:
            yield batch

    def _ids(self, text: str) -> list[int]:
        """The tokens of a text, cut at the limit."""
        from bert_score.utils import sent_encode

        if text not in self._known_ids:
            self._known_ids[text] = list(sent_encode(self._tokenizer, text))
        return self._known_ids[text]

    @cached_property
    def _known_ids(self) -> dict[str, list[int]]:
        return {}

    @cached_property
    def _tokenizer(self) -> Any:
        """The tokenizer, told how many tokens the encoder takes: some run past that."""
        from bert_score.utils import get_tokenizer
        from transformers import AutoConfig

        with self._loading():
            config = AutoConfig.from_pretrained(self._source)
            tokenizer = get_tokenizer(self._source)
        positions = getattr(config, "max_position_embeddings", None) or 512
        if "roberta" in config.model_type or config.model_type in ("camembert", "mpnet"):
            # Their positions begin after the padding's.
            positions -= (config.pad_token_id or 0) + 1
        tokenizer.model_max_length = min(tokenizer.model_max_length, positions)
        return tokenizer

    @property
    def _on(self) -> Any:
        return next(self._model.parameters()).device

    @cached_property
    def _model(self) -> Any:
        import torch
        from bert_score.utils import get_model

        with self._loading():
            try:
                model = get_model(self._source, self.layers)
            except AssertionError:
                raise Unavailable(f"{self.name} has no layer {self.layers}") from None
        return model.to(self._device or ("cuda" if torch.cuda.is_available() else "cpu"))

    @contextlib.contextmanager
    def _loading(self) -> Iterator[None]:
        """What can go wrong with a model's files, as one line; the library's chatter held back."""
        from huggingface_hub.utils import logging as hub
        from transformers.utils import logging as chatter

        level, bars = chatter.get_verbosity(), chatter.is_progress_bar_enabled()
        hub_level = hub.get_verbosity()
        chatter.set_verbosity_error()
        chatter.disable_progress_bar()
        hub.set_verbosity(logging.ERROR)
        try:
            yield
        except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
            first = str(error).strip().split("\n")[0][:200]
            raise Unavailable(
                f"{self.name} can't be loaded ({first}): download it once, or name another "
                "encoder with --bertscore-model and --bertscore-layers"
            ) from None
        finally:
            chatter.set_verbosity(level)
            hub.set_verbosity(hub_level)
            if bars:
                chatter.enable_progress_bar()
