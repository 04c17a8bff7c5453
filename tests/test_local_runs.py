"""Local runs: dealt out, kept, resumed, timed; with an engine whose answers a test chooses."""

import json
import os
import sys
from types import SimpleNamespace

import pytest

from hk_fs_bench import local_batches, local_configs, local_plan, local_runs, run_parts, scoring
from hk_fs_bench.errors import UserError
from hk_fs_bench.runs import read_run
from tests.lm_eval_output import write
from tests.local_jobs import TASKS, Engine, answer, edition, planner, texts


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return edition(tmp_path_factory.mktemp("edition"))


@pytest.fixture
def job(tmp_path, small):
    return planner(tmp_path, small)


@pytest.mark.parametrize("count", [2, 3, 7])
def test_shares_are_disjoint_and_complete_and_merge_to_one_process(tmp_path, job, count):
    alone = job(out=tmp_path / "alone")
    whole = answer(alone, Engine())
    engines = [answer(job((k, count)), Engine()) for k in range(count)]
    asked = [key for engine in engines for key in engine.asked]
    assert len(asked) == len(set(asked)) == 18
    assert sorted(asked) == sorted(whole.asked)
    assert max(len(e.asked) for e in engines) - min(len(e.asked) for e in engines) <= 1
    merged = read_run(job().folder)
    assert texts(job().folder) == texts(alone.folder)
    assert merged.manifest["complete"] is True
    assert merged.manifest["planned"] == dict.fromkeys(TASKS, 9)
    one = read_run(alone.folder).manifest
    for part in ("model", "protocol"):
        assert merged.manifest[part] == one[part]
    # The same parts make the same bytes, whichever process merges them.
    before = (merged.folder / "predictions.jsonl").read_bytes()
    local_runs.merge(merged.folder)
    assert (merged.folder / "predictions.jsonl").read_bytes() == before


def test_by_task_is_a_split_too(job):
    answer(job(tasks=TASKS[:1]), Engine())
    first = job(tasks=TASKS[1:])
    engine = answer(first, Engine())
    assert {task for task, _ in engine.asked} == {"hk_fs_oeq"}
    run = read_run(first.folder)
    assert len(run.rows) == 18
    assert (run.manifest["complete"], run.manifest["tasks"]) == (True, TASKS)


def test_a_higher_limit_asks_the_rest(job):
    answer(job(limit=2), Engine())
    assert read_run(job().folder).manifest["complete"] is True
    engine = answer(job(limit=5), Engine())
    assert len(engine.asked) == 6
    lower = job(limit=1)
    answer(lower, Engine())
    run = read_run(lower.folder)
    assert (len(run.rows), run.manifest["complete"]) == (10, True)
    assert run.manifest["protocol"]["limit"] == 5


def test_a_session_without_an_answer_binds_nothing(job):
    """A model that could not be loaded, asked otherwise, or not at all, the next time."""
    with pytest.raises(KeyboardInterrupt):
        answer(job(model_args={"revision": "typo"}), Engine(die_after=0))
    answer(job((0, 2)), Engine())
    answer(job((1, 2)), Engine())
    assert read_run(job().folder).manifest["complete"] is True


def test_a_missing_part_makes_the_run_incomplete(job, small):
    from hk_fs_bench import items

    answer(job((0, 2)), Engine())
    run = read_run(job().folder)
    assert (run.manifest["complete"], len(run.rows)) == (False, 9)
    scores = scoring.score(run, items.load(small))
    assert any("INCOMPLETE RUN: 9 of 18" in text for text in scores["warnings"])


