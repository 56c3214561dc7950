"""What the parts of KVQuant's cache cost a model, and what KIVI's residual saves it: perplexity and KL of a text.

    python kv_formats.py FOLDER TEXT [--windows 8] [--window 1024] [--bits 2]

K and V are rounded on their way through the model in plain torch, with the calibration of FOLDER/kv_cache.safetensors
as kernels/kv/kvquant.hpp defines it. `first token` keeps the first one of a window as it is; `K beyond its range` keeps
all of K beyond the calibrated range and not a fixed number of values, as KVQuant's paper does; `KIVI, no residual`
quantizes as kernels/kv/kivi.hpp defines it, rotated keys by channel in groups of 32 tokens, but for the tokens of a last
group that is not full, and keeps none of the newest tokens.
"""

import argparse
import math
from pathlib import Path

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer

import llama

GROUP = 32  # of KIVI


def with_outliers(rounded, values, distances, count):
    """`rounded` [tokens, channels], but for the `count` values with the largest distances of each token."""
    chosen = distances.topk(count, dim=-1).indices
    return rounded.scatter(-1, chosen, values.gather(-1, chosen))


class KvQuant:
    def __init__(self, folder, bits, by_range=False):
        self.tensors, self.bits, self.by_range = load_file(folder / "kv_cache.safetensors"), bits, by_range

    def of_codes(self, layer, which, places):
        levels, bounds = (self.tensors[f"layers.{layer}.{which}_{part}.{self.bits}"] for part in ("levels", "bounds"))
        return levels[torch.bucketize(places.contiguous(), bounds)]

    def keys(self, layer, k, _rotation):
        centre, half_range = (self.tensors[f"layers.{layer}.k_{part}"] for part in ("centre", "half_range"))
        places = (k - centre) / half_range
        rounded = centre + half_range * self.of_codes(layer, "k", places)
        if self.by_range:
            return torch.where(places.abs() > 1, k, rounded)
        return with_outliers(rounded, k, places.abs(), -(-k.shape[-1] // 100))

    def values(self, layer, v):
        count = -(-v.shape[-1] // 100)
        others = torch.where(with_outliers(torch.zeros_like(v), torch.ones_like(v), v.abs(), count) > 0, math.nan, v)
        least = others.nan_to_num(math.inf).amin(-1, keepdim=True)
        most = others.nan_to_num(-math.inf).amax(-1, keepdim=True)
        centre, half_range = ((most + least) / 2).half().float(), ((most - least) / 2).half().float()
        rounded = centre + half_range * self.of_codes(layer, "v", (v - centre) / half_range)
        return with_outliers(rounded, v, v.abs(), count)


class Kivi:
    """Without the newest tokens in F16."""

    def __init__(self, bits):
        self.bits = bits

    def rounded(self, groups, dim):
        zero, largest = groups.amin(dim, keepdim=True).half().float(), groups.amax(dim, keepdim=True)
        scale = ((largest - zero) / (2**self.bits - 1)).half().float().clamp(min=1e-7)
        return zero + scale * ((groups - zero) / scale).round().clamp(0, 2**self.bits - 1)

    def keys(self, _layer, k, rotation):
        cos, sin = rotation
        heads = k.unflatten(-1, (-1, cos.shape[-1])).transpose(0, 1)
        turned, whole = llama.rotated(heads, (cos, sin)), len(k) // GROUP * GROUP
        groups = turned[:, :whole].unflatten(1, (-1, GROUP))
        turned = torch.cat((self.rounded(groups, 2).flatten(1, 2), turned[:, whole:]), 1)
        return llama.rotated(turned, (cos, -sin)).transpose(0, 1).flatten(1)

    def values(self, _layer, v):
        return self.rounded(v.unflatten(-1, (-1, GROUP)), 2).flatten(1)


def install(model, cache, keys=True, values=True, first_tokens=0):
    """Returns the hooks that let `cache` round what k_proj and v_proj give."""

    def rounding(round_rows):
        def hook(_module, _inputs, output):
            rows = round_rows(output[0])
            return torch.cat((output[0][:first_tokens], rows[first_tokens:]))[None]

        return hook

    hooks = []
    for number, layer in enumerate(model.model.layers):
        attention = layer.self_attn

        def key_rows(k, number=number):
            return cache.keys(number, k, [part[: len(k)] for part in model.rotation])

        if keys:
            hooks.append(attention.k_proj.register_forward_hook(rounding(key_rows)))
        if values:
            hooks.append(attention.v_proj.register_forward_hook(rounding(lambda v, n=number: cache.values(n, v))))
    return hooks


def log_probabilities(model, windows):
    with torch.no_grad():
        return [model(window[None])[0][0].log_softmax(-1) for window in windows]


def perplexity(logs, windows):
    losses = [-log[:-1].gather(1, window[1:, None]) for log, window in zip(logs, windows)]
    return torch.cat(losses).mean().exp().item()


def divergence(exact, logs):
    return torch.cat([(e.exp() * (e - log)).sum(-1) for e, log in zip(exact, logs)]).mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--windows", type=int, default=8)
    parser.add_argument("--window", type=int, default=1024, help="tokens")
    parser.add_argument("--bits", type=int, choices=(2, 3, 4), default=2)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model = llama.load(args.folder)
    tokenizer = Tokenizer.from_file(str(args.folder / "tokenizer.json"))
    ids = tokenizer.encode(args.text.read_text(encoding="utf-8"), add_special_tokens=False).ids
    windows = list(torch.tensor(ids[: args.windows * args.window]).split(args.window))
    kvquant, kivi = KvQuant(args.folder, args.bits), Kivi(args.bits)
    exact = log_probabilities(model, windows)
    print(f"F32: {perplexity(exact, windows):.4f}", flush=True)
    for name, cache, options in (
        ("KVQuant", kvquant, {}),
        ("K alone", kvquant, {"values": False}),
        ("V alone", kvquant, {"keys": False}),
        ("first token", kvquant, {"first_tokens": 1}),
        ("K beyond its range", KvQuant(args.folder, args.bits, by_range=True), {}),
        ("KIVI, no residual", kivi, {}),
    ):
        hooks = install(model, cache, **options)
        logs = log_probabilities(model, windows)
        for hook in hooks:
            hook.remove()
        print(f"{name}: {perplexity(logs, windows):.4f}, KL {divergence(exact, logs):.4f}", flush=True)


if __name__ == "__main__":
    main()
