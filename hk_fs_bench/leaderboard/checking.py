"""One submission held against the edition, its own rows and its own claims; many in processes."""

from __future__ import annotations

import contextlib
import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from hk_fs_bench import items, prompts
from hk_fs_bench.errors import UserError
from hk_fs_bench.items import Dataset
from hk_fs_bench.leaderboard import claims, entries, kept, processes, rows
from hk_fs_bench.leaderboard.editions import Editions
from hk_fs_bench.leaderboard.entries import Entry
from hk_fs_bench.leaderboard.recompute import DEFAULT, CantCompute, Recomputed, recompute, run_of
from hk_fs_bench.leaderboard.strict_json import Fault
from hk_fs_bench.open_metrics import Wanted
from hk_fs_bench.runs import Run

# Submissions that are scored together: one start of Java for all of them.
CHUNK = 25
# Values of a temperature or of do_sample by which nothing is drawn.
_NOT_SAMPLED = ("none", "false", "0", "0.0")
_KEPT = ("manifest", "words", "differences", "recomputed")
# What of a model's name says that it converses, where its run does not know of a template.
_CHATS = re.compile(r"(?<![a-z0-9])(?:instruct|chat|it)(?![a-z0-9])", re.I)


@dataclass
class Checked:
    """A submission, what is wrong with it, and what follows from its rows.

    `words`: as `echoes.words_of`. `recomputed` is on the newest edition. `differences`: claims with
    an older signature. `unchecked`: what the full check could not. `path`: where it is kept.
    """

    slug: str
    manifest: dict[str, Any] | None = None
    faults: list[str] = field(default_factory=list)
    words: dict[str, Any] | None = None
    differences: list[dict[str, Any]] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    recomputed: Recomputed | None = None
    path: Path | None = None


@dataclass(frozen=True)
class How:
    """How to check. `merged`: submissions that were accepted before, perhaps under older tasks."""

    source: Path | None
    today: datetime.date
    merged: frozenset[str] = frozenset()
    wanted: Wanted = DEFAULT

    @property
    def full(self) -> bool:
        return self.wanted != DEFAULT


@dataclass(frozen=True)
class _Ready:
    """A submission whose rows are whole."""

    checked: Checked
    claims: Mapping[str, Any]
    edition: Dataset
    run: Run
    on_current: Run


def check(folders: Sequence[Path], how: How) -> list[Checked]:
    """Check each submission for itself, in the order given."""
    chunks = [folders[i : i + CHUNK] for i in range(0, len(folders), CHUNK)]
    found = processes.each(partial(_check_chunk, how=how), chunks)
    return [one for chunk in found for one in chunk]


@lru_cache(maxsize=4)
def _editions(source: Path | None, manifest: bytes) -> Editions:
    """Read once a process; the manifest names the content."""
    return Editions(source)


def _check_chunk(folders: Sequence[Path], how: How) -> list[Checked]:
    path = (items.default_folder() if how.source is None else how.source) / "manifest.json"
    editions = _editions(how.source, path.read_bytes() if path.is_file() else b"")
    found = [Checked(folder.name) for folder in folders]
    ready = []
    for one, folder in zip(found, folders, strict=True):
        if (known := _known(one, folder, editions, how)) is not None:
            for name in _KEPT:
                setattr(one, name, known[name])
        elif (whole := _read(one, folder, editions, how)) is not None:
            ready.append(whole)
    _score(ready, editions, how)
    for whole in ready:
        _keep(whole.checked)
    return found


def _known(one: Checked, folder: Path, editions: Editions, how: How) -> dict[str, Any] | None:
    """What is kept of a submission; what is clean by today's rules is so for an old entry too."""
    if how.full:
        return None
    for merged in dict.fromkeys((False, folder.name in how.merged)):
        one.path = kept.path_of(folder, editions.current.sha256, editions.versions, merged)
        if (known := kept.read(one.path, _KEPT)) is not None:
            return known
    return None


def _score(ready: Sequence[_Ready], editions: Editions, how: How) -> None:
    """Hold the claims against the recomputed figures, and recompute on the newest edition."""
    for edition in {one.edition.sha256: one.edition for one in ready}.values():
        own = [one for one in ready if one.edition is edition]
        for one, result in _recomputed(own, [one.run for one in own], edition, how.wanted):
            faults, differences = claims.compare(one.claims, result["scores"], how.full)
            one.checked.faults += faults
            one.checked.words = result["words"]
            if how.full:
                one.checked.faults += claims.row_faults(one.claims, result["values"])
                one.checked.unchecked = list(claims.unchecked(one.claims, result["scores"]))
            one.checked.differences = differences
            if edition is editions.current and not how.full:
                one.checked.recomputed = result
    late = [one for one in ready if one.checked.recomputed is None and not one.checked.faults]
    if late and not how.full:
        runs = [one.on_current for one in late]
        for one, result in _recomputed(late, runs, editions.current, DEFAULT):
            one.checked.recomputed = result


def _keep(one: Checked) -> None:
    if not one.faults and one.recomputed is not None:
        kept.write(one.path, {name: getattr(one, name) for name in _KEPT})


def _recomputed(
    ready: Sequence[_Ready], runs: Sequence[Run], edition: Dataset, wanted: Wanted
) -> Iterator[tuple[_Ready, Recomputed]]:
    """Each with what follows from its rows; one that can't be scored spoils no other."""
    try:
        yield from zip(ready, recompute(runs, edition, wanted), strict=True)
        return
    except CantCompute:
        raise
    except Exception:  # Whatever a stranger's rows do to the scorer.
        pass
    for one, run in zip(ready, runs, strict=True):
        try:
            (result,) = recompute([run], edition, wanted)
        except CantCompute:
            raise
        except Exception as error:
            kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
            one.checked.faults.append(f"can't be scored: {kind}{error}")
        else:
            yield one, result


