"""Trains one of the two Llama models from scratch, seeded, and saves it as a Hugging Face folder.

    python train.py MODEL FOLDER --corpus DIR --phases few:128:24:500 mixed-512:512:8:300

MODEL is `tiny` or `draft`. FOLDER must hold tokenizer.json already. A phase is
TEXT:LENGTH:ROWS:STEPS and reads DIR/TEXT.txt. Every 100 steps the folder is saved again,
so that training may be stopped at any time; the loss goes to FOLDER/loss.csv. With --resume the
weights and loss.csv in FOLDER are continued, with a new schedule and new optimizer state.
"""

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

import attention
from dataset import pack

SHAPES = {
    "tiny": dict(hidden_size=256, intermediate_size=768, num_hidden_layers=4, num_attention_heads=8),
    "draft": dict(hidden_size=128, intermediate_size=384, num_hidden_layers=2, num_attention_heads=4),
}
CONTEXT = 1024
VOCABULARY = 2048


def config_json(shape):
    """The complete config.json, in the form that has been usual for Llama models."""
    heads = shape["num_attention_heads"]
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **shape,
        "num_key_value_heads": heads,
        "head_dim": shape["hidden_size"] // heads,
        "hidden_act": "silu",
        "max_position_embeddings": CONTEXT,
        "vocab_size": VOCABULARY,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "rope_scaling": None,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "initializer_range": 0.02,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "use_cache": True,
        "torch_dtype": "bfloat16",
    }


def save(model, shape, folder):
    """Writes config, generation config and the weights as BF16 (the output matrix is the embedding)."""
    generation = {"bos_token_id": 0, "eos_token_id": 0, "do_sample": True, "temperature": 0.8}
    (folder / "config.json").write_text(json.dumps(config_json(shape), indent=2) + "\n")
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    tensors = {
        name: tensor.detach().to(torch.bfloat16).contiguous()
        for name, tensor in model.state_dict().items()
        if name != "lm_head.weight"
    }
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)


def optimizers(model, rate):
    """Muon for the matrices of the layers, Adam for the embedding and the norms."""
    layers = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    others = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    muon = torch.optim.Muon(layers, lr=rate, weight_decay=0.05, adjust_lr_fn="match_rms_adamw")
    return [muon, torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.98), weight_decay=0.0)]


def rate_at(step, total, decay):
    """Fraction of the full learning rate: short warm-up, plateau, linear decay over the last part."""
    return min(1.0, (step + 1) / 50, max(0.02, (total - step) / (decay * total + 1e-9)))


def batches(phases, corpus, tokenizer_file, seed, weight):
    """Yields (ids, weights) for every step of every phase, rows in seeded order, repeating if short."""
    for number, (name, length, rows, steps) in enumerate(phases):
        ids, weights = pack(tokenizer_file, corpus / f"{name}.txt", length, seed + number, weight)
        generator = np.random.default_rng(seed + number)
        print(f"phase {number}, {name}: {len(ids)} rows of {length}, {steps} steps read {steps * rows}", flush=True)
        order = np.concatenate([generator.permutation(len(ids)) for _ in range(1 + steps * rows // len(ids))])
        for step in range(steps):
            chosen = order[step * rows : (step + 1) * rows]
            yield torch.from_numpy(ids[chosen].astype(np.int64)), torch.from_numpy(weights[chosen])


def cross_entropies(logits, ids):
    return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten(), reduction="none")


@torch.compile(dynamic=False)
def token_losses(model, ids):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(input_ids=ids, use_cache=False).logits
    return cross_entropies(logits, ids)


@torch.compile(dynamic=False)
def taught_losses(model, ids, names, places):
    """(loss of every token, loss of the heads that are taught where to look)"""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(input_ids=ids, use_cache=False, output_attentions=True)
    return cross_entropies(out.logits, ids), attention.lesson_loss(out.attentions, names, places)


def loss_of(model, ids, weights, is_name=None):
    """(loss to minimise, [mean loss, mean loss on answers, share of answers given p > 1/2, loss of lesson])"""
    lesson = torch.zeros(())
    if is_name is None:
        losses = token_losses(model, ids)
    else:
        names = attention.last_names(ids, is_name)
        losses, lesson = taught_losses(model, ids, names, attention.sources(ids, weights, names))
    weights = weights[:, 1:].flatten()
    answers = losses.detach()[weights > 1]
    share = (answers < math.log(2)).float().mean()
    figures = [f.item() for f in (losses.detach().mean(), answers.mean(), share, lesson.detach())]
    return (losses * weights).sum() / weights.sum() + lesson, figures


def progress(log_file):
    """(steps, tokens, seconds) in the last row of an earlier run's loss.csv"""
    last = log_file.read_text(encoding="utf-8").split()[-1].split(",")
    return int(last[0]), int(last[2]), int(last[7])


def train(model, args, shape, log, done=(0, 0, 0)):
    phases = [(p.split(":")[0], *map(int, p.split(":")[1:])) for p in args.phases]
    total, tokens, started = sum(p[3] for p in phases), done[1], time.time() - done[2]
    chosen = optimizers(model, args.rate)
    recent = []
    is_name = attention.name_ids(Tokenizer.from_file(str(args.folder / "tokenizer.json"))) if args.teach else None
    for step, (ids, weights) in enumerate(batches(phases, args.corpus, args.folder / "tokenizer.json", args.seed, args.answer_weight)):
        for group in (g for o in chosen for g in o.param_groups):
            group["lr"] = args.rate * rate_at(step, total, args.decay)
        loss, figures = loss_of(model, ids, weights, is_name)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in chosen:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        tokens += ids.numel()
        recent.append(figures)
        if (step + 1) % 20 == 0:
            mean = np.mean(recent, axis=0)
            recent = []
            row = f"{done[0] + step + 1},{ids.shape[1]},{tokens},{mean[0]:.4f},{mean[1]:.4f},{mean[2]:.4f},{mean[3]:.4f}"
            print(f"{row},{time.time() - started:.0f}", file=log, flush=True)
        if (step + 1) % 100 == 0 or step + 1 in (total, args.stop):
            save(model, shape, args.folder)
        if step + 1 == args.stop:
            break


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=SHAPES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--phases", nargs="+", required=True)
    parser.add_argument("--stop", type=int, help="end after this step, before the phases are over")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--teach", action="store_true", help="teach heads where to look (attention.py)")
    parser.add_argument("--decay", type=float, default=0.5, help="part of the steps with falling rate")
    parser.add_argument("--answer-weight", type=float, default=8.0)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    shape = SHAPES[args.model]
    how = "eager" if args.teach else "sdpa"
    model = LlamaForCausalLM._from_config(LlamaConfig(**config_json(shape)), attn_implementation=how)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters", flush=True)
    log_file, done = args.folder / "loss.csv", (0, 0, 0)
    if args.resume:
        done = progress(log_file)
        model.load_state_dict(load_file(args.folder / "model.safetensors"), strict=False)
    with open(log_file, "a" if args.resume else "w", encoding="utf-8") as log:
        if not args.resume:
            print("step,length,tokens,loss,answer_loss,answer_share,lesson_loss,seconds", file=log)
        train(model, args, shape, log, done)


if __name__ == "__main__":
    main()
