"""lm-eval's `vllm` model, which also says how long each answer was and why it ended.

Import it only where a model is about to be loaded: it needs vLLM.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from lm_eval.models.vllm_causallms import VLLM

from hk_fs_bench.local_counting import Counting


class CountingVLLM(Counting, VLLM):  # type: ignore[misc]
    """What lm-eval generates, with vLLM's own count of every answer's tokens."""

    def _model_generate(self, requests: list[Any], generate: bool = False, **told: Any) -> Any:
        outputs = super()._model_generate(requests=requests, generate=generate, **told)
        if generate:
            for answer in (output.outputs[0] for output in outputs):
                end = "length" if answer.finish_reason == "length" else "stop"
                self._counts.append((len(answer.token_ids), end))
        return outputs

    @property
    def device_name(self) -> str:
        """The GPUs of all copies, asked of vLLM: asking torch would claim memory on one."""
        gpus = self.tensor_parallel_size * self.data_parallel_size
        name = import_module("vllm.platforms").current_platform.get_device_name()
        return f"{gpus} x {name}"
