"""The batch of a local run: what memory holds, task by task, and what a model's shape says."""

from types import SimpleNamespace

import pytest
import torch

from hk_fs_bench import local_batches, local_configs
from hk_fs_bench.errors import UserError
from hk_fs_bench.hf_model import CountingHF, answer_bytes
from hk_fs_bench.local_batches import Progress, Question
from tests.local_jobs import Engine

# Of Qwen2.5 7B, as its config.json has it.
QWEN = {
    "num_hidden_layers": 28,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "vocab_size": 152064,
}
WEIGHTS = 2 * 7_615_616_512
GB = 10**9


def asked(*sizes, kind="generate_until"):
    """Questions of one task a size."""
    return [
        Question(
            (f"task {task}", f"item {number}", "", 0),
            (
                SimpleNamespace(
                    args=("a prompt", {}),
                    request_type=kind,
                    task_name=f"task {task}",
                    doc={"id": number},
                ),
            ),
            "sha",
            8,
        )
        for task, size in enumerate(sizes)
        for number in range(size)
    ]


class Gpu(Engine):
    """An engine whose memory holds another number of answers for each task, by arithmetic."""

    def __init__(self, *holds, **told):
        super().__init__(**told)
        self.holds = iter(holds)

    def most_at_once(self, prompt, new):
        return next(self.holds)


@pytest.mark.parametrize(
    ("holds", "room", "batches"),
    [
        ((2, 8, 3), 100, [2, 2, 2, 2, 8, 3, 3, 2]),  # A task grows back after a smaller one.
        ((100, 100, 100), 100, [8, 8, 8]),  # Never above what was told.
        ((None, None, 4), 100, [8, 8, 4, 4]),
        ((8, 8, 8), 5, [4, 4, 4, 4, 4, 4]),  # Memory did run out: half of it from there on.
        ((3, 8, 8), 5, [3, 3, 2, 4, 4, 4, 4]),
    ],
)
def test_each_task_begins_with_what_memory_holds_of_it(holds, room, batches):
    engine = Gpu(*holds, room=room)
    progress = Progress(24, 8)
    rows = list(local_batches.answers(engine, asked(8, 8, 8), progress))
    # Once is enough: what did not fit is not tried again.
    assert progress.halved == (room == 5)
    assert len(rows) == len({(row["task"], row["item_id"]) for row in rows}) == 24
    assert engine.batches == batches


def stand_in(device="cuda", **shape):
    config = SimpleNamespace(**shape)
    config.get_text_config = lambda: config
    model = SimpleNamespace(config=config, dtype=torch.bfloat16)
    return SimpleNamespace(model=model, device=torch.device(device))


@pytest.fixture
def gpu(monkeypatch):
    """A GPU of 24 GB beside the weights of a 7B, all of the rest held by torch's own cache."""
    held = {"cache": 24 * GB - WEIGHTS - GB // 2}
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.empty_cache", lambda: held.update(cache=0))
    free = 24 * GB - WEIGHTS - GB // 2
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda _: (free - held["cache"], 24 * GB))
    return held


def test_what_torch_keeps_for_itself_counts_as_free(gpu):
    held = CountingHF.most_at_once(stand_in(**QWEN), 500, 512)
    # By hand: 1.2 x 57,344 bytes x 1,012 tokens of cache, 3 x 500 x 18,944 x 2 of a layer, 12 x
    # 152,064 of logits are 128.3 MB an answer; 0.9 x 8.27 GB hold 58 of them.
    assert held == 58
    # scales.yaml says so to whoever chooses a GPU.
    assert f"a batch of\n      {held}" in (local_configs.folder() / "scales.yaml").read_text(
        "utf-8"
    )


@pytest.mark.parametrize(
    "shape",
    [
        {"num_hidden_layers": 48, "hidden_size": 1024, "vocab_size": 50280},  # Mamba.
        # OpenELM: heads by layer.
        QWEN | {"num_key_value_heads": [3, 3, 4], "head_dim": 64},
        QWEN | {"num_attention_heads": [12, 12, 16], "num_key_value_heads": None},
        QWEN | {"intermediate_size": [768, 1024]},
        {},
    ],
)
def test_a_shape_that_does_not_tell_leaves_the_batch_as_told(gpu, shape):
    assert answer_bytes(SimpleNamespace(**shape), torch.bfloat16, 500, 512) is None
    assert CountingHF.most_at_once(stand_in(**shape), 500, 512) is None


def test_a_cpus_memory_is_not_asked():
    assert CountingHF.most_at_once(stand_in("cpu", **QWEN), 500, 512) is None


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_a_log_probability_that_is_no_number_is_one_line(value):
    engine = SimpleNamespace(loglikelihood=lambda requests, **_: [(float(value), False)])
    questions = asked(1, kind="loglikelihood")
    with pytest.raises(UserError, match=rf"item 0 of task 0: .* is {value}, which is no number"):
        list(local_batches.answers(engine, questions, Progress(1, 1)))
