"""The dataset card and its companions: everything that is rendered from the data.

Templates and their words are in `dataset_card/`; every figure comes from the edition's files.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hk_fs_bench import items, review, review_figures
from hk_fs_bench.gates.base import settings
from hk_fs_bench.gates.giveaways import BASELINES
from hk_fs_bench.runs import write_text

SUBSETS = ("mcq", "oeq")
PLOT = "composition.png"
GATES = "gates.json"


def render(folder: Path, manifest: Mapping[str, Any], templates: Path) -> dict[str, str | bytes]:
    """File name → content of what an edition shows of itself.

    Our own edition (profile "strict") has README.md, eval.yaml and the plot; an imported one a
    README.md that says no more than is known, and whose prose is kept once somebody wrote some.

    Args:
        folder: the edition, whose data files `manifest` is of.
        templates: the folder `dataset_card`.
    """
    environment = Environment(
        loader=FileSystemLoader(templates),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    about = yaml.safe_load((templates / "about.yaml").read_text("utf-8"))
    own = manifest.get("profile") == "strict"
    context = _context(folder, manifest, about)
    card = environment.get_template("card.md.j2" if own else "imported.md.j2").render(context)
    if not own and (folder / "README.md").is_file():
        card = (folder / "README.md").read_text("utf-8")
    head, rest = _split(card)
    block = yaml.safe_dump(front_matter(folder, manifest), sort_keys=False, allow_unicode=True)
    files: dict[str, str | bytes] = {"README.md": f"---\n{head}{block}---\n{rest}"}
    if own:
        from hk_fs_bench.card_plot import composition_png

        files["eval.yaml"] = environment.get_template("eval.yaml.j2").render(context)
        files[PLOT] = composition_png(context["composition"])
    return files


def _split(card: str) -> tuple[str, str]:
    """Front matter without what is generated, and the rest."""
    head, mark, rest = card.removeprefix("---\n").partition("---\n")
    if not card.startswith("---\n") or not mark:
        return "", card
    lines = head.splitlines(keepends=True)
    starts = [n for n, line in enumerate(lines) if line.startswith(("configs:", "dataset_info:"))]
    # The generated block stands last: everything from its first key on is made anew.
    return "".join(lines[: starts[0]] if starts else lines), rest


def write(folder: Path, manifest: Mapping[str, Any], templates: Path) -> None:
    """Render and write; nothing is written if anything fails."""
    for name, content in render(folder, manifest, templates).items():
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        else:
            write_text(folder / name, content)


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


def _context(folder: Path, manifest: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    counts = {split: entry["items"] for split, entry in manifest["splits"].items()}
    dataset = items.read_folder(folder, folder.name)
    tests = {subset: dataset.splits.get(f"{subset}/test", []) for subset in SUBSETS}
    rows = {subset: [item.model_dump() for item in found] for subset, found in tests.items()}
    log = review.read_reviews(folder / review.FILE)
    figures = review_figures.figures(dataset, log)
    every = [*rows["mcq"], *rows["oeq"]]
    cues = Counter(row.get("jurisdiction_cue") for row in rows["mcq"])
    return {
        "manifest": manifest,
        "version": manifest["version"],
        "hub_id": items.HUB_DATASET,
        "plot": PLOT,
        "test": {subset: counts.get(f"{subset}/test", 0) for subset in SUBSETS},
        "dev": {subset: counts.get(f"{subset}/dev", 0) for subset in SUBSETS},
        "size_category": size_category(sum(counts.values())),
        "composition": _composition(rows, about["parts"]),
        "levels": [
            {
                "level": level,
                "means": means,
                **{s: sum(r.get("level") == level for r in rows[s]) for s in SUBSETS},
            }
            for level, means in about["levels"].items()
        ],
        "cues": {name: cues[name] for name in ("explicit", "implicit", "none")},
        "sensitive": sum(bool(row.get("edition_sensitive")) for row in every),
        "reviews": figures,
        "review_rows": review_figures.rows(figures),
        "baselines": _baselines(folder, manifest, about["baselines"]),
        "versions": _versions(manifest),
    }


def _composition(
    rows: Mapping[str, list[dict[str, Any]]], parts: Mapping[str, str]
) -> list[dict[str, Any]]:
    table = []
    for part, title in parts.items():
        line: dict[str, Any] = {"part": part, "title": title}
        for subset in SUBSETS:
            found = [row for row in rows[subset] if row.get("part") == part]
            line[subset] = len(found)
            line[f"{subset}_engineering"] = sum(bool(r.get("engineering_related")) for r in found)
        table.append(line)
    return table


def _baselines(
    folder: Path, manifest: Mapping[str, Any], names: Mapping[str, str]
) -> dict[str, Any] | None:
    """What the gates measured on this very content; None if they measured another, or nothing."""
    path = folder / GATES
    if not path.is_file():
        return None
    measured = json.loads(path.read_text("utf-8"))
    if measured["sha256"] != manifest["sha256"]:
        return None
    figures = measured["figures"]
    found = [(text, figures[name]) for name, text in names.items() if name in figures]
    low, high = settings()["giveaways"]["baseline"]
    # Whatever the gate enforces lies inside; of the others the card says so.
    outside = [names[n] for n in BASELINES if n in names and not low <= figures.get(n, low) <= high]
    return {"mcq": measured["mcq"], "rows": found, "band": (low, high), "outside": outside}


def _versions(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Released versions, newest first."""
    released = manifest.get("versions") or {}
    return [
        {
            "version": version,
            "date": entry["date"],
            "sha256": entry["sha256"],
            **{s: len(entry["splits"].get(f"{s}/test", {}).get("ids", {})) for s in SUBSETS},
        }
        for version, entry in reversed(released.items())
    ]


def size_category(count: int) -> str:
    """The Hub's word for a number of rows."""
    for limit, name in ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K")):
        if count < limit:
            return name
    return "100K<n<1M"
