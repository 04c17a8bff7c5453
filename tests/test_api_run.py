"""api_runners/run.py from outside: complete runs, crashes, locks, budgets, keys, mistakes."""

import dataclasses
import hashlib
import importlib.util
import io
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hk_fs_bench import api_models, api_plan, items, prompts, runs, scoring
from hk_fs_bench.errors import UserError, run_command
from tests.fault_server import FaultServer, Reply, error, model_answer, ok

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


def test_a_run_from_end_to_end(tmp_path, dataset):
    with FaultServer() as server:
        command = Command(tmp_path, server.url)
        done = command("one", "--samples", 2, "--limit", 5)
        assert (done.returncode, done.stderr) == (0, "")
        assert "20 of 30" not in done.stdout
        assert "30 of 30 answered" in done.stdout
        asked = len(server.requests)
        again = command("one", "--samples", 2, "--limit", 5)
        assert again.returncode == 0
        assert len(server.requests) == asked == 30
    # The prompts are the tasks' own, byte for byte; lm-eval's are held equal to them elsewhere.
    sent = {request.prompt for request in server.requests}
    tasks = [prompts.load_task(name) for name in prompts.expand(["hk_fs"])]
    docs = [(t, d) for t in tasks for d in items.docs(dataset, **t.data_options)[:5]]
    assert sent == {prompts.render(task, doc) for task, doc in docs}
    run = runs.read_run(tmp_path / "runs" / "one-paper")
    assert run.manifest["complete"] is True
    assert run.manifest["model"]["returned_ids"] == ["m-test"]
    row = run.rows["hk_fs_oeq", dataset.items("oeq")[0].id, "", 1]
    task = prompts.load_task("hk_fs_oeq")
    prompt = prompts.render(task, items.docs(dataset, **task.data_options)[0])
    assert row["prompt_sha256"] == prompts.prompt_sha256(prompt)
    assert (row["status"], row["answer_tokens"], row["finish_reason"]) == ("ok", 20, "stop")
    assert row["performance"]["latency_ms"] > 0
    scores = scoring.score(run, dataset)
    mcq = scores["tasks"]["hk_fs_mcq_hk"]
    assert (mcq["asked"], mcq["samples"], mcq["accuracy"]["n"]) == (10, 2, 5)
    assert len(mcq["accuracy_by_sample"]) == 2
    assert not any("INCOMPLETE" in line for line in scores["warnings"])
    shown = score(tmp_path, "one-paper")
    assert "accuracy % of each of 2 samples" in shown
    assert "one sample a prompt" not in shown


def score(folder: Path, name: str) -> str:
    words = [str(folder / "runs" / name), "--metrics", "none"]
    done = in_process(words, folder, environment(), "scripts/score.py")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_dry_run_sends_and_writes_nothing(tmp_path):
    with FaultServer() as server:
        command = Command(tmp_path, server.url)
        done = command("one", "two", "--dry-run", "--show-payloads", "--limit", 3, HERE_KEY=None)
    assert done.returncode == 0, done.stderr
    assert not server.requests
    assert not (tmp_path / "runs").exists()
    assert '"max_tokens": 512' in done.stdout
    assert "no price is known for two" in done.stdout
    assert done.stdout.count("/chat/completions") == 6


def test_every_configuration_of_the_paper_can_be_planned(tmp_path):
    names = [n for n, m in api_models.load().models.items() if m.paper is not None]
    done = in_process([*names, "--dry-run"], tmp_path, environment())
    assert done.returncode == 0, done.stderr
    for name in names:
        assert name in done.stdout


def faulty(request) -> Reply:
    """Faults that depend on the prompt and on how often it was sent, so that a retry may pass."""
    roll = hashlib.sha256(f"{request.prompt} {request.nth}".encode()).digest()[1] / 256
    if roll < 0.02:
        return error(random.choice([500, 502, 503]))
    if roll < 0.03:
        return Reply(then="hang")
    if roll < 0.05:
        whole = json.dumps(model_answer(request).body).encode()
        return Reply(raw=whole[:-9], headers={"Content-Length": str(len(whole))}, then="reset")
    return model_answer(request)


