"""Returned files of any form into a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from hk_fs_bench.errors import UserError
from hk_fs_bench.human import ratings, results, returns, survey_sheets, surveys
from hk_fs_bench.human.returns import Return, without_email
from hk_fs_bench.human.study import Study, read_study, write_study

SETTLED = ("first", "last")


def bring_in(
    folder: Path,
    files: Sequence[Path],
    *,
    emails: Path | None = None,
    settle: Sequence[str] = (),
) -> list[str]:
    """Keep returned files in the study and derive its ratings: all files, or none.

    Args:
        emails: file of e-mail addresses and raters, outside study and repository.
        settle: "RATER=last", "RATER=first" or "RATER=FILE": which of the rater's conflicting
            ratings count, by time or by the name of the returned file.

    Returns:
        Lines: notes on the files, counts, and every row that does not count.

    Raises:
        UserError: a file that can't be read as a whole.
    """
    study = read_study(folder)
    addresses = survey_sheets.read_emails(emails, study) if emails else None
    found = [read_file(path, study, addresses) for path in _files(files)]
    chosen = _settled(study, settle, [*returns.read_all(folder), *found])
    lines = []
    for one in found:
        new = returns.store(folder, one)
        again = "" if new else ", which was brought in before"
        lines.append(f"{one.source}: {len(one.ratings)} answers read{again}")
        lines += [f"{one.source}: {note}" for note in one.notes]
    if chosen:
        study.settings["settled"] |= chosen
        write_study(study)
    return [*lines, *ratings.rebuild(folder).lines()]


def read_file(path: Path, study: Study, emails: Mapping[str, str] | None = None) -> Return:
    """One returned file, read by what its name says it is."""
    kind = path.suffix.lower()
    if kind == ".json" or (kind == ".txt" and _holds_object(path)):
        return results.read_html_result(path, study)
    if kind in (".xlsx", ".xlsm"):
        return results.read_xlsx_result(path, study)
    if kind in (".csv", ".tsv", ".txt"):
        return surveys.read_survey(path, study, emails)
    if not path.exists():
        raise UserError(f"no such file: {path}")
    raise UserError(
        f"{path.name} is no returned form: JSON, XLSX or CSV is expected; save a spreadsheet of "
        "another kind as .xlsx, and take other files out"
    )


def _files(given: Sequence[Path]) -> list[Path]:
    """The files, and those of a folder that is given: Windows' shell does not spell out "*".

    Files that programs hide there (a spreadsheet that is open leaves one) are passed over.
    """
    found: list[Path] = []
    for path in given:
        if path.is_dir():
            inside = sorted(one for one in path.iterdir() if one.is_file())
            kept = [one for one in inside if not one.name.startswith((".", "~$"))]
            if not kept:
                raise UserError(f"{path} is a folder without files; name the returned forms")
            found += kept
        else:
            found.append(path)
    return found


def _holds_object(path: Path) -> bool:
    """Whether a text file is a result that was pasted from the form's last page."""
    try:
        start = path.read_bytes()[:40].replace(b"\0", b"")
        return start.lstrip(b"\xff\xfe\xef\xbb\xbf \t\r\n").startswith(b"{")
    except OSError:
        return False


def _settled(study: Study, wishes: Sequence[str], returned: Sequence[Return]) -> dict[str, str]:
    names = {*SETTLED, *(without_email(one.source) for one in returned)}
    out = {}
    for wish in wishes:
        rater, _, which = wish.partition("=")
        if rater not in study.raters or which not in names:
            raise UserError(
                f"--settle {wish}: give RATER=last, RATER=first or RATER=FILE, with a rater's id "
                "and the name of a returned file"
            )
        out[rater] = which
    return out
