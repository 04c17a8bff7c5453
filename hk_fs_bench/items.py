"""The dataset: find it, read it, check it, and build the documents that a task asks.

Files are read as they are, never through `datasets.load_dataset`: its cache for local folders
does not notice an edited file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hk_fs_bench.errors import UserError
from hk_fs_bench.sources import HUB_DATASET as HUB_DATASET
from hk_fs_bench.sources import default_folder as default_folder
from hk_fs_bench.sources import locate

if TYPE_CHECKING:
    from hk_fs_bench.schema import MCQItem, OEQItem

SPLITS = ("mcq/test", "mcq/dev", "oeq/test", "oeq/dev")
FILES = ("manifest.json", "errata.jsonl", *(f"data/{split}.jsonl" for split in SPLITS))
LETTERS = "ABCD"


@dataclass(frozen=True)
class Dataset:
    """One edition, read and validated.

    `splits` maps "mcq/test" and its siblings to items in file order; a split without a file is
    absent. `sha256` is over the files of all splits, so it names the content whatever the version
    says. `version` is None for an edition without a manifest.
    """

    source: str
    version: str | None
    sha256: str
    splits: Mapping[str, Sequence[MCQItem | OEQItem]]

    def items(self, subset: str, split: str = "test") -> Sequence[MCQItem | OEQItem]:
        """The items of `subset` ("mcq" or "oeq"), or a UserError if the edition has none."""
        try:
            return self.splits[f"{subset}/{split}"]
        except KeyError:
            raise UserError(
                f"{self.source} has no {subset} {split} split; it has {', '.join(self.splits)}"
            ) from None

    @cached_property
    def by_id(self) -> dict[str, MCQItem | OEQItem]:
        """Every item of the test splits by its id."""
        return {i.id: i for s, items in self.splits.items() if s.endswith("/test") for i in items}


def load(
    source: str | Path | None = None, revision: str | None = None, version: str | None = None
) -> Dataset:
    """Read an edition of the dataset.

    Args:
        source: a folder, a Hub id "org/name", or None for the edition of this package.
        revision: a commit sha or tag of the Hub dataset.
        version: a released version, rebuilt from the edition's errata if it isn't the current one.

    Raises:
        UserError: unknown folder, revision or version, a file that fails its sha256, a faulty item.
    """
    folder = locate(source, revision, FILES)
    name = "the packaged dataset" if source is None else str(source)
    if revision is not None:
        name += f"@{revision}"
    manifest = read_manifest(folder)
    dataset = read_folder(folder, name, manifest)
    if version in (None, dataset.version):
        return dataset
    return rebuild(dataset, manifest or {}, read_errata(folder), version)


def read_folder(folder: Path, name: str, manifest: Mapping[str, Any] | None = None) -> Dataset:
    """The edition in `folder`, held against `manifest` if there is one; `name` is for messages."""
    files = {s: folder / "data" / f"{s}.jsonl" for s in SPLITS}
    contents = {s: path.read_bytes() for s, path in files.items() if path.is_file()}
    if not contents:
        raise UserError(
            f"{name} holds none of {', '.join(f'data/{s}.jsonl' for s in SPLITS)}; "
            "name a folder of that layout, or make one with scripts/dataset.py import"
        )
    if manifest is not None:
        _check_hashes(name, contents, manifest)
    return Dataset(
        source=name,
        version=None if manifest is None else manifest["version"],
        sha256=content_sha256(contents),
        splits={s: parse_items(s, raw, f"{name}: data/{s}.jsonl") for s, raw in contents.items()},
    )


def rebuild(
    dataset: Dataset,
    manifest: Mapping[str, Any],
    corrections: Sequence[Mapping[str, Any]],
    version: str,
) -> Dataset:
    """The released `version` of an edition, every item held against its recorded sha256.

    Raises:
        UserError: no such version, or items that differ from it and that no erratum explains.
    """
    from hk_fs_bench import errata

    now = [item.model_dump() for split in dataset.splits.values() for item in split]
    rows, lost = errata.rebuild(now, corrections, manifest, version)
    entry = manifest["versions"][version]
    splits = {}
    for split, found in rows.items():
        text = "".join(json.dumps(row) + "\n" for row in found)
        splits[split] = parse_items(split, text.encode(), f"{dataset.source} {version}: {split}")
        hashes = entry["splits"][split]["ids"]
        lost += [item.id for item in splits[split] if item_sha256(item) != hashes[item.id]]
    if lost:
        raise UserError(
            f"{dataset.source} can't rebuild version {version}: no erratum explains how "
            f"{', '.join(lost[:5])}{f' and {len(lost) - 5} more' if len(lost) > 5 else ''} differ; "
            "make corrections with scripts/dataset.py errata"
        )
    return Dataset(dataset.source, version, entry["sha256"], splits)


def content_sha256(contents: Mapping[str, bytes]) -> str:
    """The one hash of an edition: over the lines "<split> <sha256 of its file>", sorted."""
    lines = (f"{s} {hashlib.sha256(raw).hexdigest()}\n" for s, raw in sorted(contents.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def item_sha256(item: MCQItem | OEQItem) -> str:
    """The hash of an item's content, whatever the order of its fields; empty fields don't count."""
    content = item.model_dump(exclude_none=True)
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_errata(folder: Path) -> list[dict[str, Any]]:
    """The rows of an edition's errata.jsonl, oldest first; none if there is no such file."""
    from hk_fs_bench import errata

    path = folder / errata.FILE
    rows = []
    for number, row in jsonl_rows(path.read_bytes() if path.is_file() else b"", path.name):
        errata.check(row, f"{path.name} line {number}")
        rows.append(row)
    return rows