@pytest.mark.parametrize("gen_kwargs", [{}, {"do_sample": True, "temperature": 0.7}])
@pytest.mark.parametrize("split", [[(0, 1)], [(0, 2), (1, 2)]])
def test_a_stopped_run_goes_on_without_asking_again(job, gen_kwargs, split):
    """Sampled answers too, and whoever goes on, one process or several."""
    first = Engine(die_after=2)
    with pytest.raises(KeyboardInterrupt):
        answer(job(gen_kwargs=gen_kwargs), first)
    stopped = read_run(job(gen_kwargs=gen_kwargs).folder)
    assert (len(stopped.rows), stopped.manifest["stopped"]) == (8, local_runs.INTERRUPTED)
    rest = [answer(job(part, gen_kwargs=gen_kwargs), Engine(tag="new ")) for part in split]
    asked = first.asked + [key for engine in rest for key in engine.asked]
    assert len(asked) == len(set(asked)) == 18
    run = read_run(stopped.folder)
    assert (run.manifest["complete"], run.manifest["stopped"]) == (True, None)
    kept = [row for row in run.rows.values() if not row["output"].startswith("new ")]
    assert len(kept) == 8
    seeds = [session["seed"] for session in run.manifest["sessions"]]
    assert len(set(seeds)) == len(seeds) == 1 + len(split)


def test_a_whole_run_loads_no_model(job):
    answer(job(), Engine())
    again = job()
    local_runs.run(again, load=lambda _: pytest.fail("loaded"))
    assert (again.done, again.todo) == (18, [])
    assert read_run(again.folder).manifest["complete"] is True


def test_a_command_that_asked_all_of_its_own_is_done(job):
    """Whoever answered what an earlier one of it was killed over."""
    with pytest.raises(KeyboardInterrupt):
        answer(job(), Engine(die_after=2))
    for part in ((0, 2), (1, 2)):
        answer(job(part), Engine())
    again = job()
    answer(again, Engine())
    assert (again.todo, again.done) == ([], 8)
    assert again.manifest["complete"] is True
    assert read_run(again.part).manifest["planned"] == {TASKS[0]: 8, TASKS[1]: 0}
    assert read_run(again.folder).manifest["complete"] is True


def test_a_lower_limit_after_a_killed_run_is_a_run_that_is_not_whole(job):
    with pytest.raises(KeyboardInterrupt):
        answer(job(), Engine(die_after=1))
    lower = job(limit=2)
    progress = local_runs.run(lower, load=lambda _: Engine())
    assert progress.answered == len(lower.todo)
    # Of the part: what it had answered beyond that limit, too.
    own = read_run(lower.part)
    assert (own.manifest["complete"], sum(own.manifest["planned"].values())) == (
        True,
        len(own.rows),
    )
    run = read_run(lower.folder)
    assert (run.manifest["complete"], run.manifest["planned"]) == (False, dict.fromkeys(TASKS, 9))
    assert run.manifest["stopped"] is None


@pytest.mark.parametrize("order", [(TASKS, ["hk_fs_mcq_hk_ll"]), (["hk_fs_mcq_hk_ll"], TASKS)])
@pytest.mark.parametrize("part", [(0, 1), (1, 2)])
def test_probabilities_and_texts_are_of_one_run(job, order, part):
    """Probabilities alone are sampled in no way, and fit beside any."""
    sampling = {"do_sample": True, "temperature": 0.7}
    for number, tasks in enumerate(order):
        mine = job(part if number else (0, 1), tasks=tasks, gen_kwargs=sampling)
        answer(mine, Engine())
    run = read_run(mine.folder)
    assert set(run.manifest["tasks"]) == {*TASKS, "hk_fs_mcq_hk_ll"}
    assert run.manifest["protocol"]["generation_kwargs"]["temperature"] == 0.7
    assert run.manifest["protocol"]["regime"] == "custom"
    # Other texts are as little of that run as before.
    with pytest.raises(UserError, match=r"regime|generation_kwargs"):
        job((2, 3), gen_kwargs={"do_sample": True, "temperature": 0.2})


