"""Publishing through huggingface_hub itself, to a server that speaks the Hub's protocol.

huggingface_hub reads its environment at import, so each command is a process of its own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hk_fs_bench import items, manifest, release
from hk_fs_bench.publish import make_plan
from tests.hub import TOKEN, Hub, serve

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = ROOT / "dataset_card"
REPO = "some-org/fire-questions"
LOAD = """
import sys
from datasets import load_dataset
found = load_dataset(sys.argv[1], sys.argv[2], split="test", revision=sys.argv[3])
print(*found["id"])
"""


def cut(folder, version):
    """A released edition, without the gates: they have tests of their own."""
    made = manifest.make_manifest(folder, version, "canary", "any", released="2026-12-01")
    release.card.write(folder, made, TEMPLATES)
    manifest.write_manifest(folder, version, "canary", "any", released="2026-12-01")


@pytest.fixture
def folder(edition):
    cut(edition, "1.0.0")
    (edition / "CHANGELOG.md").write_text("# Changelog of the data\n", "utf-8")
    (edition / "errata.jsonl").write_text("", "utf-8")
    return edition


@pytest.fixture
def process(tmp_path):
    def run(endpoint, *command, token=TOKEN, **env):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
        env = (
            clean
            | {
                "HF_ENDPOINT": endpoint,
                "HF_HOME": str(tmp_path / "hf"),
                "HF_TOKEN": token,
                "HF_HUB_DISABLE_PROGRESS_BARS": "1",
                "PYTHONPATH": str(ROOT),
            }
            | env
        )
        return subprocess.run(
            [sys.executable, *map(str, command)], env=env, capture_output=True, text=True,
            timeout=300,
        )  # fmt: skip

    return run


@pytest.fixture
def publish(process, folder):
    def run(endpoint, *options, **env):
        script = ROOT / "scripts" / "dataset.py"
        return process(endpoint, script, "publish", folder, "--repo", REPO, *options, **env)

    return run


def writes(hub):
    return [line for line in hub.log if line.startswith(("POST", "PUT"))]


def test_a_dry_run_lists_everything_and_sends_nothing(folder, publish):
    hub = Hub()
    (folder / "notes.txt").write_text("mine alone", "utf-8")
    (folder / "data" / "mcq" / "test.jsonl.bak").write_text("old", "utf-8")
    with serve(hub) as endpoint:
        done = publish(endpoint, "--dry-run", "--gated", "auto")
        silent = publish(endpoint)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"dataset {REPO}: will be created, public, access gated (auto); tag v1.0.0"
    files = release.edition_files(folder)
    assert set(files) == {
        "README.md", "CHANGELOG.md", "errata.jsonl", "manifest.json",
        *(f"data/{split}.jsonl" for split in items.SPLITS),
    }  # fmt: skip
    assert [line.split()[1] for line in lines[1:-1]] == sorted(files)
    assert lines[-1] == (
        f"NOTE    the card tells readers to load hk-fs-bench/hk-fs-code, not {REPO}"
    )
    manifest_line = next(line for line in lines if "data/mcq/test.jsonl" in line)
    assert items.read_manifest(folder)["splits"]["mcq/test"]["sha256"] in manifest_line
    assert writes(hub) == []
    assert silent.returncode == 2
    assert "give --yes to publish exactly this" in silent.stderr


def test_a_dry_run_without_the_hub_still_lists_what_would_go(folder, publish):
    done = publish("http://127.0.0.1:9", "--dry-run", HF_HUB_OFFLINE="1")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"dataset {REPO}: not asked (HF_HUB_OFFLINE is set")
    uploads = [line.split()[1] for line in lines if line.startswith("upload")]
    assert uploads == sorted(release.edition_files(folder))


def test_publish_then_read_back_at_a_revision(folder, publish, process, tmp_path):
    hub = Hub()
    (folder / "notes.txt").write_text("mine alone", "utf-8")
    with serve(hub) as endpoint:
        done = publish(endpoint, "--yes", "--gated", "manual")
        assert done.returncode == 0, done.stderr
        first = items.load(folder)
        assert hub.files(REPO, "v1.0.0") == release.edition_files(folder) | {
            ".gitattributes": hub.files(REPO)[".gitattributes"]
        }
        assert hub.settings[REPO] == {"gated": "manual"}
        order = [line.split("/")[-2 if "commit" in line or "tag" in line else -1]
                 for line in writes(hub)]  # fmt: skip
        assert order.index("settings") < order.index("commit") < order.index("tag")

        again = publish(endpoint, "--yes")
        assert again.returncode == 2
        assert "has the tag v1.0.0 already; release a new version" in again.stderr

        # A second version without open-ended examples: their file goes, a stranger's stays.
        hub.commit(REPO, hub.files(REPO) | {"extra.md": b"by somebody else"})
        (folder / "data/oeq/dev.jsonl").unlink()
        text = (folder / "data/mcq/test.jsonl").read_text("utf-8").splitlines(keepends=True)
        (folder / "data/mcq/test.jsonl").write_text("".join(text[1:]), "utf-8")
        cut(folder, "1.1.0")
        dry = publish(endpoint, "--dry-run")
        assert "delete  data/oeq/dev.jsonl" in dry.stdout.splitlines()
        assert "keep    extra.md (not a file of the dataset)" in dry.stdout.splitlines()
        assert publish(endpoint, "--yes").returncode == 0
        assert "data/oeq/dev.jsonl" not in hub.files(REPO)
        assert "extra.md" in hub.files(REPO)

        for revision, count in (("v1.0.0", 6), ("v1.1.0", 5), ("main", 5)):
            read = process(endpoint, "-c", LOAD, REPO, "mcq", revision)
            assert read.returncode == 0, read.stderr[-2000:]
            wanted = [item.id for item in first.items("mcq")][6 - count :]
            assert read.stdout.split() == wanted
        ours = process(
            endpoint, "-c", "from hk_fs_bench import items;"
            f"print(items.load('{REPO}', 'v1.0.0').sha256, items.load('{REPO}').version)",
        )  # fmt: skip
        assert ours.stdout.split() == [first.sha256, "1.1.0"], ours.stderr


def spoil(folder):
    path = folder / "data/mcq/test.jsonl"
    path.write_text(path.read_text("utf-8") + "\n", "utf-8")


@pytest.mark.parametrize(
    ("spoil", "options", "env", "message"),
    [
        (None, {}, {"token": "hf_other"}, "(401); log in with `hf auth login`"),
        (None, {}, {"HF_HUB_OFFLINE": "1"}, "HF_HUB_OFFLINE is set"),
        (spoil, {}, {}, "fails the sha256 of manifest.json"),
        (lambda f: (spoil(f), manifest.write_manifest(f)), {}, {}, "isn't a release as it stands"),
    ],
)
def test_refusals_are_one_line(folder, publish, spoil, options, env, message):
    if spoil:
        spoil(folder)
    hub = Hub()
    with serve(hub) as endpoint:
        done = publish(endpoint, "--yes", **env)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.strip().count("\n") == 0
    assert REPO not in hub.commits


def test_no_server(publish):
    done = publish("http://127.0.0.1:9", "--yes")
    assert done.returncode == 2
    assert f"{REPO}: the request failed" in done.stderr


def test_no_repository_name(folder):
    with pytest.raises(Exception, match="is no Hub dataset; name it as org/name"):
        make_plan(folder, "fire-questions")
