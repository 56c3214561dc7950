"""Writes tests/golden/evaluation/dculab-tiny.json: what transformers finds when it judges the shipped model.

    pip install -r scripts/model/requirements.txt
    python scripts/golden/make_evaluation_goldens.py

windows  of the first tokens of eval/held-out.txt: tokens in a window, and the sum of the log probabilities of its tokens
         but the first
choices  of the first items of eval/choice.jsonl and eval/recall.jsonl: the sum of the log probabilities of each choice

Weights are widened to F32. How questions are put and windows cut: scripts/model/evaluate.py.
"""

import argparse
import json
import sys
from itertools import islice
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "model"))
from evaluate import log_probabilities, read  # noqa: E402

MODEL = ROOT / "scenarios" / "models" / "dculab-tiny"
WINDOWS, WINDOW = 3, 512
ITEMS = {"choice": 12, "recall": 2}


def window_sums(model, tokenizer):
    ids = tokenizer((MODEL / "eval" / "held-out.txt").read_text(encoding="utf-8"), add_special_tokens=False).input_ids
    for start in range(0, WINDOWS * WINDOW, WINDOW):
        window = ids[start : start + WINDOW]
        yield {"tokens": len(window), "log_probability": log_probabilities(model, window).double().sum().item()}


def choice_sums(model, tokenizer, name, count):
    for line in islice(open(MODEL / "eval" / f"{name}.jsonl", encoding="utf-8"), count):
        item = json.loads(line)
        prompt = f"{item.get('context', '')}Question: {item['question']['stem']}\nAnswer:"
        cache, rows = read(model, tokenizer(prompt).input_ids)
        sums = []
        for choice in item["question"]["choices"]:
            ids = tokenizer(" " + choice["text"]).input_ids
            logits = rows[-1][None]
            if len(ids) > 1:
                logits = torch.cat((logits, read(model, ids[:-1], cache)[1]))
            sums.append(logits.double().gather(1, torch.tensor(ids)[:, None]).sum().item())
        yield sums


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "tests" / "golden" / "evaluation" / "dculab-tiny.json")
    out = parser.parse_args().out
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32).eval()
    result = {
        "window": WINDOW,
        "windows": list(window_sums(model, tokenizer)),
        "choices": {name: list(choice_sums(model, tokenizer, name, count)) for name, count in ITEMS.items()},
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
