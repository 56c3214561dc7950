"""Trains one of the models of models.py from scratch, seeded, and saves it as a Hugging Face folder.

    python train.py MODEL FOLDER --corpus DIR --phases few:128:24:500 mixed-512:512:8:300

FOLDER must hold tokenizer.json already. A phase is TEXT:LENGTH:ROWS:STEPS and reads DIR/TEXT.txt. Every
20 steps the folder is saved again, so that training may be stopped at any time; the loss goes to
FOLDER/loss.csv. With --resume the weights and loss.csv in FOLDER are continued, with a new schedule and new
optimizer state. With --go-on the same command goes on from FOLDER.state, which is written every 20 steps
too, as if it had never stopped.
"""

import argparse
import itertools
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

import adapt
import attention
import experts
import models
from dataset import pack

SAVED_EVERY = 20  # steps
ADAPTED_TO = 16  # rows of 512 tokens

def save(model, config, folder):
    """Writes config, generation config and the weights as BF16 (the output matrix is the embedding).

    The bias that balances experts stays FP32, as in DeepSeek-V3's file: its steps are small.
    """
    generation = {"bos_token_id": 0, "eos_token_id": 0, "do_sample": True, "temperature": 0.8}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    tensors = {
        name: tensor.detach().to(torch.float32 if name.endswith("bias") else torch.bfloat16).contiguous()
        for name, tensor in model.state_dict().items()
        if name != "lm_head.weight"
    }
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)


def optimizers(model, rate):
    """Muon for the matrices of the layers, Adam for the embedding, the norms and the choice of experts."""
    layers, others = [], []
    for name, parameter in model.named_parameters():
        matrix = parameter.ndim == 2 and "embed" not in name and not name.endswith("mlp.gate.weight")
        (layers if matrix else others).append(parameter)
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


def token_losses(model, ids):
    return cross_entropies(model(input_ids=ids, use_cache=False).logits, ids)


def taught_losses(model, ids, names, places):
    """(loss of every token, loss of the heads that are taught where to look)"""
    out = model(input_ids=ids, use_cache=False, output_attentions=True)
    return cross_entropies(out.logits, ids), attention.lesson_loss(out.attentions, names, places)


def quick(losses):
    """Compiled, in BF16 where autocast allows it."""

    @torch.compile(dynamic=False)
    def compiled(*args):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return losses(*args)

    return compiled


WAYS = {"plain": (token_losses, taught_losses), "quick": (quick(token_losses), quick(taught_losses))}


def loss_of(model, ids, weights, is_name=None, way="quick"):
    """(loss to minimise, [mean loss, mean loss on answers, share of answers given p > 1/2, loss of lesson])"""
    lesson = torch.zeros(())
    if is_name is None:
        losses = WAYS[way][0](model, ids)
    else:
        names = attention.last_names(ids, is_name)
        losses, lesson = WAYS[way][1](model, ids, names, attention.sources(ids, weights, names))
    weights = weights[:, 1:].flatten()
    answers = losses.detach()[weights > 1]
    share = (answers < math.log(2)).float().mean()
    figures = [f.item() for f in (losses.detach().mean(), answers.mean(), share, lesson.detach())]
    return (losses * weights).sum() / weights.sum() + lesson, figures


def progress(log_file):
    """(steps, tokens, seconds) in the last row of an earlier run's loss.csv"""
    last = log_file.read_text(encoding="utf-8").split()[-1].split(",")
    return int(last[0]), int(last[2]), int(last[7])


def state_file(args):
    return args.folder.parent / f"{args.folder.name}.state"


def checkpoint(model, chosen, args, earlier, done):
    """The folder, and the state: written in one piece, so that a stop meanwhile leaves the one before."""
    save(model, models.config_json(args.model), args.folder)
    part = state_file(args).with_suffix(".part")
    optimizers_kept = [o.state_dict() for o in chosen]
    torch.save({"model": model.state_dict(), "optimizers": optimizers_kept, "earlier": earlier, "done": done}, part)
    part.replace(state_file(args))


def from_state(model, chosen, args):
    """(steps of earlier schedules, what is done of this one); younger rows of loss.csv are taken out."""
    state = torch.load(state_file(args))
    model.load_state_dict(state["model"])
    for optimizer, kept in zip(chosen, state["optimizers"]):
        optimizer.load_state_dict(kept)
    log_file = args.folder / "loss.csv"
    head, *rows = log_file.read_text(encoding="utf-8").splitlines()
    rows = [row for row in rows if int(row.split(",")[0]) <= state["earlier"] + state["done"][0]]
    log_file.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return state["earlier"], state["done"]


