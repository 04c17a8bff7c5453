"""Requests and replies: what goes out for every entry of models.yaml, and what any bytes become."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hk_fs_bench import api_models, providers
from hk_fs_bench.answers import status_of_cause
from hk_fs_bench.api_errors import Failure, error_of_status, failure_of

REGISTRY = api_models.load()
OPENAI = REGISTRY.providers["openai"]
PAPER = [name for name, model in REGISTRY.models.items() if model.paper is not None]

# What each configuration of the paper sends beside model and messages, in the paper's regime.
SENT = {
    "claude-opus": {"max_completion_tokens": 512},
    "deepseek": {"max_tokens": 512, "thinking": {"type": "disabled"}},
    "deepseek-thinking": {"max_tokens": 512 + 16384, "thinking": {"type": "enabled"}},
    "gemini-3": {
        "max_tokens": 512 + 1024,
        "extra_body": {"google": {"thinking_config": {"thinking_level": "minimal"}}},
    },
    "gemini-3-thinking": {
        "max_tokens": 512 + 16384,
        "extra_body": {"google": {"thinking_config": {"thinking_level": "high"}}},
    },
    "gpt-4.1": {"max_completion_tokens": 512},
    "grok-4": {"max_completion_tokens": 512 + 16384},
    "qwen-plus": {"max_tokens": 512, "enable_thinking": False, "enable_search": False},
    "llama-3.3-70b": {"max_tokens": 512},
    "qwen3-next-80b": {"max_tokens": 512, "enable_search": False},
}


def body_of(name: str, regime: str) -> dict:
    model = REGISTRY.model(name)
    wishes, _ = providers.applied(model, REGISTRY.sampling(regime))
    return providers.payload(model, "the prompt", wishes=wishes, answer_limit=512)


def test_the_table_of_payloads_is_whole():
    assert set(SENT) == set(PAPER)


@pytest.mark.parametrize("name", PAPER)
def test_paper_sends_nothing_that_nobody_asked_for(name):
    body = body_of(name, "paper")
    assert body["messages"] == [{"role": "user", "content": "the prompt"}]
    assert body["model"] == REGISTRY.model(name).id
    assert providers.sent_fields(body) == SENT[name]


@pytest.mark.parametrize("name", PAPER)
def test_greedy_adds_a_temperature_where_it_is_applied(name):
    extra = {} if name == "deepseek-thinking" else {"temperature": 0}
    assert providers.sent_fields(body_of(name, "greedy")) == SENT[name] | extra


def test_a_stream_is_asked_for_with_its_usage():
    model = REGISTRY.model("gpt-4.1").model_copy(update={"stream": True})
    body = providers.payload(model, "q", wishes={}, answer_limit=None)
    assert providers.sent_fields(body) == {
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def reply(text: str | None = "B", **changes) -> providers.Reply:
    usage = {
        "input_tokens": 9,
        "cached_input_tokens": None,
        "output_tokens": 30,
        "reasoning_tokens": None,
    }
    fields = {"reasoning": None, "finish_reason": "stop", "usage": usage}
    return providers.Reply(text, **(fields | changes))


def test_answer_tokens_are_output_without_reasoning_or_unknown():
    plain, thinking = REGISTRY.model("gpt-4.1"), REGISTRY.model("grok-4")
    assert reply().answer_tokens(plain) == 30
    assert reply().answer_tokens(thinking) is None
    assert reply(reasoning="hm").answer_tokens(plain) is None
    counted = reply(usage=reply().usage | {"reasoning_tokens": 25})
    assert counted.answer_tokens(thinking) == 5
    assert reply(usage=dict.fromkeys(reply().usage)).answer_tokens(plain) is None


def test_sources_are_found_wherever_they_stand_and_ours_are_known():
    body = {
        "choices": [
            {
                "finish_reason": "stop",
                "message": {
                    "content": "B",
                    "annotations": [
                        {"type": "url_citation", "url_citation": {"url": "https://a.example/x"}}
                    ],
                },
            }
        ],
        "citations": ["https://a.example/x", "https://huggingface.co/datasets/HK-FS-Bench/q"],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1},
    }
    found = providers.read_reply(json.dumps(body).encode(), OPENAI)
    assert found.sources_used == 2
    assert found.contaminated(["hk-fs-bench"])
    assert not found.contaminated(["other-bench"])
    assert not reply().contaminated(["hk-fs-bench"])


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 10**12)
    | st.floats(allow_nan=True)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("choices", "message", "content", "error", "code", "usage", "type", "text"),
                    *("finish_reason", "reasoning", "delta", "index", "citations", "refusal"),
                    *("prompt_tokens", "completion_tokens", "total_tokens", "details", "metadata"),
                    *("completion_tokens_details", "reasoning_tokens", "violations", "model"),
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(JSON, st.booleans())
def test_any_json_is_a_reply_or_a_failure(value, streamed):
    choice = {"choices": [value]} if isinstance(value, dict) else value
    for body in (value, choice):
        raw = json.dumps(body).encode()
        if streamed:
            raw = b"data: " + raw + b"\n\ndata: [DONE]\n\n"
        check_total(raw)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_reply_or_a_failure(raw):
    check_total(raw)
    check_total(b'data: {"choices": [' + raw)


def check_total(raw: bytes) -> None:
    try:
        found = providers.read_reply(raw, OPENAI)
    except Failure:
        return
    status, cause = found.outcome
    assert (cause is None) == (status == "ok")
    if cause is not None:
        assert status_of_cause(cause) not in ("valid", "repaired")
    for name, count in found.usage.items():
        assert count is None or (isinstance(count, int) and count >= 0), name
    output, thought = found.usage["output_tokens"], found.usage["reasoning_tokens"]
    assert output is None or thought is None or output >= thought or output == 0


@given(JSON, st.integers(200, 599))
def test_any_error_body_has_a_class(value, status):
    failure = failure_of(status, error_of_status(value), {}, OPENAI)
    assert failure.action
    assert len(failure.message) <= 300


# models.yaml: every fault is one line that names its line.
VALID = """\
format: 1
regimes:
  paper: {}
  greedy: {temperature: 0}
