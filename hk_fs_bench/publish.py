"""Publish a released edition on the Hub: plan first, then upload, gate and tag."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from hk_fs_bench import items
from hk_fs_bench.errors import UserError
from hk_fs_bench.manifest import EDITED
from hk_fs_bench.release import edition_files
from hk_fs_bench.sources import HUB_DATASET

if TYPE_CHECKING:
    from huggingface_hub import HfApi

Gating = Literal["auto", "manual"]
T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """What a publication does. `upload`: path → (bytes, sha256) of every file that goes.

    `delete`: files of an earlier version that this one no longer has. `untouched`: other files of
    the repository, which nobody here knows. `unasked`: why the Hub could not be asked; then only
    what goes is known.
    """

    folder: Path
    repo: str
    tag: str
    exists: bool
    gated: Gating | None
    upload: Mapping[str, tuple[int, str]]
    delete: list[str] = field(default_factory=list)
    untouched: list[str] = field(default_factory=list)
    unasked: str | None = None

    def lines(self) -> list[str]:
        """The plan for people, one line a file, and what to look at first."""
        gate = f", access gated ({self.gated})" if self.gated else ""
        what = "exists" if self.exists else "will be created, public"
        what = f"not asked ({self.unasked})" if self.unasked else what
        out = [f"dataset {self.repo}: {what}{gate}; tag {self.tag}"]
        out += [f"upload  {n}  {size} B  sha256 {sha}" for n, (size, sha) in self.upload.items()]
        out += [f"delete  {name}" for name in self.delete]
        out += [f"keep    {name} (not a file of the dataset)" for name in self.untouched]
        if self.repo != HUB_DATASET:
            out.append(f"NOTE    the card tells readers to load {HUB_DATASET}, not {self.repo}")
        return out


def make_plan(
    folder: Path, repo: str, gated: Gating | None = None, *, preview: bool = False
) -> Plan:
    """What `publish` would do; asks the Hub and changes nothing.

    Args:
        preview: a plan to look at only, which does without a Hub that can't be asked.

    Raises:
        UserError: the folder isn't a release as it stands, the tag exists, the Hub refuses.
    """
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repo):
        raise UserError(f"{repo} is no Hub dataset; name it as org/name")
    version = _released_version(folder)
    files = edition_files(folder)
    tag = f"v{version}"
    remote, tags, unasked = None, set[str](), None
    try:
        remote, tags = _remote(repo)
    except UserError as error:
        if not preview:
            raise
        unasked = str(error)
    if tag in tags:
        raise UserError(f"{repo} has the tag {tag} already; release a new version")
    others = sorted(set(remote or ()) - set(files) - {".gitattributes"})
    ours = [name for name in others if name.startswith("data/") and name.endswith(".jsonl")]
    return Plan(
        folder,
        repo,
        tag,
        remote is not None,
        gated,
        {name: (len(raw), hashlib.sha256(raw).hexdigest()) for name, raw in files.items()},
        ours,
        [name for name in others if name not in ours],
        unasked,
    )


def publish(plan: Plan) -> str:
    """Carry out a plan; returns the commit's sha.

    The repository is gated before anything is uploaded, and tagged after everything is.

    Raises:
        UserError: the Hub refuses or can't be reached, or the folder changed since the plan.
    """
    now = {
        name: (len(raw), hashlib.sha256(raw).hexdigest())
        for name, raw in edition_files(plan.folder).items()
    }
    if now != plan.upload:
        raise UserError(f"{plan.folder} changed since it was planned; try again")
    api = _api()
    repo = plan.repo
    if not plan.exists:
        _ask(lambda: api.create_repo(repo, repo_type="dataset"), repo)
    if plan.gated:
        gated = plan.gated
        _ask(lambda: api.update_repo_settings(repo, gated=gated, repo_type="dataset"), repo)
    # Whole names, never patterns: a stray file of the folder must not go.
    commit = _ask(
        lambda: api.upload_folder(
            repo_id=repo,
            repo_type="dataset",
            folder_path=plan.folder,
            allow_patterns=list(plan.upload),
            delete_patterns=plan.delete or None,
            commit_message=f"Version {plan.tag.removeprefix('v')}",
        ),
        repo,
    )
    _ask(lambda: api.create_tag(repo, tag=plan.tag, revision=commit.oid, repo_type="dataset"), repo)
    return str(commit.oid)


def _released_version(folder: Path) -> str:
    manifest = items.read_manifest(folder)
    dataset = items.load(folder)
    version = dataset.version or "unversioned"
    released = ((manifest or {}).get("versions") or {}).get(version)
    if released is None or released["sha256"] != dataset.sha256:
        name = version.removesuffix(EDITED)
        raise UserError(
            f"{folder} isn't a release as it stands (version {version}); run "
            f"scripts/dataset.py release --version with a number after {name}"
        )
    return version


def _api() -> HfApi:
    from huggingface_hub import HfApi

    return HfApi()


def _remote(repo: str) -> tuple[list[str] | None, set[str]]:
    """Files (None where there is no such repository) and tags of a Hub dataset."""
    api = _api()
    files = _ask(lambda: _remote_files(api, repo), repo)
    if files is None:
        return None, set()
    refs = _ask(lambda: api.list_repo_refs(repo, repo_type="dataset"), repo)
    return files, {ref.name for ref in refs.tags}


def _remote_files(api: HfApi, repo: str) -> list[str] | None:
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        return list(api.list_repo_files(repo, repo_type="dataset"))
    except RepositoryNotFoundError:
        return None


def _ask(call: Callable[[], T], repo: str) -> T:
    """Call the Hub; what it answers in failing is one line."""
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    try:
        return call()
    except OfflineModeIsEnabled:
        raise UserError("HF_HUB_OFFLINE is set; unset it to publish") from None
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else None
        if status in (401, 403):
            raise UserError(
                f"the Hub lets nobody write to {repo} with this token ({status}); "
                "log in with `hf auth login` and a token that may write to it"
            ) from None
        raise UserError(f"the Hub refused for {repo}: {error}") from None
    except Exception as error:
        # The hub's client lets its transport's own errors through, whichever transport it has.
        raise UserError(f"{repo}: the request failed ({type(error).__name__}: {error})") from None