def test_chaos(tmp_path):
    """400 questions, faults of every kind, killed three times: each answered exactly once."""
    edition = many(tmp_path, 400)
    calm, wild = tmp_path / "calm", tmp_path / "wild"
    args = ("one", "--tasks", "hk_fs_mcq_hk", "--dataset", edition)
    calm.mkdir(), wild.mkdir()
    with FaultServer() as server:
        assert Command(calm, server.url)(*args).returncode == 0
    with FaultServer(faulty, cap=10, latency=0.05, retry_after="0.2") as server:
        command = Command(wild, server.url)
        for stop_at in sorted(random.sample(range(20, 330), 3)):
            process = command.start(*args)
            until(lambda n=stop_at: len(command.rows()) >= n)
            process.kill()
            process.communicate()
            assert command.manifest()["complete"] is False
        before = len(command.rows())
        seen = {request.prompt for request in server.requests}
        done = command(*args, "--retry-failures")
        assert done.returncode == 0, done.stdout + done.stderr
    rows = [row for row in command.rows() if row["status"] == "ok"]
    assert len(rows) == len({row["item_id"] for row in rows}) == 400
    outputs = {row["item_id"]: row["output"] for row in rows}
    assert outputs == {row["item_id"]: row["output"] for row in Command(calm).rows()}
    assert command.manifest()["complete"] is True
    assert server.refused > 0
    # Only what was in flight when the process died was asked again.
    answered = {row["item_id"] for row in rows[:before]}
    assert len(answered) == before
    assert len(seen) - before <= 3 * 60


def test_a_second_process_is_refused(tmp_path):
    with FaultServer(latency=0.5) as server:
        command = Command(tmp_path, server.url)
        first = command.start("one", "--limit", 20, "--max-concurrency", 2)
        until(lambda: len(command.rows()) >= 1)
        second = command("one", "--limit", 20)
        assert second.returncode == 2
        assert second.stderr.count("\n") == 1
        assert "another process is writing to runs/one-paper" in second.stderr
        first.kill()
        first.communicate()
        # The lock died with its process.
        assert command("one", "--limit", 1).returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_finishes_what_is_in_flight(tmp_path, number):
    with FaultServer(latency=0.4) as server:
        command = Command(tmp_path, server.url)
        process = command.start("one", "--limit", 20, "--max-concurrency", 5)
        until(lambda: len(command.rows()) >= 3)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        assert process.returncode == 130, err
        assert len(command.rows()) == len(server.requests)
        manifest = command.manifest()
        assert (manifest["complete"], manifest["stopped"]) == (False, "stopped by Ctrl-C")
        assert manifest["sessions"][0]["ended_at"]
        assert "the same command again asks the rest" in out
    shown = score(tmp_path, "one-paper")
    assert shown.startswith("WARNING: INCOMPLETE RUN:")


def test_a_second_ctrl_c_gives_up(tmp_path):
    with FaultServer(lambda request: Reply(then="hang")) as server:
        text = MODELS.format(url=server.url).replace("timeout_s: 1.0", "timeout_s: 100")
        command = Command(tmp_path, server.url)
        (tmp_path / "models.yaml").write_text(text, "utf-8")
        process = command.start("one", "--limit", 3)
        until(lambda: server.requests)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in err


def test_money(tmp_path):
    # 90 tokens in at 1 USD and 20 out at 2 USD a million: 130 millionths a call.
    with FaultServer() as server:
        command = Command(tmp_path, server.url)
        refused = command("two", "--max-cost", 1)
        assert refused.returncode == 2
        assert "--price IN/OUT" in refused.stderr
        assert not server.requests
        first = command("one", "--max-cost", 0.004)
        assert first.returncode == 1
        assert "--max-cost" in command.manifest()["stopped"]
        spent = len(command.rows()) * 130e-6
        assert 0.002 < spent <= 0.004
        # What the folder cost already counts: the same command never pays twice the sum.
        calls = len(server.requests)
        second = command("one", "--max-cost", 0.004)
        assert second.returncode == 1
        assert len(server.requests) == calls
        priced = command("two", "--price", "1/2", "--max-cost", 1, "--limit", 2)
        assert priced.returncode == 0, priced.stderr
        assert command.manifest("two-paper")["price"]["source"] == "given with --price"


def test_keys_reach_no_file_and_no_screen(tmp_path):
    def respond(request):
        secret = request.headers["authorization"]
        if request.nth == 1:
            return error(500, message=f"failed for {secret}", code=secret)
        reply = ok(f'{{"answer": "A", "reason": "{secret}"}}', reasoning=f"key {secret}")
        reply.body["model"] = secret
        reply.body["citations"] = [f"https://x.example/?key={secret.split()[1]}"]
        return reply

    with FaultServer(respond) as server:
        command = Command(tmp_path, server.url)
        done = command("one", "--limit", 2, "--show-payloads")
        assert done.returncode == 0, done.stderr
    with FaultServer(lambda r: error(401, message=f"bad {r.headers['authorization']}")) as server:
        command.url = server.url
        (tmp_path / "models.yaml").write_text(MODELS.format(url=server.url), "utf-8")
        refused = command("one", "--limit", 2, "--out", "other")
    assert refused.returncode == 1
    assert "http_401" in refused.stdout
    for text in (done.stdout, done.stderr, refused.stdout, refused.stderr):
        assert KEY not in text
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert KEY not in path.read_text("utf-8"), path
    assert len(command.rows()) == 6