def test_parts_that_generated_differ_whatever_comes_first(job):
    answer(job((0, 3), tasks=["hk_fs_mcq_hk_ll"]), Engine())
    answer(job((1, 3)), Engine())
    held = json.loads((job().folder / "parts/2-of-3/run.json").read_text("utf-8"))
    held["protocol"]["generation_kwargs"] |= {"temperature": 1.0}
    parts = [read_run(path) for path in run_parts.folders(job().folder)]
    parts.append(type(parts[1])(parts[1].folder, held, {("x", "y", "", 0): {"status": "ok"}}))
    with pytest.raises(UserError, match="generation_kwargs"):
        run_parts.merge(job().folder, parts)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gen_kwargs": {"do_sample": True, "temperature": 1.0}}, "generation_kwargs|regime"),
        ({"gen_kwargs": {"max_gen_toks": 9}}, "generation_kwargs"),
        ({"model_args": {"revision": "abc"}}, "holds answers with revision None"),
        ({"model_args": {"dtype": "float16"}}, "holds answers with dtype float32"),
        ({"model_args": {"enable_thinking": True}}, "holds answers with mode none"),
    ],
)
def test_answers_of_different_settings_never_mix(job, changes, message):
    answer(job(), Engine())
    before = {path: path.stat().st_mtime_ns for path in job().folder.rglob("*.json*")}
    for part in ((0, 1), (1, 2)):
        with pytest.raises(UserError, match=message):
            job(part, **changes)
    assert before == {path: path.stat().st_mtime_ns for path in job().folder.rglob("*.json*")}


def test_two_models_of_one_name_never_mix(tmp_path, job):
    """Local folders: the weights' sha256 tells them apart."""
    for name, weights in (("a", b"1"), ("b", b"2")):
        (tmp_path / name / "model").mkdir(parents=True)
        (tmp_path / name / "model" / "model.safetensors").write_bytes(weights)
    answer(job(model=str(tmp_path / "a" / "model")), Engine())
    with pytest.raises(UserError, match="holds answers with weights_sha256"):
        job(model=str(tmp_path / "b" / "model"))
    assert str(tmp_path) not in (job(model=str(tmp_path / "a/model")).part / "run.json").read_text()


def test_a_hub_models_commits_never_mix(job, monkeypatch):
    """Without a revision it is that of `main` today, which is recorded, and loaded."""
    seen = []

    class Vllm(Engine):
        @classmethod
        def create_from_arg_obj(cls, args, extra):
            seen.append(args["revision"])
            return cls()

    stand_in = SimpleNamespace(CountingVLLM=Vllm)
    monkeypatch.setitem(sys.modules, "hk_fs_bench.vllm_model", stand_in)
    monkeypatch.setattr("hk_fs_bench.lm_eval_model.RecordedModel.tokenizer", None)
    for commit in ("a" * 40, "b" * 40):
        monkeypatch.setattr(
            "transformers.AutoConfig.from_pretrained",
            lambda *_, commit=commit, **__: SimpleNamespace(_commit_hash=commit),
        )
        if commit[0] == "b":
            with pytest.raises(UserError, match="holds answers with revision aaaa"):
                job()
            return
        mine = job()
        mine.config.lm_eval["model"] = "vllm"
        local_runs.run(mine)
        assert seen == [commit]


def test_another_edition_never_mixes(tmp_path, job, small):
    answer(job(), Engine())
    path = small / "data/oeq/test.jsonl"
    before = path.read_text("utf-8")
    try:
        path.write_text(before.replace("the", "a", 1), "utf-8")
        with pytest.raises(UserError, match="holds answers with dataset_sha256"):
            job()
    finally:
        path.write_text(before, "utf-8")


def test_a_batch_that_does_not_fit_is_halved(job):
    engine = Engine(room=3)
    progress = local_runs.run(job(batch=16), load=lambda _: engine)
    assert (progress.halved, progress.batch) == (2, 2)
    assert len(engine.asked) == len(set(engine.asked)) == 18
    assert set(engine.batches) <= {1, 2}


def test_an_answer_that_fits_nowhere_is_one_line(job):
    with pytest.raises(UserError, match="does not fit into memory alone"):
        answer(job(), Engine(room=0))
    stopped = read_run(job().folder)
    assert not stopped.rows
    assert "does not fit" in stopped.manifest["stopped"]


@pytest.mark.parametrize("error", [RuntimeError("shapes differ"), ValueError("no")])
def test_another_error_is_no_matter_of_memory(job, error):
    with pytest.raises(type(error)):
        answer(job(), Engine(room=1, error=error))
    assert str(error) in read_run(job().folder).manifest["stopped"]


