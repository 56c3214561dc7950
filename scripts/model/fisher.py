"""How much the loss on a text depends on each value of K and V: KVQuant's Fisher information.

    python fisher.py FOLDER TEXT OUT [--tokens 16384]
    dculab quantize --model FOLDER --method none --kv-cache-dtype kvquant4 --calibration TEXT --fisher OUT --output ...

The diagonal of the Fisher information of a value is the square of the loss's gradient to it (Hooper et al.,
arXiv:2401.18079, section 3.2). OUT, safetensors, has "layers.N.k_fisher" and "layers.N.v_fisher" of each layer,
F32 [tokens, kv_width]: K before its rotation. The text is cut into sequences as the engine's calibration cuts it, and
the loss is the sum over a sequence's tokens; its scale does not matter to the levels.
"""

import argparse
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch.nn.functional import cross_entropy

import llama

SEQUENCE_TOKENS = 2048  # the engine's, engine/quantize/calibration.cpp


def projections(model):
    """{name of the tensor: module whose outputs it is about}"""
    named = {}
    for number, layer in enumerate(model.model.layers):
        named[f"layers.{number}.k_fisher"] = layer.self_attn.k_proj
        named[f"layers.{number}.v_fisher"] = layer.self_attn.v_proj
    return named


def squared_gradients(model, ids):
    """{name: [tokens, kv_width]} of one sequence"""
    outputs, hooks = {}, []
    for name, module in projections(model).items():

        def keep(_module, _inputs, output, name=name):
            output.retain_grad()
            outputs[name] = output

        hooks.append(module.register_forward_hook(keep))
    logits = model(ids[None])[0][0]
    model.zero_grad()
    cross_entropy(logits[:-1], ids[1:], reduction="sum").backward()
    for hook in hooks:
        hook.remove()
    return {name: output.grad[0].square() for name, output in outputs.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tokens", type=int, default=16384, help="of the text at most")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model = llama.load(args.folder)
    tokenizer = Tokenizer.from_file(str(args.folder / "tokenizer.json"))
    ids = tokenizer.encode(args.text.read_text(encoding="utf-8"), add_special_tokens=False).ids[: args.tokens]
    length = min(SEQUENCE_TOKENS, model.config["max_position_embeddings"])
    parts = [squared_gradients(model, sequence) for sequence in torch.tensor(ids).split(length)]
    save_file({name: torch.cat([part[name] for part in parts]) for name in parts[0]}, args.out)


if __name__ == "__main__":
    main()
