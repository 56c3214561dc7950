"""Prints one Markdown table of models: what a byte of KV buys.

    python compare.py FOLDER...

Every FOLDER has eval-results.json, as evaluate.py writes it. The bytes of KV per token are those of the cache
that transformers fills, at two bytes (BF16) per value.
"""

import argparse
import json
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

import cross_layer  # noqa: F401 (makes the Auto classes know dculab_cla)

BYTES = 2
ATTENTION = {"qwen3": "MHA, normed Q and K", "dculab_cla": "CLA", "deepseek_v3": "MLA"}


def attention_name(config):
    """The kind of attention, and how much of it there is."""
    heads, groups = config.num_attention_heads, config.num_key_value_heads
    usual = "MHA" if groups == heads else "MQA" if groups == 1 else "GQA"
    name = ATTENTION.get(config.model_type, usual)
    if name == "MLA":
        return f"MLA, {config.kv_lora_rank} + {config.qk_rope_head_dim} values"
    if name == "CLA":
        return f"CLA, {groups} KV heads in {len(set(config.kv_source_layers))} of {config.num_hidden_layers} layers"
    return name if groups == 1 else f"{name}, {groups} KV heads"


def kv_bytes(model, tokens=8):
    """Bytes of KV cache per token"""
    with torch.inference_mode():
        cache = model(input_ids=torch.zeros(1, tokens, dtype=torch.long), use_cache=True).past_key_values
    filled = [layer for layer in cache.layers if layer.is_initialized]
    return BYTES * sum(layer.keys.numel() + layer.values.numel() for layer in filled) // tokens


def row(folder):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    results = json.loads((folder / "eval-results.json").read_text(encoding="utf-8"))
    shares = [f"{100 * results[part]['choice']:.1f} %" for part in ("choice", "recall")]
    size = f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f}"
    cells = (folder.name, attention_name(model.config), kv_bytes(model), size, f"{results['held_out']['perplexity']:.2f}", *shares)
    return kv_bytes(model), "| " + " | ".join(map(str, cells)) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    args = parser.parse_args()
    print("| Model | Attention | KV bytes per token | Million parameters | Perplexity | Multiple choice | Long contexts |")
    print("|---|---|---|---|---|---|---|")
    for _, line in sorted(map(row, args.folders), key=lambda r: -r[0]):
        print(line)


if __name__ == "__main__":
    main()
