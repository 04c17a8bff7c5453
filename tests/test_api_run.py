"""api_runners/run.py from outside: complete runs, plans, money, keys, labels, mistakes."""

import asyncio
import io
import subprocess
import sys

import pytest
from rich.console import Console

from hk_fs_bench import api_models, api_plan, api_report, api_runs, items, prompts, runs, scoring
from tests.api_command import KEY, MODELS, ROOT, Command, environment, in_process, score
from tests.fault_server import FaultServer, Reply, error, model_answer, ok


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


@pytest.mark.parametrize("width", [80, 100, 160])
def test_a_plan_fits_its_terminal(tmp_path, dataset, width):
    registry = api_models.load()
    names = [n for n, m in registry.models.items() if m.paper is not None]
    plan = {"tasks": ["hk_fs"], "regime": "paper", "out": tmp_path}
    jobs = [api_plan.plan(registry, name, dataset, **plan) for name in names]
    text = io.StringIO()
    table = api_report.plan_table(jobs, dict.fromkeys(names, False), width)
    Console(file=text, width=width).print(table)
    shown = text.getvalue()
    assert "…" not in shown
    for job in jobs:
        estimate = job.estimate()
        for part in (job.name, f"{estimate.tokens_in:,}", f"{estimate.tokens_out_most:,}"):
            assert part in shown
    assert max(map(len, shown.splitlines())) <= width


def test_what_stands_in_the_way_is_said(tmp_path):
    """Before the first answer there is nothing else to see, and it may last for long."""
    seen = []

    async def watch(going):
        while True:
            seen.append(api_report.state(going))
            await asyncio.sleep(0.02)

    def respond(request):
        told = f"slow down, {request.headers['authorization']}"
        return error(429, message=told) if request.nth < 3 else model_answer(request)

    with FaultServer(respond) as server:
        command = Command(tmp_path, server.url)
        registry = api_models.load(command.folder / "models.yaml")
        plan = {"tasks": ["hk_fs_oeq"], "regime": "paper", "out": tmp_path, "limit": 1}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HERE_KEY", KEY)
            job = api_plan.plan(registry, "one", items.load(), **plan)
            (going,) = asyncio.run(api_runs.run([job], watch=watch))
    assert any("http_429: slow down, Bearer [key]" in line for line in seen)
    assert KEY not in "".join(seen)
    assert "429" not in api_report.state([going])


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


def test_money_of_replies_that_do_not_say_what_they_cost(tmp_path):
    """They count as the most that they may have cost, in every later command, too."""
    with FaultServer(lambda request: ok("B", usage={"x": 1})) as server:
        command = Command(tmp_path, server.url)
        first = command("one", "--max-cost", 0.01)
        assert first.returncode == 1
        calls = len(server.requests)
        assert 3 <= calls <= 9
        assert "for replies whose tokens are not known" in first.stdout
        assert command("one", "--max-cost", 0.01).returncode == 1
        assert len(server.requests) == calls
        # Two more cents are enough for more calls.
        assert command("one", "--max-cost", 0.03).returncode == 1
        assert len(server.requests) > calls


def test_money_of_replies_that_were_lost(tmp_path):
    def respond(request):
        fresh = request.nth == 1 and "oeq" in classify(request)
        return Reply(raw=b"{", headers={}) if fresh else model_answer(request)

    args = ("one", "--tasks", "hk_fs_mcq_hk,hk_fs_oeq", "--limit", 2)
    with FaultServer(respond) as server:
        command = Command(tmp_path, server.url)
        done = command(*args)
        assert done.returncode == 0
        assert len(server.requests) == 6
        lost = command.manifest()["sessions"][0]["lost_usd_most"]
        assert 2 * 512 * 2e-6 < lost < 0.004
        assert f"up to {lost:.4f} for replies" in done.stdout
        spent = lost + 4 * 130e-6
        assert command(*args[:-1], 3, "--max-cost", spent + 1e-9).returncode == 1
        assert len(server.requests) == 6


def test_a_price_that_was_given_once_stays_with_its_run(tmp_path):
    with FaultServer() as server:
        command = Command(tmp_path, server.url)
        assert command("two", "--price", "1/2", "--limit", 1).returncode == 0
        more = command("two", "--limit", 2, "--max-cost", 1)
        assert more.returncode == 0, more.stderr
    assert "0.0008 USD" in more.stdout
    assert command.manifest("two-paper")["price"]["output"] == 2


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


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "name at least one model; there are one, two"),
        (("onne",), "did you mean one"),
        (("one", "--tasks", "hk_fs_mcq"), "no task hk_fs_mcq"),
        (("one", "--tasks", "hk_fs_mcq_hk_ll"), "run it with lm-eval"),
        (("one", "--limit", "0"), "no count of at least 1"),
        (("one", "--samples", "-1"), "expected one argument|no count of at least 1"),
        (("one", "--samples", "101"), "no more than 100 answers a question"),
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
    few = command("one", "--limit", 1, "--tasks", "hk_fs_oeq")
    assert "failed: unreachable 1 (can't connect" in few.stdout


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


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("[/b]", "b-paper"),
        ("[red]x", "red-x-paper"),
        ("../../../etc/passwd", "local-passwd-paper"),
        ("org/model:free", "org-model-free-paper"),
        ("..", "local-paper"),
        ("模型/" + "漢" * 100, f"模型-{'漢' * 37}-paper"),
    ],
)
def test_a_model_may_have_any_name(tmp_path, name, folder):
    with FaultServer() as server:
        words = (
            "openai-compatible",
            "--id",
            name,
            "--base-url",
            f" {server.url}\n",
            "--limit",
            "1",
        )
        done = in_process([*words, "--tasks", "hk_fs_oeq"], tmp_path, environment())
    assert done.returncode == 0, done.stderr
    assert server.requests[0].body["model"] == name
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [folder]


@pytest.mark.parametrize(
    ("option", "text"),
    [("--id", "a\nb"), ("--id", "a\x1b[31m"), ("--id", "x" * 201), ("--model-id", "\udcff")],
)
def test_a_name_that_no_table_can_take_is_refused(tmp_path, option, text):
    words = ["openai-compatible", "--id", "m", "--base-url", "http://x.example/v1", option, text]
    done = in_process(words, tmp_path, environment())
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "printable text" in done.stderr


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://",
        "x:1",
        "ftp://x",
        "http://a b/v1",
        "http://a..b/v1",
        "http://x\x1b/v1",
        "http://x:9x",
        f"http://{'a' * 80}.example/v1",
        "http://x/v1?key=1",
    ],
)
def test_what_is_no_address_is_refused(tmp_path, url):
    words = ["openai-compatible", "--id", "m", "--base-url", url]
    done = in_process(words, tmp_path, environment())
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "--base-url: " in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "big5"])
def test_any_terminal_can_show_a_plan(tmp_path, encoding):
    words = [sys.executable, str(ROOT / "api_runners" / "run.py"), "gpt-4.1", "--limit", "1"]
    env = environment(PYTHONIOENCODING=encoding)
    done = subprocess.run(
        [*words, "--dry-run", "--show-payloads"], capture_output=True, env=env, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(b'"max_completion_tokens": 512') == 3


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
