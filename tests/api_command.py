"""api_runners/run.py as a command: in a folder of its own, with a models.yaml of its own."""

import dataclasses
import importlib.util
import io
import json
import os
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from hk_fs_bench.errors import run_command

ROOT = Path(__file__).resolve().parent.parent
KEY = "sk-very-secret-0123456789abcdef"

MODELS = """\
format: 1
regimes: {{paper: {{}}, greedy: {{temperature: 0}}}}
providers:
  here: {{base_url: "{url}", key: HERE_KEY, concurrency: {{start: 10, max: 50}}}}
  there: {{base_url: "{url}/there", key: THERE_KEY, key_required: false}}
.shared: &shared
  thinking: {{mode: none}}
  limit: {{parameter: max_tokens, includes_thinking: true}}
  search: {{state: off}}
  timeout_s: 1.0
models:
  one: {{<<: *shared, provider: here, model: org/one, id: one, price: {{input: 1, output: 2}}}}
  two: {{<<: *shared, provider: there, model: org/two, id: two, price: null}}
  seeing: {{<<: *shared, provider: there, model: org/s, id: s, price: null, search: {{state: on}}}}
"""


def environment(**changes: str | None) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.endswith("_KEY")}
    env |= {"PYTHONPATH": str(ROOT), "HERE_KEY": KEY}
    return {k: v for k, v in (env | changes).items() if v is not None}


@dataclasses.dataclass
class Command:
    """run.py in a folder of its own."""

    folder: Path
    url: str = "http://127.0.0.1:9/v1"

    def __post_init__(self) -> None:
        (self.folder / "models.yaml").write_text(MODELS.format(url=self.url), "utf-8")

    def words(self, *args: object) -> list[str]:
        run = [sys.executable, str(ROOT / "api_runners" / "run.py")]
        return [*run, "--models-file", "models.yaml", *map(str, args)]

    def __call__(self, *args: object, **env: str | None) -> subprocess.CompletedProcess[str]:
        """Run it in this process, which spares the start of another one."""
        return in_process(self.words(*args)[2:], self.folder, environment(**env))

    def start(self, *args: object, **options) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(*args),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=environment(),
            **options,
        )

    def rows(self, name: str = "one-paper") -> list[dict]:
        path = self.folder / "runs" / name / "predictions.jsonl"
        if not path.is_file():
            return []
        text = path.read_text("utf-8")
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def manifest(self, name: str = "one-paper") -> dict:
        return json.loads((self.folder / "runs" / name / "run.json").read_text("utf-8"))


def in_process(
    words: list[str], folder: Path, env: dict[str, str], name: str = "api_runners/run.py"
) -> subprocess.CompletedProcess[str]:
    """A command's main, with its arguments, folder, environment, output and exit status."""
    spec = importlib.util.spec_from_file_location("command", ROOT / name)
    command = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(command)
    out, err, here = io.StringIO(), io.StringIO(), Path.cwd()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", [name, *words])
        for key in [*os.environ, *env]:
            patch.setenv(key, env[key]) if key in env else patch.delenv(key)
        os.chdir(folder)
        try:
            run_command(command.main)
        except SystemExit as end:
            code = end.code
        finally:
            os.chdir(here)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def many(folder: Path, n: int) -> Path:
    """An edition of n short questions."""
    path = folder / "many" / "data" / "mcq" / "test.jsonl"
    path.parent.mkdir(parents=True)
    rows = (
        {
            "id": f"q-{i:04}",
            "question": f"Question {i}?",
            "choices": ["w", "x", "y", "z"],
            "answer": "ABCD"[i % 4],
        }
        for i in range(n)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return folder / "many"


def until(condition, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)


def score(folder: Path, name: str) -> str:
    words = [str(folder / "runs" / name), "--metrics", "none"]
    done = in_process(words, folder, environment(), "scripts/score.py")
    assert done.returncode == 0, done.stderr
    return done.stdout