providers:
  here: {base_url: "http://localhost/v1", key: HERE_KEY}
models:
  one:
    provider: here
    model: org/one
    id: one
    thinking: {mode: off}
    limit: {parameter: max_tokens, includes_thinking: false}
    search: {state: off}
    price: null
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mode: off", "mode: maybe", "line 12: field `models.one.thinking.mode`"),
        ("    id: one\n", "", "line 8: field `models.one.id` is missing"),
        ("price: null", "price: {input: -1, output: 2}", "line 15: field `models.one.price.input`"),
        ("price: null", "prices: null", "is missing"),
        ("provider: here", "provider: there", "line 9: model one names the provider there"),
        ("key: HERE_KEY", "key: sk-123", "line 6: field `providers.here.key`"),
        ("http://localhost/v1", "localhost:80", "line 6: field `providers.here.base_url`"),
        ("http://localhost/v1", "https://u:p@h/v1", "holds no password"),
        ("    model: org/one\n", "    id: two\n", "line 11: `id` stands in line 10 already"),
        ("    id: one", "\tid: one", "line 11: no YAML"),
        ("format: 1", "format: 2", "line 1: field `format`"),
        (VALID, "", "is empty"),
        (VALID, "- a\n", "line 1"),
        ("format: 1", "format: &a [*a]", "line 1: an alias stands inside what it names"),
        ("price: null", "price: &p {input: 1, output: *p}", "line 15: an alias"),
        ("format: 1", "format: " + "[" * 5000, "nested too deeply"),
        ("price: null", "price: \x01", "line 15: no YAML"),
        ("price: null", "price: {[a]: b}", "line 15: a key is one word"),
        ("price: null", "? {a: b}\n    : c", "line 15: a key is one word"),
        (
            "price: null",
            "price: {input: 1, output: 2, date: 2026-13-45}",
            "line 15: no YAML (no timestamp)",
        ),
        ("price: null", "price: !!timestamp soon", "line 15: no YAML (no timestamp)"),
        ("price: null", "price: !!int much", "line 15: no YAML (no int)"),
        ("price: null", "price: !!float much", "line 15: no YAML (no float)"),
        ("price: null", "price: !!bool maybe", "line 15: no YAML (no bool)"),
        ("  greedy: {temperature: 0}\n", "", "line 2: field `regimes.greedy` is missing"),
        ("    id: one", "    id: ''", "line 11: field `models.one.id`"),
        ("    id: one", '    id: "a\\u001b[31m"', "line 11: field `models.one.id`"),
        (
            "price: null",
            "price: null\n    timeout_s: .inf",
            "line 16: field `models.one.timeout_s`",
        ),
        ("price: null", "price: null\n    request: {n: 3}", "n is the runner's to set"),
        ("mode: off", "mode: off, request: {messages: []}", "messages is the runner's to set"),
    ],
)
def test_a_fault_of_models_yaml_names_its_line(tmp_path, old, new, message):
    path = tmp_path / "models.yaml"
    path.write_text(VALID.replace(old, new), "utf-8")
    with pytest.raises(api_models.UserError) as caught:
        api_models.load(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_model_is_added_without_code(tmp_path):
    path = tmp_path / "models.yaml"
    path.write_text(VALID, "utf-8")
    model = api_models.load(path).model("one")
    assert (model.thinking.mode, model.price) == ("off", None)
    with pytest.raises(api_models.UserError, match="did you mean one"):
        api_models.load(path).model("onne")


def test_every_fact_has_a_date_and_a_source():
    for model in [*REGISTRY.models.values(), *REGISTRY.providers.values()]:
        for fact in model.facts:
            assert fact.source.startswith("https://")
    for name in PAPER:
        assert REGISTRY.model(name).price is None or REGISTRY.model(name).price.source, name


def test_the_paper_s_prices_and_ids_are_the_paper_s():
    rows = yaml.safe_load(
        """
        claude-opus: [claude-4.5-opus, "5", "25"]
        deepseek: [deepseek-chat, 0.007–1.32, 0.66–3.96]
        deepseek-thinking: [deepseek-chat, 0.007–1.32, 0.66–3.96]
        gemini-3: [gemini-3-flash-preview, 0.05–1, "3"]
        gemini-3-thinking: [gemini-3-flash-preview, 0.05–1, "3"]
        gpt-4.1: [gpt-4.1, 0.5–2, "8"]
        grok-4: [grok-beta, "0.2", "0.5"]
        qwen-plus: [qwen-plus, 0.4–2, 1.6–6]
        """
    )
    for name, row in rows.items():
        paper = REGISTRY.model(name).paper
        assert [paper.id, paper.price_input, paper.price_output] == row


def test_money():
    price = api_models.Price(input=1, output=4, cached_input=0.1)
    usage = {"input_tokens": 1000, "cached_input_tokens": 900, "output_tokens": 500}
    assert price.cost(usage) == pytest.approx((100 * 1 + 900 * 0.1 + 500 * 4) / 1e6)
    assert price.cost({"input_tokens": 1000, "output_tokens": None}) is None
    assert api_models.check_price("0.5/3").output == 3
    for text in ("", "1", "1/2/3", "a/b", "-1/2", "nan/1", "1/inf"):
        with pytest.raises(api_models.UserError, match="is not IN/OUT"):
            api_models.check_price(text)