def parse_items(split: str, raw: bytes, where: str) -> list[MCQItem | OEQItem]:
    """Items of one JSONL file; every fault is a UserError that names file, line and field."""
    from pydantic import ValidationError

    from hk_fs_bench.schema import MODELS, explain

    model = MODELS[split.split("/")[0]]
    found: list[MCQItem | OEQItem] = []
    lines: dict[str, int] = {}
    for number, row in jsonl_rows(raw, where):
        label = f" ({row['id']})" if isinstance(row.get("id"), str) else ""
        try:
            item = model.model_validate(row)
        except ValidationError as error:
            raise UserError(f"{where} line {number}{label}: {explain(error)}") from None
        if item.id in lines:
            raise UserError(
                f"{where} line {number}: id {item.id} stands in line {lines[item.id]} already"
            )
        lines[item.id] = number
        found.append(item)
    return found


def jsonl_rows(raw: bytes, where: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of a JSONL file; UserError for bytes or lines that are none."""
    for number, line in enumerate(raw.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise UserError(
                f"{where} line {number}: byte {error.start + 1} is no UTF-8; save the file as UTF-8"
            ) from None
        except json.JSONDecodeError as error:
            raise UserError(
                f"{where} line {number} column {error.colno}: no JSON ({error.msg}); "
                "one object a line is expected"
            ) from None
        except RecursionError:
            raise UserError(f"{where} line {number}: nested too deeply") from None
        if not isinstance(row, dict):
            raise UserError(f"{where} line {number}: a JSON object is expected")
        yield number, row


def docs(
    dataset: Dataset, *, subset: str, context: bool, rotations: int = 1, split: str = "test"
) -> list[dict[str, Any]]:
    """The documents of a task, for lm-eval and for the API runner alike.

    Args:
        subset: "mcq" or "oeq".
        context: whether the prompt names Hong Kong's code.
        rotations: 1, or 4 for every cyclic order of the options (`variant` rot0 to rot3); the
            orders of one question stand together, so that a limit cuts few of them.

    Returns:
        One dict a prompt: id, variant, question, choices (empty for oeq), answer (the letter in
        that order; empty for oeq), reference_answer, explanation, hk_context, and the edition's
        version and sha256.
    """
    shared = {"hk_context": context, "dataset_version": dataset.version or "unversioned"}
    shared["dataset_sha256"] = dataset.sha256
    out = []
    for item in dataset.items(subset, split):
        choices: list[str] = list(getattr(item, "choices", []))
        key = LETTERS.index(item.answer) if hasattr(item, "answer") else None
        for turn in range(rotations):
            out.append(
                {
                    "id": item.id,
                    "variant": f"rot{turn}" if rotations > 1 else "",
                    "question": item.question,
                    "choices": choices[turn:] + choices[:turn],
                    "answer": "" if key is None else LETTERS[(key - turn) % 4],
                    "reference_answer": getattr(item, "reference_answer", ""),
                    "explanation": item.explanation or "",
                    **shared,
                }
            )
    return out


def unrotate(letter: str | None, variant: str) -> str | None:
    """The letter that the option had in the item's own order."""
    if letter is None or not variant:
        return letter
    return LETTERS[(LETTERS.index(letter) + int(variant.removeprefix("rot"))) % 4]


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest.json of an edition; None if it has none, UserError if it is broken."""
    path = folder / "manifest.json"
    if not path.is_file():
        return None
    try:
        manifest = json.loads(path.read_text("utf-8"))
        manifest["version"], manifest["splits"]
    except (ValueError, KeyError, TypeError):
        raise UserError(
            f"{path.name} of {folder.name} is no manifest; make it anew with "
            "scripts/dataset.py manifest, or delete it"
        ) from None
    return dict(manifest)


def _check_hashes(name: str, contents: Mapping[str, bytes], manifest: Mapping[str, Any]) -> None:
    for split, entry in manifest["splits"].items():
        if split not in contents:
            raise UserError(f"{name}: data/{split}.jsonl is missing, the manifest names it")
        if hashlib.sha256(contents[split]).hexdigest() != entry["sha256"]:
            raise UserError(
                f"{name}: data/{split}.jsonl fails the sha256 of manifest.json; restore the file, "
                "or, if you edited it on purpose, run scripts/dataset.py manifest FOLDER"
            )
