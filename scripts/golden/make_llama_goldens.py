"""Writes tests/golden/llama: tiny random Llama folders as transformers saves them, and what transformers computes.

Each folder holds config.json, generation_config.json and safetensors in the variant's dtype, and
expected.safetensors: for prompt i, `prompt.i` [n] and `greedy.i` [m] (I32), `logits.i` [n, vocab_size] (F32).
Expected values are computed in F32 from the stored weights. Variant `text` also has a byte-level BPE tokenizer.json,
prompt.txt (`prompt.text` in tokens) and its greedy continuation, expected.txt (`greedy.text`).

    pip install torch==2.15.0 transformers==5.23.0 tokenizers==0.23.3 safetensors==0.8.0
    python scripts/golden/make_llama_goldens.py
"""

import pathlib
import shutil

import safetensors
import tokenizers
import torch
import transformers

from golden_models import MARGIN, expected_tensors, greedy, largest_logit, require_pinned, write_expected

PINNED = {torch: "2.15.0", transformers: "5.23.0", tokenizers: "0.23.3", safetensors: "0.8.0"}
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests/golden/llama"

BASE = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
            vocab_size=96, max_position_embeddings=128, initializer_range=0.25, rms_norm_eps=1e-5, rope_theta=10000.0,
            tie_word_embeddings=False, bos_token_id=1, eos_token_id=2, pad_token_id=None)
LINEAR = dict(rope_type="linear", factor=4.0, rope_theta=10000.0)
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32, rope_theta=500000.0)
TEXT = dict(vocab_size=288, tie_word_embeddings=True, num_key_value_heads=2)

# name: (changes to BASE, stored dtype, shard size)
VARIANTS = {
    "mha": ({}, torch.float32, "1GB"),
    "gqa": (dict(num_key_value_heads=2, head_dim=16), torch.float32, "1GB"),  # head_dim != hidden / heads
    "mqa": (dict(num_key_value_heads=1), torch.float16, "1GB"),
    "tied": (dict(tie_word_embeddings=True), torch.bfloat16, "1GB"),
    "rope_linear": (dict(rope_parameters=LINEAR), torch.float16, "1GB"),
    "rope_llama3": (dict(num_key_value_heads=2, rope_parameters=LLAMA3), torch.bfloat16, "1GB"),
    "sharded": (dict(num_key_value_heads=2), torch.float16, "20KB"),
    "text": (TEXT, torch.bfloat16, "1GB"),
}


def make_model(changes, dtype, seed):
    torch.manual_seed(seed)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**BASE, **changes}))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:  # all ones would hide a norm that is left out
                parameter.copy_(1.0 + 0.3 * torch.randn_like(parameter))
    return model.to(dtype)


def add_text(folder, model, tensors):
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=model.config.vocab_size, special_tokens=["<pad>", "<s>", "</s>"], show_progress=False,
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    text = "once upon a time there was a small machine that counted the words of a story again and again"
    tokenizer.train_from_iterator([text], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    prompt = "once upon a machine"
    ids = tokenizer.encode(prompt).ids
    tokens, margin = greedy(model, torch.tensor(ids))
    if margin < MARGIN or model.config.eos_token_id in tokens:
        return False
    tensors["prompt.text"] = torch.tensor(ids, dtype=torch.int32)
    tensors["greedy.text"] = tokens.to(torch.int32)
    (folder / "prompt.txt").write_text(prompt)
    (folder / "expected.txt").write_text(tokenizer.decode(tokens.tolist(), skip_special_tokens=True))
    return True


def write_variant(name, changes, dtype, shard_size):
    folder = FOLDER / name
    for seed in range(100):
        shutil.rmtree(folder, ignore_errors=True)
        make_model(changes, dtype, seed).save_pretrained(folder, max_shard_size=shard_size)
        model = transformers.LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
        tensors = expected_tensors(model)
        if tensors and (name != "text" or add_text(folder, model, tensors)):
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