def test_a_key_in_a_dotenv(tmp_path):
    (tmp_path / ".env").write_text(f"HERE_KEY={KEY}\n")
    with FaultServer() as server:
        done = Command(tmp_path, server.url)("one", "--limit", 1, HERE_KEY=None)
    assert done.returncode == 0, done.stderr
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_failures_make_no_answers_and_are_asked_again_on_demand(tmp_path, dataset):
    with FaultServer() as server:
        command = Command(tmp_path, server.url)
        # One refused request after answered ones fails alone: 400 is not retried.
        server.respond = lambda r: error(400) if "oeq" in classify(r) else model_answer(r)
        first = command("one", "--limit", 2, "--max-concurrency", 1)
        assert first.returncode == 1
        assert "failed: http_400 2" in first.stdout
        server.respond = model_answer
        asked = len(server.requests)
        plain = command("one", "--limit", 2)
        assert plain.returncode == 1
        assert len(server.requests) == asked
        assert "--retry-failures" in plain.stdout
        scores = scoring.score(runs.read_run(tmp_path / "runs" / "one-paper"), dataset)
        assert scores["warnings"][0].startswith("INCOMPLETE RUN: 4 of 6")
        again = command("one", "--limit", 2, "--retry-failures")
        assert again.returncode == 0
        assert len(server.requests) == asked + 2
    rows = command.rows()
    assert [row["status"] for row in rows].count("infra_error") == 2
    assert len(runs.read_run(tmp_path / "runs" / "one-paper").rows) == 6


def classify(request) -> str:
    return "mcq" if "\nA) " in request.prompt else "oeq"


def test_one_model_s_fault_lets_others_go_on(tmp_path):
    def respond(request):
        return model_answer(request) if "there" in request.path else error(401)

    with FaultServer(respond) as server:
        command = Command(tmp_path, server.url)
        done = command("one", "two", "--limit", 4)
    assert done.returncode == 1
    assert "one: 0 of 12 answered" in done.stdout
    assert "two: 12 of 12 answered" in done.stdout
    assert sum("there" not in r.path for r in server.requests) <= 10
    assert command.rows() == []
    # Nothing was answered, so the mended command may even be another one.
    assert command.manifest()["stopped"].startswith("http_401")


def test_searching_models_are_labelled(tmp_path):
    def respond(request):
        reply = model_answer(request)
        reply.body["citations"] = ["https://hf.co/datasets/hk-fs-bench/hk-fs-code/raw/test.jsonl"]
        return reply

    with FaultServer(respond) as server:
        done = Command(tmp_path, server.url)("seeing", "--limit", 3, "--tasks", "hk_fs_mcq_hk")
    assert done.returncode == 0
    assert "seeing: search on" in done.stdout
    shown = score(tmp_path, "seeing-paper")
    assert "WARNING: CONTAMINATED: 3 answers" in shown
    assert "WARNING: search:" in shown
    assert "search on" in shown


def test_answers_over_the_limit_are_counted_and_not_cut(tmp_path):
    usage = {"prompt_tokens": 9, "completion_tokens": 700, "total_tokens": 709}
    with FaultServer(lambda r: ok('{"answer": "A"}', usage=usage)) as server:
        Command(tmp_path, server.url)("one", "--limit", 2, "--tasks", "hk_fs_mcq_hk")
    assert "2 answers are longer than 512 tokens; none was cut" in score(tmp_path, "one-paper")