@pytest.mark.parametrize(
    ("error", "memory"),
    [
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), True),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), True),
        (MemoryError(), True),
        (RuntimeError("device-side assert"), False),
    ],
)
def test_what_is_out_of_memory(error, memory):
    assert local_batches.out_of_memory(error) is memory


def test_seconds_are_the_batchs_shared_out(job, small, monkeypatch):
    from hk_fs_bench import items

    clock = iter(range(0, 1000, 6))
    time = SimpleNamespace(perf_counter=lambda: float(next(clock)), monotonic=lambda: 0.0)
    monkeypatch.setattr(local_batches, "time", time)
    answer(job(batch=3), Engine())
    run = read_run(job().folder)
    assert {row["performance"]["batch_share_ms"] for row in run.rows.values()} == {2000.0}
    scores = scoring.score(run, items.load(small))
    for task in TASKS:
        seconds = scores["tasks"][task]["seconds"]
        assert (seconds["mean"], seconds["n"]) == (2.0, 9)
        assert "shared out equally" in seconds["definition"]
        tokens = scores["tasks"][task]["tokens"]["output"]
        assert (tokens["mean"], tokens["n"]) == (3.0, 9)


def test_a_batch_is_of_one_task_longest_first(job):
    engine = answer(job(batch=100), Engine())
    assert engine.batches == [9, 9]
    lengths = [row["token_usage"]["input_tokens"] for row in read_run(job().part).of_task(TASKS[0])]
    assert lengths == sorted(lengths, reverse=True)


def test_probabilities_of_options(job, small):
    from hk_fs_bench import items

    mine = job(tasks=["hk_fs_mcq_hk_ll"])
    engine = answer(mine, Engine())
    assert engine.batches == [16, 16, 4]
    run = read_run(mine.folder)
    assert all(row["option_logprobs"] == [-1, 0, -3, -2] for row in run.rows.values())
    figures = scoring.score(run, items.load(small))["tasks"]["hk_fs_mcq_hk_ll"]
    assert figures["answered"] == figures["readable"] == 9


def test_one_process_at_a_time_writes_a_part(job):
    mine = job()
    with (
        local_runs.runs.PredictionLog(mine.part),
        pytest.raises(UserError, match="another process"),
    ):
        answer(mine, Engine())


def test_a_folder_of_another_kind_is_left_alone(tmp_path, job):
    folder = job().folder
    folder.mkdir()
    (folder / "run.json").write_text('{"tasks": []}')
    with pytest.raises(UserError, match="none of this command's"):
        job()


def lm_eval_parts(tmp_path, *splits):
    """Outputs of `lm_eval run --samples`: the documents of each split."""
    for number, split in enumerate(splits):
        folder = tmp_path / "run" / "parts" / run_parts.part_name(number, len(splits))
        write(folder, {TASKS[0]: [f"text {k}" for k in range(10)]})
        (path,) = folder.rglob("samples_*")
        lines = path.read_text("utf-8").splitlines(keepends=True)
        path.write_text("".join(lines[k] for k in split), "utf-8")
    return tmp_path / "run"


def test_lm_evals_own_shards_make_one_run(tmp_path, dataset):
    from hk_fs_bench import lm_eval_runs

    folder = lm_eval_parts(tmp_path, range(4), range(4, 10))
    parts = [lm_eval_runs.convert(p, dataset=dataset) for p in run_parts.folders(folder)]
    run = run_parts.merge(folder, parts)
    whole = lm_eval_runs.convert(
        write(tmp_path / "w", {TASKS[0]: [f"text {k}" for k in range(10)]})
    )
    assert {k: r["output"] for k, r in run.rows.items()} == {
        k: r["output"] for k, r in whole.rows.items()
    }
    assert run.manifest["timing"]["requests"] == 10
    assert scoring.score(run, dataset)["tasks"][TASKS[0]]["answered"] == 10


