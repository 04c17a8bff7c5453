"""`--help` of every command stays quick: it imports nothing heavy."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = sorted([*(ROOT / "scripts").glob("*.py"), ROOT / "api_runners" / "run.py"])
# Each of these takes longer to import than a user should wait for a help text.
HEAVY = {
    *("torch", "transformers", "datasets", "lm_eval", "accelerate", "evaluate", "huggingface_hub"),
    *("pandas", "numpy", "scipy", "sklearn", "altair", "pydantic", "openai", "aiohttp", "httpx"),
    *("jinja2", "openpyxl", "rich", "krippendorff", "rapidfuzz", "pdfplumber", "filelock"),
}


def imported(*words: str, cwd: Path) -> set[str]:
    """The top-level modules that a command imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *words], capture_output=True, text=True, cwd=cwd
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "usage:" in done.stdout
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rsplit("|", 1)[1].strip().split(".")[0] for line in lines}


@pytest.mark.parametrize("path", COMMANDS, ids=lambda p: p.name)
def test_help_imports_nothing_heavy(path, tmp_path):
    assert not imported(str(path), "--help", cwd=tmp_path) & HEAVY
    assert not list(tmp_path.iterdir())


def test_the_list_would_notice(tmp_path):
    heavy = "import argparse, filelock; argparse.ArgumentParser().parse_args(['--help'])"
    assert "filelock" in imported("-c", heavy, cwd=tmp_path)
