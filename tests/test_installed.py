"""The installed package: `lm_eval run --tasks hk_fs_…` from any folder, and nothing left behind.

The wheel is installed into an environment whose site-packages is this one's by links, except for
lm_eval, which is a copy: that is what the wheel's task files are put into.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(*command: object, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "HK_FS_REQUIRE")}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=clean | env,
        capture_output=True,
        text=True,
        timeout=900,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    # Built from what git tracks or would track, so that a stale build/ can't lend it a file.
    source = tmp_path_factory.mktemp("source") / "tree"
    ignore = shutil.ignore_patterns(".*", "build", "*.egg-info", "__pycache__", "runs")
    shutil.copytree(ROOT, source, ignore=ignore)
    out = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    done = run(*pip, "-w", out, source, cwd=out)
    assert done.returncode == 0, done.stderr
    (found,) = out.glob("hk_fs_bench-*.whl")
    return found


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> tuple[Path, Path]:
    """(python, site-packages) of an environment with everything but hk-fs-bench."""
    folder = tmp_path_factory.mktemp("env")
    venv.create(folder, with_pip=False)
    site = folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "hk_fs" in entry.name or "hk-fs" in entry.name or entry.name.endswith(".egg-link"):
            continue
        if entry.name == "lm_eval":
            shutil.copytree(entry, site / entry.name, ignore=shutil.ignore_patterns("hk_fs"))
        else:
            (site / entry.name).symlink_to(entry)
    return folder / "bin" / "python", site


def listing(site: Path) -> set[str]:
    own = [p for p in site.rglob("*") if "__pycache__" not in p.parts]
    return {str(p.relative_to(site)) for p in own}


@pytest.fixture(scope="module")
def installed(wheel, environment):
    python, site = environment
    before = listing(site)
    done = run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "-q",
        "--no-deps",
        wheel,
        cwd=site,
    )
    assert done.returncode == 0, done.stderr
    yield python, site
    done = run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "uninstall",
        "-q",
        "-y",
        "hk-fs-bench",
        cwd=site,
    )
    assert done.returncode == 0, done.stderr
    assert listing(site) == before


def test_every_module_is_in_the_wheel(wheel):
    package = ROOT / "hk_fs_bench"
    ours = {p.relative_to(ROOT).as_posix() for p in package.rglob("*") if p.is_file()}
    ours = {path for path in ours if "__pycache__" not in path}
    assert ours <= set(ZipFile(wheel).namelist())


def test_dataset_and_tasks_are_in_the_wheel(installed, dataset, tmp_path):
    python, _ = installed
    code = (
        "from hk_fs_bench import items, prompts; d = items.load();"
        "print(d.sha256, items.default_folder().name, *prompts.expand(['hk_fs']))"
    )
    done = run(python, "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [
        dataset.sha256, "hf_dataset", "hk_fs_mcq_hk", "hk_fs_mcq_nohk", "hk_fs_oeq"
    ]  # fmt: skip


@pytest.mark.model
def test_literal_command_with_a_real_model(installed, small_model_folder, tmp_path):
    """The command that the README gives, in a folder that knows nothing of this project."""
    python, _ = installed
    done = run(
        python, "-m", "lm_eval", "run", "--tasks", "hk_fs,hk_fs_mcq_hk_ll", "--model", "hf",
        "--model_args", f"pretrained={small_model_folder},dtype=float32", "--device", "cpu",
        "--batch_size", "4", "--limit", "2", "--apply_chat_template", "--log_samples",
        "--output_path", "out", "--gen_kwargs", "max_gen_toks=32",
        cwd=tmp_path, HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    for task in ("hk_fs_mcq_hk", "hk_fs_mcq_nohk", "hk_fs_oeq", "hk_fs_mcq_hk_ll"):
        assert task in done.stdout
    score = run(python, ROOT / "scripts" / "score.py", tmp_path / "out", "--json", cwd=tmp_path)
    assert score.returncode == 0, score.stderr
    scores = json.loads(score.stdout)
    assert set(scores["tasks"]) == {
        "hk_fs_mcq_hk", "hk_fs_mcq_nohk", "hk_fs_oeq", "hk_fs_mcq_hk_ll"
    }  # fmt: skip
    for figures in scores["tasks"].values():
        assert figures["answered"] == 2
        assert sum(figures["statuses"].values()) == 2
    assert scores["tasks"]["hk_fs_mcq_hk"]["tokens"]["output"]["n"] == 2
    assert scores["protocol"]["chat_template_used"] is True
    assert scores["model"]["weights_sha256"]
