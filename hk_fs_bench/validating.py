"""Validate an edition: our own by every gate, an imported one by what its fields allow."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from hk_fs_bench import errata, items
from hk_fs_bench.errors import UserError
from hk_fs_bench.gates import Finding, GateReport, run_gates

PROFILES = ("strict", "any")
Rows = dict[str, list[dict[str, Any]]]


def validate(folder: Path, profile: str | None = None, *, probe: bool = True) -> GateReport:
    """The gates' report on an edition's test splits, with what is wrong in its other files.

    Args:
        profile: "strict", or "any" for an imported edition; the manifest's own by default, "any"
            where there is no manifest.
        probe: whether to train the choices-only probe, which takes half a minute.

    Raises:
        UserError: no such folder, or a file that can't be read as JSON lines.
    """
    rows = read_rows(folder)
    manifest = items.read_manifest(folder)
    chosen = profile or (manifest or {}).get("profile", "strict" if manifest else "any")
    if chosen == "any":
        report = _imported(rows, probe)
    else:
        report = _own(folder, rows, manifest, probe)
    report.extend(_stale(folder, manifest))
    return report


def read_rows(folder: Path) -> Rows:
    """The rows of every split, as they are; UserError if there is none."""
    files = {split: folder / "data" / f"{split}.jsonl" for split in items.SPLITS}
    rows = {
        split: [row for _, row in items.jsonl_rows(path.read_bytes(), f"data/{split}.jsonl")]
        for split, path in files.items()
        if path.is_file()
    }
    if not rows:
        raise UserError(f"{folder} has no data/mcq/test.jsonl or its siblings; name an edition")
    return rows


def all_rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of all splits of an edition."""
    return [row for found in read_rows(folder).values() for row in found]


def read_candidates(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSONL file of items that are not in an edition yet."""
    if not path.is_file():
        raise UserError(f"no such file: {path}")
    rows = [row for _, row in items.jsonl_rows(path.read_bytes(), path.name)]
    for number, row in enumerate(rows, 1):
        if lost := [name for name in ("id", "question") if not isinstance(row.get(name), str)]:
            raise UserError(f"{path.name} item {number}: no {' and no '.join(lost)}")
    return rows


def topics(folder: Path) -> dict[str, dict[str, str]] | None:
    """Part → topic → what it covers, from the edition's topics.yaml; None if it has none."""
    import yaml

    path = folder / "topics.yaml"
    if not path.is_file():
        return None
    found: dict[str, dict[str, str]] = yaml.safe_load(path.read_text("utf-8"))
    return found


def _own(folder: Path, rows: Rows, manifest: Mapping[str, Any] | None, probe: bool) -> GateReport:
    by_part = topics(folder)
    names = None if by_part is None else {name for part in by_part.values() for name in part}
    report = run_gates(
        rows.get("mcq/test", []), rows.get("oeq/test", []), topics=names, probe=probe
    )
    dev = run_gates(rows.get("mcq/dev", []), rows.get("oeq/dev", []), topics=names, probe=False)
    report.extend(finding for finding in dev.failures)
    report.extend(_misplaced(rows, by_part or {}))
    report.extend(_lost(folder, rows, manifest))
    report.extend(_repeated(rows))
    return report


def _imported(rows: Rows, probe: bool) -> GateReport:
    import yaml

    text = resources.files("hk_fs_bench").joinpath("data", "profiles.yaml").read_text("utf-8")
    profile: dict[str, dict[str, Any]] = yaml.safe_load(text)["any"]
    faults = [*_schema(rows), *_repeated(rows)]
    broken = {fault.item for fault in faults}
    sound = {s: [r for r in found if r.get("id") not in broken] for s, found in rows.items()}
    report = run_gates(sound.get("mcq/test", []), sound.get("oeq/test", []), probe=probe)
    by_id = {row["id"]: row for found in sound.values() for row in found}
    kept = faults
    for finding in report.findings:
        rule = profile.get(finding.gate)
        if rule is None or (finding.item and _lacks(by_id.get(finding.item, {}), rule)):
            continue
        kept.append(finding if rule.get("fails") else replace(finding, severity="report"))
    report.findings = kept
    report.figures = [f for f in report.figures if _measures(f.gate, profile, by_id.values())]
    return report


def _lacks(row: Mapping[str, Any], rule: Mapping[str, Any]) -> bool:
    return "needs" in rule and row.get(rule["needs"]) is None


def _measures(gate: str, profile: Mapping[str, Any], rows: Collection[Mapping[str, Any]]) -> bool:
    rule = profile.get(gate)
    return rule is not None and not all(_lacks(row, rule) for row in rows)


def _schema(rows: Rows) -> Iterator[Finding]:
    from pydantic import ValidationError

    from hk_fs_bench.schema import MODELS, explain

    for split, found in rows.items():
        for row in found:
            try:
                MODELS[split.split("/")[0]].model_validate(row)
            except ValidationError as error:
                yield Finding("1 schema", row.get("id"), f"{split}: {explain(error)}")


def _repeated(rows: Rows) -> Iterator[Finding]:
    """Ids that stand in several splits, or twice in one."""
    count = Counter(row.get("id") for found in rows.values() for row in found)
    for name, times in count.items():
        if times > 1:
            yield Finding("1 schema", name, f"{times} items of the edition have this id")


def _misplaced(rows: Rows, by_part: Mapping[str, Collection[str]]) -> Iterator[Finding]:
    for found in rows.values():
        for row in found:
            if by_part and row.get("topic") not in by_part.get(row.get("part") or "", ()):
                message = f"topic {row.get('topic')} isn't one of Part {row.get('part')}"
                yield Finding("1 schema", row.get("id"), message)


def _lost(folder: Path, rows: Rows, manifest: Mapping[str, Any] | None) -> Iterator[Finding]:
    """Ids that an older version had, that are gone, and that no erratum withdraws."""
    ever = {
        name
        for version in ((manifest or {}).get("versions") or {}).values()
        for entry in version["splits"].values()
        for name in entry["ids"]
    }
    here = {row.get("id") for found in rows.values() for row in found}
    for name in sorted(ever - here - errata.removed(items.read_errata(folder))):
        yield Finding("1 order", name, "was released and is gone; withdraw it in the errata")


def _stale(folder: Path, manifest: Mapping[str, Any] | None) -> Iterator[Finding]:
    for split, entry in ((manifest or {}).get("splits") or {}).items():
        path = folder / "data" / f"{split}.jsonl"
        raw = path.read_bytes() if path.is_file() else b""
        if hashlib.sha256(raw).hexdigest() != entry["sha256"]:
            message = f"data/{split}.jsonl isn't the file of manifest.json; make that anew"
            yield Finding("1 schema", None, message)


def baselines(report: GateReport, sha256: str) -> dict[str, Any]:
    """What the card prints of the gates: figures of gate 4, and the content they are of."""
    kept = ("4 give-aways", "4 probe")
    keys = [f.value for f in report.figures if f.name in ("key A", "key B", "key C", "key D")]
    figures = {"commonest key": round(max(keys, default=0.25), 4)}
    figures |= {f.name: round(f.value, 4) for f in report.figures if f.gate in kept}
    return {"sha256": sha256, "mcq": report.mcq, "figures": figures}


def findings_of(report: GateReport, severities: Sequence[str] = ("fail",)) -> list[str]:
    """The findings of those severities as lines."""
    return [str(finding) for finding in report.findings if finding.severity in severities]
