"""Measures a model folder: perplexity, recall by distance, multiple choice, and writes samples.

    python evaluate.py FOLDER EVAL_DIR --out RESULTS.json

EVAL_DIR holds held-out.txt, choice.jsonl and recall.jsonl as written by corpus.py.
"""

import argparse
import copy
import json
import math
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import cross_layer  # noqa: F401 (makes the Auto classes know dculab_cla)

END = "<|endoftext|>"
BINS = (0, 100, 200, 400, 600, 1000)
PROMPTS = ("Once upon a time", "One day, Lily and Ben went to the forest.", "In the middle of the night,")


def log_probabilities(model, ids):
    """log p(ids[i + 1] | ids[: i + 1]) for every position."""
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([ids])).logits[0, :-1].float()
    return logits.log_softmax(-1).gather(1, torch.tensor(ids[1:])[:, None])[:, 0]


def perplexity(model, tokenizer, text, window=1024):
    """Windows of 1024 tokens without overlap, each scored on its own."""
    ids = tokenizer(text, add_special_tokens=False).input_ids
    total, count = 0.0, 0
    for start in range(0, len(ids) - 1, window):
        scores = log_probabilities(model, ids[start : start + window])
        total, count = total + scores.sum().item(), count + len(scores)
    return {"tokens": count, "loss": -total / count, "perplexity": math.exp(-total / count)}


def read(model, ids, cache=None):
    """(cache, log probabilities after every one of the ids); the cache given is not changed."""
    with torch.inference_mode():
        out = model(input_ids=torch.tensor([ids]), past_key_values=copy.deepcopy(cache), use_cache=True)
    return out.past_key_values, out.logits[0].float().log_softmax(-1)


def choose(model, tokenizer, cache, first, choices):
    """Index of the likeliest choice, by sum of log probabilities and by mean per character."""
    sums = []
    for text in choices:
        ids = tokenizer(" " + text).input_ids
        rows = first[None]
        if len(ids) > 1:
            rows = torch.cat((rows, read(model, ids[:-1], cache)[1]))
        sums.append(rows.gather(1, torch.tensor(ids)[:, None]).sum().item())
    means = [s / len(" " + c) for s, c in zip(sums, choices)]
    return sums.index(max(sums)), means.index(max(means))


def written_line(model, tokenizer, cache, first, most=10):
    """The rest of the line as the model writes it, greedily."""
    ids, row = [], first
    while len(ids) < most:
        ids.append(row.argmax().item())
        if "\n" in tokenizer.decode(ids):
            break
        cache, rows = read(model, ids[-1:], cache)
        row = rows[-1]
    return tokenizer.decode(ids).strip()


def answer_items(model, tokenizer, path):
    """Yields (right, right per character, right when generated, distance in tokens) for every item."""
    for line in open(path, encoding="utf-8"):
        item = json.loads(line)
        question, context = item["question"], item.get("context", "")
        texts = [c["text"] for c in question["choices"]]
        gold = [c["label"] for c in question["choices"]].index(item["answerKey"])
        prompt = f"{context}Question: {question['stem']}\nAnswer:"
        cache, rows = read(model, tokenizer(prompt).input_ids)
        by_sum, by_mean = choose(model, tokenizer, cache, rows[-1], texts)
        written = written_line(model, tokenizer, cache, rows[-1])
        tail = " ".join(context.split()[-item.get("distance_words", 0) :]) if context else ""
        distance = len(tokenizer(tail).input_ids)
        yield by_sum == gold, by_mean == gold, written == texts[gold] + ".", distance


def accuracy(rows):
    n = len(rows)
    names = ("choice", "choice_per_character", "exact_answer")
    return {"items": n} | {name: sum(r[i] for r in rows) / n for i, name in enumerate(names)}


def by_distance(rows):
    result = {}
    for low, high in zip(BINS, BINS[1:]):
        inside = [r for r in rows if low <= r[3] < high]
        if inside:
            result[f"{low}-{high - 1}"] = accuracy(inside)
    return result


def continuation(model, tokenizer, prompt, tokens, greedy):
    inputs = tokenizer(prompt, return_tensors="pt")
    inputs.pop("token_type_ids", None)
    how = dict(do_sample=False, temperature=None) if greedy else dict(do_sample=True, temperature=0.8, top_k=0)
    with torch.inference_mode():
        ids = model.generate(**inputs, max_new_tokens=tokens, pad_token_id=0, **how)[0]
    return tokenizer.decode(ids[inputs["input_ids"].shape[1] :], skip_special_tokens=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("eval_dir", type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.manual_seed(1)
    tokenizer = AutoTokenizer.from_pretrained(args.folder)
    model = AutoModelForCausalLM.from_pretrained(args.folder, dtype=torch.float32).eval()
    recall = list(answer_items(model, tokenizer, args.eval_dir / "recall.jsonl"))
    results = {
        "held_out": perplexity(model, tokenizer, (args.eval_dir / "held-out.txt").read_text(encoding="utf-8")),
        "choice": accuracy(list(answer_items(model, tokenizer, args.eval_dir / "choice.jsonl"))),
        "recall": accuracy(recall),
        "recall_by_tokens": by_distance(recall),
        "samples": [
            {"prompt": p, "greedy": g, "text": continuation(model, tokenizer, p, 120, g)} for p in PROMPTS for g in (True, False)
        ],
    }
    text = json.dumps(results, indent=2) + "\n"
    print(text)
    if args.out:
        args.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