def _read(checked: Checked, folder: Path, editions: Editions, how: How) -> _Ready | None:
    """Read and check all but the scores; None where there is nothing to score."""
    entry, faults, sound = entries.read(folder)
    checked.faults += faults
    if entry is None:
        return None
    if sound:
        checked.manifest = entry.manifest
        return _whole(checked, entry, editions, how)
    with contextlib.suppress(KeyError, TypeError, AttributeError, ValueError):
        # The more it breaks the schema, the less is found; it is refused already.
        _whole(checked, entry, editions, how)
    return None


def _whole(checked: Checked, entry: Entry, editions: Editions, how: How) -> _Ready | None:
    """Hold a submission's rows against its edition; None where there is nothing to score."""
    run = entry.manifest["run"]
    protocol, current = run["protocol"], editions.current
    merged = entry.slug in how.merged
    try:
        edition = _edition(protocol, editions)
        tasks = rows.all_tasks(run["tasks"])
        released = editions.released(entry.version)
        checked.faults += _manifest_faults(entry.manifest, tasks, released, how.today, merged)
        asked = {task.name: editions.asked(edition, task) for task in tasks}
    except (Fault, UserError) as fault:
        checked.faults.append(str(fault))
        return None
    known = frozenset(task.name for task in tasks if _rendered_here(task, protocol))
    returned = run["model"].get("returned_ids") or ()
    found, faults = rows.read(
        entry.predictions, asked, entry.samples, released, how.today, known, returned
    )
    checked.faults += [f"predictions.jsonl: {line}" for line in faults]
    if faults:
        return None
    return _Ready(
        checked,
        entry.manifest["scores"],
        edition,
        run_of(entry.manifest, found, edition, edition),
        run_of(entry.manifest, found, current, edition),
    )


def _edition(protocol: Mapping[str, Any], editions: Editions) -> Dataset:
    version = protocol["dataset_version"]
    if version not in editions.versions:
        raise Fault(f"dataset version {version}, expected {' or '.join(editions.versions)}")
    edition = editions.get(version)
    if protocol["dataset_sha256"] != edition.sha256:
        own, ours = protocol["dataset_sha256"][:12], edition.sha256[:12]
        raise Fault(f"dataset {version} has the sha256 {ours}…, the run was asked on {own}…")
    return edition


def _rendered_here(task: prompts.Task, protocol: Mapping[str, Any]) -> bool:
    """Whether the run was asked with the template and version that this checkout has."""
    version = protocol["task_versions"].get(task.name)
    template = protocol["prompt_templates_sha256"].get(task.name)
    return (version, template) == (task.version, prompts.template_sha256(task))


def _manifest_faults(
    manifest: Mapping[str, Any],
    tasks: Sequence[prompts.Task],
    released: datetime.date | None,
    today: datetime.date,
    merged: bool,
) -> Iterator[str]:
    """What a run's manifest says that no accepted entry may say."""
    run = manifest["run"]
    protocol, model = run["protocol"], run["model"]
    if set(manifest["scores"]) != {task.name for task in tasks}:
        yield f"scores are of {', '.join(sorted(manifest['scores']))}, the run's tasks are others"
    for task in tasks:
        if not merged and not _rendered_here(task, protocol):
            version = protocol["task_versions"].get(task.name)
            yield (
                f"{task.name} was asked in version {version} from another template than version "
                f"{task.version} here; update the checkout and run it again"
            )
    has_template = protocol.get("model_has_chat_template")
    if has_template is None:
        has_template = not merged and bool(_CHATS.search(model["id"]))
    if not protocol.get("chat_template_used") and has_template:
        yield (
            "a chat model that ran without its template was asked wrongly; run it again with "
            "--apply_chat_template"
        )
    if not merged and protocol["regime"] == "greedy" and (sent := _sampling(protocol)):
        yield f"run.protocol.regime is greedy, and {sent} was sent"
    days = {"date": manifest["date"], "run.started_at": run.get("started_at")}
    price = run.get("price") or {}
    for place, text in days.items():
        if text and (what := _wrong_day(text, released, today)):
            yield f"{place}: {what}"
    # A day's grace, as everywhere, for time zones.
    if (began := run.get("started_at")) and _day(manifest["date"]) + 1 < _day(began):
        yield f"date: {manifest['date']} lies before the run was started ({began[:10]})"
    if price.get("date") and (what := _wrong_day(price["date"], None, today)):
        yield f"run.price.date: {what}"


def _sampling(protocol: Mapping[str, Any]) -> str | None:
    """The setting by which a run sampled, as name and value; None where none did."""
    held: list[Any] = [protocol.get("parameters_sent"), protocol.get("generation_kwargs")]
    while held:
        value = held.pop()
        if isinstance(value, Mapping):
            held += value.values()
            for name in ("temperature", "do_sample"):
                if str(value.get(name)).lower() not in _NOT_SAMPLED:
                    return f"{name} {value[name]}"
        elif isinstance(value, list):
            held += value
    return None


def _day(text: str) -> int:
    """A date as a count of days; 0 for what is none, of which `_wrong_day` tells."""
    try:
        return datetime.datetime.fromisoformat(text).date().toordinal()
    except ValueError:
        return 0


def _wrong_day(text: str, released: datetime.date | None, today: datetime.date) -> str | None:
    try:
        day = datetime.datetime.fromisoformat(text).date()
    except ValueError:
        return f"{text} is no date"
    return rows.out_of_time(day, released, today)
