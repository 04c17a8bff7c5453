"""The whole check of the submissions: each for itself, all together, and against the merge base."""

from __future__ import annotations

import datetime
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hk_fs_bench.errors import UserError
from hk_fs_bench.leaderboard import checking, entries, history
from hk_fs_bench.leaderboard.checking import Checked, How
from hk_fs_bench.leaderboard.echoes import Echo, echoes
from hk_fs_bench.leaderboard.history import History

# Files outside the submissions that are named; the rest is counted.
_SHOWN = 5
# Characters of a line that are shown.
_LONGEST = 600

Manifests = Mapping[str, Mapping[str, Any]]


@dataclass
class Report:
    """`faults`: one line each, the submission first. `notes`: what a reader should know."""

    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    checked: list[Checked] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.faults

    def lines(self) -> list[str]:
        """All of it, for people."""
        bad = len({line.split(":")[0] for line in self.faults})
        last = f"{len(self.checked)} submissions checked, {len(self.faults)} faults"
        told = [_told(line) for line in [*self.notes, *self.faults]]
        return [*told, last + (f" in {bad}" if bad else "")]


def _told(line: str) -> str:
    """One printable line of bounded length, which is no command to a service that runs the check.

    Strangers choose parts of it; GitHub takes a line that begins with :: and what follows ##[ as
    commands.
    """
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line[:_LONGEST])
    return f"./{text}" if text.lstrip().startswith("::") else text.replace("##[", "## [")


def today() -> datetime.date:
    """The day in UTC."""
    return datetime.datetime.now(datetime.UTC).date()


def validate(
    root: Path,
    paths: Sequence[Path] = (),
    *,
    how: How,
    base: str | None = None,
    login: str | None = None,
) -> Report:
    """Check submissions; everything that is wrong with them, at once.

    Args:
        root: the leaderboard folder.
        paths: single submissions; without any, all of them.
        base: commit or branch that the working tree is held against; see `history.read`.
        login: the account whose pull request this is: its new submissions are its own, and it
            touches nothing else.

    Raises:
        UserError: no such folder or base; this machine lacks what the check needs.
    """
    report = Report()
    submissions = root / "submissions"
    folders = list(_folders(submissions, report))
    past = history.read(submissions, base) if submissions.is_dir() else History(None)
    if past.base is None:
        report.notes.append("note: no git history here, so no earlier entry could be compared")
    chosen = [_named(path, submissions) for path in paths] or folders
    report.checked = checking.check(chosen, replace(how, merged=past.old))
    for one in report.checked:
        report.faults += [f"{one.slug}: {line}" for line in dict.fromkeys(one.faults)]
        report.notes += [_noted(one.slug, difference) for difference in one.differences]
    manifests = _manifests(folders, report.checked)
    names = {one.slug for one in report.checked}
    new = names - past.old
    report.faults += [f"{slug}: {line}" for slug, line in _between(manifests, new) if slug in names]
    for slug, echo in echoes_of(report.checked, new).items():
        line = f"{slug}: {echo.told}, which has another model's name"
        if echo.every and slug in new:
            report.faults.append(f"{line}; name the model that gave them")
        else:
            report.notes.append(f"note: {line}")
    report.faults += _against(past, manifests, submissions, login)
    return report


def echoes_of(checked: Sequence[Checked], new: Collection[str] = ()) -> dict[str, Echo]:
    """Entries that give another's words, by slug; of two, the newer. Corrected ones are none."""
    gone = superseded({one.slug: one.manifest for one in checked if one.manifest is not None})
    told = [
        (one.slug in new, one.manifest["date"], one.slug, one.manifest["key"]["model"], one.words)
        for one in checked
        if one.manifest is not None and one.words is not None and one.slug not in gone
    ]
    return echoes(
        (slug, model, words) for *_, slug, model, words in sorted(told, key=lambda row: row[:3])
    )


def _folders(submissions: Path, report: Report) -> Iterator[Path]:
    """The submissions' folders; whatever else lies among them is a fault."""
    for folder in (submissions.parent, submissions):
        # Behind a link lies another tree than the one that is to be checked.
        if folder.is_symlink():
            raise UserError(f"{folder} is a link; a folder is expected")
    if not submissions.is_dir():
        raise UserError(f"{submissions} is no folder; name the leaderboard with --root")
    for path in sorted(submissions.iterdir()):
        shown = path.name.encode("unicode_escape").decode()[:80]
        status = path.lstat()
        if path.name == ".gitkeep" and stat.S_ISREG(status.st_mode) and not status.st_size:
            continue
        if stat.S_ISDIR(status.st_mode):
            yield path
        else:
            report.faults.append(f"{shown}: only folders of submissions belong here")


