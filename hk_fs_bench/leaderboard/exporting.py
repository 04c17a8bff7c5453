"""leaderboard.json → other people's formats, in one folder.

every_eval_ever/data/…       Every Eval Ever, an evaluation log an entry
eval_results/<slug>.yaml     for `.eval_results/` of an open model's repository on the Hub
leaderboard.csv, .md, .tex   tables
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from hk_fs_bench.errors import UserError
from hk_fs_bench.leaderboard import building, export_eval_ever, export_tables
from hk_fs_bench.runs import write_text
from hk_fs_bench.sources import HUB_DATASET


def export(root: Path, out: Path) -> list[Path]:
    """Write every format of the board into `out`; returns the files.

    Raises:
        UserError: no board, or a file that can't be written.
    """
    board = building.read(root)
    own = root.resolve()
    if out.resolve() == own or (own / "submissions") in (out.resolve(), *out.resolve().parents):
        raise UserError(f"{out} is the board's own; name another folder")
    if board is None:
        raise UserError(f"{root / building.FILE} is no board; build it first")
    with building.telling_of(root / building.FILE):
        files = {
            "leaderboard.csv": export_tables.to_csv(board),
            "leaderboard.md": export_tables.to_markdown(board),
            "leaderboard.tex": export_tables.to_latex(board),
            **{f"eval_results/{slug}.yaml": text for slug, text in eval_results(board)},
            **{f"every_eval_ever/{p}": text for p, text in export_eval_ever.files(board)},
        }
    written = []
    for name, text in files.items():
        path = out / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{path.parent} can't be made: {error.strerror}") from None
        write_text(path, text)
        written.append(path)
    return written


def eval_results(board: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(slug, YAML) of each result whose model lies on the Hub with its weights.

    The Hub keeps one value for a dataset and task; accuracy in percent.
    """
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    for entry in board["entries"]:
        model = entry["model"]
        org = model["id"].partition("/")[0]
        if model.get("deployment") != "local" or "/" not in model["id"] or org == "local":
            continue
        link = entry["links"].get("code") or entry["links"].get("paper")
        about = [entry["protocol"]["regime"], entry["label"]]
        about += [flag["text"] for flag in entry["flags"]]
        found = [
            EvalResultEntry(
                dataset_id=HUB_DATASET,
                task_id=task,
                value=round(100 * own["accuracy"]["value"], 2),
                dataset_revision=f"v{board['dataset']['version']}",
                date=entry["date"],
                source_url=link,
                source_name="hk-fs-bench" if link else None,
                notes="; ".join(about),
            )
            for task, own in entry["tasks"].items()
            if "accuracy" in own and own["accuracy"]["value"] is not None
        ]
        if found and entry["superseded_by"] is None and entry["kind"] == "result":
            head = f"# For {model['id']}: .eval_results/hk_fs_bench.yaml\n"
            body = yaml.safe_dump(eval_result_entries_to_yaml(found), sort_keys=False)
            yield entry["slug"], head + body
