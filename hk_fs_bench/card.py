"""The dataset card: the Hub's front matter and the template's prose, both from the data."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hk_fs_bench import items

SUBSETS = ("mcq", "oeq")


def front_matter(folder: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """`configs` and `dataset_info` of the card's YAML.

    `datasets` caches a local folder under a hash of this block alone, so the content's sha256
    stands in each description: an edited edition is then read anew, not from the cache.
    """
    present = {
        subset: [s.split("/")[1] for s in items.SPLITS if s in manifest["splits"] and subset in s]
        for subset in SUBSETS
    }
    configs: list[dict[str, Any]] = []
    infos: list[dict[str, Any]] = []
    for subset, splits in present.items():
        if not splits:
            continue
        files = {split: f"data/{subset}/{split}.jsonl" for split in splits}
        configs.append(
            {
                "config_name": subset,
                "default": not configs,
                "data_files": [{"split": s, "path": path} for s, path in files.items()],
            }
        )
        infos.append(
            {
                "config_name": subset,
                "description": f"version {manifest['version']}, sha256 {manifest['sha256']}",
                **_sizes({split: folder / path for split, path in files.items()}),
            }
        )
    return {"configs": configs, "dataset_info": infos}


def _sizes(files: Mapping[str, Path]) -> dict[str, Any]:
    """Examples and bytes of each split as `datasets` itself counts them."""
    from datasets import disable_progress_bars, enable_progress_bars, load_dataset_builder

    disable_progress_bars()
    try:
        with tempfile.TemporaryDirectory() as cache:
            paths = {split: str(path.resolve()) for split, path in files.items()}
            builder = load_dataset_builder("json", data_files=paths, cache_dir=cache)
            builder.download_and_prepare()
            splits = [
                {"name": s.name, "num_bytes": s.num_bytes, "num_examples": s.num_examples}
                for s in builder.info.splits.values()
            ]
    finally:
        enable_progress_bars()
    return {
        "splits": splits,
        "download_size": sum(path.stat().st_size for path in files.values()),
        "dataset_size": sum(s["num_bytes"] for s in splits),
    }


def render(folder: Path, manifest: Mapping[str, Any], template: Path) -> str:
    """The whole README.md of an edition."""
    environment = Environment(
        loader=FileSystemLoader(template.parent),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    block = yaml.safe_dump(front_matter(folder, manifest), sort_keys=False, allow_unicode=True)
    counts = {split: entry["items"] for split, entry in manifest["splits"].items()}
    prose = environment.get_template(template.name).render(manifest=manifest, counts=counts)
    head, rest = prose.removeprefix("---\n").split("---\n", 1)
    return f"---\n{head}{block}---\n{rest}"