def _named(path: Path, submissions: Path) -> Path:
    """A submission that a command names: its folder, or a file in it."""
    folder = path.parent if path.name in entries.FILES else path
    if not folder.is_dir() and (submissions / path.name).is_dir():
        folder = submissions / path.name
    if not folder.is_dir():
        raise UserError(f"{path}: no such submission")
    return Path(str(folder))


def _manifests(folders: Sequence[Path], checked: Sequence[Checked]) -> Manifests:
    """Every readable manifest by slug, checked now or not."""
    found: dict[str, Mapping[str, Any]] = {}
    known = {one.slug: one for one in checked}
    for folder in folders:
        manifest = known[folder.name].manifest if folder.name in known else None
        if folder.name not in known:
            manifest = entries.read_manifest(folder)
        if manifest is not None:
            found[folder.name] = manifest
    for slug, one in known.items():
        if one.manifest is not None:
            found.setdefault(slug, one.manifest)
    return found


def superseded(manifests: Manifests) -> dict[str, str]:
    """Submission → the one that supersedes it."""
    return {m["supersedes"]: slug for slug, m in sorted(manifests.items()) if m["supersedes"]}


def _between(manifests: Manifests, new: Collection[str]) -> Iterator[tuple[str, str]]:
    """(slug, fault) of submissions that don't go together; of two, the newer is at fault."""

    def age(pair: tuple[str, Mapping[str, Any]]) -> tuple[bool, str, str]:
        return pair[0] in new, pair[1]["date"], pair[0]

    gone = superseded(manifests)
    keys: dict[tuple[str, str], str] = {}
    answers: dict[str, str] = {}
    for slug, manifest in sorted(manifests.items(), key=age):
        login = str(manifest["submitter"]["login"]).lower()
        if old := manifest["supersedes"]:
            yield from ((slug, line) for line in _supersedes(slug, old, login, gone, manifests))
        if slug in gone:
            continue
        key = (login, entries.canonical(manifest["key"]))
        if (other := keys.setdefault(key, slug)) != slug:
            yield slug, f"{login} has {other} with the same key; name it with --supersedes"
        sha256 = manifest["predictions"]["sha256"]
        if (other := answers.setdefault(sha256, slug)) != slug:
            yield slug, f"holds the very answers of {other}"


def _supersedes(
    slug: str, old: str, login: str, gone: Mapping[str, str], manifests: Manifests
) -> Iterator[str]:
    before = manifests.get(old)
    if before is None:
        yield f"supersedes {old}, which is no submission"
        return
    if str(before["submitter"]["login"]).lower() != login:
        yield f"supersedes {old}, which is {before['submitter']['login']}'s"
    if gone[old] != slug:
        yield f"supersedes {old}, which {gone[old]} supersedes already"
    seen, at = {slug}, old
    while at in manifests and (following := manifests[at]["supersedes"]):
        if following in seen:
            yield f"supersedes itself by way of {old}"
            return
        seen.add(at)
        at = following


def _against(
    past: History, manifests: Manifests, submissions: Path, login: str | None
) -> Iterator[str]:
    """What a branch touches that it may not."""
    for name in past.touched:
        slug = Path(name).parts[len(Path(name).parts) - 2] if "/" in name else name
        yield (
            f"{slug}: {Path(name).name} differs from the merge base; an entry never changes, "
            "submit a new one that supersedes it"
        )
    if login is None:
        return
    for slug, manifest in manifests.items():
        if slug not in past.old and manifest["submitter"]["login"].lower() != login.lower():
            yield f"{slug}: submitted for {manifest['submitter']['login']} by {login}"
    for name in past.elsewhere[:_SHOWN]:
        shown = name.encode("unicode_escape").decode()[:120]
        yield f"{shown}: a submission's pull request touches nothing but its own folder"
    if len(past.elsewhere) > _SHOWN:
        yield f"{len(past.elsewhere) - _SHOWN} more files outside the submissions"


def _noted(slug: str, difference: Mapping[str, Any]) -> str:
    return (
        f"note: {slug}: {difference['task']}: {difference['figure']} was "
        f"{difference['claimed']} under an older signature, and is {difference['recomputed']} now"
    )
