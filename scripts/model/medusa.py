"""Trains Medusa heads for a frozen model folder, and chooses the tree of guesses that they draft.

    python medusa.py FOLDER OUT --text mixed-512.txt --held-out held-out.txt

Head i looks at the model's last hidden state and guesses the token i + 2 places after the one that was read (the
model itself guesses the next): one feed-forward layer with a residual, x + SiLU(W x), then an output matrix of its
own. Cai et al. 2024, Medusa (arXiv:2401.10774), section 2.1.1; only the heads are trained, as in Medusa-1. They learn
the model's own distribution at the place that they guess, not the text's single token: the same text teaches more.

OUT gets config.json and model.safetensors as vLLM reads them (vllm/model_executor/models/medusa.py), F16. The output
matrices have rows for the `--tokens` commonest tokens only; `token_map` says which. The tree is chosen by accuracy on
the held-out text: again and again the node that adds most expected tokens (the paper's section 2.3.3).
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import nn
from transformers import AutoModelForCausalLM

from dataset import pack

LENGTH, GUESSES = 512, 10


class Heads(nn.Module):
    """All begin as the model's own output, because the residual layers begin at zero."""

    def __init__(self, output, token_map, num_heads):
        super().__init__()
        hidden = output.shape[1]
        self.blocks = nn.ModuleList(nn.Linear(hidden, hidden, bias=False) for _ in range(num_heads))
        self.lm_heads = nn.ModuleList(nn.Linear(hidden, len(token_map), bias=False) for _ in range(num_heads))
        with torch.no_grad():
            for block, head in zip(self.blocks, self.lm_heads):
                block.weight.zero_()
                head.weight.copy_(output[token_map])

    def forward(self, hidden):
        """[..., hidden] -> one [..., tokens of the map] for each head"""
        return [head(hidden + nn.functional.silu(block(hidden))) for block, head in zip(self.blocks, self.lm_heads)]


def read(model, ids):
    """(last hidden states, logits), without gradient"""
    with torch.no_grad():
        hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state
        return hidden, model.lm_head(hidden)


def places(head, logits, values):
    """The head's rows that have a place to guess, and `values` of the model at those places."""
    return logits[:, : -1 - head], values[:, 1 + head :]


def loss_of(heads, hidden, probabilities):
    losses = []
    for i, logits in enumerate(heads(hidden)):
        own, wanted = places(i, logits, probabilities)
        losses.append(-(wanted * own.log_softmax(-1)).sum(-1).mean())
    return losses


def commonest(ids, count):
    counts = np.bincount(ids.flatten())
    chosen = np.sort(np.argsort(-counts, kind="stable")[:count])
    print(f"{len(chosen)} tokens are {100 * counts[chosen].sum() / counts.sum():.2f} % of the text", flush=True)
    return torch.from_numpy(chosen)


