"""Scores of pairs of texts, kept in one SQLite file: by encoder and the texts' hashes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path

Texts = tuple[str, str]
Values = tuple[float, float, float]

_TABLE = """
create table if not exists scores (
  encoder text, candidate text, reference text, p real, r real, f real,
  primary key (encoder, candidate, reference)
) without rowid
"""


def default_path() -> Path:
    """$XDG_CACHE_HOME/hk-fs-bench/bertscore.sqlite, or under ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "hk-fs-bench" / "bertscore.sqlite"


class PairCache:
    """Use `with`. A file that can't be read or written is as good as none: scores are then made
    anew, never an error."""

    def __init__(self, path: Path | None, encoder: str) -> None:
        self._path, self._encoder = path, encoder
        self._file: sqlite3.Connection | None = None

    def __enter__(self) -> PairCache:
        if self._path is not None:
            with contextlib.suppress(OSError, sqlite3.Error):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = sqlite3.connect(self._path, timeout=30)
                self._file.execute(_TABLE)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def get(self, pairs: Iterable[Texts]) -> dict[Texts, Values]:
        """The scores of those pairs that are known."""
        found: dict[Texts, Values] = {}
        if self._file is None:
            return found
        query = "select p, r, f from scores where encoder = ? and candidate = ? and reference = ?"
        with contextlib.suppress(sqlite3.Error):
            for pair in pairs:
                if row := self._file.execute(query, (self._encoder, *_hashes(pair))).fetchone():
                    found[pair] = row
        return found

    def put(self, scores: Mapping[Texts, Values]) -> None:
        """Keep scores."""
        if self._file is None:
            return
        rows = [(self._encoder, *_hashes(pair), *values) for pair, values in scores.items()]
        with contextlib.suppress(sqlite3.Error), self._file:
            self._file.executemany("insert or replace into scores values (?, ?, ?, ?, ?, ?)", rows)


def _hashes(pair: Texts) -> tuple[str, str]:
    one, two = (hashlib.sha256(text.encode()).hexdigest() for text in pair)
    return one, two
