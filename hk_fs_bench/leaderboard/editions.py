"""The editions of the dataset that entries were asked on, and the prompts of each."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from hk_fs_bench import items, prompts
from hk_fs_bench.errors import UserError
from hk_fs_bench.items import Dataset
from hk_fs_bench.manifest import EDITED

Asked = Mapping[tuple[str, str], str]


class Editions:
    """Every released version of one dataset; `source` as in `items.load`."""

    def __init__(self, source: Path | None = None) -> None:
        self.source = source
        self.folder = items.default_folder() if source is None else source
        self.manifest: dict[str, Any] = items.read_manifest(self.folder) or {}
        self._loaded: dict[str, Dataset] = {}
        self._asked: dict[tuple[str, str], Asked] = {}

    @cached_property
    def current(self) -> Dataset:
        """The newest edition, on which the board stands."""
        dataset = items.load(self.source)
        if dataset.version is None or dataset.version.endswith(EDITED):
            raise UserError(
                f"{dataset.source} has no version of its own ({dataset.version}); a board stands "
                "on an edition that stays as it is: scripts/dataset.py release"
            )
        return dataset

    @property
    def versions(self) -> list[str]:
        """The versions that an entry may have been asked on."""
        return list(dict.fromkeys([*(self.manifest.get("versions") or {}), self.current.version]))

    def get(self, version: str) -> Dataset:
        """One of `versions`, rebuilt from the errata if it isn't the current one."""
        if version == self.current.version:
            return self.current
        if version not in self._loaded:
            self._loaded[version] = items.load(self.source, version=version)
        return self._loaded[version]

    def released(self, version: str) -> datetime.date | None:
        """The day of a release; None for an edition that only has a number."""
        entry = (self.manifest.get("versions") or {}).get(version)
        return None if entry is None else datetime.date.fromisoformat(entry["date"])

    def asked(self, dataset: Dataset, task: prompts.Task) -> Asked:
        """(item id, variant) of every prompt of a task → its sha256, in the edition's order."""
        name = (dataset.sha256, task.name)
        if name not in self._asked:
            self._asked[name] = {
                (doc["id"], doc["variant"]): prompts.prompt_sha256(prompts.render(task, doc))
                for doc in items.docs(dataset, **task.data_options)
            }
        return self._asked[name]