def test_a_folder_of_another_run_is_refused(tmp_path):
    edition = many(tmp_path, 3)
    with FaultServer() as server:
        command = Command(tmp_path, server.url)
        assert command("one", "--limit", 1, "--tasks", "hk_fs_mcq_hk").returncode == 0
        before = command.rows()
        text = MODELS.format(url=server.url)
        for change, args in (
            (("id: one", "id: uno"), ()),
            (("mode: none", "mode: on"), ()),
            (("parameter: max_tokens", "parameter: max_completion_tokens"), ()),
            (("", ""), ("--dataset", edition)),
        ):
            (tmp_path / "models.yaml").write_text(text.replace(*change), "utf-8")
            done = command("one", "--limit", 1, "--tasks", "hk_fs_mcq_hk", *args)
            assert done.returncode == 2, change
            assert "name another --out" in done.stderr
            assert done.stderr.count("\n") == 1
        assert command.rows() == before
        # More tasks, samples and questions are the same run going on.
        (tmp_path / "models.yaml").write_text(text, "utf-8")
        assert command("one", "--limit", 2, "--samples", 2).returncode == 0
    assert command.manifest()["planned"] == {
        "hk_fs_mcq_hk": 4,
        "hk_fs_mcq_nohk": 4,
        "hk_fs_oeq": 4,
    }
    assert len(server.requests) == 12


def test_a_full_disk_loses_nothing_that_was_written(tmp_path):
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    with FaultServer() as server:
        command = Command(tmp_path, server.url)
        process = command.start("one", "--limit", 9, preexec_fn=small_files)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 2
        assert err.count("\n") == 1
        assert "predictions.jsonl can't be written" in err
        written = command.rows()
        assert written
        assert command("one", "--limit", 9).returncode == 0
    rows = command.rows()
    assert rows[: len(written)] == written
    assert len({(r["task"], r["item_id"]) for r in rows}) == len(rows) == 27


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "name at least one model; there are one, two"),
        (("onne",), "did you mean one"),
        (("one", "--tasks", "hk_fs_mcq"), "no task hk_fs_mcq"),
        (("one", "--tasks", "hk_fs_mcq_hk_ll"), "run it with lm-eval"),
        (("one", "--limit", "0"), "no count of at least 1"),
        (("one", "--samples", "-1"), "expected one argument|no count of at least 1"),
        (("one", "--max-cost", "lots"), "no amount of USD"),
        (("one", "--max-cost", "nan"), "no amount of USD"),
        (("one", "--dataset", "nowhere"), "no dataset folder nowhere"),
        (("one", "--id", "x"), "--id is for an entry without one"),
        (("one", "--base-url", "http://x/v1"), "has its address in models.yaml"),
        (("one", "two", "--price", "1/2"), "for one model at a time"),
        (("one", "--price", "cheap"), "is not IN/OUT"),
        (("one", "--models-file", "none.yaml"), "none.yaml can't be read"),
        (("one", "--out", "models.yaml"), "can't be written"),
        (("one", "--out", "/proc/nowhere"), "can't be written"),
    ],
)
def test_mistakes_are_one_line(tmp_path, args, message):
    done = Command(tmp_path)(*args)
    assert done.returncode == 2
    assert any(part in done.stderr for part in message.split("|")), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].count("error:") == 1


def test_missing_key_and_unreachable_service_are_said(tmp_path):
    command = Command(tmp_path)
    missing = command("one", HERE_KEY=None)
    assert missing.returncode == 2
    assert "set HERE_KEY in the environment" in missing.stderr
    assert not (tmp_path / "runs").exists()
    closed = command("one", "--limit", 50)
    assert closed.returncode == 1
    assert "can't connect" in closed.stdout
    assert command.rows() == []


def test_generic_entries_need_their_model_and_address(tmp_path):
    (tmp_path / "x").mkdir()
    with FaultServer() as server:

        def go(*args: object) -> subprocess.CompletedProcess[str]:
            env = environment(OPENAI_API_KEY="sk-never-to-be-sent")
            return in_process([*map(str, args)], tmp_path, env)

        assert "with --id" in go("openai-compatible").stderr
        assert "with --base-url" in go("openai-compatible", "--id", "m").stderr
        bad = go("openai-compatible", "--id", "m", "--base-url", "http://u:p@h/v1")
        assert "no password" in bad.stderr
        done = go(*("local-server", "--id", tmp_path / "x", "--base-url", server.url, "--limit", 1))
        assert done.returncode == 0, done.stderr
    assert "never" not in str(server.requests[0].headers)
    assert server.requests[0].body["model"] == str(tmp_path / "x")
    folder = tmp_path / "runs" / "local-x-paper"
    for path in folder.iterdir():
        assert str(tmp_path) not in path.read_text("utf-8")
    assert runs.read_run(folder).manifest["model"]["id"] == "local/x"


