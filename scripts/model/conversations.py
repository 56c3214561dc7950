"""Writes conversations in ShareGPT's format for the shipped model, as a workload for `dculab bench --workload`.

    python scripts/model/conversations.py --count 80 --seed 7 --out scenarios/workloads/dculab-tiny-sharegpt.json

Prompts are questions and beginnings of stories in the words that the model was trained on, answers are what such a story
or answer looks like. Their lengths vary as in ShareGPT: mostly short, some long (log-normal).
"""

import argparse
import json
import random
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EVAL = ROOT / "scenarios" / "models" / "dculab-tiny" / "eval"
# Median and spread (of the logarithm) of the words of a turn; ShareGPT's are longer than a context of 1024 holds.
PROMPT_WORDS, ANSWER_WORDS, SPREAD, MOST_WORDS = 40, 70, 0.8, 280


def sentences():
    text = (EVAL / "held-out.txt").read_text(encoding="utf-8").replace("<|endoftext|>", " ")
    return [s.strip() for s in re.split(r"(?<=[.!?])\s+", text) if s.strip() and "Question" not in s and "Answer" not in s]


def stems():
    return [json.loads(line)["question"]["stem"] for line in open(EVAL / "choice.jsonl", encoding="utf-8")]


def passage(rng, pool, median):
    """Sentences in a row until there are as many words as drawn."""
    words = min(MOST_WORDS, max(4, int(rng.lognormvariate(0, SPREAD) * median)))
    start = rng.randrange(len(pool) - 100)
    taken, count = [], 0
    while count < words:
        taken.append(pool[start + len(taken)])
        count += len(taken[-1].split())
    return " ".join(taken)


def conversation(rng, index, pool, questions):
    turns = []
    for _ in range(rng.choice([1, 1, 1, 2])):
        ask = passage(rng, pool, PROMPT_WORDS)
        if rng.random() < 0.4:
            ask = f"Question: {rng.choice(questions)}\nAnswer:"
        turns += [{"from": "human", "value": ask}, {"from": "gpt", "value": passage(rng, pool, ANSWER_WORDS)}]
    return {"id": f"dculab-{index:04d}", "conversations": turns}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=80)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    rng, pool, questions = random.Random(args.seed), sentences(), stems()
    conversations = [conversation(rng, i, pool, questions) for i in range(args.count)]
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(conversations, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
