"""Forms out: a page, a spreadsheet and a Google Apps Script for each rater and batch."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from hk_fs_bench.errors import UserError
from hk_fs_bench.human import form_content, form_html, form_script, form_sheets, mcq_baseline
from hk_fs_bench.human.form_content import Batch
from hk_fs_bench.human.statement import FILE, Statement, read_statement
from hk_fs_bench.human.study import made_folder, read_study
from hk_fs_bench.items import Dataset
from hk_fs_bench.runs import write_bytes

_MAKERS: dict[str, Callable[[Batch, Statement], bytes]] = {
    "html": lambda batch, statement: form_html.rating_page(batch, statement).encode(),
    "xlsx": form_sheets.workbook,
    "gs": lambda batch, statement: form_script.script(batch, statement).encode(),
}
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_MEDIA = {"html": "file", "xlsx": "file", "gs": "google"}
FORMATS = tuple(_MAKERS)


def write_forms(study: Path, out: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write `<rater>-<batch>.<format>` for every batch of the study into `out`.

    The key is never read. The statement takes the organiser's details from organiser.yaml in the
    study's folder.

    Raises:
        UserError: no study, no batch, an unknown format, details of the organiser missing.
    """
    if unknown := [name for name in formats if name not in _MAKERS]:
        raise UserError(f"{unknown[0]} is no kind of form; choose of {', '.join(FORMATS)}")
    held = read_study(study)
    statements = {name: read_statement(study / FILE, "rating", _MEDIA[name]) for name in formats}
    batches = form_content.batches(held)
    if not batches:
        raise UserError(f"{study} has no batch to make a form of; run human_eval.py assign")
    made_folder(out)
    written = []
    for batch in batches:
        for name, statement in statements.items():
            path = out / f"{batch.stem}.{name}"
            write_bytes(path, _MAKERS[name](batch, statement))
            written.append(path)
    return written


def write_mcq_forms(
    out: Path,
    dataset: Dataset,
    seed: int,
    organiser: Path,
    participants: Sequence[str],
    study: str = "mcq",
    count: int = mcq_baseline.COUNT,
) -> list[Path]:
    """Write `mcq-<participant>.html` for everybody: the same drawn questions, without their keys.

    Raises:
        UserError: details of the organiser missing, an id that is none, an edition without MCQ.
    """
    statement = read_statement(organiser, "mcq")
    if not participants:
        raise UserError("name at least one participant's id, as p1")
    for name in participants:
        if not _ID.fullmatch(name):
            raise UserError(
                f"{name[:40]!r} is no id: letters, digits, dot, dash, no e-mail address"
            )
    drawn = mcq_baseline.draw(dataset, seed, count)
    questions = [{"item_id": i.id, "question": i.question, "choices": i.choices} for i in drawn]
    content = {"questions": questions, "cannot_tell": mcq_baseline.CANNOT_TELL}
    made_folder(out)
    written = []
    for name in dict.fromkeys(participants):
        result = {
            "format": mcq_baseline.FORMAT,
            "version": 1,
            "study": study,
            "rater": name,
            "seed": seed,
            "dataset": {"version": dataset.version, "sha256": dataset.sha256},
            "form": "html",
        }
        path = out / f"mcq-{name}.html"
        write_bytes(path, form_html.page("mcq", content, result, statement, f"mcq-{name}").encode())
        written.append(path)
    return written