def test_help_is_quick_and_light():
    code = (
        "import sys, runpy; sys.argv = ['run.py', '--help']\n"
        "try: runpy.run_path(sys.argv[0].replace('run.py', RUN), run_name='__main__')\n"
        "except SystemExit: pass\n"
        "heavy = {'openai', 'pydantic', 'rich', 'pandas', 'datasets'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    ).replace("RUN", repr(str(ROOT / "api_runners" / "run.py")))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment())
    assert done.returncode == 0, done.stderr


# Resume, as a property: whatever was written, torn or failed, the next session asks exactly what
# has no answer.
STATUS = st.sampled_from(["ok", "ok", "no_answer", "infra_error"])


@settings(max_examples=40, deadline=None)
@given(
    sessions=st.lists(st.lists(STATUS, max_size=6), max_size=6),
    tears=st.lists(st.integers(0, 400), max_size=6),
    retry=st.booleans(),
)
def test_resume_asks_exactly_what_is_not_answered(tmp_path_factory, sessions, tears, retry):
    folder = tmp_path_factory.mktemp("resume")
    job = plan_of(folder, retry)
    known: dict[runs.Key, str] = {}
    for number, statuses in enumerate(sessions):
        with runs.PredictionLog(job.folder) as log:
            job.read_folder()
            again = (None, "infra_error") if retry else (None,)
            assert {request.key for request in job.todo} == {
                request.key for request in job.requests if known.get(request.key) in again
            }
            runs.write_json(job.folder / "run.json", job.manifest)
            size = log.path.stat().st_size
            for request, status in zip(job.todo, statuses, strict=False):
                task, item_id, variant, sample = request.key
                row = {"task": task, "item_id": item_id, "variant": variant, "sample": sample}
                log.append(row | {"status": status, "cause": "x", "output": "é\u2028" * 5})
                known[request.key] = status
        if number < len(tears):
            tear(log.path, tears[number], size, known)
    with runs.PredictionLog(job.folder):
        runs.write_json(job.folder / "run.json", job.manifest)
    rows = runs.read_run(job.folder).rows
    assert {key: row["status"] for key, row in rows.items()} == known


def tear(path: Path, bytes_off: int, before: int, known: dict[runs.Key, str]) -> None:
    """What a crash in the middle of this session's writing leaves."""
    raw = path.read_bytes()
    kept = raw[: max(before, len(raw) - bytes_off)]
    path.write_bytes(kept)
    known.clear()
    for line in raw.splitlines(keepends=True):
        row = json.loads(line)
        start = raw.index(line)
        # A row whose line feed alone is lost is whole, and is kept.
        if start + len(line) - 1 <= len(kept):
            known[runs.key_of(row)] = row["status"]


EDITION: dict[str, Path] = {}


def plan_of(folder: Path, retry: bool) -> api_plan.Job:
    if not EDITION:
        EDITION["many"] = many(folder, 6)
    path = folder / "models.yaml"
    path.write_text(MODELS.format(url="http://127.0.0.1:9/v1"), "utf-8")
    return api_plan.plan(
        api_models.load(path),
        "one",
        items.load(EDITION["many"]),
        tasks=["hk_fs_mcq_hk"],
        regime="paper",
        out=folder,
        retry_failures=retry,
    )


def test_a_torn_whole_row_is_kept(tmp_path):
    path = tmp_path / "predictions.jsonl"
    row = {"task": "t", "item_id": "i", "variant": "", "sample": 0, "status": "ok"}
    for tail, kept in ((json.dumps(row), 1), (json.dumps(row)[:-1], 0), ('{"a": 1}', 0), ("7", 0)):
        path.write_text(tail)
        with runs.PredictionLog(tmp_path) as log:
            log.append(row | {"item_id": "j"})
        assert len(path.read_text().splitlines()) == kept + 1


def test_a_log_is_one_process_s(tmp_path):
    with runs.PredictionLog(tmp_path), pytest.raises(UserError, match="another process"):
        runs.PredictionLog(tmp_path).__enter__()
    with runs.PredictionLog(tmp_path):
        pass


def test_a_larger_plan_holds_both(tmp_path):
    """Two samples of one question, then one of three: six answers are planned, four are there."""
    with FaultServer() as server:
        command = Command(tmp_path, server.url)
        task = ("one", "--tasks", "hk_fs_oeq")
        assert command(*task, "--samples", 2, "--limit", 1).returncode == 0
        more = command(*task, "--limit", 3)
        assert more.returncode == 0
        assert "was begun with more" in more.stdout
        assert command.manifest()["planned"] == {"hk_fs_oeq": 6}
        assert command.manifest()["complete"] is False
        assert command(*task, "--samples", 2, "--limit", 3).returncode == 0
    assert command.manifest()["complete"] is True
    assert len(server.requests) == 6
