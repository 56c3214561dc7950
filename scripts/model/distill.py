"""Trains a student model on what a teacher wrote, or on what it thinks while it reads that.

    python distill.py TEACHER STUDENT OUT --rows labelling.npz --from tokens
    python distill.py TEACHER STUDENT OUT --rows labelling.npz --from features

`--from` is what is learned from (rows: elicitation.py):

tokens         black box: cross-entropy with the tokens themselves (sequence-level distillation, Kim and Rush,
               arXiv:1606.07947)
distributions  white box: cross-entropy with the teacher's distribution at each token, whose gradient is that of
               KL(teacher || student) (Hinton et al., arXiv:1503.02531)
features       white box: the same, and the mean square error of each layer's features, taken through a linear map,
               beside those of the teacher's layer at the same share of its depth, as a share of these (layer-wise
               distillation; TinyBERT, arXiv:1909.10351, section 3.1)

OUT is a plain folder in BF16 with a loss.csv. All parameters are trained.
"""

import argparse
import shutil
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

import llama
import qat

COPIED = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")


class Maps(torch.nn.Module):
    """One linear map of features for each layer of the student; they are not part of it, and end with training."""

    def __init__(self, student, teacher):
        super().__init__()
        counts = [model.config["num_hidden_layers"] for model in (student, teacher)]
        self.sources = [(i + 1) * counts[1] // counts[0] - 1 for i in range(counts[0])]
        sizes = [model.config["hidden_size"] for model in (student, teacher)]
        self.maps = torch.nn.ModuleList(torch.nn.Linear(*sizes) for _ in self.sources)

    @torch.no_grad()
    def fit(self, features, wanted):
        """Begins with the linear maps that are best for these tokens."""
        for linear, own, source in zip(self.maps, features, self.sources):
            x = torch.cat((own.flatten(0, 1), torch.ones(own[..., :1].numel(), 1)), 1)
            square = x.T @ x
            ridge = 1e-3 * square.diagonal().mean() * torch.eye(len(square))
            solution = torch.linalg.solve(square + ridge, x.T @ wanted[source].flatten(0, 1))
            linear.weight.copy_(solution[:-1].T)
            linear.bias.copy_(solution[-1])

    def loss(self, features, wanted):
        """Mean over the layers of the share of the teacher's features that is missed."""
        missed = [
            (linear(own) - wanted[source]).square().mean() / wanted[source].square().mean()
            for linear, own, source in zip(self.maps, features, self.sources)
        ]
        return sum(missed) / len(missed)


def loss_of(student, teacher, maps, ids, learned, args):
    """(loss to minimise, its share of features, 0 without)"""
    logits, features = student(ids)
    places = learned[:, 1:]
    own = logits[:, :-1][places]
    if teacher is None:
        return torch.nn.functional.cross_entropy(own, ids[:, 1:][places]), 0.0
    with torch.no_grad():
        wanted, wanted_features = teacher(ids)
    loss = qat.soft_cross_entropy(own, wanted[:, :-1][places])
    if maps is None:
        return loss, 0.0
    missed = maps.loss(features, wanted_features)
    return loss + args.feature_weight * missed, missed.item()


def train(student, teacher, rows, args, log):
    ids, learned = torch.from_numpy(rows["ids"].astype(np.int64)), torch.from_numpy(rows["learned"])
    maps, parameters = None, [{"params": list(student.parameters()), "full": args.rate}]
    if args.source == "features":
        maps = Maps(student, teacher)
        with torch.no_grad():
            maps.fit(student(ids[:16])[1], teacher(ids[:16])[1])
        parameters.append({"params": list(maps.parameters()), "full": args.rate})
    optimizer = torch.optim.AdamW(parameters, lr=args.rate, betas=(0.9, 0.98), weight_decay=0.0)
    started, recent = time.time(), []
    for step, chosen in enumerate(qat.orders(len(ids), args.batch, args.steps, args.seed)):
        qat.set_rates(optimizer, step, args.steps)
        loss, missed = loss_of(student, teacher, maps, ids[chosen], learned[chosen], args)
        qat.apply_step(student, optimizer, loss)
        recent.append((loss.item(), missed))
        if (step + 1) % 10 == 0 or step + 1 == args.steps:
            mean = np.mean(recent, axis=0)
            tokens = (step + 1) * args.batch * ids.shape[1]
            print(f"{step + 1},{tokens},{mean[0]:.5f},{mean[1]:.5f},{time.time() - started:.0f}", file=log, flush=True)
            recent = []


def save(student, source, folder):
    for name in COPIED:
        shutil.copyfile(source / name, folder / name)
    tensors = {name: tensor.detach().bfloat16().contiguous() for name, tensor in student.state_dict().items()}
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("teacher", type=Path)
    parser.add_argument("student", type=Path, help="to begin with")
    parser.add_argument("out", type=Path)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--from", dest="source", choices=("tokens", "distributions", "features"), required=True)
    parser.add_argument("--feature-weight", type=float, default=1.0)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch", type=int, default=8, help="rows of a step")
    parser.add_argument("--rate", type=float, default=5e-4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    args.out.mkdir(parents=True, exist_ok=True)
    student = llama.load(args.student)
    teacher = None if args.source == "tokens" else llama.load(args.teacher).requires_grad_(False)
    with open(args.out / "loss.csv", "w", encoding="utf-8") as log:
        print("step,tokens,loss,features_missed,seconds", file=log)
        train(student, teacher, np.load(args.rows), args, log)
    save(student, args.student, args.out)


if __name__ == "__main__":
    main()
