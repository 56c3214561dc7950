"""LLM-QAT: trains a model with quantized weights, activations and KV cache on text that it wrote itself.

    python qat.py FOLDER OUT --rows generated.npy --bits 2 --group-size 32

The model as it is teaches its quantized copy: the loss is the cross-entropy of the copy's distribution with the
teacher's, token by token (Liu et al., arXiv:2305.17888, section 2). Matrices get `--bits`, activations 8 bits, K and V
8 bits, as the engine computes with `--activations int8 --kv-cache-dtype int8`. Norms are trained along; the embedding,
which is the head too, stays as it is. OUT becomes a GPTQ folder with a loss.csv.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn.utils import parametrize

import fake_quantization
import gptq_folder
import llama


def soft_cross_entropy(logits, teacher_logits):
    """Mean over tokens of -sum(teacher's p * log student's p)."""
    return -(teacher_logits.softmax(-1) * logits.log_softmax(-1)).sum(-1).mean()


def divergence(logits, teacher_logits):
    """Mean KL(teacher || student), in nats."""
    with torch.no_grad():
        return soft_cross_entropy(logits, teacher_logits) - soft_cross_entropy(teacher_logits, teacher_logits)


def optimizer_of(model, args):
    """Scales are some hundred times smaller than what weights change by: they get a rate of their own."""
    model.model.embed_tokens.requires_grad_(False)
    named = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    scales = [parameter for name, parameter in named if name.endswith("scale")]
    others = [parameter for name, parameter in named if not name.endswith("scale")]
    groups = [{"params": others, "full": args.rate}, {"params": scales, "full": args.rate * args.scale_rate}]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=args.rate, betas=(0.9, 0.98), weight_decay=0.0)


def orders(count, rows, steps, seed):
    """Rows of each step: all of them in seeded order, again and again."""
    generator = np.random.default_rng(seed)
    order = np.concatenate([generator.permutation(count) for _ in range(1 + steps * rows // count)])
    return [order[step * rows : (step + 1) * rows] for step in range(steps)]


def set_rates(optimizer, step, steps):
    """Short warm-up, then a linear fall."""
    for group in optimizer.param_groups:
        group["lr"] = group["full"] * min(1.0, (step + 1) / 10, 1.02 - step / steps)


def apply_step(model, optimizer, loss):
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_([p for g in optimizer.param_groups for p in g["params"]], 1.0)
    optimizer.step()


def train(model, teacher, ids, args, log):
    optimizer, started, recent = optimizer_of(model, args), time.time(), []
    for step, chosen in enumerate(orders(len(ids), args.batch, args.steps, args.seed)):
        set_rates(optimizer, step, args.steps)
        batch = ids[chosen]
        with torch.no_grad():
            wanted = teacher(batch)[0]
        logits = model(batch)[0]
        apply_step(model, optimizer, soft_cross_entropy(logits, wanted))
        recent.append(divergence(logits.detach(), wanted).item())
        if (step + 1) % 10 == 0 or step + 1 == args.steps:
            tokens = (step + 1) * batch.numel()
            print(f"{step + 1},{tokens},{np.mean(recent):.5f},{time.time() - started:.0f}", file=log, flush=True)
            recent = []


def grids_to_begin_with(model, args):
    """By name of a matrix; None: MinMax, anew in each step. From GPTQ on, weights are moved to where it rounds them."""
    if args.begin == "minmax":
        return None
    if args.begin == "nearest":
        return fake_quantization.nearest_grids(model, args.bits, args.group_size)
    grids, chosen = gptq_folder.read_grids(Path(args.begin)), gptq_folder.read_dense(Path(args.begin))
    for name, linear in fake_quantization.linears(model):
        moved = fake_quantization.in_cells(linear.weight.detach(), chosen[f"{name}.weight"], grids[name][0])
        linear.weight.data.copy_(moved)
    return grids


def save(model, args):
    matrices, plain = {}, {}
    for name, linear in fake_quantization.linears(model):
        weights = linear.parametrizations.weight
        matrices[name] = weights[0].integers(weights.original)
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Embedding) or (parametrize.is_parametrized(module) and name not in matrices):
            plain[f"{name}.weight"] = module.weight
    gptq_folder.write(args.folder, args.out, plain, matrices, args.bits, args.group_size)


def check_saved(model, folder):
    """The folder's integers stand for exactly the weights of training."""
    for name, weight in gptq_folder.read_dense(folder).items():
        if not torch.equal(weight, model.get_submodule(name.removesuffix(".weight")).weight.detach()):
            raise SystemExit(f"{name}: the folder holds other weights than training had")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rows", type=Path, required=True, help="token ids, as self_generated.py writes them")
    parser.add_argument("--bits", type=int, choices=(2, 4, 8), required=True)
    parser.add_argument("--group-size", type=int, default=128)
    parser.add_argument("--begin", default="nearest", help="grids: minmax, nearest, or a GPTQ folder with these groups")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=4, help="rows of a step")
    parser.add_argument("--rate", type=float, default=3e-4)
    parser.add_argument("--scale-rate", type=float, default=0.3, help="rate of the scales, as a share of --rate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    args.out.mkdir(parents=True, exist_ok=True)
    teacher, model = llama.load(args.folder).requires_grad_(False), llama.load(args.folder)
    fake_quantization.quantize(model, args.bits, args.group_size, grids_to_begin_with(model, args))
    ids = torch.from_numpy(np.load(args.rows).astype(np.int64))
    with open(args.out / "loss.csv", "w", encoding="utf-8") as log:
        print("step,tokens,divergence,seconds", file=log)
        train(model, teacher, ids, args, log)
    save(model, args)
    check_saved(model, args.out)


if __name__ == "__main__":
    main()
