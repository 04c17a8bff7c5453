"""lm-eval's own vLLM model over a stand-in for vLLM: counts and ends are the engine's."""

import importlib.metadata
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace

import pytest

from hk_fs_bench import local_runs
from hk_fs_bench.runs import read_run
from tests.local_jobs import TASKS, edition, planner

# The text's words are not the tokens that were generated: special ones are in no text.
ANSWERS = [
    ("A", [5] * 512, "length"),
    ("B because", [5, 6, 0], "stop"),
    (" ".join(["word"] * 600), [7] * 600, "stop"),
]


class Tokenizer:
    name_or_path, eos_token, pad_token = "some/model", "</s>", "</s>"
    eos_token_id = pad_token_id = 0
    bos_token_id = None

    def __call__(self, texts, **_):
        def ids(text):
            return [len(word) for word in text.split()]

        held = ids(texts) if isinstance(texts, str) else list(map(ids, texts))
        return _Ids(input_ids=held)

    def decode(self, token, **_):
        return "</s>"

    def apply_chat_template(self, history, **_):
        return "".join(f"<{turn['role']}> {turn['content']}" for turn in history)


class _Ids(dict):
    @property
    def input_ids(self):
        return self["input_ids"]


class LLM:
    def __init__(self, **told):
        model = SimpleNamespace(max_model_len=4096)
        self.llm_engine = SimpleNamespace(model_config=model)

    def generate(self, prompts, sampling_params, use_tqdm, lora_request):
        answers = [ANSWERS[number % len(ANSWERS)] for number in range(len(prompts))]
        return [
            SimpleNamespace(
                outputs=[SimpleNamespace(text=text, token_ids=tokens, finish_reason=end)]
            )
            for text, tokens, end in answers
        ]


def stand_in(patch):
    """The modules of vLLM that lm-eval imports."""
    held = {
        "vllm": {
            "LLM": LLM,
            "SamplingParams": lambda **told: told,
            "TokensPrompt": lambda prompt_token_ids: prompt_token_ids,
        },
        "vllm.lora": {},
        "vllm.lora.request": {"LoRARequest": object},
        "vllm.renderers": {},
        "vllm.renderers.hf": {"resolve_chat_template": lambda **_: None},
        "vllm.tokenizers": {"get_tokenizer": lambda *_, **__: Tokenizer()},
        "vllm.platforms": {
            "current_platform": SimpleNamespace(get_device_name=lambda: "NVIDIA H200")
        },
    }
    for name, content in held.items():
        module = ModuleType(name)
        module.__dict__.update(content, __spec__=ModuleSpec(name, None), __path__=[])
        patch.setitem(sys.modules, name, module)
    real = importlib.metadata.version
    patch.setattr(
        "importlib.metadata.version", lambda name: "0.11.0" if name == "vllm" else real(name)
    )


@pytest.fixture(scope="module")
def engine():
    loaded = ("lm_eval.models.vllm_causallms", "hk_fs_bench.vllm_model")
    with pytest.MonkeyPatch.context() as patch:
        stand_in(patch)
        from hk_fs_bench.vllm_model import CountingVLLM

        told = {"pretrained": "some/model", "tensor_parallel_size": 2}
        with pytest.MonkeyPatch.context() as config:
            config.setattr("transformers.AutoConfig.from_pretrained", lambda *_, **__: None)
            made = CountingVLLM.create_from_arg_obj(told, {"batch_size": "auto"})
        yield made
    for name in loaded:
        sys.modules.pop(name, None)


def test_tokens_and_ends_are_vllms(tmp_path, engine):
    job = planner(tmp_path, edition(tmp_path / "edition"))(tasks=TASKS[:1], batch=100)
    local_runs.run(job, load=lambda _: engine)
    run = read_run(job.folder)
    expected = {text: (len(tokens), end) for text, tokens, end in ANSWERS}
    found = [
        (row["output"], row["answer_tokens"], row["finish_reason"]) for row in run.rows.values()
    ]
    assert len(found) == 9
    assert {text: (tokens, end) for text, tokens, end in found} == expected
    assert run.manifest["sessions"][0]["device"] == "2 x NVIDIA H200"
