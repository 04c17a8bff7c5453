"""Reading an edition from the Hub: pinned revisions, and what a user sees when it fails.

huggingface_hub reads its environment at import, so each case is a process of its own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hk_fs_bench import items
from tests.hub import Hub, serve

REPO = "someone/fire-questions"
READ = """
import sys
from hk_fs_bench import items
from hk_fs_bench.errors import run_command
def main():
    found = items.load(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
    print(found.sha256, found.source)
run_command(main)
"""


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def read(tmp_path):
    def run(*args: str, endpoint: str, offline: str = "0") -> subprocess.CompletedProcess[str]:
        env = os.environ | {
            "HF_ENDPOINT": endpoint,
            "HF_HOME": str(tmp_path / "hf"),
            "HF_HUB_OFFLINE": offline,
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "PYTHONPATH": str(Path(__file__).parent.parent),
        }
        command = [sys.executable, "-c", READ, *args]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)

    return run


def test_pinned_revision_and_cache(edition, read):
    hub = Hub()
    old = hub.commit(REPO, files_of(edition) | {"README.md": b"# not needed"}, tag="v1.0.0")
    first = items.load(edition).sha256
    text = (edition / "data/mcq/test.jsonl").read_text("utf-8")
    (edition / "data/mcq/test.jsonl").write_text(text.replace("?", "??", 1), "utf-8")
    hub.commit(REPO, files_of(edition))
    second = items.load(edition).sha256
    with serve(hub) as endpoint:
        assert first != second
        assert read(REPO, old, endpoint=endpoint).stdout.split()[0] == first
        assert read(REPO, "v1.0.0", endpoint=endpoint).stdout.split() == [first, f"{REPO}@v1.0.0"]
        assert read(REPO, endpoint=endpoint).stdout.split()[0] == second
        assert not any("README" in line and "resolve" in line for line in hub.log)
    # The server is gone; what was fetched is still here.
    assert read(REPO, old, endpoint=endpoint, offline="1").stdout.split()[0] == first


@pytest.mark.parametrize(
    ("args", "offline", "message"),
    [
        ([REPO, "v9"], "0", f"the Hub dataset {REPO} has no revision v9"),
        (["someone/else"], "0", "someone/else is neither a folder here nor a dataset"),
        ([REPO, "v1.0.0"], "1", "no copy is cached"),
    ],
)
def test_failures_are_one_line(edition, read, args, offline, message):
    hub = Hub()
    hub.commit(REPO, files_of(edition), tag="v1.0.0")
    with serve(hub) as endpoint:
        done = read(*args, endpoint=endpoint, offline=offline)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