def update(model, chosen, loss, balance_rate):
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for optimizer in chosen:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    experts.balance(model, balance_rate)


def lesson_names(model, args, length, names):
    """`names` where rows of this length are taught; only then does the model have to return its attention."""
    taught = names is not None and length <= args.teach_length
    how = "eager" if taught else "sdpa"
    if model.config._attn_implementation != how:
        model.set_attn_implementation(how)
    return names if taught else None


def train(model, args, chosen, log, earlier, done):
    """`earlier`: steps of earlier schedules in loss.csv; `done`: (steps of this one, all tokens, all seconds)"""
    phases = [(p.split(":")[0], *map(int, p.split(":")[1:])) for p in args.phases]
    total, tokens, started, recent = sum(p[3] for p in phases), done[1], time.time() - done[2], []
    tokenizer_file = args.folder / "tokenizer.json"
    is_name = attention.name_ids(Tokenizer.from_file(str(tokenizer_file))) if args.teach else None
    steps = batches(phases, args.corpus, tokenizer_file, args.seed, args.answer_weight)
    for step, (ids, weights) in enumerate(itertools.islice(steps, done[0], args.stop), done[0] + 1):
        for group in (g for o in chosen for g in o.param_groups):
            group["lr"] = args.rate * rate_at(step - 1, total, args.decay)
        loss, figures = loss_of(model, ids, weights, lesson_names(model, args, ids.shape[1], is_name), args.way)
        update(model, chosen, loss, args.balance_rate)
        tokens += ids.numel()
        recent.append(figures)
        if step % 20 == 0:
            mean = ",".join(f"{figure:.4f}" for figure in np.mean(recent, axis=0))
            recent = []
            print(f"{earlier + step},{ids.shape[1]},{tokens},{mean},{time.time() - started:.0f}", file=log, flush=True)
        if step % SAVED_EVERY == 0 or step in (total, args.stop):
            checkpoint(model, chosen, args, earlier, (step, tokens, time.time() - started))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=models.NAMES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--phases", nargs="+", required=True)
    parser.add_argument("--stop", type=int, help="end after this step, before the phases are over")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--adapt", type=Path, help="folder of dculab-tiny, whose weights to begin with (adapt.py)")
    parser.add_argument("--way", choices=WAYS, default="quick", help="plain: in FP32 and not compiled")
    parser.add_argument("--go-on", action="store_true", help="from FOLDER.state; all else as in the call that stopped")
    parser.add_argument("--teach", action="store_true", help="teach heads where to look (attention.py)")
    parser.add_argument("--teach-length", type=int, default=models.CONTEXT, help="longer rows are not taught")
    parser.add_argument("--decay", type=float, default=0.5, help="part of the steps with falling rate")
    parser.add_argument("--answer-weight", type=float, default=8.0)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--balance-rate", type=float, default=1e-3, help="change of an expert's bias in a step")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def adapt_to_text(model, args):
    """The text is the first rows of the last phase."""
    base = AutoModelForCausalLM.from_pretrained(args.adapt, dtype=torch.float32)
    text = args.corpus / f"{args.phases[-1].split(':')[0]}.txt"
    ids = pack(args.folder / "tokenizer.json", text, 512, args.seed, args.answer_weight)[0][:ADAPTED_TO]
    adapt.adapt(model, base, torch.from_numpy(ids.astype(np.int64)))


def main():
    args = arguments()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    model = models.build(args.model, "eager" if args.teach else "sdpa")
    chosen = optimizers(model, args.rate)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters", flush=True)
    log_file, earlier, done = args.folder / "loss.csv", 0, (0, 0, 0)
    if args.resume:
        earlier, *rest = progress(log_file)
        done = (0, *rest)
        model.load_state_dict(load_file(args.folder / "model.safetensors"), strict=False)
    if args.adapt:
        adapt_to_text(model, args)
    if args.go_on:
        earlier, done = from_state(model, chosen, args)
    with open(log_file, "a" if args.resume or args.go_on else "w", encoding="utf-8") as log:
        if not (args.resume or args.go_on):
            print("step,length,tokens,loss,answer_loss,answer_share,lesson_loss,seconds", file=log)
        train(model, args, chosen, log, earlier, done)
    state_file(args).unlink()


if __name__ == "__main__":
    main()
