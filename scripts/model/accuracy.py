"""Adds a row on one model folder to a table of accuracies.

    dculab evaluate ... --format json | python accuracy.py --csv TABLE.csv --name NAME --kv-heads N --method METHOD \
      --steps N --command TEXT

The perplexity and the shares of right choices (likeliest by sum of log probabilities) on two files: choice, recall.
A row with the same model, KV heads, method and steps is replaced.
"""

import argparse
import csv
import json
import sys
from pathlib import Path

COLUMNS = "model,num_key_value_heads,method,uptrained_steps,perplexity,choice_accuracy,recall_accuracy,command".split(",")
KEY = COLUMNS[:4]


def write(path, row):
    """Rows keep the place they had; a new one comes last."""
    rows = list(csv.DictReader(open(path, encoding="utf-8", newline=""))) if path.exists() else []
    places = [i for i, old in enumerate(rows) if all(old[k] == row[k] for k in KEY)]
    if places:
        rows[places[0]] = row
    else:
        rows.append(row)
    with open(path, "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--csv", type=Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--kv-heads", type=int, required=True)
    parser.add_argument("--method", required=True)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--command", required=True)
    args = parser.parse_args()
    (found,) = json.load(sys.stdin)["rows"]
    choice, recall = found["choices"]
    row = {
        "model": args.name,
        "num_key_value_heads": str(args.kv_heads),
        "method": args.method,
        "uptrained_steps": str(args.steps),
        "perplexity": f"{found['text']['perplexity']:.4f}",
        "choice_accuracy": f"{choice['accuracy']:.4f}",
        "recall_accuracy": f"{recall['accuracy']:.4f}",
        "command": args.command,
    }
    print(row, flush=True)
    write(args.csv, row)


if __name__ == "__main__":
    main()
