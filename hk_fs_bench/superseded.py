"""Which wrong options are the value of an earlier text of the Code (`data/superseded.yaml`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import resources

from hk_fs_bench.items import item_sha256
from hk_fs_bench.schema import MCQItem


@lru_cache(maxsize=1)
def _marks() -> Mapping[str, Mapping[str, str]]:
    import yaml

    text = resources.files("hk_fs_bench").joinpath("data", "superseded.yaml").read_text("utf-8")
    loaded: dict[str, dict[str, str]] = yaml.safe_load(text)
    return loaded


def superseded_options(items: Mapping[str, MCQItem]) -> dict[str, list[str]]:
    """Item id → letters of its superseded options, of those `items` whose text was marked."""
    return {
        name: [mark["option"]]
        for name, mark in _marks().items()
        if name in items and item_sha256(items[name]) == mark["item_sha256"]
    }
