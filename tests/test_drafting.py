"""Drafting: what is asked of the model, and what becomes of every answer."""

import json
from contextlib import contextmanager

import pytest
from openai import OpenAI

from hk_fs_bench import draft_files, drafting, small_model
from hk_fs_bench.code_index import CodeEntry, CodeIndex
from hk_fs_bench.errors import UserError
from hk_fs_bench.schema import MCQItem
from tests.fault_server import FaultServer, Reply, error, ok

# Our own prose in the shape of an index: the Code's text is no part of this project.
TEXTS = {
    "B99.1": "An imagined provision says that a gate in a garden wall is one metre wide, unless "
    "Clause B99.2 lets it be narrower, and that Table B98 gives its height in every other case.",
    "B99.2": "Another imagined provision lets a gate be narrower where fewer than ten gardeners "
    "pass through it in an hour, and the wall beside it is lower than the gardeners themselves.",
    "Table B98": "Imagined heights: hedge gate two metres, brick gate three metres, iron gate "
    "four metres; none of them is found in any code, and all serve this test alone, as a table.",
    "C99.1": "short",
}


@pytest.fixture
def index():
    entries = {
        name: CodeEntry(name, "clause", name.removeprefix("Table ")[0], ("1",), text, ())
        for name, text in TEXTS.items()
    }
    return CodeIndex("2024", "0" * 64, entries)


GOOD = {
    "question": "How wide is the gate of a rose garden?",
    "choices": ["800 mm", "900 mm", "1000 mm", " 1100 mm "],
    "answer": "C",
    "explanation": "B99.1 asks for one metre.",
}


def reply(answer):
    return ok(json.dumps(answer))


@contextmanager
def scripted(*replies):
    """A server that gives these in turn, the last for ever; yields (url, requests)."""

    def next_reply(request):
        return replies[min(len(server.requests), len(replies)) - 1]

    with FaultServer(next_reply) as server:
        yield server.url, server.requests


def run(index, url, count=1, kind="mcq", timeout=30):
    client = OpenAI(base_url=url, api_key="k", max_retries=0, timeout=timeout)
    groups = drafting.pick_sources(index, "B", count, seed=1)
    return drafting.draft(client, "some-model", groups, kind)


