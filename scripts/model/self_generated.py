"""Lets a model write the text that its quantized copy, or a student, is taught with: no data from outside.

    python self_generated.py FOLDER OUT.npy --rows 400 --length 512 --seed 1

As in LLM-QAT (Liu et al., arXiv:2305.17888, section 2.1): the first token is drawn from the whole vocabulary; the next
few (`--first`) are drawn from the `--top-k` likeliest only, so that the text begins as the model would go on (the paper
takes the likeliest); all others are drawn from the model's whole distribution, so that the text varies. A row goes on
after an end mark with another document, as rows of training text do. OUT holds int16 [rows, length].
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch

import llama

BATCH = 64  # rows generated together


def draw(logits, generator, top_k=0, temperature=1.0):
    """One token of each row of logits [rows, vocabulary]; `top_k` 0: any."""
    if top_k:
        logits = logits.masked_fill(logits < logits.topk(top_k).values[:, -1:], -torch.inf)
    return torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)


@torch.no_grad()
def continued(model, prompts, tokens, generator, first=0, top_k=0, temperature=1.0):
    """[rows, tokens] after prompts [rows, n]; the `first` of them from the `top_k` likeliest."""
    cache = llama.Cache(model.config, len(prompts), prompts.shape[1] + tokens)
    written, new = [], prompts
    for place in range(tokens):
        logits = model(new, cache)[0][:, -1]
        new = draw(logits, generator, top_k if place < first else 0, temperature)
        written.append(new)
    return torch.cat(written, 1)


def rows_from_nothing(model, args):
    generator = torch.Generator().manual_seed(args.seed)
    rows, started = [], time.time()
    while len(rows) * BATCH < args.rows:
        start = torch.randint(model.config["vocab_size"], (BATCH, 1), generator=generator)
        rest = continued(model, start, args.length - 1, generator, args.first, args.top_k)
        rows.append(torch.cat((start, rest), 1))
        print(f"{len(rows) * BATCH} rows, {time.time() - started:.0f} s", flush=True)
    return torch.cat(rows)[: args.rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rows", type=int, default=384)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--first", type=int, default=4, help="tokens after the first that are drawn from the likeliest")
    parser.add_argument("--top-k", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    rows = rows_from_nothing(llama.load(args.folder), args)
    np.save(args.out, rows.numpy().astype(np.int16))


if __name__ == "__main__":
    main()
