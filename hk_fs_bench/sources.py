"""Where an edition of the dataset lies: a folder, this package, or the Hub."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from hk_fs_bench.errors import UserError

HUB_DATASET = "hk-fs-bench/hk-fs-code"


def default_folder() -> Path:
    """The dataset that came with the package, or the checkout's."""
    here = Path(__file__).resolve().parent
    for folder in (here / "hf_dataset", here.parent / "hf_dataset"):
        if (folder / "data").is_dir():
            return folder
    raise UserError("the package has lost its dataset; install hk-fs-bench again")


def locate(source: str | Path | None, revision: str | None, files: Sequence[str]) -> Path:
    """The folder of an edition; from the Hub only `files` are fetched.

    Raises:
        UserError: no such folder or dataset, a revision of a folder, the Hub can't be reached.
    """
    if source is None:
        if revision is None:
            return default_folder()
        source = HUB_DATASET
    folder = Path(source).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise UserError(
                f"{source} is a folder, which has no revision {revision}; leave the revision out "
                "or name a Hub dataset"
            )
        return folder
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", str(source)):
        raise UserError(f"no dataset folder {source}; name a folder or a Hub dataset org/name")
    return _download(str(source), revision, files)


def _download(repo: str, revision: str | None, files: Sequence[str]) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        return Path(
            snapshot_download(
                repo,
                repo_type="dataset",
                revision=revision,
                allow_patterns=list(files),
            )
        )
    except RevisionNotFoundError:
        raise UserError(f"the Hub dataset {repo} has no revision {revision}") from None
    except RepositoryNotFoundError:
        raise UserError(
            f"{repo} is neither a folder here nor a dataset that the Hub shows you; "
            "check the name, or log in with `hf auth login` if it is gated"
        ) from None
    except LocalEntryNotFoundError:
        raise UserError(
            f"the Hub can't be reached for {repo}{f'@{revision}' if revision else ''} and no copy "
            "is cached; connect, or name a folder"
        ) from None
    except (HfHubHTTPError, OSError) as error:
        raise UserError(f"{repo} could not be fetched from the Hub: {error}") from None
