"""Runs that were interrupted: killed, stopped, locked, out of disk; and what goes on from there."""

import gzip
import hashlib
import json
import random
import resource
import signal
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hk_fs_bench import api_models, api_plan, client, items, runs
from hk_fs_bench.errors import UserError
from tests.api_command import MODELS, Command, many, score, until
from tests.fault_server import FaultServer, Reply, error, model_answer, stream


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


def out_of_its_mind(request) -> Reply:
    """Half of all requests end in something that no service should send."""
    chance = random.Random(f"{request.prompt} {request.nth}")
    whole = model_answer(request)
    good = json.dumps(whole.body).encode()
    broken = [
        Reply(status="odd"),
        Reply(204, raw=b""),
        Reply(raw=b"{}", headers={"X-Long": "a" * 20_000}),
        Reply(raw=b"not packed", headers={"Content-Encoding": "gzip"}),
        Reply(raw=good[:-7]),
        Reply(raw=good, headers={"Content-Length": "9999"}, then="reset"),
        Reply(raw=good.replace(b'"stop"', b'"abort"')),
        Reply(raw=b"data: [DONE]\n\n"),
        Reply(raw=b"[" * 100_000),
        Reply(raw=b"<html>A</html>"),
        Reply(raw=b"\xff\xfe"),
        Reply(body={"choices": None, "error": {"code": 503}}),
        stream([{"choices": [{"delta": {"content": "A"}}]}], done=False),
        error(429, {"Retry-After": "0"}),
        error(429, {"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}),
        error(503, {"Retry-After": "soon"}),
        error(529),
    ]
    odd = [
        whole,
        Reply(raw=gzip.compress(good), headers={"Content-Encoding": "gzip"}),
        Reply(raw=b"\xef\xbb\xbf" + good),
        Reply(raw=good.replace(b": 90", b": 1" + b"0" * 500)),
        Reply(raw=good, headers={"Content-Type": "text/plain; charset=latin-1"}),
        stream([{"choices": [{"delta": whole.body["choices"][0]["message"]}]}]),
    ]
    return chance.choice(broken if chance.random() < 0.5 else odd)


def test_a_service_out_of_its_mind(tmp_path, monkeypatch):
    """Every question gets the service's own answer once, or is known to have failed."""
    monkeypatch.setattr(client, "FIRST_WAIT_S", 0.01)
    args = ("one", "--tasks", "hk_fs_mcq_hk", "--dataset", many(tmp_path, 120))
    calm, wild = tmp_path / "calm", tmp_path / "wild"
    calm.mkdir(), wild.mkdir()
    with FaultServer() as server:
        assert Command(calm, server.url)(*args).returncode == 0
    with FaultServer(out_of_its_mind, cap=25) as server:
        command = Command(wild, server.url)
        for _ in range(4):
            done = command(*args, "--retry-failures")
            assert done.returncode in (0, 1), done.stderr
            assert "Traceback" not in done.stdout + done.stderr
            if done.returncode == 0:
                break
    outputs = {row["item_id"]: row["output"] for row in command.rows() if row["status"] == "ok"}
    assert outputs == {row["item_id"]: row["output"] for row in Command(calm).rows()}
    assert {row["status"] for row in command.rows()} <= {"ok", "infra_error"}


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


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("predictions.jsonl", '{"task"', "garbage"),
        ("predictions.jsonl", '"item_id": "', '"item_id": ["a"], "x": "'),
        ("predictions.jsonl", '"token_usage": {', '"token_usage": "many", "x": {'),
        ("predictions.jsonl", '"input_tokens": 90', '"input_tokens": "90"'),
        ("run.json", '"model": {', '"model": [], "x": {'),
        ("run.json", '"protocol": {', '"protocol": "p", "x": {'),
        ("run.json", '"planned": {', '"planned": {"t": "many"}, "x": {'),
        ("run.json", '"samples": 1', '"samples": "all"'),
        ("run.json", '"sessions": [', '"sessions": 7, "x": ['),
        ("run.json", '"price": {', '"price": {"input": "dear"}, "x": {'),
        ("run.json", "{", "["),
    ],
)
def test_a_spoilt_folder_is_a_line_and_is_left_alone(tmp_path, name, old, new):
    with FaultServer() as server:
        command = Command(tmp_path, server.url)
        args = ("one", "--tasks", "hk_fs_mcq_hk", "--limit")
        assert command(*args, 2).returncode == 0
        path = tmp_path / "runs" / "one-paper" / name
        spoilt = path.read_text("utf-8").replace(old, new, 1)
        path.write_text(spoilt, "utf-8")
        done = command(*args, 3)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert path.read_text("utf-8") == spoilt
    assert len(server.requests) == 2


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
