"""Checks that the engine computes with a GPTQ folder what training computed: perplexity of a text, both ways.

    python check_qat.py FOLDER TEXT --dculab build/release/cli/dculab

Here the integers of the folder become weights again, and activations, K and V are rounded by fake_quantization.py;
there `dculab evaluate --activations int8 --kv-cache-dtype int8` runs its kernels.
"""

import argparse
import json
import math
import subprocess
from pathlib import Path

import torch
from tokenizers import Tokenizer

import fake_quantization
import gptq_folder
import llama

WINDOW = 1024
AGREEMENT = 1e-3  # of the loss, in nats: a code on the edge between two may fall either way


@torch.no_grad()
def loss_here(folder, text):
    """Mean -log p over windows without overlap, as evaluate.py has it."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    model = llama.Llama(config)
    model.load_state_dict(gptq_folder.read_dense(folder))
    width = fake_quantization.activation_group(config["quantization_config"]["group_size"])
    model.inputs = lambda x: fake_quantization.int8_activations(x, width)
    model.cached = fake_quantization.int8_cache
    ids = torch.tensor(Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text, add_special_tokens=False).ids)
    losses = []
    for window in ids.split(WINDOW):
        scores = model(window[None])[0][0, :-1].log_softmax(-1)
        losses.append(-scores.gather(1, window[1:, None])[:, 0])
    return torch.cat(losses).double().mean().item()


def loss_there(dculab, folder, text_file):
    command = [dculab, "evaluate", "--model", folder, "--text", text_file, "--activations", "int8", "--threads", "1"]
    command += ["--kv-cache-dtype", "int8", "--decode-steps", "0", "--window", str(WINDOW), "--format", "json"]
    out = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout
    rows = [row for row in json.loads(out)["rows"] if row["activations"] == "int8"]
    return math.log(rows[0]["text"]["perplexity"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--dculab", default="dculab")
    args = parser.parse_args()
    torch.set_num_threads(1)
    here = loss_here(args.folder, args.text.read_text(encoding="utf-8"))
    there = loss_there(args.dculab, args.folder, args.text)
    print(f"{args.folder.name}: perplexity {math.exp(here):.5f} here, {math.exp(there):.5f} in the engine")
    if abs(here - there) > AGREEMENT:
        raise SystemExit("they differ by more than rounding can explain")


if __name__ == "__main__":
    main()
