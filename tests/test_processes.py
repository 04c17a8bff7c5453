"""Work over several processes: in order, failing as one, and stopped at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hk_fs_bench.errors import UserError
from hk_fs_bench.leaderboard import processes

SLEEPS = r"""
import os, time
from hk_fs_bench.errors import run_command
from hk_fs_bench.leaderboard import processes
def work(n):
    os.write(1, b"begun\n")
    time.sleep(60)
processes.os.cpu_count = lambda: 3
run_command(lambda: processes.each(work, range(6)) and 0)
"""


def square(n: int) -> int:
    if n == 3:
        raise UserError("three is too many")
    return n * n


@pytest.mark.parametrize("cores", [1, 3])
def test_results_and_faults_are_those_of_one_process(
    cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert processes.each(square, [5, 1, 2, 0]) == [25, 1, 4, 0]
    with pytest.raises(UserError, match="three is too many"):
        processes.each(square, [1, 2, 3, 4])
    assert processes.each(square, []) == []


def test_ctrl_c_ends_all_of_them_with_one_line(tmp_path: Path) -> None:
    script = tmp_path / "sleeps.py"
    script.write_text(SLEEPS, "utf-8")
    with subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as command:
        assert command.stdout is not None
        assert [command.stdout.readline() for _ in range(3)] == ["begun\n"] * 3
        begun = time.monotonic()
        os.killpg(command.pid, signal.SIGINT)  # As a terminal does: to every process.
        _, said = command.communicate(timeout=30)
    assert (command.returncode, said) == (130, "stopped by Ctrl-C\n")
    assert time.monotonic() - begun < 20