def test_what_lm_eval_answered_is_not_asked_again(tmp_path, job, small, monkeypatch):
    """Its shards lie a folder deeper than ours."""
    from hk_fs_bench import items

    monkeypatch.setattr(items, "load", lambda *_, load=items.load: load(small))
    shard = job().folder / "parts" / "mine"
    changes = {"model_dtype": "torch.float32", "batch_size": 4, "device": "cpu"}
    write(shard, {TASKS[0]: [f"text {k}" for k in range(4)]}, config=changes)
    (path,) = shard.rglob("results_*")
    results = json.loads(path.read_text("utf-8")) | {"chat_template_sha": None}
    results["configs"][TASKS[0]]["generation_kwargs"]["repetition_penalty"] = 1.0
    path.write_text(json.dumps(results), "utf-8")
    mine = job()
    engine = answer(mine, Engine())
    assert len(engine.asked) == 14
    run = read_run(mine.folder)
    assert (len(run.rows), run.manifest["complete"]) == (18, True)
    assert job().todo == []
    with pytest.raises(UserError, match="holds answers with dtype"):
        job(model_args={"dtype": "float16"})


def test_a_part_of_lm_evals_is_not_written_to(tmp_path, job):
    write(job().part, {TASKS[0]: ["text"]})
    with pytest.raises(UserError, match="holds an output of lm_eval; give it another name"):
        job()


def test_shards_that_overlap_are_refused(tmp_path, dataset):
    from hk_fs_bench import lm_eval_runs

    folder = lm_eval_parts(tmp_path, range(5), range(4, 10))
    parts = [lm_eval_runs.convert(p, dataset=dataset) for p in run_parts.folders(folder)]
    with pytest.raises(UserError, match="parts must answer different prompts"):
        run_parts.merge(folder, parts)


def test_score_reads_parts(tmp_path, dataset):
    import subprocess

    folder = lm_eval_parts(tmp_path, range(4), range(4, 10))
    script = local_configs.prompts.tasks_folder().parent / "scripts" / "score.py"
    done = subprocess.run(
        [sys.executable, script, folder, "--json", "--metrics", "none"],
        capture_output=True,
        text=True,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tasks"][TASKS[0]]["answered"] == 10


def test_a_repeated_last_document_of_accelerate_is_no_sample(tmp_path, dataset):
    from hk_fs_bench import lm_eval_runs

    folder = write(tmp_path, {TASKS[0]: ["a", ["b", "b"]]})
    (path,) = folder.rglob("results_*")
    results = json.loads(path.read_text())
    results["configs"][TASKS[0]]["repeats"] = 1
    path.write_text(json.dumps(results))
    run = lm_eval_runs.convert(folder, dataset=dataset)
    assert sorted(row["sample"] for row in run.rows.values()) == [0, 0]


def test_a_hub_out_of_reach_is_asked_once(monkeypatch, caplog):
    from huggingface_hub import constants, is_offline_mode

    from hk_fs_bench.lm_eval_model import RecordedModel, ask_hub_once

    tries = []

    class Session:
        def head(self, url, timeout):
            tries.append(url)
            raise OSError("no route")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.get_session", Session)
    ask_hub_once.cache_clear()
    for name in ("some/model", "some/other"):
        model = RecordedModel({"model_args": {"pretrained": name}}, None)
        assert (model.tokenizer, model.revision) == (None, None)
    assert len(tries) == 1
    assert is_offline_mode()
    assert [record.message for record in caplog.records if "Hub" in record.message] == [
        "the Hub can't be reached (OSError: no route); only what is cached here is used"
    ]


@pytest.mark.parametrize("part", [(1, 1), (-1, 2), (5, 3)])
def test_a_part_that_is_none(part):
    with pytest.raises(UserError, match="parts are 1/N to N/N"):
        local_plan.Share(*part)


def test_a_share_is_dealt_out_over_processes():
    shares = [local_plan.Share(k, 3).split(r, 4) for k in range(3) for r in range(4)]
    owners = [[s for s in shares if n % s.count == s.index] for n in range(50)]
    assert all(len(own) == 1 for own in owners)