def train(model, heads, token_map, ids, args, log):
    optimizer = torch.optim.AdamW(heads.parameters(), lr=args.rate, betas=(0.9, 0.98), weight_decay=0.0)
    order = np.random.default_rng(args.seed).permutation(len(ids))
    order = np.resize(order, args.steps * args.rows)
    started, recent = time.time(), []
    for step in range(args.steps):
        optimizer.param_groups[0]["lr"] = args.rate * min(1.0, (step + 1) / 20, max(0.02, 2 * (1 - step / args.steps)))
        chosen = order[step * args.rows : (step + 1) * args.rows]
        hidden, logits = read(model, torch.from_numpy(ids[chosen].astype(np.int64)))
        losses = loss_of(heads, hidden, logits.softmax(-1)[..., token_map])
        sum(losses).backward()
        torch.nn.utils.clip_grad_norm_(heads.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        recent.append([loss.item() for loss in losses])
        if (step + 1) % 20 == 0 or step + 1 == args.steps:
            mean = ",".join(f"{loss:.4f}" for loss in np.mean(recent, axis=0))
            print(f"{step + 1},{(step + 1) * args.rows * LENGTH},{mean},{time.time() - started:.0f}", file=log, flush=True)
            recent = []


def accuracies(model, heads, token_map, ids):
    """[heads, GUESSES]: how often a head's guess of each rank is the token that the model itself finds likeliest."""
    right, count = np.zeros((len(heads.blocks), GUESSES)), np.zeros((len(heads.blocks), 1))
    for row in torch.from_numpy(ids.astype(np.int64)).split(4):
        hidden, logits = read(model, row)
        with torch.no_grad():
            for i, guesses in enumerate(heads(hidden)):
                own, wanted = places(i, token_map[guesses.topk(GUESSES).indices], logits.argmax(-1))
                right[i] += (own == wanted[..., None]).flatten(0, 1).sum(0).numpy()
                count[i] += wanted.numel()
    return right / count


def best_tree(accuracy, nodes):
    """(paths of ranks, expected tokens of a step): heads are taken to be right independently of each other."""
    paths, gained, chosen = {(): 1.0}, 1.0, []
    for _ in range(nodes):
        candidates = {}
        for path, chance in paths.items():
            rank = next(r for r in range(GUESSES + 1) if path + (r,) not in paths)
            if len(path) < len(accuracy) and rank < GUESSES:
                candidates[path + (rank,)] = chance * accuracy[len(path), rank]
        best = max(candidates, key=candidates.get)
        paths[best] = candidates[best]
        gained += candidates[best]
        chosen.append(best)
    return sorted(chosen, key=lambda path: (len(path), path)), gained


def save(heads, token_map, tree, model, folder):
    """F16, in vLLM's names."""
    tensors = {"token_map": token_map.to(torch.int64)}
    for i, (block, head) in enumerate(zip(heads.blocks, heads.lm_heads)):
        tensors[f"blocks.{i}.layers.0.weight"] = block.weight.detach().to(torch.float16).contiguous()
        tensors[f"lm_heads.{i}.weight"] = head.weight.detach().to(torch.float16).contiguous()
    config = {
        "architectures": ["MedusaModel"],
        "model_type": "medusa",
        "hidden_size": model.config.hidden_size,
        "vocab_size": model.config.vocab_size,
        "truncated_vocab_size": len(token_map),
        "num_heads": len(heads.blocks),
        "num_hidden_layers": 1,
        "medusa_fc_bias": False,
        "original_lm_head": False,
        "speculative_token_tree": str(tree),
        "torch_dtype": "float16",
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)


def rounded(heads):
    """As they are stored."""
    for parameter in heads.parameters():
        parameter.data = parameter.data.to(torch.float16).to(torch.float32)
    return heads


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--text", type=Path, required=True, help="to learn from")
    parser.add_argument("--held-out", type=Path, required=True)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=1024, help="rows of an output matrix")
    parser.add_argument("--nodes", type=int, default=12, help="tokens of the tree")
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--rows", type=int, default=4, help=f"of {LENGTH} tokens, in a step")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def main():
    args = arguments()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    args.out.mkdir(parents=True, exist_ok=True)
    model = AutoModelForCausalLM.from_pretrained(args.folder).float().eval()
    tokenizer_file = args.folder / "tokenizer.json"
    ids = pack(tokenizer_file, args.text, LENGTH, args.seed, 1.0)[0]
    token_map = commonest(ids, args.tokens)
    heads = Heads(model.lm_head.weight, token_map, args.heads)
    with open(args.out / "loss.csv", "w", encoding="utf-8") as log:
        print("step,tokens," + ",".join(f"loss_{i + 1}" for i in range(args.heads)) + ",seconds", file=log)
        train(model, heads, token_map, ids, args, log)
    accuracy = accuracies(model, rounded(heads), token_map, pack(tokenizer_file, args.held_out, LENGTH, args.seed, 1.0)[0])
    for i, row in enumerate(accuracy):
        print(f"head {i + 1}: " + ", ".join(f"top-{n + 1} {100 * row[: n + 1].sum():.1f} %" for n in range(3)), flush=True)
    tree, expected = best_tree(accuracy, args.nodes)
    print(f"tree {tree}: {expected:.2f} tokens a step expected", flush=True)
    save(heads, token_map, tree, model, args.out)


if __name__ == "__main__":
    main()
