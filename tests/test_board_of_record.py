"""The board in the repository is what its submissions make, byte for byte."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_board_is_rebuilt_from_its_submissions(tmp_path):
    copy = tmp_path / "leaderboard"
    shutil.copytree(ROOT / "leaderboard", copy, ignore=shutil.ignore_patterns("site"))
    made = copy / "leaderboard.json"
    recorded = made.read_bytes()
    made.unlink()
    words = [sys.executable, ROOT / "scripts" / "leaderboard.py", "build", "--root", copy]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert made.read_bytes() == recorded
