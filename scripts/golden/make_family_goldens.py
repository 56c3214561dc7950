"""Writes tests/golden/families: tiny random models of the other families as transformers saves them, and what it computes.

Files and expected tensors are those of make_llama_goldens.py.

    pip install torch==2.15.0 transformers==5.23.0 tokenizers==0.23.3 safetensors==0.8.0
    python scripts/golden/make_family_goldens.py
"""

import pathlib
import shutil

import torch
import transformers

from golden_models import PROMPT_LENGTHS, expected_tensors, largest_logit, require_pinned, write_expected
from make_llama_goldens import PINNED

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/families"

SIZES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, vocab_size=96, initializer_range=0.25,
             bos_token_id=1, eos_token_id=2, pad_token_id=None)
GATED = dict(**SIZES, intermediate_size=48, num_key_value_heads=2, max_position_embeddings=256, rms_norm_eps=1e-5,
             tie_word_embeddings=False)
BLOOM = dict(hidden_size=32, n_layer=2, n_head=4, vocab_size=96, initializer_range=0.25, bos_token_id=1,
             eos_token_id=2, pad_token_id=None)
RW = dict(alibi=True, bias=True, parallel_attn=False, multi_query=False)
LONG = (150, 5, 21)  # the window leaves whole tiles of the KV cache behind

# name: (configuration, stored dtype, prompt lengths, part that is saved)
VARIANTS = {
    "llama_biases": (transformers.LlamaConfig(**GATED, attention_bias=True, mlp_bias=True), torch.float16),
    "mistral": (transformers.MistralConfig(**GATED, sliding_window=8), torch.float32),
    "mistral_long": (transformers.MistralConfig(**GATED, sliding_window=40), torch.bfloat16, LONG),
    "qwen2": (transformers.Qwen2Config(**GATED), torch.bfloat16),
    "qwen2_window": (transformers.Qwen2Config(**GATED, use_sliding_window=True, sliding_window=12,
                                              max_window_layers=0), torch.float16),
    "bloom": (transformers.BloomConfig(**BLOOM), torch.float32),
    # Heads that are no power of two; saved without the head, hence without the prefix of its tensors.
    "bloom_six_heads": (transformers.BloomConfig(**{**BLOOM, "hidden_size": 48, "n_head": 6}), torch.float16,
                        PROMPT_LENGTHS, "transformer"),
    "falcon_7b": (transformers.FalconConfig(**SIZES), torch.bfloat16),
    "falcon_40b": (transformers.FalconConfig(**SIZES, new_decoder_architecture=True, num_kv_heads=2,
                                             tie_word_embeddings=False), torch.float16),
    "falcon_11b": (transformers.FalconConfig(**SIZES, new_decoder_architecture=True, num_kv_heads=1,
                                             num_ln_in_parallel_attn=1), torch.float16),
    "falcon_rw": (transformers.FalconConfig(**SIZES, **RW), torch.float32),
}


def make_model(config, dtype, seed):
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Norms of ones and biases of zeros would hide one that is left out.
            if name.endswith("bias"):
                parameter.copy_(0.3 * torch.randn_like(parameter))
            elif parameter.dim() == 1:
                parameter.copy_(1.0 + 0.3 * torch.randn_like(parameter))
    return model.to(dtype)


def write_variant(name, config, dtype, lengths=PROMPT_LENGTHS, part=None):
    folder = FOLDER / name
    for seed in range(100):
        shutil.rmtree(folder, ignore_errors=True)
        model = make_model(config, dtype, seed)
        (getattr(model, part) if part else model).save_pretrained(folder)
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        tensors = expected_tensors(model, lengths)
        if tensors:
            write_expected(folder, tensors)
            print(name, "seed", seed, "logits up to", largest_logit(tensors))
            return
    raise SystemExit(f"{name}: no seed gives clear greedy choices")


def main():
    require_pinned(PINNED)
    with torch.no_grad():
        for name, variant in VARIANTS.items():
            write_variant(name, *variant)


if __name__ == "__main__":
    main()
