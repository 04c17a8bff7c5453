"""Models of real shapes and random weights, with a tokenizer trained on the dataset's own text.

For machines where no weights can be had: the work of a step depends on the shape alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

# Shapes of published models; "tiny" runs the same code on a CPU in seconds.
SHAPES: dict[str, dict[str, int]] = {
    "qwen2.5-7b": {
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "vocab_size": 152064,
    },
    "tiny": {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 8192,
    },
}
TEMPLATE = (
    "{% for message in messages %}<|start|>{{ message.role }}\n{{ message.content }}<|end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)


def make(shape: str, folder: Path, device: str, dtype: Any) -> Any:
    """A model on its device; its config and tokenizer go into `folder`, its weights nowhere."""
    import torch
    from transformers import AutoModelForCausalLM, Qwen2Config

    tokenizer = _tokenizer()
    config = Qwen2Config(
        **SHAPES[shape],
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    torch.manual_seed(1)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(
            config, dtype=dtype, attn_implementation=attention()
        ).eval()
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model


def attention() -> str:
    """The name of an attention that reads the keys and values of a group of heads once a step.

    transformers does so from 5.24 on. An older one copies them for every head of the group, in
    each step; there, the same packing of a step's heads is put before its own function.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.integrations import sdpa_attention
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

    if hasattr(sdpa_attention, "pack_gqa"):
        return "sdpa"
    import torch

    plain = sdpa_attention.sdpa_attention_forward

    def packed(module: Any, query: Any, key: Any, value: Any, mask: Any, **told: Any) -> Any:
        batch, heads, length, size = query.shape
        if length > 1 or mask is None or heads == key.shape[1]:
            return plain(module, query, key, value, mask, **told)
        out = torch.nn.functional.scaled_dot_product_attention(
            query.reshape(batch, key.shape[1], heads // key.shape[1], size),
            key,
            value,
            attn_mask=mask,
            scale=told.get("scaling"),
        )
        return out.reshape(batch, 1, heads, size), None

    AttentionInterface.register("packed_sdpa", packed)
    AttentionMaskInterface.register("packed_sdpa", ALL_MASK_ATTENTION_FUNCTIONS["sdpa"])
    return "packed_sdpa"


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    from hk_fs_bench import items

    bare = Tokenizer(models.BPE())
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=8000,
        special_tokens=["<|end|>", "<|start|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [
        text
        for item in items.load().by_id.values()
        for text in (item.question, item.explanation or "", *getattr(item, "choices", []))
    ]
    bare.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=bare,
        eos_token="<|end|>",
        pad_token="<|end|>",
        chat_template=TEMPLATE,
    )
