"""Trains a model folder a little further: what a model whose KV heads were merged needs to find itself again.

    python uptrain.py FOLDER OUT --corpus DIR --phases mixed-512:512:4:150

FOLDER is a Llama folder, such as `dculab regroup` writes, with equal groups in all layers; OUT is the same with other weights and a loss.csv.
Ainslie et al. (arXiv:2305.13245, section 2.1) call this uptraining. A phase is TEXT:LENGTH:ROWS:STEPS and
reads DIR/TEXT.txt. All in FP32, with AdamW and without compilation: the quicker way for a few hundred steps
on a CPU that has no BF16 instructions. With --teach, heads are taught where to look (attention.py).

With --pool, K and V are weighted sums of the heads of --pool-from, the model that FOLDER was regrouped from, in the
groups of --groups, the report of `dculab regroup --format json`; the weights are trained too (pooling.py).

Every 10 steps OUT is saved, and beside it OUT.state, from which the same command with --resume goes on as if
it had never stopped. Until the rate begins to fall, it may go on to another number of steps.
"""

import argparse
import itertools
import json
import shutil
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

import attention
import pooling
import train

COPIED = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")


def save(model, source, folder):
    """Weights as BF16; the output matrix is the embedding."""
    for name in COPIED:
        shutil.copyfile(source / name, folder / name)
    tensors = {
        name: tensor.detach().to(torch.bfloat16).contiguous()
        for name, tensor in pooling.folded(model).items()
        if name != "lm_head.weight"
    }
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)


def state_file(args):
    return args.out.parent / f"{args.out.name}.state"


def losses_of(model, ids, weights, is_name):
    """(loss of every token to be predicted, loss of the lesson)"""
    if is_name is None:
        return train.cross_entropies(model(input_ids=ids, use_cache=False).logits, ids), torch.zeros(())
    names = attention.last_names(ids, is_name)
    out = model(input_ids=ids, use_cache=False, output_attentions=True)
    lesson = attention.lesson_loss(out.attentions, names, attention.sources(ids, weights, names))
    return train.cross_entropies(out.logits, ids), lesson


def step_loss(model, ids, weights, is_name):
    """(loss to minimise, [mean loss, mean loss on answers, loss of lesson])"""
    losses, lesson = losses_of(model, ids, weights, is_name)
    weights = weights[:, 1:].flatten()
    figures = [f.item() for f in (losses.detach().mean(), losses.detach()[weights > 1].mean(), lesson.detach())]
    return (losses * weights).sum() / weights.sum() + lesson, figures


def resumed(model, optimizer, args):
    """(steps done, tokens, seconds), with weights and optimizer as they were then"""
    if not args.resume:
        return 0, 0, 0.0
    state = torch.load(state_file(args))
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["done"]


def checkpoint(model, optimizer, args, done):
    """The state is written in one piece: a stop meanwhile leaves the one before."""
    save(model, args.folder, args.out)
    part = args.out.parent / f"{args.out.name}.part"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "done": done}, part)
    part.replace(state_file(args))


def uptrain(model, args, phases, log):
    total = sum(p[3] for p in phases)
    tokenizer_file = args.folder / "tokenizer.json"
    is_name = attention.name_ids(Tokenizer.from_file(str(tokenizer_file))) if args.teach else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.rate, betas=(0.9, 0.98), weight_decay=0.0)
    steps_done, tokens, seconds = resumed(model, optimizer, args)
    started, recent = time.time() - seconds, []
    rows = train.batches(phases, args.corpus, tokenizer_file, args.seed, args.answer_weight)
    for step, (ids, weights) in enumerate(itertools.islice(rows, steps_done, None), steps_done):
        optimizer.param_groups[0]["lr"] = args.rate * min(1.0, (step + 1) / 10, (total - step) / (args.decay * total))
        loss, figures = step_loss(model, ids, weights, is_name)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        tokens += ids.numel()
        recent.append(figures)
        if (step + 1) % 10 == 0 or step + 1 == total:
            mean = np.mean(recent, axis=0)
            recent = []
            row = f"{step + 1},{ids.shape[1]},{tokens},{mean[0]:.4f},{mean[1]:.4f},{mean[2]:.4f}"
            checkpoint(model, optimizer, args, (step + 1, tokens, time.time() - started))
            print(f"{row},{time.time() - started:.0f}", file=log, flush=True)


def refuse_own_groups(folder):
    """Layers or groups that differ have a model_type of dculab's own, which no `transformers` reads."""
    kind = json.loads((folder / "config.json").read_text(encoding="utf-8"))["model_type"]
    if kind == "dculab_grouped":
        raise SystemExit(f"{folder}: layers or groups of KV heads differ, and such a model cannot be trained here")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--phases", nargs="+", required=True)
    parser.add_argument("--teach", action="store_true")
    parser.add_argument("--decay", type=float, default=0.5, help="part of the steps with falling rate")
    parser.add_argument("--answer-weight", type=float, default=6.0)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--pool", choices=sorted(pooling.KINDS), help="weights of heads, of their values, of inputs")
    parser.add_argument("--pool-from", type=Path, help="the model before it was regrouped")
    parser.add_argument("--groups", type=Path, help="the report of dculab regroup --format json")
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()
    if args.pool and not (args.pool_from and args.groups):
        parser.error("--pool needs --pool-from and --groups")
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    refuse_own_groups(args.folder)
    args.out.mkdir(parents=True, exist_ok=True)
    how = "eager" if args.teach else "sdpa"
    model = AutoModelForCausalLM.from_pretrained(args.folder, dtype=torch.float32, attn_implementation=how)
    if args.pool:
        source = AutoModelForCausalLM.from_pretrained(args.pool_from, dtype=torch.float32)
        pooling.pool(model, source, args.groups, args.pool)
    phases = [(p.split(":")[0], *map(int, p.split(":")[1:])) for p in args.phases]
    with open(args.out / "loss.csv", "a" if args.resume else "w", encoding="utf-8") as log:
        if not args.resume:
            print("step,length,tokens,loss,answer_loss,lesson_loss,seconds", file=log)
        uptrain(model, args, phases, log)
    state_file(args).unlink()


if __name__ == "__main__":
    main()