def test_what_is_asked_and_what_becomes_of_it(index):
    with scripted(reply(GOOD)) as (url, seen):
        (found,) = run(index, url)
    asked = seen[0].body
    text = asked["messages"][1]["content"]
    for name in found.sources:
        assert f"[{name}] {TEXTS[name]}" in text
    assert "Requirements:" in text
    assert "scenario" in text
    schema = asked["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["answer"]["enum"] == ["A", "B", "C", "D"]
    item = MCQItem.model_validate(found.item)
    assert item.choices[3] == "1100 mm"
    assert item.provenance.model_dump() == {
        "method": "drafted from excerpts",
        "drafter": "some-model",
        "prompt_version": drafting.prompts()["version"],
        "source_ids": found.sources,
    }
    assert item.references == found.sources
    assert item.part == "B"
    assert item.id.startswith("draft-mcq-")
    assert found.fault is None


def test_sources_bring_what_they_name(index):
    groups = drafting.pick_sources(index, "B", 3, seed=1)
    by_first = {group[0].id: [entry.id for entry in group] for group in groups}
    assert by_first["B99.1"] == ["B99.1", "B99.2", "Table B98"]
    assert by_first["B99.2"] == ["B99.2"]
    assert [g[0].id for g in groups] == [g[0].id for g in drafting.pick_sources(index, "B", 3, 1)]
    assert len(drafting.pick_sources(index, None, 50, 1)) == 50
    with pytest.raises(UserError, match="no provision of Part C"):
        drafting.pick_sources(index, "C", 1, 1)


def test_an_open_ended_candidate(index):
    points = [{"text": "One metre.", "references": ["B99.1"], "essential": True}]
    answer = {"question": "Why?", "reference_answer": "So.", "key_points": points}
    with scripted(reply(answer | {"explanation": "It says so."})) as (url, _):
        (found,) = run(index, url, kind="oeq")
    assert found.item["key_points"] == points
    assert found.item["id"].startswith("draft-oeq-")


FAULTS = {
    "no JSON": (ok("A gate is wide."), "Invalid JSON"),
    "a field too few": (reply({"question": "Why?"}), "field `choices` is missing"),
    "three options": (
        reply(GOOD | {"choices": ["a", "b", "c"]}),
        "field `choices`: List should have at least 4 items",
    ),
    "a fifth letter": (reply(GOOD | {"answer": "E"}), "field `answer`"),
    "two options alike": (
        reply(GOOD | {"choices": ["a", "A.", "b", "c"]}),
        "two options of `choices` are the same text",
    ),
    "an empty question": (reply(GOOD | {"question": " "}), "field `question`"),
    "cut off": (ok('{"question": "How wi', finish="length"), "cut off at the token limit"),
    "empty": (ok(None), "an empty answer (finish_reason stop)"),
    "filtered": (
        ok("", finish="content_filter"),
        "an empty answer (finish_reason content_filter)",
    ),
    "no choice": (Reply(body={"id": "c", "choices": []}), "no answer: the reply has no choice"),
    "a server's error": (error(500), "no answer: "),
    "too many requests": (error(429), "no answer: "),
}


@pytest.mark.parametrize(("answer", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_faulty_answer_is_kept_with_its_reason(index, answer, fault):
    with scripted(answer, reply(GOOD)) as (url, _):
        first, second = run(index, url, 2)
    assert first.item is None
    assert fault in first.fault
    assert first.sources
    assert second.item is not None
    answers = (answer.body or {}).get("choices") or [{"message": {"content": None}}]
    assert first.raw == (answers[0]["message"]["content"] or None)


def test_a_copy_of_the_code_is_no_candidate(index, monkeypatch):
    run_ = "twelve words in a row that the imagined code would have too"
    monkeypatch.setattr(drafting, "shared_run", lambda text: run_ if run_ in text else None)
    with scripted(reply(GOOD | {"explanation": f"It says {run_}."})) as (url, _):
        (found,) = run(index, url)
    assert found.item is None
    assert found.fault == f"copies the Code: “{run_}”"
    assert run_ in found.raw


@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_no_second_try_mends_ends_the_run(index, status):
    message = rf"refuses \({status}\): .*told to fail.*--base-url, --model and the key"
    with scripted(error(status)) as (url, seen), pytest.raises(UserError, match=message):
        list(run(index, url, 5))
    assert len(seen) == 1


def test_a_refused_call_leaves_no_file(index, tmp_path, monkeypatch):
    monkeypatch.setattr(draft_files.code_index, "build_index", lambda path: index)
    out = tmp_path / "new" / "b.jsonl"
    with scripted(error(401)) as (url, _), pytest.raises(UserError, match=r"refuses \(401\)"):
        draft_files.write_drafts(tmp_path, url, "m", "NO_KEY", out, "mcq", None, 2, 1)
    assert not out.parent.exists()
    with pytest.raises(UserError, match="0 candidates can't be drafted"):
        draft_files.write_drafts(tmp_path, "", "m", "NO_KEY", out, "mcq", None, 0, 1)


def test_a_short_run_without_any_answer_fails(index):
    down = scripted(Reply(503, raw=b"down"))
    with down as (url, _), pytest.raises(UserError, match="1 times in a row"):
        list(run(index, url, 1))


def test_a_server_that_never_answers_ends_the_run(index):
    with scripted(Reply(503, raw=b"down")) as (url, seen):
        with pytest.raises(UserError, match="3 times in a row"):
            list(run(index, url, 9))
        assert len(seen) == 3
    with pytest.raises(UserError, match="can't be reached"):
        list(run(index, url))


@pytest.mark.model
def test_a_real_model(index, monkeypatch):
    """A small model on a real server: its JSON is forced by the schema, its content is its own."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(small_model.gguf_file())
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel, params.cpuparams.n_threads = 2048, 1, 1
    server = xllamacpp.Server(params)
    short = drafting.prompts() | {"max_tokens": 400, "temperature": 0}
    monkeypatch.setattr(drafting, "prompts", lambda: short)
    (found,) = run(index, f"{server.listening_address}/v1", timeout=900)
    assert (found.item is None) != (found.fault is None)
    # Whatever it says, it says it in the form that was asked for, as far as it came.
    assert found.raw.lstrip().startswith("{")
    if found.fault != "cut off at the token limit":
        assert set(json.loads(found.raw)) == set(GOOD)
