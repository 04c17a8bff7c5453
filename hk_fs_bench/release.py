"""Release a version: refused unless everything that guards the data agrees, then written whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hk_fs_bench import card, changelog, errata, items, review
from hk_fs_bench.errors import UserError
from hk_fs_bench.gates import GateReport
from hk_fs_bench.manifest import (
    check_form,
    check_number,
    make_manifest,
    stratified_order,
    write_edition,
    write_manifest,
)
from hk_fs_bench.runs import write_json, write_text
from hk_fs_bench.validating import baselines, findings_of, validate

__all__ = [
    "refresh",
    "release",
    "save_baselines",
    "stratified_order",
    "write_edition",
    "write_manifest",
]

CHANGELOG = "CHANGELOG.md"


def release(
    folder: Path, version: str, date: str, templates: Path, *, probe: bool = True
) -> tuple[dict[str, Any], GateReport]:
    """Make the files of `folder` the released `version`, by the gates of its profile.

    Writes manifest.json, README.md, gates.json, CHANGELOG.md, and for our own edition eval.yaml and
    the plot.

    Returns:
        The manifest, and the gates' report.

    Raises:
        UserError: a gate fails; a review sends an item back; an item of our own edition has fewer
            than two accepts; an earlier version can't be rebuilt; a version number that isn't the
            next; the changelog names a release that the manifest lacks. Nothing is written then.
    """
    old = items.read_manifest(folder) or {}
    released = old.get("versions") or {}
    path = folder / CHANGELOG
    text = path.read_text("utf-8") if path.is_file() else ""
    check_number(version, released)
    _check_history(released, text)
    report = validate(folder, old.get("profile", "strict"), probe=probe)
    # make_manifest reads the files as they are; a stale manifest is what this command mends.
    failures = [f for f in findings_of(report) if "isn't the file of manifest.json" not in f]
    _refuse("gates fail", failures)
    manifest = make_manifest(folder, version, released=date)
    dataset = items.read_folder(folder, folder.name)
    corrections = items.read_errata(folder)
    _refuse("items' versions are wrong", list(_versions(dataset, {*released, version})))
    _refuse("errata are of another version", list(_pending(corrections, {*released, version})))
    for earlier in released:
        items.rebuild(dataset, manifest, corrections, earlier)
    log = review.read_reviews(folder / review.FILE)
    sent_back = [d for d in review.decide(dataset, log) if d.outcome in ("revise", "discard")]
    _refuse("reviews send items back", [f"{d.item}: {'; '.join(d.why)}" for d in sent_back])
    if manifest["profile"] == "strict":
        _refuse("items lack two accepts of their present text", list(_unaccepted(dataset, log)))

    history = changelog.add(text, changelog.entry(manifest, corrections))
    if not (folder / errata.FILE).is_file():
        write_text(folder / errata.FILE, "")
    write_json(folder / card.GATES, baselines(report, manifest["sha256"]))
    card.write(folder, manifest, templates)
    write_text(path, history)
    write_json(folder / "manifest.json", manifest)
    return manifest, report


def refresh(folder: Path, templates: Path, version: str | None = None) -> dict[str, Any]:
    """Make the manifest and the card anew after the data files were edited; releases nothing."""
    if version is not None:
        check_form(version)
    manifest = make_manifest(folder, version)
    card.write(folder, manifest, templates)
    write_json(folder / "manifest.json", manifest)
    return manifest


def save_baselines(folder: Path, report: GateReport) -> None:
    """Keep what the gates measured, for the card, with the sha256 of what they measured."""
    sha256 = items.read_folder(folder, folder.name).sha256
    write_json(folder / card.GATES, baselines(report, sha256))


def _refuse(why: str, lines: list[str]) -> None:
    if lines:
        raise UserError(f"not released: {why} ({len(lines)}); mend them first", lines)


def _versions(dataset: items.Dataset, known: set[str]) -> Iterator[str]:
    """Items whose `since` or `revised` names a version that never was."""
    for split in dataset.splits.values():
        for item in split:
            for field in ("since", "revised"):
                value = getattr(item, field)
                if value is not None and value not in known:
                    yield f"{item.id}: {field} is {value}, which was never released"


def _unaccepted(dataset: items.Dataset, log: list[review.Review]) -> Iterator[str]:
    for name, found in review.current(dataset, log).items():
        accepts = sum(one.verdict == "accept" for one in found)
        if accepts < 2:
            yield f"{name}: {accepts} of 2"


def _check_history(released: Mapping[str, Any], text: str) -> None:
    """The changelog outlives a lost manifest; a release without its versions could be undone."""
    if lost := [name for name in changelog.versions(text) if name not in released]:
        raise UserError(
            f"{CHANGELOG} names {', '.join(lost)} as released, manifest.json doesn't; "
            "restore manifest.json first"
        )


def _pending(corrections: list[dict[str, Any]], known: set[str]) -> Iterator[str]:
    for row in corrections:
        if row["version"] not in known:
            yield f"{row['item']}: changed for {row['version']}, which is neither released nor this"


def edition_files(folder: Path) -> dict[str, bytes]:
    """The files that belong to a dataset, by path: what is published, and nothing else."""
    names = ["README.md", "manifest.json", "topics.yaml", "eval.yaml", CHANGELOG]
    names += [errata.FILE, review.FILE, card.GATES, card.PLOT]
    names += [f"data/{split}.jsonl" for split in items.SPLITS]
    return {n: (folder / n).read_bytes() for n in sorted(names) if (folder / n).is_file()}
