"""The whole check of the submissions: each for itself, all together, and against the merge base."""

from __future__ import annotations

import datetime
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hk_fs_bench.errors import UserError
from hk_fs_bench.leaderboard import checking, entries, history, strict_json
from hk_fs_bench.leaderboard.checking import Checked, How
from hk_fs_bench.leaderboard.echoes import Echo, Speaker, echoes
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
    only_new: str | None = None,
) -> Report:
    """Check submissions; everything that is wrong with them, at once.

    Args:
        root: the leaderboard folder.
        paths: single submissions; without any, all of them.
        base: commit or branch that the working tree is held against; see `history.read`.
        login: the account whose pull request this is: its new submissions are its own, and it
            touches nothing else.
        only_new: the one submission that is new, whatever git says.

    Raises:
        UserError: no such folder or base; this machine lacks what the check needs.
    """
    report = Report()
    submissions = root / "submissions"
    folders = list(_folders(submissions, report))
    past = history.read(submissions, base) if submissions.is_dir() else History(None)
    if past.base is None:
        report.notes.append("note: no git history here, so no earlier entry could be compared")
        past = replace(past, old=_on_board(root))
    chosen = [_named(path, submissions) for path in paths] or folders
    report.checked = checking.check(chosen, replace(how, merged=past.old))
    for one in report.checked:
        report.faults += [f"{one.slug}: {line}" for line in dict.fromkeys(one.faults)]
        report.notes += [_noted(one.slug, difference) for difference in one.differences]
        report.notes += [f"note: {one.slug}: {line}" for line in one.unchecked]
    manifests = _manifests(folders, report.checked)
    names = {one.slug for one in report.checked}
    new = names - past.old if only_new is None else {only_new}
    for slug, line, excused in _between(manifests, new):
        if slug in new and not excused:
            report.faults.append(f"{slug}: {line}")
        elif slug in names:
            # Each of two pull requests was right by itself: a fault would stop the board for good.
            report.notes.append(f"note: {slug}: {line}")
    for slug, echo in echoes_of(report.checked).items():
        copies = slug in new and (
            echo.other not in new or _age(slug, manifests) > _age(echo.other, manifests)
        )
        if copies and echo.again:
            report.faults.append(f"{slug}: {echo.told}; a run is submitted once")
        elif copies and echo.every:
            report.faults.append(f"{slug}: {echo.told}; one of the two names the wrong model")
        else:
            report.notes.append(f"note: {slug}: {echo.told}")
    report.faults += _against(past, manifests, submissions, login)
    return report


def _on_board(root: Path) -> frozenset[str]:
    """The entries of the leaderboard.json that is there, which were accepted before."""
    try:
        board = strict_json.parse((root / "leaderboard.json").read_bytes())
        return frozenset(str(entry["slug"]) for entry in board["entries"])
    except (OSError, strict_json.Fault, KeyError, TypeError):
        return frozenset()


def echoes_of(checked: Sequence[Checked]) -> dict[str, Echo]:
    """Entries that give the words of another model's entry, by slug."""
    known = {one.slug: one for one in checked if one.manifest is not None}
    lines = _lines({slug: one.manifest or {} for slug, one in known.items()})
    return echoes(
        [
            Speaker(slug, str((one.manifest or {})["key"]["model"]), lines[slug], one.words)
            for slug, one in sorted(known.items())
            if one.words is not None
        ]
    )


def _lines(manifests: Manifests) -> dict[str, str]:
    """Submission → the first of those that it corrects, all by one submitter; most often itself."""
    found: dict[str, str] = {}
    for slug in manifests:
        first, seen = slug, {slug}
        while (old := manifests[first]["supersedes"]) in manifests and old not in seen:
            if _login(manifests[old]) != _login(manifests[slug]):
                break
            first = old
            seen.add(old)
        found[slug] = first
    return found


def _age(slug: str, manifests: Manifests) -> tuple[str, str]:
    """Younger entries are greater; of the date its submitter says it is."""
    return str(manifests[slug]["date"]), slug


def _login(manifest: Mapping[str, Any]) -> str:
    return str(manifest["submitter"]["login"]).lower()


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


def _between(manifests: Manifests, new: Collection[str]) -> Iterator[tuple[str, str, bool]]:
    """(slug, fault, excused) of submissions that don't go together; of two, the newer is at fault.

    Excused is who corrects one of two that were merged with the same key: nobody could, else.
    """
    gone, lines = superseded(manifests), _lines(manifests)
    keys: dict[tuple[str, str], str] = {}
    answers: dict[str, str] = {}
    in_age = sorted(manifests, key=lambda slug: (slug in new, _age(slug, manifests)))
    for slug in in_age:
        manifest = manifests[slug]
        login = _login(manifest)
        if old := manifest["supersedes"]:
            lines_of = _supersedes(slug, old, login, gone, manifests)
            yield from ((slug, line, False) for line in lines_of)
        sha256 = manifest["predictions"]["sha256"]
        if lines[other := answers.setdefault(sha256, slug)] != lines[slug]:
            yield slug, f"holds the very answers of {other}", False
        if slug in gone:
            continue
        key = (login, entries.canonical(manifest["key"]))
        if (other := keys.setdefault(key, slug)) != slug:
            before = manifests.get(old or "")
            excused = before is not None and before["key"] == manifest["key"]
            line = f"{login} has {other} with the same key; name it with --supersedes"
            yield slug, line, excused and other not in new


def _supersedes(
    slug: str, old: str, login: str, gone: Mapping[str, str], manifests: Manifests
) -> Iterator[str]:
    before = manifests.get(old)
    if before is None:
        yield f"supersedes {old}, which is no submission"
        return
    if _login(before) != login:
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
        if slug not in past.old and _login(manifest) != login.lower():
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
